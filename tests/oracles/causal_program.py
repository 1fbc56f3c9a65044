"""The cheapest action as one mixed-integer program (HiGHS): all sets of actions, equations and the model at once.

By big-M: a switch per feature with causes (acted on, or its equation holds), a switch per ReLU, one per leaf of a tree,
and one per number and cut, which all trees share: within the solver's tolerance, a number could be on one side of a cut
for one tree and on the other for another.
Cost l1. It shares nothing with what is tested: weights are those of the case, trees are scikit-learn's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from random_causes import CausalCase, estimators
from scipy.optimize import Bounds, LinearConstraint, milp

from ifonly import ClassTarget, Integer, Ordinal, Real
from ifonly.causes import LinearEquation, ModelEquation

BIG = 60.0
CLEAR = 1e-7
"""A number is so far below the tie between two steps."""
NO_TIE = 1e-4
"""The score of the few trees that decide is on the threshold or farther from it."""
Terms = dict[int, float]


@dataclass
class Program:
    """Variables, rows and costs, added one at a time."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)
    sides: dict[tuple[int, float], int] = field(default_factory=dict)

    def variable(self, low: float, high: float, *, whole: bool = False, cost: float = 0.0) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(int(whole))
        self.cost.append(cost)
        return len(self.low) - 1

    def add(self, terms: Terms, low: float, high: float = math.inf) -> None:
        self.rows.append((terms, low, high))

    def solved(self) -> float:
        matrix = np.zeros((len(self.rows), len(self.low)))
        for i, (terms, _, _) in enumerate(self.rows):
            for k, value in terms.items():
                matrix[i, k] = value
        sides = np.array([(low, high) for _, low, high in self.rows]).T
        found = milp(self.cost, constraints=LinearConstraint(matrix, *sides), integrality=self.whole,
                     bounds=Bounds(self.low, self.high), options={"mip_rel_gap": 0.0})  # fmt: skip
        assert found.status in (0, 2)
        return float(found.fun) if found.status == 0 else math.inf

    # ------------------------------------------------------------------ functions of variables

    def network(self, layers: Any, inputs: list[int]) -> tuple[Terms, float]:
        """The output of a ReLU network, as terms and a constant."""
        for weight, bias in layers[:-1]:
            units = []
            for row, b in zip(np.asarray(weight), np.asarray(bias), strict=True):
                unit, on = self.variable(0.0, BIG), self.variable(0.0, 1.0, whole=True)
                inside = {k: float(v) for k, v in zip(inputs, row, strict=True)}
                self.add({unit: 1.0, **_times(inside, -1.0)}, b)
                self.add({unit: -1.0, on: -BIG, **inside}, -b - BIG)
                self.add({unit: -1.0, on: BIG}, 0.0)
                units.append(unit)
            inputs = units
        weight, bias = layers[-1]
        return {k: float(v) for k, v in zip(inputs, np.asarray(weight)[0], strict=True)}, float(bias[0])

    def side(self, x: int, threshold: float) -> int:
        """A switch: 1 where the number is at most a threshold of scikit-learn's trees, 0 where it is above it."""
        below = np.float32(threshold)  # which they compare with the number in float32
        below = below if float(below) <= threshold else np.nextafter(below, np.float32(-np.inf))
        cut = (float(below) + float(np.nextafter(below, np.float32(np.inf)))) / 2
        cut = math.floor(cut) + 0.5 if self.whole[x] else round(cut, 9)
        if (x, cut) not in self.sides:
            on, low, high = self.variable(0.0, 1.0, whole=True), self.low[x], self.high[x]
            self.add({x: -1.0, on: cut - high}, -high)
            self.add({x: 1.0, on: cut - low}, cut)
            self.sides[x, cut] = on
        return self.sides[x, cut]

    def trees(self, fitted: Any, inputs: list[int]) -> tuple[Terms, float]:
        """The sum over trees of scikit-learn, as terms and a constant."""
        terms: Terms = {}
        trees, scale, constant = estimators(fitted)
        for tree in trees:
            leaves = {}
            for leaf, path, value in _leaves(tree):
                on = self.variable(0.0, 1.0, whole=True)
                leaves[on] = 1.0
                terms[on] = scale * value
                for column, cut, left in path:
                    below = self.side(inputs[column], cut)
                    if left:
                        self.add({below: 1.0, on: -1.0}, 0.0)
                    else:
                        self.add({below: -1.0, on: -1.0}, -1.0)
                assert leaf >= 0
            self.add(leaves, 1.0, 1.0)
        return terms, constant


