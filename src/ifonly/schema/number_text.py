"""Parsing of numbers from text: which texts are numbers, which are codes, and which are ambiguous.

12   -3.5   .5   1e-05      numbers, as programs write them
$1,002.84   57 %   € 5      amounts, as people write them
1.930,04 €   12,5           the same in a table that is known to have decimal commas
01067   1e5   1_000         names: no number has leading zeros or underscores, or an exponent without point and sign
10.000   10,000             ten or ten thousand, by the decimal mark that the writer had in mind
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from typing import Any

from ifonly.schema.decimals import rounded

MOST_DIGITS = 15
"""Digits of a whole number that float64 always holds; longer ones (accounts, cards) are names."""

_PLAIN = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d+)?|(?:\d+\.\d*|\.\d+)[eE]\d+)", re.ASCII)
_CODE = re.compile(rf"[+-]?(?:0\d.*|\d{{{MOST_DIGITS + 1},}})", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
CURRENCIES = "$€£¥₹"
_SIGNS = CURRENCIES + "%"
_AMOUNT = re.compile(
    rf"([+-]?)\s?[{CURRENCIES}]?\s?([+-]?)(\d{{1,3}}(?:,\d{{3}})+|\d{{1,15}})(\.\d{{1,15}})?\s?[{_SIGNS}]?"
)
_BARE = re.compile(rf"[\s{_SIGNS}]")
_TWO_WAYS = re.compile(r"([+-]?)([1-9]\d{0,2})([.,])(\d{3})", re.ASCII)
_POINT = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)\.\d+", re.ASCII)
_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+", re.ASCII)


_COMMA_AMOUNT = re.compile(
    rf"[+-]?\s?[{CURRENCIES}]?\s?[+-]?(?:\d{{1,3}}(?:\.\d{{3}})+|\d{{1,15}})(?:,\d{{1,15}})?\s?[{_SIGNS}]?"
)


class DecimalMark(Enum):
    """The decimal mark of a writer: with UNKNOWN or COMMA, 10.000 may be ten thousand, and 10,000 may be ten."""

    POINT = "point"
    COMMA = "comma"
    UNKNOWN = "unknown"


class UnclearNumber(str):
    """A cell such as 10.000 of a table that does not tell whether its points begin decimals or group thousands."""

    __slots__ = ()


class CommaNumber(str):
    """A cell such as 1.930,04 € or 10.000 of a table with decimal commas."""

    __slots__ = ()

    def with_point(self) -> str:
        """The same number as programs write it, with its currency: 1930.04 €."""
        return self.replace(".", "").replace(",", ".")


def comma_cell(text: str) -> str:
    """A cell of a table with decimal commas: as a `CommaNumber` where it is a number with a comma or with groups."""
    return CommaNumber(text) if ("," in text or "." in text) and _COMMA_AMOUNT.fullmatch(text.strip()) else text


def with_point(text: str) -> str:
    """A cell with its decimal point: of a `CommaNumber` the number as programs write it."""
    return text.with_point() if isinstance(text, CommaNumber) else text


def currency_of(texts: Iterable[Any]) -> str:
    """The currency that amounts are written with, such as "€"; empty where there is none, or several."""
    found = {sign for text in texts if isinstance(text, str) for sign in text if sign in CURRENCIES}
    return found.pop() if len(found) == 1 else ""


def plain_number(text: str) -> float | None:
    """The number that a text is, as programs write one; None for anything else."""
    text = with_point(text).strip()
    return float(text) if _PLAIN.fullmatch(text) else None


def is_code(text: str) -> bool:
    """Is it a code, such as a postal code, which loses something as a number: leading zeros, or its last digits?"""
    return _CODE.fullmatch(with_point(text).strip()) is not None


def money(text: str) -> float | None:
    """A number as people write amounts: "$1,002.84", "57 %", "€ 5"; None for other texts."""
    found = _AMOUNT.fullmatch(with_point(text).strip()) if len(text) <= 60 else None
    if found is None or (found[1] and found[2]):
        return None
    return float(f"{found[1]}{found[2]}{found[3].replace(',', '')}{found[4] or ''}")


def other_reading(text: str) -> Fraction | None:
    """What a number is by the other decimal mark: of 10.000 it is 10000, of 10,000 it is 10.

    None where only one reading is possible, as of 10.0, 0.125, 1.2345 and 1,000,000.
    """
    found = _TWO_WAYS.fullmatch(_BARE.sub("", text))
    if found is None:
        return None
    sign, whole, mark, rest = found.groups()
    return Fraction(f"{sign}{whole}{rest}" if mark == "." else f"{sign}{whole}.{rest}")


def two_readings(text: str) -> str | None:
    """The two numbers that a text may be, as they are written without doubt, such as "10 or 10000"; None for others."""
    other = other_reading(text)
    if other is None:
        return None
    bare = _BARE.sub("", text)
    own = Fraction(bare.replace(",", ""))
    return " or ".join(clear_number(rounded(one)) for one in (own, other))


def clear_number(number: float) -> str:
    """The shortest text that reads back as the same number by any decimal mark: three decimals get a zero (1.2340)."""
    text = repr(number).removesuffix(".0")
    return text if other_reading(text) is None else f"{text}0"


def mark_of(texts: Iterable[str]) -> DecimalMark | None:
    """The decimal mark that some of the texts show (12.5, 0.125; 12,5, 1.234,50); None where none does."""
    point = comma = False
    for text in texts:
        bare = _BARE.sub("", text)
        if other_reading(bare) is None:
            point = point or _POINT.fullmatch(bare) is not None
            comma = comma or _COMMA.fullmatch(bare) is not None
    if point and comma:
        return DecimalMark.UNKNOWN
    return DecimalMark.POINT if point else DecimalMark.COMMA if comma else None


def unclear_text(texts: Sequence[str]) -> str | None:
    """The first text of a column that may be two numbers by what the column shows; None where it has none."""
    open_texts = (text for text in texts if not isinstance(text, CommaNumber))
    doubtful = (text for text in open_texts if "." in text or isinstance(text, UnclearNumber))
    found = next((text for text in doubtful if other_reading(text) is not None), None)
    return None if found is None or mark_of(texts) is DecimalMark.POINT else found


def typed_column(values: Sequence[Any]) -> list[Any] | None:
    """A column of texts, as text files have it, as numbers (None where missing); None if it holds names."""
    texts = [value for value in values if value is not None]
    if not texts or not all(isinstance(text, str) for text in texts) or any(map(is_code, texts)):
        return None
    numbers = [None if value is None else plain_number(value) for value in values]
    if numbers.count(None) > len(values) - len(texts):
        return None
    whole = all(_DIGITS.fullmatch(with_point(text).strip().lstrip("+-")) for text in texts)
    return [None if number is None else int(number) for number in numbers] if whole else numbers


def amounts_of(texts: Sequence[Any], most_names: int) -> list[float] | None:
    """A column of texts as amounts in one unit; None if it holds names: codes, whole numbers as text (more than
    `most_names` different ones of various lengths are amounts), amounts in several units.
    """
    if not all(isinstance(text, str) for text in texts) or any(map(is_code, texts)):
        return None
    if all(_DIGITS.fullmatch(text.strip()) for text in texts):
        one_length = len({len(text.strip()) for text in texts}) == 1
        if one_length or len(set(texts)) <= most_names:
            return None
    units = {"".join(sign for sign in text if sign in _SIGNS) for text in texts}
    amounts = [money(text) for text in texts]
    if None in amounts or len(units - {""}) > 1 or ("%" in units and len(units) > 1):
        return None
    return [amount for amount in amounts if amount is not None]
