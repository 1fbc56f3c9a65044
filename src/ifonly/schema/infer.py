"""Schema inference: a proposal from a table, with a reason for each guess, for a person to check."""

from __future__ import annotations

import datetime
import math
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ifonly.errors import SchemaError
from ifonly.printing import printable, shown
from ifonly.schema.decimals import Grid, rounded, written
from ifonly.schema.families import families
from ifonly.schema.features import Binary, Categorical, Feature, Integer, Ordinal, Real
from ifonly.schema.number_text import CURRENCIES, amounts_of, currency_of, two_readings, unclear_text
from ifonly.schema.schema import Schema
from ifonly.schema.tables import frame_columns
from ifonly.schema.values import is_missing, plain, show_number, show_step

MOST_CATEGORIES = 1000
MOST_DECIMALS = 4
"""A column whose numbers have no more than these may move in steps of its last decimal."""
CENT = Fraction(1, 100)
"""The step of money, unless the data have whole units (a whole number) or finer ones."""
WIDE = 5.0
"""A range is wide where it is more than so many times that of all but the lowest and highest hundredth."""
FEW = 20
"""Rows below which values that all differ say nothing."""
MULTIPLES = 4
"""Different whole numbers below which a common divisor says nothing."""
MARKERS = frozenset(("n/a", "#n/a", "na", "n.a.", "nan", "null", "none", "nil", "-", "?", "k.a.", "k. a."))
"""Texts by which programs and people say that there is no value."""
LEFT_OUT = "left out"
WORDS = {"no": "yes", "false": "true", "n": "y", "f": "t", "off": "on", "nein": "ja", "non": "oui"}
"""No and yes."""