def _times(terms: Terms, factor: float) -> Terms:
    return {k: factor * value for k, value in terms.items()}


def _leaves(tree: Any) -> list[tuple[int, list[tuple[int, float, bool]], float]]:
    """Of a tree of scikit-learn: each leaf, the splits on the way, and its value (that of the last class)."""
    found, waiting = [], [(0, [])]
    while waiting:
        node, path = waiting.pop()
        if tree.children_left[node] < 0:
            found.append((node, path, float(tree.value[node].ravel()[-1])))
            continue
        step = (int(tree.feature[node]), float(tree.threshold[node]))
        waiting.append((int(tree.children_left[node]), [*path, (*step, True)]))
        waiting.append((int(tree.children_right[node]), [*path, (*step, False)]))
    return found


def cheapest_by_program(case: CausalCase, target: ClassTarget) -> float:
    """The least cost; infinity where no action does it. All features are one column each."""
    schema, before, n = case.schema, case.schema.read(case.person), len(case.schema)
    program, weight = Program(), case.distance.weight_vector(schema)
    steps = [not isinstance(f, Real) for f in schema.features]
    ends = [
        (f.lower, f.upper) if isinstance(f, Real | Integer) else (0.0, len(f.options) - 1.0) for f in schema.features
    ]
    levels = [len(f.levels) if isinstance(f, Ordinal) else 0 for f in schema.features]  # a step costs 1 of so many
    x = [program.variable(*ends[g], whole=steps[g]) for g in range(n)]
    for g, name in enumerate(schema.names):
        moved = program.variable(0.0, BIG, cost=float(weight[g]) / (levels[g] or ends[g][1] - ends[g][0]) / n)
        put = program.variable(*ends[g], whole=steps[g])
        program.add({moved: 1.0, put: -1.0}, -before[g])
        program.add({moved: 1.0, put: 1.0}, before[g])
        if name not in case.causes.graph:
            program.add({x[g]: 1.0, put: -1.0}, 0.0, 0.0)
            continue
        acts = program.variable(0.0, 1.0, whole=True, cost=case.causes.holding_cost(name) * float(weight[g]) / n)
        terms, constant = _equation(program, case, name, x)
        noise = before[g] - case.functions[name](before)
        room = (0.5, 0.5 - CLEAR) if steps[g] else (0.0, 0.0)  # x - 1/2 <= f + u < x + 1/2
        program.add({x[g]: 1.0, **_times(terms, -1.0), acts: BIG}, constant + noise - room[1])
        program.add({x[g]: -1.0, **terms, acts: BIG}, -constant - noise - room[0])
        for sign in (1.0, -1.0):
            program.add({x[g]: sign, put: -sign, acts: -BIG}, -BIG)
            program.add({put: sign, acts: BIG}, sign * before[g])
    sign = 1.0 if target.label == "yes" else -1.0
    if case.fitted is not None:
        terms, constant = program.trees(case.fitted, x)
        program.add(_times(terms, sign), NO_TIE - sign * constant)
    else:
        terms, constant = program.network([(one.weight, one.bias) for one in case.model.network.layers], x)
        program.add(_times(terms, sign), target.margin - sign * constant)
    return program.solved()


def _equation(program: Program, case: CausalCase, name: str, x: list[int]) -> tuple[Terms, float]:
    equation, schema = case.causes.equations[name], case.schema
    inputs = [x[schema.index(one)] for one in equation.parents]
    if isinstance(equation, LinearEquation):
        return dict(zip(inputs, equation.weights.values(), strict=True)), equation.intercept
    assert isinstance(equation, ModelEquation)
    if hasattr(equation.model, "layers"):
        return program.network([(one.weight, one.bias) for one in equation.model.layers], inputs)
    return program.trees(equation.model, inputs)
