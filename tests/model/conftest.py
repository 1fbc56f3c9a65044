"""A schema with every kind of feature, rows of it in every form, and the one check that every importer must pass."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ifonly.model import Model
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema, to_frame

FEATURES = (
    Real("income", -2.0, 8.0),
    Categorical("job", ("baker", "nurse", "pilot")),
    Integer("age", 18, 90),
    Binary("married"),
    Ordinal("school", ("none", "some", "all")),
    Integer("children", 0, 8, 2),
    Categorical("town", ("A", "B", None)),
)


def frame_of(schema: Schema, points: NDArray[np.float64]) -> Any:
    """Points as pandas would have read them from a file: missing text is NaN."""
    frame = to_frame(schema, points)
    return frame.where(frame.notna(), np.nan)


@dataclass(frozen=True)
class Rows:
    """The same training rows as points, as encoded columns and as a DataFrame, with labels."""

    schema: Schema
    points: NDArray[np.float64]

    @property
    def encoded(self) -> NDArray[np.float64]:
        return self.schema.encode(self.points)

    @property
    def frame(self) -> Any:
        return frame_of(self.schema, self.points)

    def labels(self, names: tuple[Any, ...]) -> NDArray[Any]:
        """As many classes as names, by a rule that a small model can half learn."""
        wealth = self.points[:, 0] + 0.05 * self.points[:, 2] + self.points[:, 4]
        cuts = np.quantile(wealth, np.linspace(0, 1, len(names) + 1)[1:-1])
        return np.array(names)[np.searchsorted(cuts, wealth)]


@pytest.fixture(scope="session")
def schema() -> Schema:
    """Columns in an order of their own: one-hot and thermometer columns are scattered among the numbers."""
    natural = Schema(FEATURES).columns
    return Schema(FEATURES, tuple(natural[i] for i in np.random.default_rng(7).permutation(len(natural))))


@pytest.fixture(scope="session")
def rows(schema: Schema) -> Rows:
    return Rows(schema, schema.sample(200, np.random.default_rng(3)))


def _agree(model: Model) -> None:
    points = model.schema.sample(1000, np.random.default_rng(11))
    ours, theirs = model.network.scores(model.schema.encode(points)), model.scores(points)
    worst = np.abs(ours - theirs).max(axis=0)
    bound = model.error
    assert theirs.shape == (1000, model.network.outputs)
    if model.precision == "float64":
        assert (worst <= 1e-9).all(), worst
    assert (worst <= bound).all(), (worst, bound)
    assert model.deviation <= bound.max()
    assert model.deviation > 0.0 or worst.max() == 0.0


@pytest.fixture(scope="session")
def agree() -> Callable[[Model], None]:
    """On 1,000 fresh rows, network and original differ by rounding only, and by no more than the proven bound."""
    return _agree


@pytest.fixture
def without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, onnxruntime cannot be imported, as where it is not installed."""
    plain = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return plain(name, package)

    return lambda: monkeypatch.setattr(importlib, "import_module", without)
