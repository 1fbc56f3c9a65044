"""The five kinds of feature.

A *point* holds one float64 per feature: the number itself for numeric features (real, integer), the index of the
chosen option for the others (binary, ordinal, categorical). Every room of the house works on points; the user's own
values appear only here, at the door.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import RowError, SchemaError
from ifonly.printing import escaped, is_printable, quoted, shown
from ifonly.schema.decimals import Grid, rounded, written
from ifonly.tolerances import GRID

Value: TypeAlias = str | bool | int | float | None
Encoding: TypeAlias = Literal["onehot", "dummy", "thermometer", "code"]
MAX_NAME = 200
"""Characters of a feature's name."""
MAX_UNIT = 40
"""Characters of its unit."""
NO_VALUE = ("", "na", "n/a", "nan", "null", "none")
"""Texts that stand for a missing number in a table."""


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing markers of pandas and polars."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value it stands for; a whole number that no float64 reaches as infinity, which
    every door refuses; anything else unchanged."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return value


def same_value(a: Any, b: Any) -> bool:
    """Equality of option values: True is 1, but "1" is not; missing equals missing."""
    if is_missing(a) or is_missing(b):
        return is_missing(a) and is_missing(b)
    return isinstance(a, str) == isinstance(b, str) and bool(a == b)


@dataclass(frozen=True)
class Worded:
    """What people are told of a feature: `label` for its name ("monthly income"), `unit` after or before its values
    ("€", "months"). Both may be left out; nothing is decided by them."""

    label: str = field(default="", kw_only=True, repr=False)
    unit: str = field(default="", kw_only=True, repr=False)

    def _words(self) -> dict[str, str]:
        """Those that are given."""
        return {key: value for key, value in (("label", self.label), ("unit", self.unit)) if value}


