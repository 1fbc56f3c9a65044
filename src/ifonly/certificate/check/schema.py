"""The schema of a certificate's question, read by the checker itself: what a row is, and what the model's columns are.

A schema must stand as docs/certificate.md says, to the last entry; anything else is a `Refusal`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ...printing import is_printable, quoted
from .reading import CheckBudget, Refusal, listed, number, ticking

MAX_COLUMNS = 20_000
"""Encoded columns, and numbers and options together."""
MAX_NAME, MAX_UNIT = 200, 40
"""Characters of a name or a label, and of a unit."""
MOST_WHOLE = 2**52
MOST_PARTS = 2**50
"""Of the whole numbers that steps are made of: beyond, float64 does not tell the values apart."""
NOT_CANONICAL = "the schema is not written as ifonly writes it: other entries, other numbers, or another order"
_STEP = re.compile(r"[0-9]{1,18}/[0-9]{1,18}")

Value = str | bool | int | float | None


@dataclass(frozen=True, slots=True)
class StatedNumeric:
    """A number between two ends, in one column."""

    name: str
    lower: float
    upper: float
    kind: ClassVar[str]

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self.name,)

    def value(self, number: float) -> float | int:
        """The number as people read it."""
        return number


@dataclass(frozen=True, slots=True)
class StatedReal(StatedNumeric):
    """Any number of the interval; with a `step`, the float64 nearest to start + k step for k = 0, ..., steps."""

    step: Fraction | None = None
    start: Fraction = Fraction(0)
    steps: int = 0
    kind: ClassVar[str] = "real"


@dataclass(frozen=True, slots=True)
class StatedInteger(StatedNumeric):
    """lower, lower + step, ..., upper."""

    step: int = 1
    kind: ClassVar[str] = "integer"

    def value(self, number: float) -> int:
        return round(number)


@dataclass(frozen=True, slots=True)
class StatedChoice:
    """One of several options; `kind` is binary, ordinal or categorical."""

    name: str
    kind: str
    options: tuple[Value, ...]
    encoding: str
    columns: tuple[str, ...] = ()

    @property
    def ordered(self) -> bool:
        return self.kind != "categorical"

    @property
    def column_names(self) -> tuple[str, ...]:
        if self.columns or self.encoding == "code":
            return self.columns or (self.name,)
        sign = ">=" if self.encoding == "thermometer" else "="
        first = 1 if self.encoding == "dummy" else 0
        return tuple(f"{self.name}{sign}{'missing' if o is None else o}" for o in self.options[first:])

    def value(self, number: float) -> Value:
        return self.options[int(number)]


Feature = StatedReal | StatedInteger | StatedChoice


@dataclass(frozen=True, slots=True)
class StatedSchema:
    """The features in order, and for each the places of its columns in the model's order."""

    features: tuple[Feature, ...]
    columns: tuple[str, ...]
    feature_columns: tuple[tuple[int, ...], ...]
    positions: dict[str, int]
    """Of each feature, by its name."""

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.positions)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.positions[name]]


def read_schema(value: Any, meter: CheckBudget | None = None) -> StatedSchema:
    """The schema of a question, in which nothing is left out and nothing is added."""
    _check_size(value)
    if not isinstance(value, dict) or value.get("format") != "ifonly-schema":
        raise Refusal('the schema cannot be read: it is an object with "format": "ifonly-schema"')
    if type(value.get("version")) is not int or value["version"] != 1:
        raise Refusal(f"the schema has version {str(value.get('version'))[:60]!r}; version 1 is read")
    if "rules" in value:
        raise Refusal("the schema has rules of its own; a certificate states every rule among the constraints")
    if set(value) - {"columns"} != {"format", "version", "features"}:
        raise Refusal(NOT_CANONICAL)
    features = tuple(map(_feature, ticking(listed(value["features"], "the schema's features"), meter or CheckBudget())))
    positions = {feature.name: g for g, feature in enumerate(features)}
    if not 0 < len(features) == len(positions):
        raise Refusal("the schema has no features, or two of the same name")
    natural = tuple(name for feature in features for name in feature.column_names)
    width = sum(len(f.options) if isinstance(f, StatedChoice) else 1 for f in features)
    if max(len(natural), width) > MAX_COLUMNS:
        raise Refusal(f"the schema has more than {MAX_COLUMNS} columns, or numbers and options")
    columns = natural
    if "columns" in value:
        columns = tuple(listed(value["columns"], "the schema's columns"))
        if not all(isinstance(name, str) for name in columns) or columns == natural:
            raise Refusal(NOT_CANONICAL)
    places = {name: i for i, name in enumerate(columns)}
    if len(columns) != len(natural) or len(places) < len(columns) or set(places) != set(natural):
        raise Refusal("the schema's columns are not those of its features, each once")
    of_features = tuple(tuple(places[name] for name in feature.column_names) for feature in features)
    return StatedSchema(features, columns, of_features, positions)


