"""Values as people write them in a language: separators, units, yes and no."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.results.answer import show
from ifonly.schema import Value
from ifonly.schema.number_text import DecimalMark

SIGNS = frozenset("€$£¥₹")
"""Units that are written before the number in English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueStyle:
    """How a language writes values."""

    thousands: str
    decimal: str
    percent: str
    """Between a number and %."""
    sign_first: bool
    yes: str
    no: str
    missing: str

    @property
    def decimal_mark(self) -> DecimalMark:
        """The decimal mark of numbers in this language."""
        return DecimalMark.POINT if self.decimal == "." else DecimalMark.COMMA


STYLES = {
    "en": ValueStyle(thousands=",", decimal=".", percent="", sign_first=True, yes="yes", no="no", missing="missing"),
    "de": ValueStyle(
        thousands=".", decimal=",", percent="\N{NO-BREAK SPACE}", sign_first=False, yes="ja", no="nein",
        missing="keine Angabe",
    ),
}  # fmt: skip


def amount(value: Value, unit: str = "", language: str = "en", *, counted: bool = True) -> str:
    """A value as people write it in a language, with its unit. `counted`: whole numbers are amounts, not names."""
    style = STYLES[language]
    if value is None:
        return style.missing
    if isinstance(value, bool):
        return style.yes if value else style.no
    if isinstance(value, str) or (isinstance(value, int) and not counted):
        return show(value)
    number = show(value) if isinstance(value, float) else f"{value:,}"
    if unit in SIGNS and number[-2:-1] == ".":  # €7.30, not €7.3
        number += "0"
    number = number.replace(",", "\0").replace(".", style.decimal).replace("\0", style.thousands)
    if not unit:
        return number
    if unit in SIGNS and style.sign_first:
        return f"-{unit}{number[1:]}" if number.startswith("-") else f"{unit}{number}"
    return f"{number}{style.percent if unit == '%' else ' '}{unit}"
