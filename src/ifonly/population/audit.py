"""Recourse over a group of people: who has it, who provably has none, what it costs, and what has to change.

People who are already decided as asked need no recourse and are counted apart. Of the others, each has a row (proven
nearest or not), is proven to have none, or is left open by a limit. The cost of recourse is the distance of the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.proof import Answer, Failed, Nearest, NoneExists, show
from ifonly.schema.features import is_missing, plain
from ifonly.schema.given import is_label, items

By: TypeAlias = str | Sequence[Any] | Callable[[Mapping[str, Any]], Any] | None
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
MOST_VALUES = 8
"""Numbers with more distinct values than this are grouped by their quarters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """People who have something in common. `costs` are the distances of those with recourse, in ascending order."""

    name: str
    unneeded: int
    """Already decided as asked."""
    without: int
    """Proven: no allowed change does it."""
    unknown: int
    """A limit was hit before a row was found."""
    unproven: int
    """Of those with recourse: a row, but not proven to be the nearest."""
    costs: tuple[float, ...]

    @property
    def recourse(self) -> int:
        return len(self.costs)

    @property
    def needing(self) -> int:
        """All who are not decided as asked."""
        return self.recourse + self.without + self.unknown

    @property
    def people(self) -> int:
        return self.needing + self.unneeded

    @property
    def share(self) -> float:
        """Of those who need recourse, how many have it (NaN if none needs it)."""
        return self.recourse / self.needing if self.needing else math.nan

    @property
    def mean(self) -> float:
        return float(np.mean(self.costs)) if self.costs else math.nan

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    def quantile(self, q: float) -> float:
        """The cost that a share q of those with recourse does not exceed (NaN without any)."""
        return float(np.quantile(self.costs, q)) if self.costs else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        numbers = {
            "share": self.share,
            "mean": self.mean,
            **{f"p{round(100 * q)}": self.quantile(q) for q in QUANTILES},
        }
        return {
            "name": self.name,
            "people": self.people,
            "unneeded": self.unneeded,
            "needing": self.needing,
            "recourse": self.recourse,
            "without": self.without,
            "unknown": self.unknown,
            "unproven": self.unproven,
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit:
    """The groups and everybody together. `by` says what they have in common; `failed` rows could not be read."""

    by: str
    target: str
    distance_name: str
    groups: tuple[Group, ...]
    everybody: Group
    failed: int

    def __repr__(self) -> str:
        by, all_of_them = f" in {len(self.groups)} groups" if self.groups else "", self.everybody
        recourse = f"{all_of_them.recourse} of {all_of_them.needing} with recourse"
        return f"<Audit: {all_of_them.people} people{by}, {recourse}>"

    def to_dict(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "target": self.target,
            "distance_name": self.distance_name,
            "groups": [group.to_dict() for group in self.groups],
            "everybody": self.everybody.to_dict(),
            "failed": self.failed,
        }


def audit(answers: Sequence[Answer], *, by: By = None) -> Audit:
    """Recourse by subgroup: `by` is a feature, one label per row, or a function of the row that gives its label.

    Labels that are shown alike are one group: beside numbers, "1" and True are the number 1. Numbers with many values
    are grouped by quarters. All answers should be to the same question: give `target` when asking, or everybody is
    asked about the decision they do not have.
    """
    asked = [(i, answer) for i, answer in enumerate(answers) if not isinstance(answer, Failed)]
    labels = _named(_labels(by, [i for i, _ in asked], [a for _, a in asked], len(answers)))
    targets = list(dict.fromkeys(answer.target for _, answer in asked))
    members: dict[str, list[Answer]] = {}
    for _, name in sorted(set(labels), key=lambda label: label[0]):
        members[name] = []
    for (_, name), (_, answer) in zip(labels, asked, strict=True):
        members[name].append(answer)
    return Audit(
        by=by if isinstance(by, str) else "" if by is None else "group",
        target=targets[0] if len(targets) == 1 else " or ".join(targets),
        distance_name=next((answer.distance_name for _, answer in asked), ""),
        groups=tuple(_group(name, mine) for name, mine in members.items()) if by is not None else (),
        everybody=_group("everybody", [answer for _, answer in asked]),
        failed=len(answers) - len(asked),
    )


def _group(name: str, answers: Sequence[Answer]) -> Group:
    needing = [answer for answer in answers if not answer.already]
    found = [answer for answer in needing if answer.counterfactual is not None]
    without = sum(isinstance(answer, NoneExists) for answer in needing)
    return Group(
        name=name,
        unneeded=len(answers) - len(needing),
        without=without,
        unknown=len(needing) - len(found) - without,
        unproven=sum(not isinstance(answer, Nearest) for answer in found),
        costs=tuple(sorted(answer.upper for answer in found)),
    )


def _labels(by: By, rows: list[int], answers: list[Answer], count: int) -> list[Any]:
    if by is None:
        return ["everybody"] * len(answers)
    if isinstance(by, str):
        for answer in answers:
            if by not in answer.factual:
                known = ", ".join(map(repr, list(answer.factual)[:8]))
                raise QuestionError(f"There is no feature '{by}' to group people by; the features are {known}, ...")
        return [answer.factual[by] for answer in answers]
    if callable(by) and not isinstance(by, type):
        return [_checked(by(answer.factual)) for answer in answers]
    labels = items(by)
    if labels is None:
        raise QuestionError(f"People are grouped by a feature, a list of labels or a function; got {shown(by)}.")
    if len(labels) != count:
        raise QuestionError(f"There are {count} answers, but {len(labels)} labels to group them by.")
    return [_checked(labels[i]) for i in rows]


def _checked(label: Any) -> Any:
    if not is_missing(plain(label)) and not is_label(label):
        raise QuestionError(f"A group is named by a text, a finite number or a boolean; {shown(label)} is none.")
    return plain(label)


def _as_shown(labels: list[Any]) -> list[Any]:
    """Labels, where those that people see as the same are the same: beside numbers, "1" and True are the number 1.

    Text alone stays text ("01" is not "1"), and yes and no alone stay yes and no.
    """
    plainly = [plain(label) for label in labels]
    if not any(isinstance(label, int | float) and not isinstance(label, bool) for label in plainly):
        return plainly
    return [_number(label) for label in plainly]


def _number(label: Any) -> Any:
    """A number as such, whole ones as integers; anything else as it is."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return label
    if not math.isfinite(number):
        return label
    return int(label) if isinstance(label, int) else int(number) if number.is_integer() else number


def _named(given: list[Any]) -> list[tuple[Any, str]]:
    """Each label as a place in the order and a name; numbers with many values by the quarter that they are in."""
    labels = _as_shown(given)
    numbers = [x for x in labels if isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)]
    if len(numbers) < len(labels) or len(set(numbers)) <= MOST_VALUES:
        return [((_rank(label), label if _rank(label) == 0 else str(label)), show(label)) for label in labels]
    values = np.array(numbers, dtype=np.float64)
    ends = np.unique(np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf"))
    quarter = np.searchsorted(ends, values)  # up to and including each end
    names = {k: f"{show(float(values[quarter == k].min()))} to {show(float(values[quarter == k].max()))}"
             for k in np.unique(quarter).tolist()}  # fmt: skip
    return [(k, names[k]) for k in quarter.tolist()]


def _rank(label: Any) -> int:
    """Numbers before words before what is missing."""
    if isinstance(label, int | float):
        return 0
    return 2 if label is None else 1


# ---------------------------------------------------------------------- what has to change


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipSet:
    """Features that together change the decision, how often, and at what costs (ascending)."""

    features: tuple[str, ...]
    costs: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.costs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "count": self.count,
            "least": self.costs[0],
            "median": float(np.median(self.costs)),
            "most": self.costs[-1],
        }


def flip_sets(answers: Sequence[Answer]) -> tuple[FlipSet, ...]:
    """The sets of features that the answers change: of one person's alternatives nearest first, of a group most often.

    Answers that change nothing, or that have no row, are left out.
    """
    given = items(answers)
    if given is None or not all(hasattr(answer, "counterfactual") for answer in given):
        raise QuestionError(f"Sets of changes are made from a list of answers; got {shown(answers)}.")
    found = [answer for answer in given if answer.counterfactual is not None and not answer.already]
    costs: dict[tuple[str, ...], list[float]] = {}
    for answer in found:
        costs.setdefault(tuple(change.feature for change in answer.changes), []).append(answer.upper)
    sets = [FlipSet(features=features, costs=tuple(sorted(mine))) for features, mine in costs.items()]
    return tuple(sorted(sets, key=lambda flip: (-flip.count, flip.costs[0], flip.features)))
