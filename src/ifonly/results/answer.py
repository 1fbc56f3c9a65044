"""Answers: the status of a counterfactual search as one of five types. A verdict is never a bool.

    Nearest      a row that the user's own model decides as asked; proven: nothing nearer exists (up to the gap)
    NoneExists   proven: no allowed row is decided as asked
    Within       a valid row, and a proven lower bound, but a limit was hit before they met
    Unknown      a limit was hit before any row was found; the lower bound is still proven
    Failed       the row could not be answered (only in `explain_many`, where one bad row must not stop the rest)

All of them are an `Answer`, of which there is no other kind. They are plain data in the user's own values: picklable,
JSON (both ways), and independent of the explainer.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from ifonly.errors import Contradiction, QuestionError
from ifonly.printing import escaped, json_object, json_value, printable
from ifonly.problem.target import THE_DECISION
from ifonly.results.stop import Stop
from ifonly.schema import Translations, Value, write_whole


@dataclass(frozen=True, slots=True)
class Change:
    """One feature, before and after. `counted`: its whole numbers are amounts, not names such as zip codes. `follows`:
    it is derived from others, and changes with them."""

    feature: str
    before: Value
    after: Value
    counted: bool = field(default=False, repr=False, compare=False)
    follows: bool = field(default=False, repr=False, compare=False)

    def __str__(self) -> str:
        with_it = " (follows)" if self.follows else ""
        return f"{self.feature}: {self.shown(self.before)} -> {self.shown(self.after)}{with_it}"

    def shown(self, value: Value) -> str:
        """A value of this feature as a person writes it."""
        amount = self.counted and isinstance(value, int) and not isinstance(value, bool)
        return f"{value:,}" if amount else show(value)

    @property
    def amounts(self) -> tuple[float, float] | None:
        """Both values as numbers that can be compared; None where one is an option, a name or missing."""
        before, after = self.before, self.after
        if not self.counted or isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
            return None
        return float(before), float(after)

    def to_dict(self) -> dict[str, Any]:
        plainly = {"feature": self.feature, "from": self.before, "to": self.after}
        separated = self.counted and any(self.shown(value) != show(value) for value in (self.before, self.after))
        marks = {"counted": separated, "follows": self.follows}
        return {**plainly, **{name: True for name, mark in marks.items() if mark}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """What becomes possible when some constraints are dropped and all others kept.

    `words` says so of the constraints ("Age may change"). The row found is at `distance`, and nothing nearer than
    `lower` exists then; `proven` when these are the same.
    """

    dropped: tuple[str, ...]
    words: str
    distance: float
    lower: float
    proven: bool
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        return json_object(self, lower="lower_bound")

    def __str__(self) -> str:
        at = f"distance {self.distance:.6g}" if self.proven else f"distance at most {self.distance:.6g}"
        return escaped(f"if {self.words}: then {at} ({'; '.join(map(str, self.changes))})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why no allowed row is decided as asked.

    `blame` are constraints that together rule it out, in words; empty when no row of the schema is decided so, with or
    without constraints. `minimal`: proven that without any one of them the rest of them leave a row. `relaxations` are
    the least that would help, nearest first. `note` says what is not proven, if anything is not.
    """

    blame: tuple[str, ...]
    minimal: bool
    relaxations: tuple[Relaxation, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usualness:
    """What the rows of a table say of one counterfactual."""

    nearest_row: int
    """The row of the table that is nearest to it, by number."""
    nearest_distance: float
    breaks: tuple[str, ...]
    """Invariants, which all rows of the table obey, that it breaks."""
    unseen: tuple[str, ...]
    """Pairs of its values, one of them changed, that no row has together, although by chance several would."""

    @property
    def possible(self) -> bool:
        """Does it obey what all rows obey?"""
        return not self.breaks

    def to_dict(self) -> dict[str, Any]:
        return json_object(self)

    def __str__(self) -> str:
        words = f"The nearest row of the data is row {self.nearest_row}, at a distance of {self.nearest_distance:.6g}."
        if self.breaks:
            words += f" It breaks what all rows obey: {'; '.join(self.breaks)}."
        return escaped(words + "".join(f" No row has {pair}." for pair in self.unseen))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer(ABC):
    """What all five kinds have. Distances are in the question's distance; scores are the user's own model's."""

    row: int
    target: str
    upper: float = math.inf
    distance_name: str
    lower: float
    changes: tuple[Change, ...] = ()
    factual: Mapping[str, Value]
    counterfactual: Mapping[str, Value] | None = None
    decision_before: Value = None
    decision_after: Value = None
    score_before: float | tuple[float, ...] = math.nan
    score_after: float | tuple[float, ...] = math.nan
    method: str = ""
    seconds: float = 0.0
    nodes: int = 0
    stop: Stop | None = None
    """What stopped the search before it was over."""
    rounding_bound: float = 0.0
    """The bound on what the model's own rounding does to the score at the counterfactual. `lower` is about rows whose
    exact score is at least so much above the margin: the model accepts them under any rounding."""
    lower_any_rounding: float | None = None
    """Nothing nearer than this is accepted under any rounding; None where it was not searched for."""
    precision: str = "float64"
    """What the model computes in."""
    subject: str = THE_DECISION
    """What the target speaks of; `state` is what it should be (empty: the target itself)."""
    state: str = ""
    breaks: tuple[str, ...] = ()
    """Of a row that is decided as asked already: the constraints that it breaks as it stands. Of any other: the
    schema's rules between features that it breaks as it stands, which the answer need not keep."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The label and the unit of the features that have them in the schema."""
    translations: Mapping[str, Translations] = field(default_factory=dict)
    """Of the features that have them in the schema: label, unit and names of options by language."""
    outcome: Mapping[str, str] = field(default_factory=dict)
    """The new decision as a clause ("the application would have been approved"), by language, where one was stated."""
    constraints: tuple[str, ...] = ()
    """What the changed row has to keep, as it was understood, in words that can be asked again."""
    usual: Usualness | None = None
    """How usual the counterfactual is among real rows, where the explainer has some (`explainer.using(data=table)`)."""
    record: Any = field(default=None, repr=False, compare=False)

    @property
    @abstractmethod
    def status(self) -> str:
        """The kind, as a word."""

    @property
    def note(self) -> str:
        """What stopped the search and what to do about it, in words; empty when nothing did."""
        return "" if self.stop is None else self.stop.words(row=self.counterfactual is not None)

    @property
    def distance(self) -> float:
        """The distance of the counterfactual (infinity without one)."""
        return self.upper

    @property
    def already(self) -> bool:
        """Is the person decided as asked already, so that nothing needs to change?"""
        return self.counterfactual is not None and not self.changes

    @property
    def own_changes(self) -> tuple[Change, ...]:
        """The changes without those of derived features."""
        return tuple(change for change in self.changes if not change.follows)

    @property
    def derived_changes(self) -> tuple[Change, ...]:
        """The changes of derived features, which follow from the others."""
        return tuple(change for change in self.changes if change.follows)

    def label(self, feature: str) -> str:
        """What people call a feature: its label, or else its name."""
        return self.words.get(feature, ("", ""))[0] or feature

    def unit(self, feature: str) -> str:
        """The unit of a feature; empty where it has none."""
        return self.words.get(feature, ("", ""))[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: no NaN, no infinity."""
        return {
            entry: json_value(value)
            for entry, name in entries_of(type(self)).items()
            if (value := getattr(self, name)) or entry not in OPTIONAL
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The inverse of `to_dict`, without `record`: `Answer` reads any kind, a kind only its own."""
        from ifonly.results.from_dict import answer_from_dict

        answer = answer_from_dict(data)
        if not isinstance(answer, cls):
            raise QuestionError(f"This answer is a {type(answer).__name__} ('{answer.status}'), no {cls.__name__}.")
        return answer

    def sentence(self, language: str = "en", *, subject: str = "") -> str:
        """The explanation for the person, in "en" or "de"; `subject` is what is decided, such as "the application"."""
        from ifonly.results.plain_language import plain_language

        return plain_language(self, language, subject)

    def to_html(self, path: str | Path | None = None, language: str = "en", *, subject: str = "") -> str:
        """A page to print and hand over, with the guarantee in plain words; written to `path` if one is given."""
        from ifonly.results.html import answer_document

        return kept_text(answer_document(self, language, subject), path)

    def plot(self, axes: Any = None) -> Any:
        """What would change, as a picture: matplotlib axes (those given, or new ones; `.figure.savefig(...)`)."""
        from ifonly.results.plots import plot_answer

        return plot_answer(self, axes)

    def _repr_html_(self) -> str:
        from ifonly.results.html import answer_fragment

        return answer_fragment(self)

    def __str__(self) -> str:
        """The exact sentence: with the distance and what is proven."""
        from ifonly.results.sentences import sentence

        return sentence(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {printable(', '.join(self._facts()))}>"

    def _facts(self) -> Iterator[str]:
        """What a short look needs."""
        yield self.state or self.target
        if self.already:
            yield "already"
        elif self.counterfactual is not None:
            yield f"{self.distance_name} distance {self.upper:.6g}"
            own = len(self.own_changes)
            yield f"{own} change{'' if own == 1 else 's'}"
        if self.stop is not None:
            yield f"nothing nearer than {self.lower:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Nearest(Answer):
    """A valid row; nothing nearer exists, up to upper - lower."""

    status: ClassVar[str] = "nearest"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NoneExists(Answer):
    """Proven: no allowed row is decided as asked. `reasons`, where they were asked for, say why."""

    status: ClassVar[str] = "none exists"
    reasons: Reasons | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Within(Answer):
    """A valid row at `upper`; nothing nearer than `lower` exists; `stop` is what stopped the search."""

    status: ClassVar[str] = "within"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Unknown(Answer):
    """No row found; nothing nearer than `lower` exists; `stop` is what stopped the search."""

    status: ClassVar[str] = "unknown"


BUG = "A bug in ifonly, please report it: "
"""How the error of a row begins for which two things did not agree that must."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Failed(Answer):
    """The row could not be answered; `error` says why."""

    status: ClassVar[str] = "error"
    error: str = ""

    @classmethod
    def of(cls, row: int, error: Exception | str) -> Failed:
        """The answer of a row that could not be read, or that an error kept from being answered."""
        words = f"{BUG}{error}" if isinstance(error, Contradiction) else str(error)
        return cls(row=row, factual={}, target="", distance_name="", lower=0.0, error=words)

    @property
    def contradiction(self) -> bool:
        """Is it a bug, and not the row, that there is no answer?"""
        return self.error.startswith(BUG)

    @property
    def note(self) -> str:
        return self.error

    def _facts(self) -> Iterator[str]:
        yield f"row {self.row}"
        yield self.error


DERIVED = {"row": "status", "nodes": "note", "state": "already"}
"""Entries of plain data that follow from the fields, and the field that each stands behind."""
OPTIONAL = ("words", "translations", "outcome", "constraints", "usual")
"""Entries that are left out where they are empty."""
_RENAMED = {"upper": "distance", "lower": "lower_bound"}


@cache
def entries_of(kind: type[Answer]) -> dict[str, str]:
    """The entries of an answer's plain data, by the attributes that they are: all fields but the record of the search,
    in their order."""
    found: dict[str, str] = {}
    for one in fields(kind):
        if one.name != "record":
            found[_RENAMED.get(one.name, one.name)] = one.name
        if one.name in DERIVED:
            found[DERIVED[one.name]] = DERIVED[one.name]
    return found


KINDS: dict[str, type[Answer]] = {kind.status: kind for kind in (Nearest, NoneExists, Within, Unknown, Failed)}
"""The kinds by their status."""


def kept_text(text: str, path: str | Path | None) -> str:
    """The text, written to a file as well if one is named."""
    if path is not None:
        write_whole(path, text.encode("utf-8"))
    return text


def show(value: Value) -> str:
    """A value as a person writes it."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        # every digit: a rounded value might not flip the decision
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,}"
    return escaped(str(value))
