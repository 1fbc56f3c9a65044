"""Grouping of people by labels: a feature, a list, or a function of the row.

Labels that are shown alike are one group: beside numbers, "1" and True are the number 1. Numbers with many values are
grouped by quantiles, dates by month; people without a label are a group of their own. Labels are read as a stream: one
code and one number per person are kept, since the quantiles are known only at the end.
"""

from __future__ import annotations

import datetime
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.printing import shown, some_of
from ifonly.results import Answer, Failed, show
from ifonly.schema.arguments import is_label, is_listed
from ifonly.schema.values import is_missing, plain

MOST_VALUES = 8
"""Numbers with more distinct values than this are grouped by quantiles."""
MOST_LABELS = 10_000
"""Distinct labels: more of them are identifiers, not groups."""
MOST_PARTS = 100
LEAST = 30
"""People of a group who need recourse: smaller groups are not compared."""
_NUMBER = -1
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}")


@dataclass(frozen=True, slots=True)
class Grouping:
    """What people are grouped by, and how: a feature, labels (one per row), or a function of the row.

    Groups with fewer than `least` people who need recourse are named, but not compared. Numbers with many values are
    cut into `parts` groups of about the same size. `seed` is that of random draws.
    """

    by: str | Iterable[Any] | Callable[[Mapping[str, Any]], Any] | None = None
    least: int = LEAST
    parts: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("least", 1, 2**53), ("parts", 2, MOST_PARTS), ("seed", 0, 2**63)):
            number = plain(getattr(self, name))
            if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
                bounds = f"from {low} to {high}" if name == "parts" else f">= {low}"
                raise QuestionError(f"'{name}' of a grouping must be a whole number {bounds}; got {shown(number)}.")
            object.__setattr__(self, name, number)

    @property
    def name(self) -> str:
        """What the groups are of; empty where there are none."""
        return self.by if isinstance(self.by, str) else "" if self.by is None else "group"


By: TypeAlias = str | Sequence[Any] | Callable[[Mapping[str, Any]], Any] | Grouping | None


def labelled(answers: Iterable[Answer], by: Any) -> Iterator[tuple[Answer, Any]]:
    """Each answer with its label."""
    if by is None:
        return ((_checked(answer), None) for answer in answers)
    if isinstance(by, str):
        return _by_feature(answers, by)
    if callable(by) and not isinstance(by, type):
        return ((a, None if isinstance(a, Failed) else by(a.factual)) for a in map(_checked, answers))
    if not is_listed(by):
        raise QuestionError(f"People are grouped by a feature, a list of labels or a function; got {shown(by)}.")
    return _beside(answers, by)


def _checked(answer: Any) -> Answer:
    if not isinstance(answer, Answer):
        raise QuestionError(f"An audit is made from answers; got {shown(answer)}.")
    return answer


def _by_feature(answers: Iterable[Answer], name: str) -> Iterator[tuple[Answer, Any]]:
    for answer in map(_checked, answers):
        if not isinstance(answer, Failed) and name not in answer.factual:
            known = some_of([repr(feature) for feature in answer.factual])
            raise QuestionError(f"There is no feature '{name}' to group people by; the features are {known}.")
        yield answer, answer.factual.get(name)


def _beside(answers: Iterable[Answer], labels: Iterable[Any]) -> Iterator[tuple[Answer, Any]]:
    if isinstance(answers, Sized) and isinstance(labels, Sized) and len(answers) != len(labels):
        raise QuestionError(f"There are {len(answers)} answers, but {len(labels)} labels to group them by.")
    try:
        yield from zip(map(_checked, answers), labels, strict=True)
    except ValueError as error:
        if "zip()" not in str(error):
            raise
        raise QuestionError("There are not as many labels to group people by as there are answers.") from None


