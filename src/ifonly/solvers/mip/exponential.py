"""MIP-EXP (paper, Algorithms 1, 2 and 4): search on the distance, and in each step optimise the network's output.

Within a budget: cut the domains to what it allows (the paper's optimisation of each input; here in closed form, since
distances are sums or maxima over features), bound every neuron over them, then maximise the smallest slack

    t = min over conditions of  C s - d - margin

and stop at the first row that is favourable under any rounding. t < -E everywhere (by the solver's bound, less SLACK,
never by an incumbent) proves that the budget holds none. E is the deployed model's rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.problem import Lowered, Question
from ifonly.results import Claim, Limits, Listener
from ifonly.solvers.common import backends
from ifonly.solvers.common.backends import BackendName
from ifonly.solvers.common.backends.protocol import TIGHTEST, Floats, Outcome, SolveStatus
from ifonly.solvers.common.backends.squares import MOST_ROUNDS, with_tangents
from ifonly.solvers.common.bounds import BOUNDS, Bounds, BoundsName, check_bounds, neuron_bounds
from ifonly.solvers.common.distances import DistanceSteps, StepOutcome, Verdict, accepted, cut_to, search_distances
from ifonly.solvers.common.input_side import InputSide
from ifonly.solvers.common.inputs import Person, read_point
from ifonly.solvers.common.per_person import Clock, answer_each, distance_of, stop_of
from ifonly.solvers.common.repair import decided, repaired
from ifonly.solvers.common.trees import PersonTrees, lowered_of, person_trees, refusal, trees_of
from ifonly.solvers.mip.objective import MORE, MOST_EXCLUDED, tree_slack
from ifonly.solvers.mip.program import Program, formulate_output
from ifonly.solvers.mip.tree_program import read_row
from ifonly.tolerances import DEFAULT, Tolerances

MOST_KEPT = 30
"""Solutions whose tangents are handed on to the next budget."""

SLACK = TIGHTEST
"""Score, relative to 1 + |bound|: what a solver's bound is moved outward by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MipExp:
    """MIP-EXP: exponential, then binary search on the distance, one mixed-integer program per step.

    `first`: the paper's epsilon, the first interval. `gap`: how small the last must be (None: as the tolerances say).
    """

    backend: BackendName = "highs"
    bounds: BoundsName = "linear"
    first: float = 1e-3
    gap: float | None = None

    @property
    def name(self) -> str:
        return "mip-exp" + ("" if self.backend == "highs" else f"-{self.backend}")

    def refuses(self, question: Question) -> str:
        """Why it cannot take the question; empty when it can."""
        return refusal(question, self.name)

    def prepare(self, question: Question, tolerances: Tolerances = DEFAULT) -> MipExpSolver:
        check_bounds(self.bounds, BOUNDS)
        backends.get(self.backend)
        return MipExpSolver(method=self, lowered=lowered_of(question), tolerances=tolerances)


@dataclass(frozen=True, kw_only=True)
class _IntervalWork:
    """What one person's search may spend, has spent and has learnt."""

    clock: Clock
    nodes: list[int] = field(default_factory=lambda: [0])
    tangents: dict[tuple[int, ...], list[Floats]] = field(default_factory=dict)
    """Features squared -> where tangents were needed. Columns are in units of the budget: the next has use for them."""
    excluded: list[NDArray[np.intp]] = field(default_factory=list)
    """Leaves that together are refused."""


