"""Credit scorecards: a table of points per bin of each feature.

    total(row) = base + sum over features of the points of the row's bin;   total >= cutoff: the second class

A feature's bins are read from top to bottom, and the first that holds a value gives its points. Points are decimal
numbers: totals are exact.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, IfonlyError, ModelError
from ifonly.model.files import MAX_JSON_BYTES, check_size
from ifonly.printing import capitalised, shown
from ifonly.schema.arguments import is_label, items, path_of
from ifonly.schema.number_text import DecimalMark, mark_of, two_readings
from ifonly.schema.values import is_missing, plain, same_value

FORMAT = "ifonly-scorecard"
VERSION = 1
KEYS = ("format", "version", "base", "cutoff", "classes", "features")
CONDITIONS = ("below", "up_to", "is", "missing")
DIGITS, MOST_BINS = 5, 100_000
"""Decimals of points: half of the least unit is more than the margin that answers keep."""
LARGEST = Decimal(10) ** 12


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Values below a number, up to one, of a list, or missing; without any of these, all that are not missing."""

    points: Decimal
    below: float | None = None
    up_to: float | None = None
    values: tuple[Any, ...] = ()
    missing: bool = False

    @property
    def rest(self) -> bool:
        return self.below is None and self.up_to is None and not self.values and not self.missing

    def holds(self, value: Any) -> bool:
        """Is the value in the bin?"""
        if is_missing(value) or self.missing:
            return is_missing(value) and self.missing
        if self.values:
            return any(same_value(value, one) for one in self.values)
        if self.rest:
            return True
        if isinstance(value, str):
            return False
        return bool(value < self.below) if self.below is not None else bool(value <= self.up_to)


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """A table of points. Made of plain data (`from_dict`) or of a file (`load`); with `import_model` it is a Model.

    Without a cutoff it is a regression, whose prediction is the total.
    """

    bins: Mapping[str, tuple[Bin, ...]]
    base: Decimal = Decimal(0)
    cutoff: Decimal | None = None
    classes: tuple[Any, ...] = field(default=())

    @classmethod
    def from_dict(cls, data: Any) -> Scorecard:
        """A scorecard as plain data: base, cutoff, classes, and for each feature its bins."""
        if not isinstance(data, Mapping):
            raise ModelError(f"A scorecard is a mapping with 'features'; got {shown(data)}.")
        for key in data:
            if key not in KEYS:
                raise ModelError(f"A scorecard has no {shown(key)}; it has {', '.join(KEYS)}.")
        head = (data.get("format", FORMAT), data.get("version", VERSION))
        if not isinstance(head[0], str) or not isinstance(head[1], int) or head != (FORMAT, VERSION):
            raise ModelError(f"A scorecard's format is '{FORMAT}', version {VERSION}.")
        features = data.get("features")
        if not isinstance(features, Mapping) or not features:
            raise ModelError("A scorecard's 'features' map the name of each feature to its bins; there are none.")
        cutoff = data.get("cutoff")
        return cls(
            bins={_name(name): _bins(name, listed) for name, listed in features.items()},
            base=_decimal(data.get("base", 0), "the base"),
            cutoff=None if cutoff is None else _decimal(cutoff, "the cutoff"),
            classes=_classes(data.get("classes", ()), cutoff is not None),
        )

    @classmethod
    def load(cls, path: str | Path) -> Scorecard:
        """Read a scorecard from a .json or .csv file."""
        path = path_of(path)
        try:
            check_size(path, MAX_JSON_BYTES)
            text = path.read_text(encoding="utf-8-sig")
            return cls.from_dict(_from_csv(text) if path.suffix.lower() == ".csv" else _json(text))
        except OSError as error:
            raise FileError(f"Cannot read the scorecard '{path}': {error.strerror or error}.") from None
        except IfonlyError as error:
            raise type(error)(f"In '{path}': {error}") from None
        except Exception as error:  # whatever a hostile file makes a reader raise
            raise FileError(f"'{path}' is no scorecard ({type(error).__name__}: {error}).") from None

    def __post_init__(self) -> None:
        lists = self.bins.values() if isinstance(self.bins, Mapping) else ()
        fine = lists and all(isinstance(listed, tuple) and all(isinstance(b, Bin) for b in listed) for listed in lists)
        numbers = isinstance(self.base, Decimal) and isinstance(self.cutoff, Decimal | None)
        if not fine or not numbers or not isinstance(self.classes, tuple):
            raise ModelError("A scorecard is made of plain data with Scorecard.from_dict, or of a file with load.")

    @property
    def decimals(self) -> int:
        """How many decimals its points have at most."""
        points = (one.points for listed in self.bins.values() for one in listed)
        return max(map(decimals, (self.base, self.cutoff or Decimal(0), *points)))

    def points(self, feature: str, value: Any) -> Decimal:
        """The points of a value of a feature; 0 for a feature that is not on the card."""
        if feature not in self.bins:
            return Decimal(0)
        for one in self.bins[feature]:
            if one.holds(value):
                return one.points
        what = "a missing value" if is_missing(value) else f"the value {shown(value)}"
        raise ModelError(f"The scorecard has no points for {what} of feature '{feature}'; add a bin for it.")

    def total(self, row: Mapping[str, Any]) -> Decimal:
        """The points of a row, with the base."""
        total = Fraction(self.base) + sum(Fraction(self.points(name, row[name])) for name in self.bins)
        return Decimal(f"{int(total * 10**self.decimals)}e-{self.decimals}")


