"""Branch and bound, as a method. Light to import: the kernels are loaded when a question is prepared."""

from __future__ import annotations

import math
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from ifonly.caching import PREPARING
from ifonly.compiling import Kernels
from ifonly.errors import QuestionError
from ifonly.model import Kind
from ifonly.printing import shown
from ifonly.problem import Question, Steps, lower
from ifonly.problem.joint_target import JointTarget
from ifonly.problem.lowering import without_network
from ifonly.results import Solver
from ifonly.solvers.search.table import favourable_rows, row_counts
from ifonly.tolerances import DEFAULT, Tolerances

JUDGED_ROWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Exact branch and bound.

    `table_rows`: finite spaces up to this size are tabulated once and scanned for each person (under rules, which judge
    row by row, those with at most `JUDGED_ROWS` favourable rows). `records`: keep what every node did, for proofs (the
    answer's `record`); spaces are then searched, too. `any_rounding`: always bound the distance of rows that the model
    accepts under some order of rounding only (the answer's `lower_any_rounding`), which may take as long again.
    `probing`: whether the neurons of a node are probed by linear programs; "by rule" where many numbers are free.
    """

    table_rows: int = 20_000
    records: bool = False
    any_rounding: bool = False
    probing: Literal["by rule", "always", "never"] = "by rule"
    name: str = "search"

    def __post_init__(self) -> None:
        if self.probing not in ("by rule", "always", "never"):
            raise QuestionError(f"'probing' is 'by rule', 'always' or 'never'; got {shown(self.probing)}.")

    def refuses(self, question: Question) -> str:
        """Why it cannot take the question; empty when it can."""
        return "" if question.model.function.search else without_network(question, self.name)

    def load(self, question: Question) -> None:
        """Import what answers the question, and make its kernels ready: once per process, outside of every limit.

        A fork waits for it: it would copy the locks of modules that are half imported.
        """
        searches = {one.model.function.search: SEARCHES[one.model.function.search] for one in question.members}
        if all(search.ready for search in searches.values()):
            return
        with PREPARING:
            for search in searches.values():
                import_module(search.module)
                if search.prepared_with_kernels:
                    search.kernels().prepare()

    def wait(self, question: Question) -> None:
        """The same, and wait until the kernels are compiled, however long that takes."""
        self.load(question)
        for name in dict.fromkeys(one.model.function.search for one in question.members):
            if SEARCHES[name].compiled:
                kernels = SEARCHES[name].kernels()
                kernels.prepare()
                kernels.wait()

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> Solver:
        if len(question.members) > 1 and not self._few_rows(question):
            from ifonly.solvers.search.several import SeveralModels

            return SeveralModels(self.prepare_at_once, question, tolerances)
        return self.prepare_at_once(question, tolerances)

    def _few_rows(self, question: Question) -> bool:
        """Can all rows be tabulated, for all models at once?"""
        counts = row_counts(question.schema)
        return question.model.function.search != "trees" and counts is not None and math.prod(counts) <= self.table_rows

    def prepare_at_once(self, question: Question, tolerances: Tolerances) -> Solver:
        """For a question to one model, or to several that are searched together from the start."""
        return SEARCHES[question.model.function.search].prepare(self, question, tolerances)

    def _network_solver(self, question: Question, tolerances: Tolerances) -> Solver:
        from ifonly.solvers.search.solver import SearchSolver

        table = None
        if self.table_rows:
            stepped = any(isinstance(constraint, Steps) for constraint in question.by_feature)  # a grid per person
            judged = stepped or bool(question.rules)
            table = favourable_rows(question, most=self.table_rows, judged=judged)
            if table is not None and judged and len(table.points) > JUDGED_ROWS:
                table = None
        lowered = lower(question, simplify=not self.records)  # a proof speaks of the model's own neurons
        records = self.records and lowered.bends is None  # no certificate can state a smooth activation
        return SearchSolver(
            lowered=lowered, tolerances=tolerances, table=table, records=records, any_rounding=self.any_rounding,
            probing=self.probing,
        )  # fmt: skip

    def _forest_solver(self, question: Question, tolerances: Tolerances) -> Solver:
        from ifonly.solvers.search.trees.solver import ForestSolver

        target = question.target
        if not isinstance(target, JointTarget):
            return ForestSolver(question, tolerances, any_rounding=self.any_rounding)
        trees = [k for k, one in enumerate(target.models) if one.function.as_trees() is not None]
        networks = [k for k in range(len(target.models)) if k not in trees]
        return ForestSolver(
            question.to(target.part(trees)),
            tolerances,
            networks=question.to(target.part(networks)) if networks else None,
        )

    def _box_solver(self, question: Question, tolerances: Tolerances) -> Solver:
        from ifonly.solvers.search.boxes.solver import BoxSolver

        return BoxSolver(question)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSearch:
    """How models of one kind are searched: the module that is loaded, the kernels that are compiled ("module:name"),
    and what prepares a question. `prepared_with_kernels`: preparing calls kernels too, so they are compiled first.
    `compiled`: are there kernels that it calls?"""

    module: str
    kernels_at: str
    prepare: Callable[[Search, Question, Tolerances], Solver]
    prepared_with_kernels: bool = False
    compiled: bool = True

    @property
    def ready(self) -> bool:
        """Is there nothing left to load before a question is prepared?"""
        module = sys.modules.get(self.module)
        if module is None or getattr(module.__spec__, "_initializing", False):  # another thread is about to
            return False
        return not self.prepared_with_kernels or self.kernels().now is not None

    def kernels(self) -> Kernels:
        found: Kernels = pkgutil.resolve_name(self.kernels_at)
        return found


SEARCHES = {
    "network": KindSearch(
        module="ifonly.solvers.search.solver",
        kernels_at="ifonly.solvers.search.compiled:KERNELS",
        prepare=Search._network_solver,
    ),
    "smooth network": KindSearch(
        module="ifonly.solvers.search.solver",
        kernels_at="ifonly.solvers.search.smooth.compiled:SMOOTH_KERNELS",
        prepare=Search._network_solver,
    ),
    "trees": KindSearch(
        module="ifonly.solvers.search.trees.solver",
        kernels_at="ifonly.solvers.search.trees.compiled:TREE_KERNELS",
        prepare=Search._forest_solver,
        prepared_with_kernels=True,
    ),
    "boxes": KindSearch(
        module="ifonly.solvers.search.boxes.solver",
        kernels_at="ifonly.solvers.search.compiled:KERNELS",  # it has none of its own
        prepare=Search._box_solver,
        compiled=False,
    ),
}
"""Registry of the searches by `Kind.search`."""


def begin_to_compile(function: Kind) -> None:
    """Compile in the background what preparing the first question will call."""
    search = SEARCHES.get(function.search)
    if search is not None and search.prepared_with_kernels:
        search.kernels().begin()