def _check_size(schema: Any) -> None:
    """Refuse a schema that is too large before anything is made of it."""
    features = schema.get("features") if isinstance(schema, dict) else None
    count = len(features) if isinstance(features, list) else 0
    for feature in features if isinstance(features, list) and count <= MAX_COLUMNS else ():
        if isinstance(feature, dict):
            count += sum(len(value) for value in feature.values() if isinstance(value, list))
    if count > 2 * MAX_COLUMNS:
        raise Refusal(f"the schema has more than {MAX_COLUMNS} columns, or numbers and options")


def decimal(value: float) -> Fraction:
    """The shortest decimal that reads back as a float64."""
    return Fraction(int(value)) if abs(value) < 2**53 and value == int(value) else Fraction(repr(value))


_ENTRIES = {
    "real": ({"lower", "upper"}, {"step", "missing"}),
    "integer": ({"lower", "upper", "step"}, {"missing"}),
    "binary": ({"values"}, set()),
    "ordinal": ({"levels", "encoding"}, {"columns"}),
    "categorical": ({"categories", "encoding"}, {"columns"}),
}
_ENCODINGS = {
    "binary": ("code",),
    "ordinal": ("thermometer", "onehot", "dummy", "code"),
    "categorical": ("onehot", "dummy", "code"),
}


