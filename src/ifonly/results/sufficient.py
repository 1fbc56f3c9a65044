"""Sufficient reasons: sets of features that decide an outcome alone, and what is proven of each. Plain data.

smallest      proven to decide it alone, and that no set that weighs less (by default: with fewer features) does
minimal       proven to decide it alone, and that no proper subset does
sufficient    proven to decide it alone; whether all of it is needed was not found out
unknown       nothing smaller than the whole row is proven to decide it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ifonly.errors import QuestionError
from ifonly.printing import json_value, printable, shown
from ifonly.problem.plain_data import entries
from ifonly.problem.target import THE_DECISION
from ifonly.results.answer import Change, kept_text
from ifonly.results.from_dict import (
    change_from_dict,
    listed,
    number,
    read_count,
    read_row,
    read_texts,
    read_translations,
    read_value,
    read_words,
    text,
    truth,
)
from ifonly.results.stop import Stop
from ifonly.schema import Translations, Value

Sufficient: TypeAlias = Literal["smallest", "minimal", "sufficient", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFeature:
    """Why a feature of a reason is needed: with the others of it held, these changes are decided otherwise."""

    feature: str
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"feature": self.feature, "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class SufficientReason:
    """Features whose values alone decide the outcome. `needed`: where it is known, why each of them is needed."""

    features: tuple[str, ...]
    status: Sufficient
    needed: tuple[NeededFeature, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        needed = [one.to_dict() for one in self.needed]
        return {"features": list(self.features), "status": self.status, "needed": needed}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SufficientReasons:
    """Why a row is decided as it is: the reasons, least first, and what every reason has or none.

    Proven of each: no row with these features at the person's values is decided otherwise by the deployed model,
    however it rounds; among the rows of the schema that obey `facts` and `within` and have the same numbers missing.
    """

    row: int
    factual: Mapping[str, Value]
    decision: Value
    target: str
    """The outcome that the row does not have."""
    subject: str = THE_DECISION
    state: str = ""
    otherwise: bool = True
    """The target is any other decision, and no particular one."""
    reasons: tuple[SufficientReason, ...] = ()
    necessary: tuple[str, ...] = ()
    """Features that every reason has: a change of this one alone can be decided otherwise."""
    irrelevant: tuple[str, ...] = ()
    """Features that no minimal reason has; known only where `complete`."""
    complete: bool = False
    """All minimal reasons are listed."""
    at_least: int | None = None
    """Proven: no reason has fewer features; None where weights decide."""
    facts: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    """Rules of the schema between features that the row itself breaks; they are not among the facts."""
    within: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    """Derived features, which follow from others and are no reasons of their own."""
    missing: tuple[str, ...] = ()
    """Numbers that are missing, in the row and in all that it is compared with."""
    precision: str = "float64"
    method: str = ""
    searches: int = 0
    nodes: int = 0
    seconds: float = 0.0
    stop: Stop | None = None
    """What left something open."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    translations: Mapping[str, Translations] = field(default_factory=dict)
    contrasts: tuple[tuple[float, ...], ...] = field(default=(), compare=False)
    """Points that are decided otherwise: every reason has a feature that each of them changes. No part of the data."""

    @property
    def status(self) -> Sufficient:
        """What is proven of the first reason."""
        return self.reasons[0].status if self.reasons else "unknown"

    @property
    def features(self) -> tuple[str, ...]:
        """The features of the first reason."""
        return self.reasons[0].features if self.reasons else ()

    @property
    def note(self) -> str:
        """What left something open, in words; empty when nothing did."""
        return "" if self.stop is None else self.stop.words(row=False)

    def label(self, feature: str) -> str:
        """What people call a feature: its label, or else its name."""
        return self.words.get(feature, ("", ""))[0] or feature

    def unit(self, feature: str) -> str:
        return self.words.get(feature, ("", ""))[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "row": self.row,
            "status": self.status,
            "decision": self.decision,
            "target": self.target,
            "subject": self.subject,
            "state": self.state,
            "otherwise": self.otherwise,
            "factual": dict(self.factual),
            "reasons": [reason.to_dict() for reason in self.reasons],
            **{name: list(getattr(self, name)) for name in _LISTS},
            "complete": self.complete,
            "at_least": self.at_least,
            "precision": self.precision,
            "method": self.method,
            "searches": self.searches,
            "nodes": self.nodes,
            "seconds": self.seconds,
            "note": self.note,
            "stop": None if self.stop is None else self.stop.to_dict(),
            "words": {name: list(words) for name, words in self.words.items()},
            **({"translations": json_value(self.translations)} if self.translations else {}),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> SufficientReasons:
        """The inverse of `to_dict`; what follows from the reasons is checked."""
        return _reasons_from_dict(data)

    def sentence(self, language: str = "en", *, subject: str = "") -> str:
        """The first reason for the person, in "en" or "de"; `subject` is what is decided, such as "the application"."""
        from ifonly.results.reason_language import reason_sentence

        return reason_sentence(self, language, subject)

    def to_html(self, path: str | Path | None = None, language: str = "en", *, subject: str = "") -> str:
        """A page to print and hand over; written to `path` if one is given."""
        from ifonly.results.reason_html import reasons_document

        return kept_text(reasons_document(self, language, subject), path)

    def _repr_html_(self) -> str:
        from ifonly.results.reason_html import reasons_fragment

        return reasons_fragment(self)

    def __str__(self) -> str:
        """The exact sentence: every reason, and what is proven."""
        from ifonly.results.reason_language import exact_sentence

        return exact_sentence(self)

    def __repr__(self) -> str:
        what = printable(", ".join(self.features)) if self.reasons else "none proven"
        return f"<SufficientReasons: {self.status}, {what}>"


_LISTS = ("necessary", "irrelevant", "facts", "breaks", "within", "follows", "missing")
_TEXTS = ("target", "subject", "state", "precision", "method")
_COUNTS = ("row", "searches", "nodes")


def _reasons_from_dict(data: Any) -> SufficientReasons:
    more = ("status", "decision", "otherwise", "factual", "reasons", "complete", "at_least", "seconds", "note", "stop")
    found = entries(data, "Sufficient reasons", (*more, "words", *_LISTS, *_TEXTS, *_COUNTS), ("translations",))
    least, stop = found["at_least"], found["stop"]
    read = SufficientReasons(
        factual=read_row(found["factual"], "factual"),
        decision=read_value(found["decision"], "decision"),
        otherwise=truth(found["otherwise"], "otherwise"),
        reasons=tuple(_reason_from_dict(one) for one in listed(found["reasons"], "reasons")),
        complete=truth(found["complete"], "complete"),
        at_least=None if least is None else read_count(least, "at_least"),
        seconds=number(found["seconds"], "seconds"),
        stop=None if stop is None else Stop.from_dict(stop),
        words=read_words(found["words"], "words"),
        translations=read_translations(found.get("translations", {}), "translations"),
        **{name: read_texts(found[name], name) for name in _LISTS},  # type: ignore[arg-type]
        **{name: text(found[name], name) for name in _TEXTS},  # type: ignore[arg-type]
        **{name: read_count(found[name], name) for name in _COUNTS},  # type: ignore[arg-type]
    )
    for name in ("status", "note"):
        if found[name] != (own := getattr(read, name)):
            raise QuestionError(
                f"The entry '{name}' of these reasons would be {shown(own)}; it is {shown(found[name])}."
            )
    return read


def _reason_from_dict(data: Any) -> SufficientReason:
    found = entries(data, "A sufficient reason", ("features", "status", "needed"))
    proven = {name: name for name in get_args(Sufficient)[:-1]}
    if not isinstance(found["status"], str) or found["status"] not in proven:
        raise QuestionError(f"A reason is {', '.join(proven)}; got {shown(found['status'])}.")
    needed = []
    for one in listed(found["needed"], "needed"):
        own = entries(one, "A needed feature", ("feature", "changes"))
        changes = tuple(change_from_dict(change) for change in listed(own["changes"], "changes"))
        needed.append(NeededFeature(feature=text(own["feature"], "feature"), changes=changes))
    return SufficientReason(
        features=read_texts(found["features"], "features"), status=proven[found["status"]], needed=tuple(needed)
    )
