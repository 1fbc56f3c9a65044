"""What is asked about, and what one data set's question is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import environments
from benchmarks.peers.environments import NoEnvironment
from benchmarks.peers.talk import Peer
from benchmarks.suites.plausible.outcome import Judges, Way
from benchmarks.terminal import console

TRAINING_ROWS = 2000
DELTA = 0.005
"""Change of each weight."""


@dataclass(frozen=True)
class Settings:
    """The command's options."""

    rows: int
    changes: int
    seconds: float
    checkout: Path | None
    cache: Path

    @property
    def peer_budget(self) -> float:
        """CPU seconds after which a peer is ended, which keeps a limit of its own."""
        return 2.0 * self.seconds


@dataclass
class Question:
    """People by number of row, ways of answering by name, who judges; peers that are ended with it."""

    people: dict[int, Any]
    judges: Judges
    ways: dict[str, Way] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    def peer(self, library: str, way: str, folder: Path, settings: Settings) -> Peer | None:
        """The peer in its environment; None, and why, if that cannot be made."""
        try:
            python = environments.python_of(library, settings.cache, console())
        except NoEnvironment as error:
            console().print(f"{library}: {error}")
            return None
        peer = Peer(python, f"{library}-{way}" if way else library, folder)
        self.stack.callback(peer.close)
        return peer

    @contextmanager
    def closing(self) -> Iterator[Question]:
        with self.stack:
            yield self


def training_rows(train: Any) -> Any:
    return np.random.default_rng(0).choice(train, min(TRAINING_ROWS, len(train)), replace=False)


def denied(model: Any, points: Any, test: Any, rows: int) -> dict[int, Any]:
    """The first test rows that the model decides against."""
    found = test[model.decide(model.scores(points[test])) == 0][:rows]
    return {int(i): points[i] for i in found}


def outlier_factor(rows: Any) -> Any:
    """scikit-learn's, with its 20 neighbours."""
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(novelty=True).fit(rows)
