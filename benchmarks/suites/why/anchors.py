"""Anchors: the features that alibi's AnchorTabular (precision 0.95) names for a person, asked in alibi's environment.

An anchor asks for ranges of values, so its features, fixed at the person's own values, say more than it does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import environments, handover
from benchmarks.peers.talk import Peer
from benchmarks.suites.why.subjects import Subject
from benchmarks.terminal import console


@contextmanager
def anchors(subject: Subject, cache: Path) -> Iterator[Peer]:
    """alibi at work on this model: a point goes in, and a row comes out that has a 1 for each feature of the anchor."""
    python = environments.python_of("alibi", cache, console())
    with tempfile.TemporaryDirectory() as folder:
        _hand_over(Path(folder), subject)
        peer = Peer(python, "alibi-anchors", Path(folder))
        try:
            yield peer
        finally:
            peer.close()


def _hand_over(folder: Path, subject: Subject) -> None:
    schema, points = subject.data.schema, subject.data.points()
    handover.write_features(folder, schema, budget=0.0)
    arrays: dict[str, NDArray[np.float64]] = {"train": points, "labels": np.asarray(subject.data.labels)}
    if subject.forest is None:
        arrays |= handover.weights(subject.explainer.model, schema)
    else:
        joblib.dump(subject.forest, folder / "model.joblib")
        arrays["columns"] = handover.columns_of_options(schema)
    np.savez(folder / "task.npz", **arrays)  # type: ignore[arg-type]