def is_scorecard_file(path: Path) -> bool:
    """Is the file a table, or JSON that says it is a scorecard? A damaged file is not."""
    if path.suffix.lower() != ".json":
        return path.suffix.lower() == ".csv"
    try:
        check_size(path, MAX_JSON_BYTES)
        head = json.loads(path.read_text(encoding="utf-8-sig"))
    except Exception:  # a damaged file may raise anything; the reader of that format reports it
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


# ---------------------------------------------------------------------- reading


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ModelError(f"A feature of a scorecard is named by a text; got {shown(name)}.")
    return name


def _bins(name: str, data: Any) -> tuple[Bin, ...]:
    listed = items(data)
    if not listed or len(listed) > MOST_BINS:
        raise ModelError(f"Feature '{name}' of a scorecard needs a list of 1 to {MOST_BINS} bins; got {shown(data)}.")
    bins = tuple(_bin(one, f"bin {k} of feature '{name}'") for k, one in enumerate(listed))
    highest = (-math.inf, False)
    for k, one in enumerate(bins):
        if any(before.rest for before in bins[:k]) and not one.missing:
            raise ModelError(f"Bin {k} of feature '{name}' comes after the bin for all other values: nothing is left.")
        if one.below is not None or one.up_to is not None:
            edge = (one.below, False) if one.below is not None else (one.up_to, True)
            if edge <= highest:
                raise ModelError(
                    f"Bin {k} of feature '{name}' ends at {edge[0]:g}, where bins above it have ended: nothing is left "
                    f"for it; write bins from low to high."
                )
            highest = edge  # type: ignore[assignment]
    if sum(one.missing for one in bins) > 1:
        raise ModelError(f"Feature '{name}' has several bins for missing values.")
    return bins


def _bin(data: Any, where: str) -> Bin:
    if not isinstance(data, Mapping) or "points" not in data:
        raise ModelError(f"The {where} must be a mapping with 'points'; got {shown(data)}.")
    for key in data:
        if key != "points" and key not in CONDITIONS:
            raise ModelError(f"The {where} has {shown(key)}; a bin has 'points' and one of {', '.join(CONDITIONS)}.")
    if len(data) > 2:
        raise ModelError(f"The {where} has several conditions; a bin has one of {', '.join(CONDITIONS)}, or none.")
    points = _decimal(data["points"], f"the points of {where}")
    if "missing" in data and data["missing"] is not True:
        raise ModelError(f"'missing' of the {where} must be true, or left out.")
    if "is" in data:
        values = items(data["is"])
        values = tuple(map(_value, (data["is"],) if values is None else values))
        if not values or not all(map(is_label, values)):
            raise ModelError(f"'is' of the {where} must be a value or a list of values; got {shown(data['is'])}.")
        return Bin(points=points, values=values)
    return Bin(
        points=points,
        below=_edge(data["below"], f"'below' of {where}") if "below" in data else None,
        up_to=_edge(data["up_to"], f"'up_to' of {where}") if "up_to" in data else None,
        missing="missing" in data,
    )