_IDENTIFIER = re.compile(r"(?:^|[\W_])(?:id|ids|uuid|guid|key|nr|ref)(?:$|[\W_])", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[Dd]$")
_CODE = re.compile(r"(?:^|[\W_])(?:zip|zipcode|postcode|postal|plz)(?:$|[\W_])|ZipCode$|PostCode$", re.IGNORECASE)
_MONEY = re.compile(
    r"(?:^|[\W_]|[a-z](?=[A-Z]))(?:amount|balance|bill|cost|debt|fee|income|loan|payment|price|rent|salary|savings|wage|"
    r"betrag|einkommen|gehalt|guthaben|kosten|kredit|lohn|miete|preis|saldo|umsatz|eur|euro|usd|gbp|chf)s?"
    rf"(?:$|[\W_]|(?=[A-Z]))|[{CURRENCIES}]",
    re.IGNORECASE,
)
"""A column of money, by its name."""
_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A guess about one feature, or about a column that is left out."""

    feature: str
    guess: str
    why: str


def infer(table: Any) -> tuple[Schema, tuple[Guess, ...]]:
    """A schema for the table, with one guess per feature, and one per column that was left out.

    Ordinals cannot be guessed (except from an ordered pandas column): edit the result.
    """
    columns = frame_columns(table)
    if not columns:
        raise SchemaError("The table has no columns to infer a schema from.")
    found = {family.columns[0]: family for family in families(columns)}
    dummies = {column for family in found.values() for column in family.columns}
    features: list[Feature] = []
    guesses: list[Guess] = []
    wrong: list[str] = []
    for name, column in columns.items():
        if name in found:
            features.append(found[name].feature())
            guesses.append(Guess(feature=found[name].name, guess="categorical", why=found[name].why()))
        elif name not in dummies:
            try:
                feature, guess, why = _guessed(name, column)
            except SchemaError as error:
                wrong.append(str(error))
                continue
            features += [] if feature is None else [feature]
            guesses.append(Guess(feature=name, guess=guess, why=why))
    return _proposed(features, columns, wrong, guesses), tuple(guesses)


def _proposed(features: list[Feature], columns: Any, wrong: list[str], guesses: list[Guess]) -> Schema:
    if wrong:
        raise SchemaError(wrong[0] if len(wrong) == 1 else f"{len(wrong)} columns: " + " ".join(wrong))
    if not features:
        reasons = "; ".join(f"'{guess.feature}': {guess.why}" for guess in guesses[:3])
        raise SchemaError(f"No column of the table can be a feature ({reasons}).")
    order = {name: i for i, name in enumerate(columns)}
    places = {c: order[c if c in order else f.name] for f in features for c in f.column_names}
    return Schema(tuple(features), tuple(sorted(places, key=lambda column: places[column])))


def warn_of_left_out(guesses: Sequence[Guess]) -> None:
    """Warn of columns that are not features, for callers that do not return the guesses."""
    left = [f"'{guess.feature}' ({guess.why})" for guess in guesses if guess.guess == LEFT_OUT]
    if left:
        warnings.warn(f"Left out of the schema: {printable('; '.join(left), 2000)}.", UserWarning, stacklevel=3)


def _guessed(name: str, column: Any) -> tuple[Feature | None, str, str]:
    values = [plain(v) for v in (column.tolist() if hasattr(column, "tolist") else column)]
    present = [v for v in values if not is_missing(v)]
    if not present:
        raise SchemaError(f"Column '{name}' has no values; leave it out.")
    left = _no_feature(name, column, present)
    if left:
        return None, LEFT_OUT, left
    return _declared_order(name, column, values) or _infer_feature(name, values)


def _no_feature(name: str, column: Any, present: list[Any]) -> str:
    """Why a column cannot be a feature: dates, identifiers. Empty where it can be."""
    if getattr(getattr(column, "dtype", None), "kind", "") in ("M", "m") or all(_is_day(v) for v in present):
        return "dates; give the days since a day that matters, such as (frame[column] - day).dt.days"
    try:
        distinct = len(set(present))
    except TypeError:
        return ""
    all_differ = distinct == len(present) >= FEW
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in present)
    if all_differ and (whole or all(isinstance(v, str) for v in present)):
        ordered = whole and max(present) - min(present) == len(present) - 1
        amounts = whole or amounts_of(present, MOST_CATEGORIES) is not None
        if ordered or _IDENTIFIER.search(name) or _CAMEL_ID.search(name) or not amounts:
            return "an identifier: every value differs"
    return ""


def _is_day(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return True
    return isinstance(value, str) and _DAY.fullmatch(value.strip()) is not None


def _declared_order(name: str, column: Any, values: list[Any]) -> tuple[Feature, str, str] | None:
    if not getattr(getattr(column, "dtype", None), "ordered", False) or any(is_missing(v) for v in values):
        return None
    levels = column.dtype.categories.tolist()
    return Ordinal(name, levels), "ordinal", f"the column declares an order of {len(levels)} levels"


def _infer_feature(name: str, values: list[Any]) -> tuple[Feature, str, str]:
    present = [v for v in values if not is_missing(v)]
    missing = len(values) - len(present)
    try:
        distinct = list(dict.fromkeys(present))
    except TypeError:
        raise SchemaError(f"Column '{name}' holds values that are neither text, numbers nor booleans.") from None
    if not all(isinstance(v, str | bool | int | float) for v in distinct):
        raise SchemaError(f"Column '{name}' holds values that are neither text, numbers nor booleans.")
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct)
    note = f"; missing in {_rows(missing)}, which a model must be able to take" if missing else ""
    if len(distinct) == 2 and not missing:
        return _binary(name, distinct)
    code = numeric and _CODE.search(name) is not None
    if numeric and not code:
        return _number(name, present, note, may=bool(missing))
    amounts = None if code else amounts_of(distinct, MOST_CATEGORIES)
    if amounts is not None and len(distinct) > 2:
        check_clear(name, distinct)
        value = dict(zip(distinct, amounts, strict=True))
        unit = currency_of(distinct)
        kind, guess, why = _number(name, [value[text] for text in present], note, may=bool(missing), unit=unit)
        return kind, guess, f"amounts as text, such as {shown(distinct[0])}; {why}"
    return _names(name, distinct, missing)


def check_clear(name: str, texts: Sequence[str]) -> None:
    """Refuse a column of texts that are numbers by either decimal mark, such as 10.000 and 12.500."""
    unclear = unclear_text(texts)
    if unclear is not None:
        raise SchemaError(
            f"Column '{name}' has {shown(unclear)}, which may be {two_readings(unclear)}, and no value that tells "
            f"whether points begin decimals; write the numbers without grouping (10000), or with other decimals (10.0)."
        )


def _names(name: str, distinct: list[Any], missing: int) -> tuple[Feature, str, str]:
    """A category per value: texts, and numbers that are codes."""
    digits = all(isinstance(v, str) and v.strip().isdigit() for v in distinct)
    code = digits or all(isinstance(v, int | float) for v in distinct)
    if len(distinct) > MOST_CATEGORIES:
        raise SchemaError(
            f"Column '{name}' has {len(distinct)} different {'codes' if code else 'texts'}: an identifier rather than "
            f"a feature? Leave it out (on the command line: --drop {shown(name)})."
        )
    options: list[Any] = sorted(distinct, key=lambda v: (str(type(v)), v))
    if missing:
        options.append(None)
    why = f"{len(distinct)} different {'codes, which are names and not amounts' if code else 'values'}"
    why += f"; missing ({_rows(missing)}) is a category too" if missing else ""
    marker = next((v for v in distinct if isinstance(v, str) and v.strip().lower() in MARKERS), None)
    why += f"; {shown(marker)} may mean missing (csv: --missing {shown(marker)})" if marker else ""
    why += "; if they are amounts, give the column as numbers" if digits else ""
    return Categorical(name, tuple(options)), "categorical", why + "; declare it ordinal if it has an order"


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _binary(name: str, distinct: list[Any]) -> tuple[Feature, str, str]:
    ordered = sorted(distinct, key=str) if any(isinstance(v, str) for v in distinct) else sorted(distinct)
    if all(isinstance(v, str) for v in ordered) and WORDS.get(ordered[1].strip().lower()) == ordered[0].strip().lower():
        ordered.reverse()
    why = f"two values: {shown(ordered[0])} (0) and {shown(ordered[1])} (1)"
    return Binary(name, tuple(ordered)), "binary", why


def _number(name: str, values: list[Any], note: str, *, may: bool, unit: str = "") -> tuple[Feature, str, str]:
    distinct = list(dict.fromkeys(values))
    if any(abs(v) > sys.float_info.max for v in distinct):
        raise SchemaError(f"Column '{name}' has infinite values; remove them.")
    low, high = float(min(distinct)), float(max(distinct))
    note += _outliers(values)
    if all(float(v).is_integer() for v in distinct) and max(abs(low), abs(high)) <= 2**52:
        why = f"whole numbers; bounds {_ends(low, high)} are the data's{_multiples(distinct)}{note}"
        return Integer(name, low, high, missing=may, unit=unit), "integer", why
    fine, step, by = _decimal_step(distinct), None, ""
    if fine and fine >= CENT and (unit or _MONEY.search(name)):
        step, by = CENT, "; money, so it moves in cents (step=0.01)"
        low, high = (rounded(way(written(end) / CENT) * CENT) for way, end in ((math.floor, low), (math.ceil, high)))
    elif fine:
        by = f"; step={show_step(fine)} would keep answers to the data's decimals"
    why = f"numbers; bounds {_ends(low, high)} are the data's{by}{note}"
    return Real(name, low, high, step, missing=may, unit=unit), "real", why


def _multiples(numbers: list[Any]) -> str:
    """What is said of whole numbers that are all multiples of one, such as terms of 12, 24, 36 months."""
    step = math.gcd(*(round(v) for v in numbers))
    if len(numbers) < MULTIPLES or step == 1:
        return ""
    return f"; all are multiples of {step}: step={step} if no others are possible"


def _outliers(values: list[Any]) -> str:
    """What is said where few values set the range, by which changes are measured unless another scale is asked for."""
    low, first, last, high = np.quantile(np.asarray(values, dtype=np.float64), (0.0, 0.01, 0.99, 1.0))
    if len(values) < FEW or not 0.0 < (last - first) * WIDE < high - low:
        return ""
    return (
        f"; few rows set this range (98 of 100 are in {show_number(float(first))} to {show_number(float(last))}), so "
        f"that other changes count little: narrow the bounds, or ask with --scale mad or iqr"
    )


def _decimal_step(numbers: list[Any]) -> Fraction | None:
    """The last decimal that the numbers have, if they have few; None where they have many, or are one number."""
    for decimals in range(1, MOST_DECIMALS + 1):
        if all(10**decimals % written(v).denominator == 0 for v in numbers):
            step = Fraction(1, 10**decimals)
            fine = Grid.of(float(min(numbers)), float(max(numbers)), step) is not None
            return step if fine and len(numbers) > 1 else None
    return None


def _ends(low: float, high: float) -> str:
    return f"{show_number(low)} and {show_number(high)}"
