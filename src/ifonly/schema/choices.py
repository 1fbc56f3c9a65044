"""Discrete features (binary, ordinal, categorical) and their encodings: one-hot, dummy, thermometer, code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import RowError, SchemaError
from ifonly.printing import escaped, shown, some_of
from ifonly.schema.number_text import other_reading, two_readings
from ifonly.schema.numbers import Integer, Real
from ifonly.schema.values import Value, is_missing, plain, text_means
from ifonly.schema.wording import FeatureWording, at_row, check_name, check_words, option_text, who_has

Encoding: TypeAlias = Literal["onehot", "dummy", "thermometer", "code"]


class Choice(FeatureWording):
    """Base of binary, ordinal and categorical features: a short list of options, each with encoded columns."""

    name: str
    options: tuple[Value, ...]
    encoding: Encoding
    columns: Sequence[str] = ()
    """The names of the encoded columns where they are not the usual ones."""
    kind: ClassVar[str]
    ordered: ClassVar[bool] = False

    def _set_columns(self, known: tuple[str, ...]) -> None:
        """Check the encoding, and the names of its columns if they are given."""
        _check_encoding(self.name, self.encoding, known)
        if self.encoding == "dummy" and len(self.options) < 2:
            raise SchemaError(f"Feature '{self.name}': encoding='dummy' needs at least two options.")
        given = self.columns
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(c, str) for c in given):
            raise SchemaError(f"Feature '{self.name}': 'columns' must be a list of column names; it is {shown(given)}.")
        object.__setattr__(self, "columns", tuple(given))
        for name in given:
            check_name(name)
        if given and len(given) != self.codes.shape[1]:
            raise SchemaError(
                f"Feature '{self.name}' has {self.codes.shape[1]} encoded column(s), but 'columns' names {len(given)}."
            )

    def _set_options(self, options: Sequence[Any]) -> None:
        check_name(self.name)
        scalar = isinstance(options, str | bytes) or (isinstance(options, np.ndarray) and options.ndim == 0)
        if scalar or not isinstance(options, Sequence | np.ndarray):
            raise SchemaError(f"Feature '{self.name}': its options must be a list; got {shown(options)}.")
        cleaned = tuple(None if is_missing(plain(o)) else plain(o) for o in options)
        seen: set[Value] = set()
        for option in cleaned:
            if option is not None and not isinstance(option, str | bool | int | float):
                raise SchemaError(
                    f"Feature '{self.name}': option {shown(option)} must be a string, a number or a boolean."
                )
            if isinstance(option, float) and math.isinf(option):
                raise SchemaError(f"Feature '{self.name}': option {shown(option)} must be finite.")
            if option in seen:  # True and 1 count as the same, "1" and 1 do not
                raise SchemaError(f"Feature '{self.name}': option {shown(option)} is listed twice.")
            seen.add(option)
        if not cleaned:
            raise SchemaError(f"Feature '{self.name}' needs at least 1 option(s); it has 0.")
        object.__setattr__(self, "options", cleaned)
        check_words(self)

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {option: i for i, option in enumerate(self.options)}

    @cached_property
    def codes(self) -> NDArray[np.float64]:
        """Row i holds the encoded columns of option i."""
        k = len(self.options)
        match self.encoding:
            case "onehot":
                codes = np.eye(k)
            case "dummy":
                codes = np.eye(k)[:, 1:]
            case "thermometer":
                codes = np.tril(np.ones((k, k)))
            case "code":
                codes = np.arange(k, dtype=np.float64).reshape(k, 1)
        codes.flags.writeable = False
        return codes

    @property
    def column_names(self) -> tuple[str, ...]:
        if self.columns:
            return tuple(self.columns)
        match self.encoding:
            case "onehot":
                return tuple(f"{self.name}={option_text(o)}" for o in self.options)
            case "dummy":
                return tuple(f"{self.name}={option_text(o)}" for o in self.options[1:])
            case "thermometer":
                return tuple(f"{self.name}>={option_text(o)}" for o in self.options)
            case "code":
                return (self.name,)

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.options)

    def describe(self) -> str:
        return f"one of: {some_of([escaped(option_text(option)) for option in self.options], 12)}"

    def read(self, value: Any, *, row: int | None = None) -> float:
        """The index of the option that the user's value names, or a RowError."""
        if type(value) is str and value in self._index:  # what most values are
            return float(self._index[value])
        value = plain(value)
        missing = is_missing(value)
        key = None if missing else value
        try:
            index = self._index.get(key)
        except TypeError:
            index = None
        if index is not None:
            return float(index)
        if isinstance(value, str):  # text files know only strings: "0" may mean 0, "True" may mean True
            for i, option in enumerate(self.options):
                if option is not None and not isinstance(option, str) and text_means(value, option):
                    self._check_clear(value, row)
                    return float(i)
        if missing:
            message = (
                f"Feature '{self.name}' has no value{at_row(row)}; fill it in, or declare missing as one of its "
                f"options by adding None to them."
            )
        else:
            message = f"Feature '{self.name}' must be {self.describe()}; {who_has(row)} {shown(value)}."
        raise RowError(message, feature=self.name, row=row, value=value)

    def _check_clear(self, text: str, row: int | None) -> None:
        """Refuse a text such as 1.000 that stands for two options, by either decimal mark."""
        other = other_reading(text)
        if other is not None and any(not isinstance(option, str) and option == other for option in self.options):
            message = (
                f"Feature '{self.name}': {who_has(row)} {shown(text)}, which may be {two_readings(text)}; write one."
            )
            raise RowError(message, feature=self.name, row=row, value=text)

    def value(self, number: float) -> Value:
        return self.options[int(number)]

    def _to_dict(self, **own: Any) -> dict[str, Any]:
        columns = {"columns": list(self.columns)} if self.columns else {}
        return {"kind": self.kind, "name": self.name, **own, "encoding": self.encoding, **columns, **self._words()}