def _feature(item: Any) -> Feature:
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in _ENTRIES:
        raise Refusal(f"a feature of the schema is of no known kind: {str(kind)[:60]!r}")
    required, optional = _ENTRIES[kind]
    given = set(item)
    if not required | {"kind", "name"} <= given or given - required - optional - {"kind", "name", "label", "unit"}:
        raise Refusal(NOT_CANONICAL)
    name = item["name"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not is_printable(name):
        raise Refusal(f"a feature's name must be {MAX_NAME} printable characters at most; it is {str(name)[:60]!r}")
    for key, most in (("label", MAX_NAME), ("unit", MAX_UNIT)):
        words = item.get(key, "x")
        if not isinstance(words, str) or not 0 < len(words) <= most or not is_printable(words):
            raise Refusal(f"the {key} of {quoted(name)} must be {most} printable characters at most")
    if item.get("missing", True) is not True:
        raise Refusal(NOT_CANONICAL)
    if kind == "real":
        return _real(name, item)
    return _integer(name, item) if kind == "integer" else _choice(name, kind, item)


def _real(name: str, item: dict[str, Any]) -> StatedReal:
    lower, upper = item["lower"], item["upper"]
    for end in (lower, upper):
        if type(end) is not float or not math.isfinite(end) or str(end) == "-0.0":
            raise Refusal(NOT_CANONICAL)
    if lower > upper or not math.isfinite(upper - lower):
        raise Refusal(f"the ends of {quoted(name)} are no interval of float64")
    if "step" not in item:
        return StatedReal(name, lower, upper)
    step = _step(name, item["step"])
    return StatedReal(name, lower, upper, step, *_steps(name, lower, upper, step))


def _step(name: str, given: Any) -> Fraction:
    """A float64 stands for its shortest decimal; text is a fraction that is none of these."""
    step = Fraction(0)
    if type(given) is float and math.isfinite(given):
        step = decimal(given)
    elif isinstance(given, str) and _STEP.fullmatch(given) and not given.endswith("/0"):
        step = Fraction(given)
        if str(step) != given or decimal(float(step)) == step:
            raise Refusal(NOT_CANONICAL)
    if step <= 0 or not 2.0**-1022 <= float(step) < math.inf:
        raise Refusal(f"the step of {quoted(name)} is no positive number")
    return step


def _steps(name: str, lower: float, upper: float, step: Fraction) -> tuple[Fraction, int]:
    """Where the steps start (at the lower end, or the multiple of the step that this is), and how many there are."""
    start = decimal(lower)
    multiple = round(start / step) * step
    start = multiple if float(multiple) == lower else start
    parts = math.lcm(start.denominator, step.denominator)
    steps = max(0, math.floor((decimal(upper) - start) / step))
    most = max(abs(start), abs(start + (steps + 2) * step), Fraction(1))
    if most * parts <= MOST_PARTS:
        for count in (steps + 1, steps):
            if float(start + count * step) == upper and (count or step <= decimal(upper) - decimal(lower)):
                return start, count
    raise Refusal(f"{quoted(name)} has an upper end that is no step, or steps that are too fine for float64")


def _integer(name: str, item: dict[str, Any]) -> StatedInteger:
    lower, upper, step = (item[key] for key in ("lower", "upper", "step"))
    if not all(type(v) is int for v in (lower, upper, step)):
        raise Refusal(NOT_CANONICAL)
    if not -MOST_WHOLE <= lower <= upper <= MOST_WHOLE or not 1 <= step <= MOST_WHOLE or (upper - lower) % step:
        raise Refusal(f"the ends of {quoted(name)} are not whole steps apart, or beyond 2^52")
    return StatedInteger(name, float(lower), float(upper), step)


def _choice(name: str, kind: str, item: dict[str, Any]) -> StatedChoice:
    key = {"binary": "values", "ordinal": "levels", "categorical": "categories"}[kind]
    options = tuple(listed(item[key], f"the options of {quoted(name)}"))
    for option in options:
        if option is not None and not isinstance(option, str | bool | int | float):
            raise Refusal(f"an option of {quoted(name)} is neither text nor a number nor true, false or null")
        if isinstance(option, int) and abs(option) >= 2**1024:
            raise Refusal(f"an option of {quoted(name)} is too large")
    encoding = item.get("encoding", "code")
    if not options or len(set(options)) < len(options) or (kind == "binary" and len(options) != 2):
        raise Refusal(f"{quoted(name)} has no options, or one twice, or is binary without having two")
    if not isinstance(encoding, str) or encoding not in _ENCODINGS[kind] or (encoding, len(options)) == ("dummy", 1):
        raise Refusal(f"the encoding of {quoted(name)} does not fit its kind")
    columns = tuple(listed(item["columns"], "columns")) if "columns" in item else ()
    if "columns" in item:
        count = {"code": 1, "dummy": len(options) - 1}.get(encoding, len(options))
        good = (isinstance(c, str) and 0 < len(c) <= MAX_NAME and is_printable(c) for c in columns)
        if len(columns) != count or not all(good):
            raise Refusal(f"{quoted(name)} has {count} columns, each with a printable name; its list names others")
    return StatedChoice(name, kind, options, encoding, columns)


def read_point(schema: StatedSchema, value: Any, what: str) -> tuple[float, ...]:
    """A row of the schema: one number per feature, options by index."""
    point = tuple(number(v, what) for v in listed(value, what, len(schema)))
    for feature, v in zip(schema.features, point, strict=True):
        if not belongs(feature, v):
            raise Refusal(f"{what} is no row of the schema: {quoted(feature.name)} cannot be {v!r}")
    return point


def belongs(feature: Any, value: float) -> bool:
    """Is it a value of the feature?"""
    if isinstance(feature, StatedChoice):
        return value == int(value) and 0 <= value < len(feature.options)
    if not feature.lower <= value <= feature.upper:
        return False
    return not isinstance(feature, StatedInteger) or (Fraction(value) - Fraction(feature.lower)) % feature.step == 0
