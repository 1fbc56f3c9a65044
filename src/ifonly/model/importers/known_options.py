"""Unknown categories: which options of a feature an encoder was fitted without.

An encoder that ignores unknown categories still encodes them. For a rare option that may be intended, so the import
issues a warning. An encoder that knows none of the options was fitted on other values (texts and not numbers, codes
with their leading zeros): every answer about the feature would be false, and the model is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ifonly.errors import ModelError
from ifonly.printing import printable, shown, some_of
from ifonly.schema.values import is_missing, plain, same_value

MOST_LISTED = 8
"""Options that a sentence names."""


def unknown_places(values: Sequence[Any], known: Sequence[Any]) -> list[int]:
    """Where the values are that an encoder does not know: 1 is 1.0 and True, but not the text "1"."""
    texts = {one for one in known if isinstance(one, str)}
    others = [plain(one) for one in known if not isinstance(one, str)]
    return [
        i
        for i, value in enumerate(map(plain, values))
        if (value not in texts if isinstance(value, str) else not any(same_value(value, one) for one in others))
    ]


def describe_unknown(who: str, feature: Any, places: Sequence[int], known: Sequence[Any] = ()) -> str:
    """The sentence about the options at these places, which an encoder does not know; empty where it knows all.

    A ModelError where it knows none. `known` are the values that it was fitted on, where they are known.
    """
    if not places:
        return ""
    unknown = [feature.options[i] for i in places]
    present = [option for option in feature.options if option is not None]
    fitted = [plain(one) for one in known if not is_missing(plain(one))]
    who, listed = printable(who, 100), some_of([shown(one, 40) for one in unknown], MOST_LISTED)
    if present and set(present) <= set(unknown):
        saw = f": it was fitted on {some_of([shown(one, 40) for one in fitted], MOST_LISTED)}" if fitted else ""
        raise ModelError(
            f"{who} knows none of the options of feature '{feature.name}' ({listed}){saw}{_by_type(present, fitted)}; "
            f"declare the options as the model saw them in training."
        )
    one = len(unknown) == 1
    return (
        f"{who} was fitted without the option{'' if one else 's'} {listed} of feature '{feature.name}' and takes "
        f"{'it as an unknown category' if one else 'them as unknown categories'}; remove from the schema what cannot "
        f"occur, or fit the model on rows that have it."
    )


def _by_type(options: Sequence[Any], known: Sequence[Any]) -> str:
    """Do they differ in their type only?"""
    texts = {str(one) for one in known}
    return ", which differ in type only" if any(str(option) in texts for option in options) else ""