@dataclass(frozen=True)
class Binary(Choice):
    """Two values, encoded as one column: 0 for the first, 1 for the second."""

    name: str
    values: Sequence[Any] = (False, True)
    kind: ClassVar[str] = "binary"
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_options(self.values)
        if len(self.options) != 2:
            raise SchemaError(f"Feature '{self.name}': a binary feature has two values; got {len(self.options)}.")
        object.__setattr__(self, "values", self.options)
        object.__setattr__(self, "encoding", "code")

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "values": list(self.options), **self._words()}


@dataclass(frozen=True)
class Ordinal(Choice):
    """Named levels in order. Thermometer (k bits, the first always 1), one-hot, dummy, or the level's number."""

    name: str
    levels: Sequence[Any] = ()
    encoding: Encoding = "thermometer"
    columns: Sequence[str] = field(default=(), kw_only=True)
    kind: ClassVar[str] = "ordinal"
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_options(self.levels)
        object.__setattr__(self, "levels", self.options)
        self._set_columns(("thermometer", "onehot", "dummy", "code"))

    def to_dict(self) -> dict[str, Any]:
        return self._to_dict(levels=list(self.options))


@dataclass(frozen=True)
class Categorical(Choice):
    """Named categories without order. One-hot, "dummy" (one-hot without the first), or the category's number.

    `columns` names the encoded columns where the model knows them otherwise than `name=category`.
    """

    name: str
    categories: Sequence[Any] = ()
    encoding: Encoding = "onehot"
    columns: Sequence[str] = field(default=(), kw_only=True)
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        self._set_options(self.categories)
        object.__setattr__(self, "categories", self.options)
        self._set_columns(("onehot", "dummy", "code"))

    def to_dict(self) -> dict[str, Any]:
        return self._to_dict(categories=list(self.options))


@dataclass(frozen=True)
class Missing(Categorical):
    """A missing number as a feature with one option. Created by `Schema.with_missing`."""

    number: Real | Integer | None = None

    @classmethod
    def of(cls, number: Real | Integer) -> Missing:
        return cls(number.name, (None,), "code", number, label=number.label, unit=number.unit,
                   translations=number.translations)  # fmt: skip


def _check_encoding(name: str, encoding: str, known: tuple[str, ...]) -> None:
    if not isinstance(encoding, str) or encoding not in known:
        raise SchemaError(f"Feature '{name}': encoding must be one of {', '.join(known)}; it is {shown(encoding)}.")
