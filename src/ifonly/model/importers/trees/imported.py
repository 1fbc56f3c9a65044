"""What an importer reads from a library's tree ensemble: trees, columns, classes, and how its original is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.importers.one_thread import FEW_ROWS
from ifonly.model.importers.sklearn_original import call_model
from ifonly.model.trees import Ensemble
from ifonly.schema.values import plain

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Call:
    """A method of the original, and what it is called with besides the table."""

    method: str
    options: tuple[tuple[str, Any], ...] = ()
    divisor: float = 1.0
    few: tuple[tuple[str, Any], ...] = ()
    """Further options where the table has a few rows: the number of threads."""

    def __call__(self, model: Any, source: Any, points: Floats) -> Floats:
        options = self.options + (self.few if len(points) <= FEW_ROWS else ())
        answer = call_model(model, self.method, source, points, **dict(options))
        return np.asarray(answer, dtype=np.float64).reshape(len(points), -1) / self.divisor


class BinColumns(Protocol):
    """From a table to the columns that trees split."""

    @property
    def table_columns(self) -> int:
        """How many columns the table has."""

    @property
    def features(self) -> Sequence[int]:
        """The column of the table that each of them is about."""

    @property
    def unseen(self) -> Sequence[int | None]:
        """The bin of each of them for categories that the model was fitted without; None for numbers."""

    def __call__(self, table: Any) -> Floats: ...


@dataclass(frozen=True, kw_only=True)
class ImportedTrees:
    """A tree ensemble as an importer read it from its library.

    `categories`: the columns that the library takes as categories, with the values of the codes 0, 1, ...
    `probabilities`: how the scores relate to the probabilities that the model reports, if they do.
    """

    name: str
    ensemble: Ensemble
    scores: Callable[[Any, Any, Floats], Floats]
    classes: tuple[Any, ...] = ()
    names: tuple[str, ...] | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    unseen: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Of columns of categories: the places of the options that the library was fitted without."""
    probabilities: Literal["fractions", "log-odds"] | None = None
    reported: Callable[[Any, Any, Floats], Floats] = Call("predict_proba")
    decided: bool = True
    """`predict` gives a class."""
    tie: float = 0.0
    zero_is_second: bool = False
    """A score of exactly 0 is decided for the second class."""
    as_categories: bool = False
    """The library reads categories as a column of pandas' categorical type."""
    zeros: Literal["numbers", "missing", "missing if sparse"] = "numbers"
    """Whether the library reads zeros as missing values: always, in a sparse table, or never."""
    coded_from_zero: frozenset[int] = frozenset()
    """Columns of categories whose code 0 is a category, also where zeros are missing values: so it is to LightGBM."""
    read_as_zero: float = 0.0
    """Numbers up to this size are read as 0."""
    bins: BinColumns | None = None
    """The binning that the library applies to its table before the trees read it."""
    over_features: bool = False
    """The trees read the features of the schema, not the columns of the library."""
    accepted: Any = None
    """See `Model.accepted`."""
    raw: bool = False
    """The library reads the user's own values, whatever the names of its columns."""


def classes_of(estimator: Any) -> tuple[Any, ...]:
    """The classes of an estimator, as plain values."""
    classes = tuple(plain(c) for c in np.asarray(estimator.classes_).tolist())
    if len(classes) < 2:
        raise UnsupportedModel(
            f"The {type(estimator).__name__} knows one class only, {classes[0]!r}: it decides nothing.",
            operation="one class",
        )
    return classes
