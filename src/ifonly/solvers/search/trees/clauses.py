"""The clauses of rules in cells, by which the searches for trees close boxes and drop cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.problem import Question
from ifonly.problem.action_rules import as_tied
from ifonly.problem.composed_rule import ComposedRule
from ifonly.problem.costs import People
from ifonly.problem.elimination import Elimination
from ifonly.problem.parts import Literal, UnrolledColumns
from ifonly.problem.rule import RowRule
from ifonly.problem.rules import Rule
from ifonly.problem.rules.normal import literals
from ifonly.schema import Integer
from ifonly.solvers.search.trees.cells import Cells
from ifonly.solvers.search.trees.kernels.layout import CellRules
from ifonly.solvers.search.trees.kernels.maximum import Clauses
from ifonly.solvers.search.trees.rules import RuledBoxes

Floats = NDArray[np.float64]
NO_CLAUSES = Clauses(
    np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 1)), np.zeros(0)
)
NO_RULES = CellRules(
    np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64),
    np.zeros(0), np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(0),
)  # fmt: skip
OPTIONS = 64
NO_TIE = -1.0
LACKING, SHARE = 1e-9, 2.0**-40
"""Clauses are about whole numbers or scaled to the size of 1: what lacks less than this, and this share of the largest
that the sum can be, may be rounding."""


@dataclass(frozen=True, eq=False)
class RuleClauses:
    """The clauses of a question's rules, whoever is asked about; other rules than formulas have none."""

    question: Question
    clause_at: NDArray[np.int64]
    term_at: NDArray[np.int64]
    feature: NDArray[np.int64]
    weight: tuple[Floats, ...]
    """(term): the weights of the columns of its feature."""
    constant: Floats
    room: Floats
    """(inequality): of those that tie what follows to its causes, what settling can add to the sum; of others, -1."""

    @classmethod
    def of(cls, question: Question) -> RuleClauses:
        columns, clause_at, term_at = UnrolledColumns(question.schema), [0], [0]
        feature: list[int] = []
        weights: list[Floats] = []
        constant: list[float] = []
        room: list[float] = []
        for rule in question.rules:
            for clause in _clauses(rule, columns):
                for one, added in clause:
                    touched = np.flatnonzero(np.logical_or.reduceat(one.weight != 0.0, columns.start[:-1]))
                    for g in touched.tolist():
                        feature.append(g)
                        weights.append(one.weight[columns.start[g] : columns.start[g + 1]])
                    constant.append(one.constant)
                    room.append(added)
                    term_at.append(len(feature))
                clause_at.append(len(constant))
        clauses, terms, features = (np.array(some, dtype=np.int64) for some in (clause_at, term_at, feature))
        return cls(question, clauses, terms, features, tuple(weights), np.array(constant), np.array(room))

    @cached_property
    def slack(self) -> Floats:
        """(inequality): what rounding may take from its sum."""
        low, high = UnrolledColumns(self.question.schema).ends
        start, size = UnrolledColumns(self.question.schema).start, np.abs(self.constant)
        for i, (first, end) in enumerate(zip(self.term_at[:-1].tolist(), self.term_at[1:].tolist(), strict=True)):
            for g, weight in zip(self.feature[first:end].tolist(), self.weight[first:end], strict=True):
                here = slice(int(start[g]), int(start[g + 1]))
                size[i] += float((np.abs(weight) * np.maximum(np.abs(low[here]), np.abs(high[here]))).max())
        return np.asarray(SHARE * size + np.where(self._ties, self.room, LACKING))

    @property
    def _ties(self) -> NDArray[np.bool_]:
        return np.asarray(self.room >= 0.0)

    @cached_property
    def inner(self) -> Floats:
        """The constants with which a nearest point is looked for: what follows from causes keeps clear of ends."""
        return np.where(self._ties, self.constant - self.slack, self.constant)

    @cached_property
    def _with_slack(self) -> Floats:
        """The constants, with what rounding may take from the sums."""
        return self.constant + self.slack

    @cached_property
    def _weights(self) -> tuple[NDArray[np.int64], Floats]:
        """Where those of each term begin, and all of them."""
        return _begun([len(one) for one in self.weight]), np.concatenate([np.zeros(0), *self.weight])

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """(feature): does it take whole numbers?"""
        return np.array([isinstance(feature, Integer) for feature in self.question.schema.features])

    def of_person(self, cells: Cells, people: People, i: int, kernel: Any) -> CellRules:
        """With the largest that each term is in each cell that a person's rows can be in."""
        if len(self.clause_at) == 1:
            return NO_RULES
        costs, shared, (weight_at, weight) = cells.costs, cells.shared, self._weights
        at = _begun(np.diff(shared.start)[self.feature])
        rules = CellRules(
            self.clause_at, self.term_at, self.feature, weight_at, weight, self._with_slack, at, np.empty(int(at[-1]))
        )
        if len(self.feature):  # a clause may have none
            kernel.fill_terms(
                rules, people.factual[i], np.stack([people.lower[i], people.upper[i]]), people.allowed[i],
                np.where(self.whole, costs.step, 0.0), shared.choice, shared.start, costs.start, shared.table,
            )  # fmt: skip
        return rules

    def in_cells(self, rules: RuledBoxes, people: People, cells: list[NDArray[np.int64]]) -> Clauses:
        """With the largest value of each term in each of the cells that the only person's rows can be in."""
        width = max(OPTIONS, *(len(some) for some in cells))
        ends = {g: rules.ends_of_cells(people, g, cells[g]) for g in set(self.feature.tolist()) if rules.is_number(g)}
        largest = np.full((len(self.feature), width), -math.inf)
        for row, g, weight in zip(largest, self.feature.tolist(), self.weight, strict=True):
            if g in ends:
                row[: len(cells[g])] = np.maximum(weight[0] * ends[g][0], weight[0] * ends[g][1])
            else:
                allowed = rules.options_of(people, g)
                np.maximum.at(row, rules.cells.classes(g)[allowed], weight[allowed])
        return Clauses(
            self.clause_at, self.term_at, self.feature, largest, np.where(self._ties, self._with_slack, self.constant)
        )


def _clauses(rule: RowRule, columns: UnrolledColumns) -> Iterable[Sequence[tuple[Literal, float]]]:
    """Clause by clause the inequalities, each with its `room`."""
    found: Iterable[Sequence[Literal]] = []
    if (tied := as_tied(rule)) is not None:
        tie, fewer = tied
        bounds = tie.space.tie_bounds(tie.place)
        return [[(one if fewer is None else fewer.literal_of(one), room)] for one, room in bounds]
    if isinstance(rule, Rule):
        found = [literals(columns, clause) for clause in rule.clauses(columns.schema)]
    elif isinstance(rule, ComposedRule) and isinstance(rule.map, Elimination) and isinstance(rule.rule, Rule):
        found = rule.map.clauses_of(rule.rule, columns)
    return [[(one, NO_TIE) for one in clause] for clause in found]


def _begun(sizes: Any) -> NDArray[np.int64]:
    """Where each of several lists begins, and the end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
