"""The clauses of rules in cells, as the search for any row closes boxes with them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Question
from ifonly.problem.costs import People
from ifonly.problem.parts import UnrolledColumns
from ifonly.problem.rules import Derived, Rule
from ifonly.problem.rules.normal import literals
from ifonly.solvers.search.trees.kernels.maximum import Clauses
from ifonly.solvers.search.trees.rules import RuledBoxes

Floats = NDArray[np.float64]
NO_CLAUSES = Clauses(
    np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 1)), np.zeros(0)
)
OPTIONS = 64


class RuleClauses(NamedTuple):
    """The clauses of a question's rules, whoever is asked about; other rules than formulas have none."""

    clause_at: NDArray[np.int64]
    term_at: NDArray[np.int64]
    feature: NDArray[np.int64]
    weight: tuple[Floats, ...]
    """(term): the weights of the columns of its feature."""
    constant: Floats

    @classmethod
    def of(cls, question: Question) -> RuleClauses:
        columns, clause_at, term_at = UnrolledColumns(question.schema), [0], [0]
        feature: list[int] = []
        weights: list[Floats] = []
        constant: list[float] = []
        for rule in question.rules:
            for clause in rule.clauses(question.schema) if isinstance(rule, Rule | Derived) else ():
                for one in literals(columns, clause):
                    for g in range(len(question.schema)):
                        weight = one.weight[columns.start[g] : columns.start[g + 1]]
                        if weight.any():
                            feature.append(g)
                            weights.append(weight)
                    constant.append(one.constant)
                    term_at.append(len(feature))
                clause_at.append(len(constant))
        clauses, terms, features = (np.array(some, dtype=np.int64) for some in (clause_at, term_at, feature))
        return cls(clauses, terms, features, tuple(weights), np.array(constant, dtype=np.float64))

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
        return Clauses(self.clause_at, self.term_at, self.feature, largest, self.constant)
