"""Names, labels and units of features for display, and positions of values in messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ifonly.errors import SchemaError
from ifonly.printing import is_printable, quoted, shown

MAX_NAME = 200
"""Characters of a feature's name."""
MAX_UNIT = 40
"""Characters of its unit."""


@dataclass(frozen=True)
class FeatureWording:
    """Display text of a feature: `label` for its name ("monthly income"), `unit` after or before its values
    ("€", "months"). Both are optional and decide nothing."""

    label: str = field(default="", kw_only=True, repr=False)
    unit: str = field(default="", kw_only=True, repr=False)

    def _words(self) -> dict[str, str]:
        """Those that are set, as plain data."""
        return {key: value for key, value in (("label", self.label), ("unit", self.unit)) if value}


def check_name(name: Any) -> None:
    """Refuse a name that cannot be printed."""
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


def check_words(feature: Any) -> None:
    """Refuse a label or a unit that cannot be printed."""
    for key, most in (("label", MAX_NAME), ("unit", MAX_UNIT)):
        words = getattr(feature, key)
        if not isinstance(words, str) or len(words) > most or (words and not is_printable(words)):
            raise SchemaError(
                f"Feature '{feature.name}': '{key}' must be a printable text of at most {most} characters; it is "
                f"{shown(words)}."
            )


def at_row(row: int | None) -> str:
    """Where something is, in a sentence."""
    return "" if row is None else f" in row {row}"


def who_has(row: int | None) -> str:
    """Whose value it is, in a sentence."""
    return "the row has" if row is None else f"row {row} has"