def _edge(data: Any, what: str) -> float:
    return float(_decimal(data, what, digits=400))


def _value(data: Any) -> Any:
    data = plain(data)
    return float(data) if isinstance(data, Decimal) and data.is_finite() else data


def _decimal(data: Any, what: str, digits: int = DIGITS) -> Decimal:
    """A number as it is written."""
    data = plain(data)
    if isinstance(data, bool) or not isinstance(data, int | float | Decimal):
        raise ModelError(f"{capitalised(what)} must be a number; got {shown(data)}.")
    number = data if isinstance(data, Decimal) else Decimal(data if isinstance(data, int) else repr(float(data)))
    if not number.is_finite() or number.copy_abs() > LARGEST or decimals(number) > digits:
        raise ModelError(
            f"{capitalised(what)} must be at most 10^12 with at most {digits} decimals; got {shown(data)}."
        )
    return number


def decimals(number: Decimal) -> int:
    """How many decimals a number has, without zeros at the end."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(0, -exponent - len(digits) + len("".join(map(str, digits)).rstrip("0")))


def _classes(data: Any, decides: bool) -> tuple[Any, ...]:
    classes = items(data)
    if classes is None or not all(map(is_label, classes)) or len(classes) not in (0, 2):
        raise ModelError(f"A scorecard's 'classes' are two: below the cutoff, and from it on; got {shown(data)}.")
    if classes and not decides:
        raise ModelError("A scorecard with classes needs a 'cutoff': the total from which it decides for the second.")
    return classes or ((0, 1) if decides else ())


def _json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_constant=_no_number)


def _no_number(word: str) -> Any:
    raise ModelError(f"A scorecard has no {word}.")


def _from_csv(text: str) -> dict[str, Any]:
    """Columns feature, bin, points; without a feature, the bin is 'base' or 'cutoff'."""
    records = list(csv.reader(io.StringIO(text), strict=True))
    if not records or [cell.strip() for cell in records[0]] != ["feature", "bin", "points"]:
        raise FileError("a scorecard's first line is: feature,bin,points.")
    cells = [cell.strip().lstrip("<=").strip() for record in records[1:] for cell in record[1:]]
    clear = mark_of(cells) is DecimalMark.POINT  # some number of the file shows that points begin decimals
    data: dict[str, Any] = {"features": {}}
    for number, record in enumerate(records[1:], start=2):
        if not any(cell.strip() for cell in record):
            continue
        if len(record) != 3:
            raise FileError(f"line {number} has {len(record)} cells; it should have feature, bin and points.")
        feature, word, points = (cell.strip() for cell in record)
        for text in () if clear else (points, word.lstrip("<=").strip()):
            if readings := two_readings(text):
                raise FileError(f"line {number}: {shown(text)} may be {readings}; write one of these.")
        amount = _csv_number(points, number)
        if feature:
            data["features"].setdefault(feature, []).append({**_csv_bin(word, number), "points": amount})
        elif word in ("base", "cutoff") and word not in data:
            data[word] = amount
        else:
            raise FileError(f"line {number} has no feature; its bin is then 'base' or 'cutoff', each once.")
    return data


def _csv_bin(word: str, number: int) -> dict[str, Any]:
    match word:
        case "other":
            return {}
        case "missing":
            return {"missing": True}
    for sign, key in (("<=", "up_to"), ("<", "below")):
        if word.startswith(sign):
            return {key: _csv_number(word.removeprefix(sign).strip(), number)}
    if not word.startswith("="):
        raise FileError(f"line {number}: a bin is '< 25', '<= 25', '= value', 'other' or 'missing'; got {shown(word)}.")
    value = word.removeprefix("=").strip()
    try:
        return {"is": _json(value)}  # a number, true, or a text in quotes
    except ValueError:
        return {"is": value}


def _csv_number(word: str, number: int) -> Decimal:
    try:
        return Decimal(word if "_" not in word else "")
    except ArithmeticError:
        raise FileError(f"line {number}: {shown(word)} is no number.") from None