class Labels:
    """Labels as they come: a code for each text, a float64 for each number."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.codes, self.numbers = array("i"), array("d")

    def add(self, given: Any) -> None:
        label = _day(given)
        if isinstance(label, int | float) and not isinstance(label, bool):
            self.codes.append(_NUMBER)
            self.numbers.append(float(label))
            return
        code = self.known.setdefault((type(label), label), len(self.known))
        if code >= MOST_LABELS:
            raise QuestionError(
                f"There are more than {MOST_LABELS:,} different labels ({shown(given)} is the next); group people by "
                f"something that they have in common."
            )
        self.codes.append(code)
        self.numbers.append(math.nan)

    def groups(self, parts: int) -> tuple[list[str], NDArray[np.intp]]:
        """The names of the groups in their order, and which of them each person is in."""
        codes, numbers = np.array(self.codes, dtype=np.intp), np.array(self.numbers)
        texts = [label for _, label in self.known]
        if (codes == _NUMBER).any():
            read = np.array([_number(text) for text in texts] + [math.nan])
            numbers = np.where(codes == _NUMBER, numbers, read[codes])
            codes = np.where(np.isnan(numbers), codes, _NUMBER)
        elif texts and all(isinstance(text, str) and _DAY.fullmatch(text) for text in texts if text is not None):
            texts = [None if text is None else text[:7] for text in texts]
        people = codes == _NUMBER
        only = bool(people.any()) and all(texts[k] is None for k in np.unique(codes[~people]).tolist())
        named, order = _numbered(numbers[people], parts if only else None)
        seen = np.unique(codes[~people]).tolist()
        return _gathered(
            [(0, k, name) for k, name in enumerate(named)]
            + [(2 if texts[k] is None else 1, str(texts[k]), show(texts[k])) for k in seen],
            _placed(people, order, codes, {code: len(named) + i for i, code in enumerate(seen)}),
        )


def _placed(
    people: NDArray[np.bool_], order: NDArray[np.intp], codes: NDArray[np.intp], place: dict[int, int]
) -> NDArray[np.intp]:
    """For each person the place of its label: numbers first, in their order, then the texts that are there."""
    result = np.zeros(len(codes), dtype=np.intp)
    result[people] = order
    table = np.zeros(max(place, default=0) + 1, dtype=np.intp)
    for code, at in place.items():
        table[code] = at
    result[~people] = table[codes[~people]]
    return result


def _gathered(labels: list[tuple[int, Any, str]], of: NDArray[np.intp]) -> tuple[list[str], NDArray[np.intp]]:
    """Names in order (numbers, texts, missing), each once, and which of them each person has."""
    names = list(dict.fromkeys(name for _, _, name in sorted(labels, key=lambda label: label[:2])))
    at = {name: k for k, name in enumerate(names)}
    return names, np.array([at[name] for _, _, name in labels], dtype=np.intp)[of] if labels else of


def _numbered(numbers: NDArray[np.float64], parts: int | None) -> tuple[list[str], NDArray[np.intp]]:
    """Names of numbers in ascending order, and which one each has; by quantiles where there are many values."""
    values, inverse = np.unique(numbers, return_inverse=True)
    if parts is None or len(values) <= MOST_VALUES:
        if len(values) > MOST_LABELS:
            raise QuestionError(f"There are more than {MOST_LABELS:,} numbers among the labels, and texts beside them.")
        return [show(int(v) if v.is_integer() and abs(v) < 2**53 else v) for v in values.tolist()], inverse
    ends = np.unique(np.quantile(numbers, np.arange(1, parts) / parts, method="inverted_cdf"))
    part = np.searchsorted(ends, numbers)  # up to and including each end
    there, place = np.unique(part, return_inverse=True)
    spans = [(float(numbers[part == k].min()), float(numbers[part == k].max())) for k in there]
    short = [f"{_short(low)} to {_short(high)}" for low, high in spans]
    return short if len(set(short)) == len(short) else [f"{show(low)} to {show(high)}" for low, high in spans], place


def _short(number: float) -> str:
    """A number with five digits; whole ones with all of theirs."""
    return show(number if number.is_integer() else float(f"{number:.5g}"))


def _day(given: Any) -> Any:
    """A label as it is kept: moments as their days, a date as its month, what is missing as None."""
    if isinstance(given, np.datetime64):
        return None if np.isnat(given) else str(given.astype("datetime64[M]"))
    label = plain(given)
    if is_missing(label):
        return None
    if isinstance(label, datetime.date):
        return f"{label.year:04}-{label.month:02}"
    if not is_label(label):
        raise QuestionError(f"A group is named by a text, a finite number, a boolean or a date; got {shown(given)}.")
    moment = _MOMENT.match(label) if isinstance(label, str) else None
    return label if moment is None else moment[1]


def _number(label: Any) -> float:
    """The number that a text or a boolean is shown as; NaN where it is none."""
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
