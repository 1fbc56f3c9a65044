"""Reason codes: groups of features in the decision maker's words, such as a lender's list of reasons.

    {"reasons": [{"code": "31", "text": {"en": "Payments too low", "de": "Zahlungen zu niedrig"},
                  "features": ["MaxPaymentAmountOverLast6Months", "MostRecentPaymentAmount"]}, ...]}

A feature that no group names is a group of its own, without a code: its text is left to be filled in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.problem.plain_data import entries
from ifonly.results.languages import LANGUAGES
from ifonly.schema import Schema
from ifonly.schema.arguments import items
from ifonly.schema.io import read_json

MOST_BYTES = 2**20
"""Of a file with reason codes."""


@dataclass(frozen=True, kw_only=True)
class ReasonGroup:
    """Features that are one reason. `text`: the reason in words, or the words by language ("en", "de")."""

    features: tuple[str, ...]
    code: str = ""
    text: Any = field(default="")

    def __post_init__(self) -> None:
        names = items(self.features)
        if not names or not all(isinstance(name, str) for name in names):
            raise QuestionError(f"A reason names its features in a list; got {shown(self.features)}.")
        if not isinstance(self.code, str):
            raise QuestionError(f"The code of a reason is a text, such as '31'; got {shown(self.code)}.")
        words = {"en": self.text} if isinstance(self.text, str) else self.text
        if not isinstance(words, Mapping) or not all(
            language in LANGUAGES and isinstance(said, str) for language, said in words.items()
        ):
            raise QuestionError(
                f"The text of a reason is a text, or a text for each of {', '.join(LANGUAGES)}; got {shown(self.text)}."
            )
        object.__setattr__(self, "features", tuple(dict.fromkeys(names)))
        object.__setattr__(self, "text", tuple(sorted(words.items())))

    def words(self, language: str) -> str:
        """The reason in words; in English where there are none in the language, empty where there are none at all."""
        said = dict(self.text)
        return said.get(language) or said.get("en", "")

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "text": dict(self.text), "features": list(self.features)}


@dataclass(frozen=True)
class ReasonCodes:
    """All groups; a feature is in at most one."""

    groups: tuple[ReasonGroup, ...] = ()

    def __post_init__(self) -> None:
        groups = items(self.groups)
        if groups is None or not all(isinstance(one, ReasonGroup) for one in groups):
            raise QuestionError(f"Reason codes are a list of ReasonGroup(features=[...]); got {shown(self.groups)}.")
        seen: set[str] = set()
        for name in (name for group in groups for name in group.features):
            if name in seen:
                raise QuestionError(f"The feature {shown(name)} is in two groups of reasons; leave it in one.")
            seen.add(name)
        object.__setattr__(self, "groups", groups)

    @classmethod
    def from_dict(cls, data: Any) -> ReasonCodes:
        """The inverse of `to_dict`."""
        listed = items(entries(data, "A list of reason codes", ("reasons",))["reasons"])
        if listed is None:
            raise QuestionError("The entry 'reasons' of reason codes must be a list.")
        groups = []
        for one in listed:
            found = entries(one, "A reason", ("features",), ("code", "text"))
            groups.append(ReasonGroup(**{str(name): value for name, value in found.items()}))
        return cls(tuple(groups))

    @classmethod
    def load(cls, path: str | Path) -> ReasonCodes:
        """From a JSON file."""
        try:
            return cls.from_dict(read_json(path, "reason codes", MOST_BYTES))
        except QuestionError as error:
            raise QuestionError(f"In '{path}': {error}") from None

    def to_dict(self) -> dict[str, Any]:
        return {"reasons": [group.to_dict() for group in self.groups]}

    def complete(self, schema: Schema, follows: Collection[str]) -> tuple[ReasonGroup, ...]:
        """The groups, and one for each feature that is in none and does not follow from others."""
        named = [name for group in self.groups for name in group.features]
        for name in named:
            schema.index(name)
        rest = [name for name in schema.names if name not in named and name not in follows]
        return (*self.groups, *(ReasonGroup(features=(name,)) for name in rest))
