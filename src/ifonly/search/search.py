"""The exact search, as a method. Light to import: the kernels are loaded when a question is prepared."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.problem import Question, Steps, lower
from ifonly.proof import Solver
from ifonly.search.table import favourable_rows
from ifonly.tolerances import DEFAULT, Tolerances


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Exact branch and bound.

    `table_rows`: finite spaces up to this size are tabulated once and scanned for each person. `records`: keep what
    every node did, for proofs (the answer's `record`); spaces are then never tabulated.
    """

    table_rows: int = 20_000
    records: bool = False
    name: str = "search"

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> Solver:
        from ifonly.search.solver import SearchSolver

        stepped = any(isinstance(constraint, Steps) for constraint in question.by_feature)  # a grid for each person
        tabulated = self.table_rows and not self.records and not question.rules and not stepped
        table = favourable_rows(question, most=self.table_rows) if tabulated else None
        return SearchSolver(lowered=lower(question), tolerances=tolerances, table=table, records=self.records)
