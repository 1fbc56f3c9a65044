"""Many answers in the order of their rows, as a sequence: tables, pages and pictures of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.results.answer import KINDS, Answer, kept_text
from ifonly.schema.arguments import items


class AnswerSequence(Sequence[Answer]):
    """What sequences of answers share."""

    _answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def __hash__(self) -> int:
        return hash(len(self._answers))


class Answers(AnswerSequence):
    """Many answers, in the order of the rows; `ids` is the index of the frame they are about, if it had one."""

    def __init__(self, answers: Sequence[Answer], *, seconds: float = 0.0, ids: Any = None) -> None:
        self._answers = tuple(answers)
        self.seconds = seconds
        self.ids = ids
        if ids is not None and len(ids) != len(self._answers):
            raise QuestionError(f"There are {len(self._answers)} answers, but {len(ids)} labels for them.")

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Answers: ...
    def __getitem__(self, index: int | slice) -> Answer | Answers:
        if not isinstance(index, slice):
            return self._answers[index]
        return Answers(self._answers[index], ids=None if self.ids is None else self.ids[index])

    def __eq__(self, other: object) -> bool:
        """Are the answers equal, each to each? The time that they took does not matter."""
        return isinstance(other, Answers) and self._answers == other._answers

    __hash__ = AnswerSequence.__hash__

    def counts(self) -> dict[str, int]:
        """How many answers of each kind."""
        return {status: sum(answer.status == status for answer in self) for status in KINDS}

    @property
    def impossible(self) -> int:
        """Of answers that were compared with real rows: how many break what all of these obey."""
        return sum(answer.usual is not None and not answer.usual.possible for answer in self)

    def to_dicts(self) -> list[dict[str, Any]]:
        return [answer.to_dict() for answer in self._answers]

    @classmethod
    def from_dicts(cls, data: Any) -> Answers:
        """The inverse of `to_dicts`."""
        given = items(data)
        if given is None:
            raise QuestionError(f"Answers are a list of objects, one per row; got {shown(data)}.")
        return cls([Answer.from_dict(one) for one in given])

    def to_frame(self, features: Literal["changed", "all", "none"] = "changed") -> Any:
        """A flat pandas DataFrame, one row per answer, with the index of the frame that was asked about.

        `features`: which of them have columns, before and after: those that change in some answer, all, or none.
        """
        from ifonly.results.frames import pandas_frame

        return pandas_frame(self, features, self.ids)

    def to_html(self, path: str | Path | None = None, language: str = "en", *, subject: str = "") -> str:
        """A page with a section per person; written to `path` if one is given."""
        from ifonly.results.html import answers_document

        return kept_text(answers_document(self, language, subject), path)

    def plot(self, axes: Any = None, *, by: Sequence[Any] | None = None) -> Any:
        """How many have an answer at no more than a cost, as a picture; one line per group of labels `by` row."""
        from ifonly.results.plots import plot_answers

        return plot_answers(self, axes, by=by)

    def _repr_html_(self) -> str:
        from ifonly.results.html import answers_fragment

        return answers_fragment(self)

    def to_polars(self, features: Literal["changed", "all", "none"] = "changed") -> Any:
        """The same as a polars DataFrame."""
        from ifonly.results.frames import polars_frame

        return polars_frame(self, features)

    def __repr__(self) -> str:
        counted = ", ".join(f"{count} {status}" for status, count in self.counts().items() if count)
        return f"<Answers: {counted or 'none'}>"
