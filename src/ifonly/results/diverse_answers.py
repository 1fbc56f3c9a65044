"""Diverse answers of one person, and what ended the set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

from ifonly.errors import QuestionError
from ifonly.printing import json_object, shown
from ifonly.problem.plain_data import entries
from ifonly.results.answer import Answer, Nearest, NoneExists, kept_text
from ifonly.results.answers import AnswerSequence
from ifonly.results.from_dict import listed, number, text
from ifonly.results.sentences import reaching, sentence


class DiverseAnswers(AnswerSequence):
    """Answers in the order of their distance, each given the earlier ones, and what ended the set.

    `ended` is None when as many as asked for were found; else the `NoneExists` or `Unknown` of the next one.
    `apart[i][j]` is the distance between answers i and j, in the distance of the question.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        *,
        ended: Answer | None,
        apart: Sequence[Sequence[float]],
        condition: str,
        seconds: float = 0.0,
    ) -> None:
        self._answers, self.ended, self.condition, self.seconds = tuple(answers), ended, condition, seconds
        self.apart = tuple(tuple(row) for row in apart)

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Answer, ...]: ...
    def __getitem__(self, index: int | slice) -> Answer | tuple[Answer, ...]:
        return self._answers[index]

    @property
    def proven(self) -> bool:
        """Is every answer proven nearest given the earlier ones, and the end, if there is one, proven too?"""
        ended = self.ended is None or isinstance(self.ended, NoneExists)
        return ended and all(isinstance(answer, Nearest) for answer in self._answers)

    @property
    def k_diversity(self) -> float:
        """The mean distance between two of the answers (paper); NaN for fewer than two."""
        k = len(self)
        pairs = [self.apart[i][j] for i in range(k) for j in range(i + 1, k)]
        return math.fsum(pairs) / len(pairs) if pairs else math.nan

    @property
    def k_distance(self) -> float:
        """The mean distance of the answers from the person (paper); NaN without any."""
        return math.fsum(a.upper for a in self) / len(self) if len(self) else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        names = ("ended", "condition", "proven", "k_diversity", "k_distance", "apart", "seconds")
        return {"answers": [answer.to_dict() for answer in self], **json_object(self, names)}

    @classmethod
    def from_dict(cls, data: Any) -> DiverseAnswers:
        """The inverse of `to_dict`; what follows from the answers is checked."""
        derived = ("proven", "k_diversity", "k_distance")
        found = entries(data, "A set of answers", ("answers", "ended", "condition", *derived, "apart", "seconds"))
        ended = None if found["ended"] is None else Answer.from_dict(found["ended"])
        answers = [Answer.from_dict(one) for one in listed(found["answers"], "answers")]
        apart = [[number(one, "apart") for one in listed(row, "apart")] for row in listed(found["apart"], "apart")]
        if {len(apart), *map(len, apart)} != {len(answers)}:
            raise QuestionError("The entry 'apart' of a set of answers must be a square, with a row per answer.")
        several = cls(
            answers,
            ended=ended,
            apart=apart,
            condition=text(found["condition"], "condition"),
            seconds=number(found["seconds"], "seconds"),
        )
        for name, value in several.to_dict().items():
            if name in derived and (found[name] != value or type(found[name]) is not type(value)):
                raise QuestionError(
                    f"The entry '{name}' of this set would be {shown(value)}; it is {shown(found[name])}."
                )
        return several

    def __str__(self) -> str:
        lines = [f"{i}. {words}" for i, words in enumerate(self.sentences, 1)]
        return "\n".join([*lines, *([self.ending] if self.ending else [])])

    @property
    def sentences(self) -> list[str]:
        """One per answer."""
        return [sentence(one, given=", given the answers above" if k else "") for k, one in enumerate(self)]

    @property
    def ending(self) -> str:
        """Why there are no more, in a sentence; empty when there are as many as asked for."""
        if self.ended is None:
            return ""
        if not isinstance(self.ended, NoneExists):
            return f"The search for another answer was stopped ({self.ended.note})."
        if not len(self):
            return str(self.ended)
        return f"No other allowed row {reaching(self.ended)} {self.condition} (proven)."

    def __eq__(self, other: object) -> bool:
        """Are answers, end and condition equal? The time that they took does not matter."""
        return isinstance(other, DiverseAnswers) and self._compared == other._compared

    __hash__ = AnswerSequence.__hash__

    @property
    def _compared(self) -> tuple[Any, ...]:
        return self._answers, self.ended, self.apart, self.condition

    def to_frame(self, features: Literal["changed", "all", "none"] = "changed") -> Any:
        """A flat pandas DataFrame, one row per answer: see `Answers.to_frame`."""
        from ifonly.results.frames import pandas_frame

        return pandas_frame(self, features)

    def to_polars(self, features: Literal["changed", "all", "none"] = "changed") -> Any:
        """The same as a polars DataFrame."""
        from ifonly.results.frames import polars_frame

        return polars_frame(self, features)

    def to_html(self, path: str | Path | None = None, language: str = "en", *, subject: str = "") -> str:
        """A page with the alternatives side by side; written to `path` if one is given."""
        from ifonly.results.html import diverse_document

        return kept_text(diverse_document(self, language, subject), path)

    def plot(self, axes: Any = None) -> Any:
        """The alternatives side by side, as a picture: matplotlib axes."""
        from ifonly.results.plots import plot_diverse

        return plot_diverse(self, axes)

    def _repr_html_(self) -> str:
        from ifonly.results.html import diverse_fragment

        return diverse_fragment(self)

    def __repr__(self) -> str:
        return f"<DiverseAnswers: {len(self)}{'' if self.proven else ', not all proven'}>"
