"""Prepared methods, kept from call to call: a question is validated once, and a method prepared for it once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ifonly.answering.values import Floats
from ifonly.caching import SizedCache, bytes_of, cached_property
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem import Query, Question, RobustToWeights, Target
from ifonly.problem.elimination import Elimination, eliminated
from ifonly.problem.rules import bytes_beside
from ifonly.results import Method, Solver
from ifonly.solvers.mip import MipExp, MipObj
from ifonly.solvers.search import Enumerate, Search
from ifonly.solvers.smt import Mace, MipSat
from ifonly.tolerances import Tolerances

QUESTION_BYTES = 2**24
"""Questions that are kept from call to call."""
PREPARED_BYTES = 2**29
"""Methods, prepared for questions, that are kept from call to call."""

METHODS: tuple[Method, ...] = (Search(), MipObj(), MipExp(), MipSat(), Mace(), Enumerate())
"""The methods that an error message can recommend."""


@dataclass(frozen=True)
class PreparedMethod:
    """A solver that is prepared for a question."""

    solver: Solver
    question: Question
    searched: Question
    """What the solver was prepared for: the question, or the one without derived features that stands for it."""
    elimination: Elimination | None = None
    """How rows correspond, where the solver's question has no derived features."""

    @cached_property
    def nbytes(self) -> int:
        """Its size, beside those of questions and models, which others keep. Counted when it is asked for."""
        shared = list[Any](getattr(self.solver, "shared", ()))
        for question in (self.question, self.searched):
            model = question.model
            shared += [model, model.function, model.schema, question, *question.constraints]
        return bytes_of(self.solver, shared) + getattr(self.solver, "shared_bytes", 0)

    @property
    def kept_bytes(self) -> int:
        """The same with the bounds that it may keep later."""
        return self.nbytes + int(getattr(self.solver, "buffer_bytes", 0))

    def takes(self, points: Floats) -> bool:
        """Can the derived features of these people be eliminated, if the solver's question has none?"""
        return self.elimination is None or self.elimination.takes(points)

    def reduced(self, points: Floats) -> Floats:
        """The points as the solver takes them."""
        return points if self.elimination is None else self.elimination.reduced(points)

    def rows(self, points: Floats) -> Floats:
        """The solver's points with all features."""
        return points if self.elimination is None else self.elimination.rows(points)


class PreparedMethods:
    """Validates questions about a model, and prepares methods for them."""

    def __init__(self, model: Model, tolerances: Tolerances, prepared: SizedCache[PreparedMethod]) -> None:
        self.model, self.tolerances, self._prepared = model, tolerances, prepared
        self._questions: SizedCache[Question] = SizedCache(QUESTION_BYTES, _bytes_of_question)

    def question(self, target: Target, query: Query) -> Question:
        """The question of one target under a query without conditions; checked once."""
        return self._questions.get_or_make(
            (target, query.distance, query.constraints),
            lambda: self._question(target, query),
        )

    def _question(self, target: Target, query: Query) -> Question:
        constraints = [accepted_by_neighbours(one, self.model, target) for one in query.constraints]
        return Question(model=self.model, target=target, distance=query.measure, constraints=constraints)

    def method(self, question: Question, method: Method, reduced: bool = True) -> PreparedMethod:
        """The method, prepared for the question; `reduced`: without derived features, where these can be eliminated."""
        key = (self, question.target, question.distance, question.constraints, question.caution, method, reduced)
        return self._prepared.get_or_make(key, lambda: self._prepare(question, method, reduced))

    def _prepare(self, question: Question, method: Method, reduced: bool) -> PreparedMethod:
        """The method, prepared for the question; where it does not support it, an error that names one that does."""
        question = question.joint
        if why := refusal(method, question):
            able = [other.name for other in METHODS if not refusal(other, question)]
            others = f"; use {' or '.join(able)}" if able else "; no method can take it"
            raise UnsupportedQuestion(f"{why}{others}.")
        several = isinstance(method, Search) and len(question.members) > 1  # which reduces the parts that it searches
        searched, elimination = (eliminated(question) if reduced and not several else None) or (question, None)
        solver = method.prepare(searched, self.tolerances)
        return PreparedMethod(solver, question, searched, elimination)


def prepared_cache(most_bytes: int = PREPARED_BYTES) -> SizedCache[PreparedMethod]:
    """The cache of prepared methods of one explainer, whatever numbers are missing."""
    return SizedCache(most_bytes, _prepared_bytes)


def accepted_by_neighbours(constraint: Any, model: Model, target: Target) -> Any:
    """The constraint; what networks around the model must decide follows what is asked of the model."""
    return constraint.accepted(model, target) if isinstance(constraint, RobustToWeights) else constraint


def refusal(method: Method, question: Question) -> str:
    """Why a method cannot take a question; empty when it can, or does not say."""
    refuses = getattr(method, "refuses", None)
    return str(refuses(question)) if refuses is not None else ""


def _prepared_bytes(prepared: PreparedMethod) -> int:
    return prepared.kept_bytes


def _bytes_of_question(question: Question) -> int:
    """What a question takes beside its model."""
    return bytes_beside(question, question.schema, (question.model,))