@dataclass(frozen=True, kw_only=True)
class MipExpSolver:
    """MIP-EXP, ready for one question; one thread, whatever `threads` says."""

    method: MipExp
    lowered: Lowered
    tolerances: Tolerances

    def solve(self, points: Floats, limits: Limits, *, threads: int = 1, listen: Listener | None = None) -> list[Claim]:
        return answer_each(self.lowered, points, limits, listen, self.method.name, self._answer)

    def _answer(self, person: Person, clock: Clock) -> Claim:
        work = _IntervalWork(clock=clock)
        claim = search_distances(
            self.lowered,
            person,
            lambda budget: self._find(person, budget, work),
            DistanceSteps(
                first=self.method.first, gap=self.method.gap, tolerances=self.tolerances, limits=work.clock.limits
            ),
            self.method.name,
        )
        return replace(claim, nodes=work.nodes[0])

    def _find(self, person: Person, budget: float, work: _IntervalWork) -> StepOutcome:
        """Algorithm 4: is there a counterfactual within the budget?"""
        lowered = self.lowered
        if work.clock.out:
            return StepOutcome(verdict=Verdict.STOPPED, stop=stop_of(SolveStatus.TIME, work.clock.limits))
        searched = cut_to(lowered, person, budget)
        if searched is None or distance_of(lowered, person, person.nearest(lowered)) > budget:
            return StepOutcome(verdict=Verdict.NONE)
        bounds = neuron_bounds(lowered, searched, budget, self.method.bounds, until=work.clock.until)
        if trees_of(lowered.question) is not None:
            return self._find_in_trees(person, searched, budget, work, bounds)
        if (bounds.upper[-1] - lowered.need < person.rounding_bound).any():  # a condition that nothing here meets
            return StepOutcome(verdict=Verdict.NONE)
        program, side = formulate_output(lowered, searched, budget, bounds)
        return self._optimised(person, searched, budget, work, program, side)

    def _optimised(
        self, person: Person, searched: Person, budget: float, work: _IntervalWork, program: Program, side: InputSide
    ) -> StepOutcome:
        """Solve, and again with more tangents where the solution lies below a parabola."""
        lowered, required = self.lowered, person.rounding_bound + person.own
        tangents = work.tangents.setdefault(tuple(side.inputs.feature[side.squared].tolist()), [])
        program = _with_tangents(program, side, tangents)
        for _ in range(MOST_ROUNDS):
            settings = replace(work.clock.settings(), enough=-(required + MORE))
            outcome = backends.run(program.form, self.method.backend, settings)
            work.nodes[0] += outcome.nodes
            if outcome.ending is SolveStatus.INFEASIBLE and lowered.question.rules:
                return StepOutcome(verdict=Verdict.NONE)  # no row within the budget meets the rules, as the solver says
            if outcome.ending is SolveStatus.INFEASIBLE:  # wrong: the nearest row is in the budget, the slack is free
                return StepOutcome(verdict=Verdict.STOPPED, stop=stop_of(SolveStatus.TROUBLE, work.clock.limits))
            if outcome.bound - SLACK * (1.0 + abs(outcome.bound)) > -person.rounding_bound:
                return StepOutcome(verdict=Verdict.NONE)
            shrink = 1.0
            if outcome.values is not None:
                row = read_point(lowered, searched, program.inputs, outcome.values[: len(program.inputs)])
                shrink = min(budget / max(distance_of(lowered, person, row), 1e-300), 1.0)
                point = repaired(lowered, person, row, lowered.need + required)
                if point is not None:  # where tangents stand for squares it may be beyond the budget, and still a row
                    distance = distance_of(lowered, person, point)
                    if distance <= budget * (1.0 + accepted(lowered)):
                        return StepOutcome(verdict=Verdict.FOUND, point=point, distance=distance)
            if outcome.ending not in (SolveStatus.SOLVED, SolveStatus.ENOUGH):
                return StepOutcome(verdict=Verdict.STOPPED, stop=stop_of(outcome.ending, work.clock.limits))
            if outcome.values is None or not _below(side, outcome.values):
                return StepOutcome(verdict=Verdict.UNDECIDED)
            more = [share * outcome.values[side.squared] for share in (1.0, shrink)]
            program = _with_tangents(program, side, more)
            tangents.extend(more[-1:])
            del tangents[:-MOST_KEPT]
        return StepOutcome(verdict=Verdict.UNDECIDED)

    def _find_in_trees(
        self, person: Person, searched: Person, budget: float, work: _IntervalWork, bounds: Bounds
    ) -> StepOutcome:
        """The same of an ensemble. Rows that the library's own sum refuses are excluded by their leaves, for good."""
        lowered, required = self.lowered, self.lowered.need + person.rounding_bound + person.own
        forest = replace(person_trees(lowered, searched), excluded=tuple(work.excluded))
        if (forest.ends()[1] < required).any():
            return StepOutcome(verdict=Verdict.NONE)
        tangents: list[Floats] = []
        for _ in range(MOST_ROUNDS + MOST_EXCLUDED):
            program, side = formulate_output(lowered, searched, budget, bounds, forest)
            outcome = self._run_trees(_with_tangents(program, side, tangents), person, forest, work)
            if (
                outcome.ending is SolveStatus.INFEASIBLE
                or outcome.bound > tree_slack(forest) - person.rounding_bound - person.own
            ):
                return StepOutcome(verdict=Verdict.NONE)
            if outcome.values is None or outcome.ending not in (SolveStatus.SOLVED, SolveStatus.ENOUGH):
                return StepOutcome(verdict=Verdict.STOPPED, stop=stop_of(outcome.ending, work.clock.limits))
            row = read_row(lowered, person, program.inputs, outcome.values, forest, program.cuts)
            point = repaired(lowered, forest.within(lowered, person, row), row, required)
            distance = np.inf if point is None else distance_of(lowered, person, point)
            if distance <= budget * (1.0 + accepted(lowered)):
                return StepOutcome(verdict=Verdict.FOUND, point=point, distance=distance)
            if _below(side, outcome.values):
                shrink = min(budget / max(distance_of(lowered, person, row), 1e-300), 1.0)
                tangents += [share * outcome.values[side.squared] for share in (1.0, shrink)]
            elif not decided(lowered, person, row[None, :], required)[0]:
                forest = forest.without(row)
                work.excluded.append(forest.excluded[-1])
            else:
                break
        return StepOutcome(verdict=Verdict.UNDECIDED)

    def _run_trees(self, program: Program, person: Person, forest: PersonTrees, work: _IntervalWork) -> Outcome:
        enough = -(person.rounding_bound + person.own + tree_slack(forest))
        settings = replace(work.clock.settings(), enough=enough, presolve=False)
        outcome = backends.run(program.form, self.method.backend, settings)
        work.nodes[0] += outcome.nodes
        return replace(outcome, bound=outcome.bound - SLACK * (1.0 + abs(outcome.bound)))


def _squares(side: InputSide) -> NDArray[np.intp]:
    return len(side.form.cost) - len(side.squared) + np.arange(len(side.squared))


def _below(side: InputSide, values: Floats) -> bool:
    """Does the solution lie below a parabola?"""
    return bool((values[side.squared] ** 2 > values[_squares(side)] + TIGHTEST).any())


def _with_tangents(program: Program, side: InputSide, places: list[Floats]) -> Program:
    """The program with tangents of every square at these places."""
    form = program.form
    for a in places:
        form = with_tangents(form, side.squared, _squares(side), a)
    return replace(program, form=form)