@dataclass(frozen=True)
class Numeric(Worded):
    """What real and integer features share: an interval of numbers, encoded as one column.

    `missing`: rows may lack the number, if the model takes that. The coordinate of a point is then NaN.
    """

    name: str
    lower: float
    upper: float
    missing: bool = field(default=False, kw_only=True)
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_words(self)
        if not isinstance(self.missing, bool):
            raise SchemaError(f"Feature '{self.name}': 'missing' must be True or False; it is {shown(self.missing)}.")
        for end in ("lower", "upper"):
            value = plain(getattr(self, end))
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise SchemaError(f"Feature '{self.name}': '{end}' must be a finite number; it is {shown(value)}.")
            object.__setattr__(self, end, float(value) + 0.0)  # + 0.0 turns -0.0 into 0.0
        if self.lower > self.upper:
            raise SchemaError(
                f"Feature '{self.name}': lower bound {show_number(self.lower)} is above upper bound "
                f"{show_number(self.upper)}; swap them."
            )
        if not math.isfinite(self.width):
            raise SchemaError(f"Feature '{self.name}': its range is too wide for float64; give it narrower bounds.")

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def describe(self) -> str:
        raise NotImplementedError

    def read(self, value: Any, *, row: int | None = None) -> float:
        """The user's value as a number of this feature, or a RowError."""
        if type(value) is float or (type(value) is int and -(2**53) <= value <= 2**53):  # what most values are
            snapped = self.snap(float(value))
            if snapped is not None:
                return snapped
        value = plain(value)
        if self.missing and (is_missing(value) or (isinstance(value, str) and value.strip().lower() in NO_VALUE)):
            return math.nan
        if is_missing(value):
            message = (
                f"Feature '{self.name}' has no value{_at(row)}; fill it in before asking, or, if the model takes "
                f"missing numbers (a pipeline that imputes them), declare the feature with missing=True."
            )
            raise RowError(message, feature=self.name, row=row, value=value)
        try:
            number = math.nan if isinstance(value, bytes | bytearray | np.ndarray) else float(value)
        except Exception:  # whatever the value's own __float__ raises
            amount = money(value) if isinstance(value, str) else None
            if amount is None:
                raise self._wrong(value, row) from None
            number = amount
        snapped = self.snap(number)
        if snapped is None or (isinstance(value, str) and "_" in value):  # float("1_0") is 10: not what people mean
            raise self._wrong(value, row)
        return snapped

    def snap(self, number: float) -> float | None:
        """The number if it belongs to the feature (integers: the grid value it stands for), else None."""
        return number if self.lower <= number <= self.upper else None

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers belong to the feature, exactly as they are?"""
        return (numbers >= self.lower) & (numbers <= self.upper)

    def _or_missing(self) -> str:
        return " or missing" if self.missing else ""

    def _to_dict(self, **own: Any) -> dict[str, Any]:
        missing = {"missing": True} if self.missing else {}
        return {"kind": self.kind, "name": self.name, **own, **missing, **self._words()}

    def _wrong(self, value: Any, row: int | None) -> RowError:
        message = f"Feature '{self.name}' must be {self.describe()}; {_who(row)} {shown(value)}."
        return RowError(message, feature=self.name, row=row, value=value)


@dataclass(frozen=True)
class Real(Numeric):
    """A real number in [lower, upper].

    With a `step` it changes to lower, lower + step, ... only, exactly as written: 0.01, 5, "1/12". The person's own
    value may be off this grid, and may stay there.
    """

    step: float | str | Fraction | None = None
    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        if self.step is not None:
            step = read_step(self.name, self.step)
            object.__setattr__(self, "step", step)
            self._check_grid(step)

    def _check_grid(self, step: Fraction) -> None:
        where, by, grid = f"Feature '{self.name}'", show_step(step), self.grid
        if step > written(self.upper) - written(self.lower) and (grid is None or grid.steps == 0):
            raise SchemaError(
                f"{where}: a step of {by} is larger than its range [{show_number(self.lower)}, "
                f"{show_number(self.upper)}]; give a smaller step, or wider bounds."
            )
        if grid is None:
            raise SchemaError(f"{where}: steps of {by} are too fine for float64 in this range; give a coarser step.")
        if grid.value(grid.steps) != self.upper:
            last, beyond = (show_number(grid.value(k)) for k in (grid.steps, grid.steps + 1))
            raise SchemaError(
                f"{where}: upper bound {show_number(self.upper)} is no whole number of steps of {by} above "
                f"{show_number(self.lower)}; make it {last} or {beyond}."
            )

    @cached_property
    def grid(self) -> Grid | None:
        """The numbers that it may change to; None where these are all in its range."""
        return None if self.step is None else Grid.of(self.lower, self.upper, Fraction(self.step))

    @property
    def count(self) -> int | None:
        """How many values it may change to; None where there is no end to them."""
        return None if self.grid is None else self.grid.steps + 1

    def snap(self, number: float) -> float | None:
        snapped = super().snap(number)
        if snapped is None or self.grid is None:
            return snapped
        close = self.grid.value(self.grid.nearest(snapped))
        return close if abs(close - snapped) <= GRID * float(self.grid.step) else snapped

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        inside = super().fits(numbers)
        if self.grid is None:
            return inside
        with np.errstate(invalid="ignore"):
            close = self.grid.nearest_to(numbers)
            return inside & ((numbers == close) | (np.abs(numbers - close) > GRID * float(self.grid.step)))

    def describe(self) -> str:
        return f"a number in [{show_number(self.lower)}, {show_number(self.upper)}]{self._or_missing()}"

    def value(self, number: float) -> float | None:
        return None if number != number else float(number)

    def to_dict(self) -> dict[str, Any]:
        plainly = self._to_dict(lower=self.lower, upper=self.upper)
        if self.step is None:
            return plainly
        step = Fraction(self.step)
        return {**plainly, "step": float(step) if written(float(step)) == step else show_step(step)}


@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number of steps above lower: lower, lower + step, ..., up to upper."""

    step: int = 1
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        step = plain(self.step)
        whole = isinstance(step, int | float) and not isinstance(step, bool) and step % 1 == 0
        if not whole or not 1 <= step <= 2**52:
            raise SchemaError(f"Feature '{self.name}': step must be a whole number >= 1; it is {shown(self.step)}.")
        object.__setattr__(self, "step", int(step))
        for end in ("lower", "upper"):
            if getattr(self, end) % 1 != 0:
                raise SchemaError(
                    f"Feature '{self.name}': '{end}' of an integer feature must be whole; it is "
                    f"{show_number(getattr(self, end))}."
                )
        if abs(self.lower) > 2**52 or abs(self.upper) > 2**52:
            raise SchemaError(f"Feature '{self.name}': integer bounds beyond 2^52 cannot be told apart in float64.")
        object.__setattr__(self, "upper", self.lower + self.step * math.floor(self.width / self.step))

    @property
    def steps(self) -> int:
        return round(self.width / self.step)

    @property
    def count(self) -> int:
        """How many values it has."""
        return self.steps + 1

    def describe(self) -> str:
        by = "" if self.step == 1 else f" in steps of {self.step}"
        return f"an integer in [{show_number(self.lower)}, {show_number(self.upper)}]{by}{self._or_missing()}"

    def snap(self, number: float) -> float | None:
        if not math.isfinite(number):
            return None
        k = round((number - self.lower) / self.step)
        if abs(self.lower + k * self.step - number) > GRID * self.step or not 0 <= k <= self.steps:
            return None
        return self.lower + k * self.step

    def fits(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        steps = np.round((numbers - self.lower) / self.step)
        return super().fits(numbers) & (self.lower + steps * self.step == numbers)

    def value(self, number: float) -> int | None:
        return None if number != number else round(number)

    def to_dict(self) -> dict[str, Any]:
        return self._to_dict(lower=int(self.lower), upper=int(self.upper), step=self.step)


class Choice(Worded):
    """What binary, ordinal and categorical features share: a short list of options, each with encoded columns."""

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
            _check_name(name)
        if given and len(given) != self.codes.shape[1]:
            raise SchemaError(
                f"Feature '{self.name}' has {self.codes.shape[1]} encoded column(s), but 'columns' names {len(given)}."
            )

    def _set_options(self, options: Sequence[Any], *, least: int = 1) -> None:
        _check_name(self.name)
        _check_words(self)
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
        if len(cleaned) < least:
            raise SchemaError(f"Feature '{self.name}' needs at least {least} option(s); it has {len(cleaned)}.")
        object.__setattr__(self, "options", cleaned)

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
                return tuple(f"{self.name}={_label(o)}" for o in self.options)
            case "dummy":
                return tuple(f"{self.name}={_label(o)}" for o in self.options[1:])
            case "thermometer":
                return tuple(f"{self.name}>={_label(o)}" for o in self.options)
            case "code":
                return (self.name,)

    @property
    def count(self) -> int:
        """How many values it has."""
        return len(self.options)

    def describe(self) -> str:
        shown = ", ".join(escaped(_label(o)) for o in self.options[:12])
        return f"one of: {shown}" + (", ..." if len(self.options) > 12 else "")

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
                if option is not None and not isinstance(option, str) and _text_means(value, option):
                    return float(i)
        if missing:
            message = (
                f"Feature '{self.name}' has no value{_at(row)}; fill it in, or declare missing as one of its options "
                f"by adding None to them."
            )
        else:
            message = f"Feature '{self.name}' must be {self.describe()}; {_who(row)} {shown(value)}."
        raise RowError(message, feature=self.name, row=row, value=value)

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
    """A number as it is for the people who lack it: its one option is that it is missing. Made by `Schema.lacking`."""

    number: Real | Integer | None = None

    @classmethod
    def of(cls, number: Real | Integer) -> Missing:
        return cls(number.name, (None,), "code", number, label=number.label, unit=number.unit)


_STEP = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18}|/[0-9]{1,18})?")


