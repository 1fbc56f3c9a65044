"""Schema: the features of a row, in order, and the encoded columns that a model reads.

Three views of the same thing: the user's *row* (names to values), the *point* (one float64 per feature, see
`features`), and the *encoded* columns in whatever order the model was trained with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import RowError, SchemaError
from ifonly.printing import MOST, printable, shown, some_of
from ifonly.schema.arguments import items, one_row
from ifonly.schema.column_encoder import ColumnEncoder, decoded
from ifonly.schema.decimals import Grid, Grids
from ifonly.schema.features import Choice, Feature, Integer, Missing, Numeric, Real
from ifonly.schema.values import Value

MAX_COLUMNS = 100_000


@dataclass(frozen=True, repr=False)
class Schema:
    """Features in the user's order; `columns` gives the model's column order when it is not the natural one.

    Natural order: feature after feature. Column names are the feature's own name for numbers, binaries and codes,
    `feature=category` for one-hot and `feature>=level` for thermometer columns.

    `rules` are constraints in words that hold for everybody ("Age only goes up"); a question reads them.
    """

    features: Sequence[Feature]
    columns: Sequence[str] = ()
    rules: Sequence[str] = ()

    def __post_init__(self) -> None:
        features, order, rules = (items(given) for given in (self.features, self.columns, self.rules))
        if features is None:
            raise SchemaError(f"A schema is made from a list of features; got {shown(self.features)}.")
        if order is None or not all(isinstance(column, str) for column in order):
            raise SchemaError(f"The column order must be a list of column names; got {shown(self.columns)}.")
        if rules is None or not all(isinstance(rule, str) for rule in rules):
            raise SchemaError(f"The rules of a schema must be a list of texts; got {shown(self.rules)}.")
        object.__setattr__(self, "rules", rules)
        if not features:
            raise SchemaError("A schema needs at least one feature.")
        seen: set[str] = set()
        for feature in features:
            if not isinstance(feature, Numeric | Choice):
                raise SchemaError(f"A schema is made of features such as Real or Categorical; got {shown(feature)}.")
            if feature.name in seen:
                raise SchemaError(f"Feature '{feature.name}' is listed twice.")
            seen.add(feature.name)
        object.__setattr__(self, "features", features)
        natural = tuple(name for feature in features for name in feature.column_names)
        if len(natural) > MAX_COLUMNS:
            raise SchemaError(f"The schema has {len(natural)} encoded columns; at most {MAX_COLUMNS} are supported.")
        twice = [name for name, times in Counter(natural).items() if times > 1]
        if twice:
            raise SchemaError(f"Two encoded columns would both be called '{twice[0]}'; rename a feature or an option.")
        columns = order or natural
        extra, absent = list(Counter(columns) - Counter(natural)), list(Counter(natural) - Counter(columns))
        if extra or absent:
            raise SchemaError(
                "The column order must list each encoded column once; "
                + (f"unknown or repeated: {extra[:3]}" if extra else "")
                + ("; " if extra and absent else "")
                + (f"missing: {absent[:3]}" if absent else "")
                + "."
            )
        object.__setattr__(self, "columns", columns)

    def __repr__(self) -> str:
        named = ", ".join(f"{feature.name} ({feature.kind})" for feature in self.features[:3])
        rules = f"; {len(self.rules)} rules" if self.rules else ""
        return printable(f"<Schema: {len(self)} features: {named}{', ...' if len(self) > 3 else ''}{rules}>")

    def _repr_html_(self) -> str:
        from ifonly.schema.showing import schema_fragment

        return schema_fragment(self)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}  # texts hash anew per process

    @cached_property
    def _hash(self) -> int:
        return hash((self.features, self.columns, self.rules))

    # ------------------------------------------------------------------ making, loading, saving

    @classmethod
    def infer(cls, table: Any) -> Schema:
        """A schema proposed from a table; `ifonly.schema.infer` gives the list of guesses with it."""
        from ifonly.schema.infer import infer, warn_of_left_out

        schema, guesses = infer(table)
        warn_of_left_out(guesses)
        return schema

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file."""
        from ifonly.schema.io import load_schema

        return load_schema(path)

    def save(self, path: str | Path) -> None:
        """Write a schema file."""
        from ifonly.schema.io import save_schema

        save_schema(self, path)

    def to_json(self) -> str:
        """The text of a schema file."""
        from ifonly.schema.io import schema_text

        return schema_text(self)

    def to_yaml(self) -> str:
        """The same as YAML, which `load` reads as well."""
        from ifonly.schema.io import schema_text

        return schema_text(self, yaml=True)

    # ------------------------------------------------------------------ other schemas from this one

    def replace(self, *features: Feature) -> Schema:
        """The same schema with these features in the places of those that have their names."""
        from ifonly.schema.editing import replaced

        return replaced(self, features)

    def drop(self, *names: str) -> Schema:
        """The same schema without these features."""
        from ifonly.schema.editing import dropped

        return dropped(self, names)

    def rename(self, names: Mapping[str, str]) -> Schema:
        """The same schema with other names, such as {"x7": "Age"}."""
        from ifonly.schema.editing import renamed

        return renamed(self, names)

    def labelled(
        self,
        labels: Mapping[str, str],
        units: Mapping[str, str] | None = None,
        *,
        options: Mapping[str, Mapping[Any, str]] | None = None,
        language: str = "",
    ) -> Schema:
        """The same schema with labels for display, {"Income": "monthly income"}, and units.

        With a `language` ("en", "de") they are for this language only, and `options` names options in it:
        {"Job": {"nurse": "Pflegekraft"}}.
        """
        from ifonly.schema.editing import labelled, translated

        if language or options:
            return translated(self, language, {"label": labels, "unit": units or {}, "options": options or {}})
        return labelled(self, labels, units or {})

    def with_rules(self, *rules: str) -> Schema:
        """The same schema with these rules besides its own."""
        from ifonly.schema.editing import with_rules

        return with_rules(self, rules)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The position of a feature, or a SchemaError that suggests the name that was meant."""
        if not isinstance(name, str):
            raise SchemaError(f"A feature is named by a text; got {shown(name)}.")
        if name in self._positions:
            return self._positions[name]
        close = [f.name for f in self.features if name in f.labels]
        close = close or get_close_matches(name[:MOST], self.names, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"the features are {some_of(self.names)}."
        raise SchemaError(f"There is no feature '{printable(name)}'; {hint}")

    @cached_property
    def feature_columns(self) -> tuple[NDArray[np.intp], ...]:
        """For each feature, where its encoded columns stand in the model's order."""
        place = {name: i for i, name in enumerate(self.columns)}
        return tuple(np.array([place[c] for c in feature.column_names], dtype=np.intp) for feature in self.features)

    # ------------------------------------------------------------------ missing numbers

    @cached_property
    def may_have_missing(self) -> bool:
        """Whether a number may be missing in a row of this schema."""
        return any(isinstance(feature, Numeric) and feature.missing for feature in self.features)

    def missing_names(self, point: NDArray[np.float64]) -> tuple[str, ...]:
        """The numbers that are missing in a row."""
        return tuple(self.names[g] for g in np.flatnonzero(np.isnan(point)).tolist()) if self.may_have_missing else ()

    def with_missing(self, names: Collection[str]) -> Schema:
        """The schema of rows in which these numbers are missing, and stay missing: the same columns, and no rules of
        its own, since rules are merged and read for all rows alike.
        """
        features = (Missing.of(f) if f.name in names and isinstance(f, Real | Integer) else f for f in self.features)
        return Schema(tuple(features), self.columns)

    @cached_property
    def whole(self) -> Schema:
        """The schema that this is the `with_missing` of, without its rules."""
        features = [f.number if isinstance(f, Missing) and f.number is not None else f for f in self.features]
        return Schema(tuple(features), self.columns)

    @cached_property
    def unknown(self) -> frozenset[int]:
        """The positions of the numbers that are missing in all rows of this schema."""
        return frozenset(g for g, feature in enumerate(self.features) if isinstance(feature, Missing))

    # ------------------------------------------------------------------ rows and points

    def read(self, row: Any, *, number: int | None = None) -> NDArray[np.float64]:
        """The point of one row: a mapping, a pandas Series, or a sequence in feature order."""
        if type(row) is not dict:  # which most rows are
            row = row if isinstance(row, Mapping) else one_row(row, number)
        values = self._named(row, number) if isinstance(row, dict | Mapping) else self._ordered(row, number)
        return np.array([f.read(v, row=number) for f, v in zip(self.features, values, strict=True)], dtype=np.float64)

    def _named(self, row: Mapping[Any, Any], number: int | None) -> list[Any]:
        try:
            return [row[name] for name in self.names]
        except KeyError:
            dummies = self._from_dummies(row)
            if dummies is not None:
                return dummies
            name = next(name for name in self.names if name not in row)
            where = "the row" if number is None else f"row {number}"
            message = f"Feature '{name}' is not in {where}; it has {some_of(list(row)) or 'nothing'}."
            raise RowError(message, feature=name, row=number) from None

    def _from_dummies(self, row: Mapping[Any, Any]) -> list[Any] | None:
        """The values of a row that has the encoded columns of some features in their place; None where it has not."""
        from ifonly.schema.families import from_dummies

        values = []
        for feature in self.features:
            if feature.name in row:
                values.append(row[feature.name])
                continue
            coded = {column: [row[column]] for column in feature.column_names if column in row}
            options = from_dummies(feature, coded) if isinstance(feature, Choice) else None
            if options is None:
                return None
            values += options
        return values

    def _ordered(self, row: Any, number: int | None) -> list[Any]:
        flat = row[0] if isinstance(row, np.ndarray) and row.ndim == 2 and len(row) == 1 else row
        listed = hasattr(flat, "__len__") and hasattr(flat, "__getitem__") and not isinstance(flat, str | bytes)
        if not listed or getattr(flat, "ndim", 1) != 1:
            what = f"an array of shape {row.shape}" if isinstance(row, np.ndarray) else shown(row)
            raise RowError(f"A row must be a mapping or a sequence of {len(self)} values; got {what}.", row=number)
        values = list(flat)
        if len(values) != len(self):
            raise RowError(
                f"A row must have {len(self)} values, one per feature ({some_of(self.names)}); "
                f"{'this one' if number is None else f'row {number}'} has {len(values)}.",
                row=number,
            )
        return values

    def row(self, point: NDArray[np.float64]) -> dict[str, Value]:
        """A point in the user's own values."""
        return {f.name: f.value(v) for f, v in zip(self.features, point.tolist(), strict=True)}

    def admits(self, points: NDArray[np.float64], before: NDArray[np.float64] | None = None) -> NDArray[np.bool_]:
        """Which points (one or many) are rows of this schema, exactly? No tolerance: a returned row must pass this.

        A real number with a step must be on its grid, or be what it was `before`.
        """
        lower, upper, _ = self.grid
        stepped, low, by = self._steps
        steps = (points - low) / by
        np.rint(steps, out=steps, where=stepped)
        good = np.asarray(((points >= lower) & (points <= upper) & (low + by * steps == points)).all(axis=-1))
        if self.grids:
            places, grids = self.on_grids
            here = points[..., places]
            on_grid = grids.nearest_to(here) == here
            good &= (on_grid if before is None else on_grid | (here == before[..., places])).all(axis=-1)
        return good

    @cached_property
    def _steps(self) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """Which coordinates have a step, the lower end of these, and the step; 0 and 1 for the others."""
        lower, _, step = self.grid
        stepped = step > 0.0
        return stepped, np.where(stepped, lower, 0.0), np.where(stepped, step, 1.0)

    @cached_property
    def reals(self) -> NDArray[np.intp]:
        """Which features are real numbers without a step."""
        reals = [i for i, f in enumerate(self.features) if isinstance(f, Real) and i not in self.grids]
        return np.array(reals, dtype=np.intp)

    @cached_property
    def grids(self) -> dict[int, Grid]:
        """The grids of the real numbers that have a step."""
        reals = ((i, feature.grid) for i, feature in enumerate(self.features) if isinstance(feature, Real))
        return {i: grid for i, grid in reals if grid is not None}

    @cached_property
    def on_grids(self) -> tuple[NDArray[np.intp], Grids]:
        """The places of the features that have a grid, and these grids."""
        return np.array(list(self.grids), dtype=np.intp), Grids(list(self.grids.values()))

    @cached_property
    def grid(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Lower end, upper end and step of each coordinate of a point; the step of a real feature is 0."""
        ends = [
            (0.0, len(f.options) - 1.0, 1.0)
            if isinstance(f, Choice)
            else (f.lower, f.upper, float(f.step) if isinstance(f, Integer) else 0.0)
            for f in self.features
        ]
        lower, upper, step = np.array(ends).T
        return lower, upper, step

    # ------------------------------------------------------------------ encoded columns

    def encode(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points (one or many) as the model's columns."""
        return self._encoder.encoded(points)

    @cached_property
    def _encoder(self) -> ColumnEncoder:
        return ColumnEncoder.of(self.features, self.feature_columns)

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points of encoded rows; a RowError when a row is not the encoding of any point."""
        many = np.atleast_2d(np.asarray(encoded, dtype=np.float64))
        if many.shape[1] != len(self.columns):
            raise RowError(f"Encoded rows must have {len(self.columns)} columns; got {many.shape[1]}.")
        points = decoded(many, self.features, self.feature_columns)
        return points if np.ndim(encoded) == 2 else points[0]

    def sample(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Points drawn uniformly and independently, feature by feature."""
        points = np.empty((count, len(self)))
        for i, feature in enumerate(self.features):
            if isinstance(feature, Choice):
                points[:, i] = rng.integers(0, len(feature.options), count)
            elif isinstance(feature, Integer):
                points[:, i] = feature.lower + feature.step * rng.integers(0, feature.steps + 1, count)
            elif i in self.grids:
                points[:, i] = self.grids[i].values(rng.integers(0, self.grids[i].steps + 1, count))
            else:
                points[:, i] = rng.uniform(feature.lower, feature.upper, count)
        return points