def read_step(name: str, step: Any) -> Fraction:
    """A step as the exact number that was written."""
    given = plain(step)
    given = str(given) if isinstance(given, Decimal) else given
    exact: Fraction | None = None
    if isinstance(given, str) and _STEP.fullmatch(given.strip()) and not given.strip().endswith("/0"):
        exact = Fraction(given.strip())
    elif isinstance(given, Fraction) or (isinstance(given, int) and not isinstance(given, bool)):
        exact = Fraction(given)
    elif isinstance(given, float) and math.isfinite(given):
        exact = written(given)
    if exact is None or exact <= 0 or not sys.float_info.min <= rounded(exact) < math.inf:
        raise SchemaError(
            f"Feature '{name}': step must be a number > 0, such as 0.01, 500 or \"1/12\"; it is {shown(step)}."
        )
    return exact


def show_step(step: Fraction) -> str:
    """A step as it is written: 0.01, 500, 1/12."""
    return show_number(float(step)) if written(float(step)) == step else str(step)


Feature: TypeAlias = Real | Integer | Binary | Ordinal | Categorical


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"A feature's name must be a non-empty string; got {shown(name)}.")
    if len(name) > MAX_NAME:
        raise SchemaError(
            f"A feature's name may have at most {MAX_NAME} characters; {quoted(name, 40)} has more: rename the column."
        )
    if not is_printable(name):
        wrong = next(i for i, c in enumerate(name) if not is_printable(c))
        raise SchemaError(
            f"A feature's name must be printable; {quoted(name)} has {quoted(name[wrong])} at place {wrong}: "
            f"rename the column."
        )


def _check_words(feature: Any) -> None:
    for key, most in (("label", MAX_NAME), ("unit", MAX_UNIT)):
        words = getattr(feature, key)
        if not isinstance(words, str) or len(words) > most or (words and not is_printable(words)):
            raise SchemaError(
                f"Feature '{feature.name}': '{key}' must be a printable text of at most {most} characters; it is "
                f"{shown(words)}."
            )


def _check_encoding(name: str, encoding: str, known: tuple[str, ...]) -> None:
    if not isinstance(encoding, str) or encoding not in known:
        raise SchemaError(f"Feature '{name}': encoding must be one of {', '.join(known)}; it is {shown(encoding)}.")


_MONEY = re.compile(r"([+-]?)\s?[$€£¥₹]?\s?([+-]?)(\d{1,3}(?:,\d{3})+|\d{1,15})(\.\d{1,15})?\s?[$€£¥₹%]?")


def money(text: str) -> float | None:
    """A number as people write amounts: "$1,002.84", "57 %", "€ 5"; None where the text is none."""
    found = _MONEY.fullmatch(text.strip()) if len(text) <= 60 else None
    if found is None or (found[1] and found[2]):
        return None
    return float(f"{found[1]}{found[2]}{found[3].replace(',', '')}{found[4] or ''}")


def show_number(number: float) -> str:
    """The shortest text that reads back as the same number, without a useless '.0'."""
    return repr(number).removesuffix(".0")


def _label(option: Value) -> str:
    return "missing" if option is None else str(option)


def _text_means(text: str, option: Any) -> bool:
    if isinstance(option, bool):
        return text.strip().lower() in (("true", "1") if option else ("false", "0"))
    try:
        return float(text) == float(option)
    except ValueError:
        return False


def _at(row: int | None) -> str:
    return "" if row is None else f" in row {row}"


def _who(row: int | None) -> str:
    return "the row has" if row is None else f"row {row} has"
