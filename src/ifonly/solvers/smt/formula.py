"""SMT encoding of one person's question over exact rationals, for Z3 (paper, Figure 1 and Algorithm 3).

    numbers    a Real (or factual + step * an Int) inside its domain
    choices    a Bool an option, exactly one true
    network    z = W h + b;  an open ReLU is  (h = z and z >= 0) or (h = 0 and z < 0),  one of fixed state is z or 0
    trees      if-then-else at every split that the domain leaves open, and the sum of the leaves as a rational; of
               a number nothing lies between the two values next to a cut
    decision   C s - d >= need;  z >= 0 for the neurons that stand for rules
    distance   <= budget (l2: its square, a nonlinear constraint)

Floats are rationals, so every number here is exactly the lowered one's; Z3's arithmetic is exact too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ifonly.errors import MissingExtra
from ifonly.problem import Lowered, Norm
from ifonly.problem.parts import UnrolledColumns
from ifonly.resources import check_limits
from ifonly.schema.decimals import steps_to, written
from ifonly.solvers.common.bounds import Bounds
from ifonly.solvers.common.inputs import Floats, Person
from ifonly.solvers.common.repair import RULE_EDGE
from ifonly.solvers.common.trees import Leaf, PersonTrees, ReachableTree, Split


def load_z3() -> Any:
    """The package, or the sentence that says how to get it."""
    try:
        import z3
    except ImportError:
        raise MissingExtra("z3-solver", extra="smt", needed_for="An SMT method") from None
    return z3


def exact(number: float | Fraction) -> Any:
    """A float as Z3's rational."""
    return load_z3().RealVal(str(Fraction(number)))


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Assertions, and where the values of the features are read from."""

    assertions: list[Any]
    numbers: dict[int, Any]
    """Feature -> its value, a Z3 term."""
    choices: dict[int, list[tuple[int, Any]]]
    """Feature -> option and its Bool."""
    steps: dict[int, Any] = field(default_factory=dict)
    """Feature that moves in steps -> how many, a Z3 Int."""

    def read(self, model: Any, person: Person) -> Floats:
        """The point that a model of the formula stands for, rounded to floats."""
        z3 = load_z3()
        point = np.clip(person.factual, person.lower, person.upper)  # a number with one value left is no term
        for g, term in self.numbers.items():
            point[g] = min(max(_rounded(model.eval(term, model_completion=True)), person.lower[g]), person.upper[g])
        for g, options in self.choices.items():
            point[g] = next(k for k, chosen in options if z3.is_true(model.eval(chosen, model_completion=True)))
        return point


def _rounded(value: Any) -> float:
    if hasattr(value, "as_fraction"):
        return float(value.as_fraction())
    return float(value.approx(30).as_fraction())  # an algebraic number (l2)


def formula(
    lowered: Lowered,
    person: Person,
    budget: float,
    need: Floats,
    bounds: Bounds | None,
    forest: PersonTrees | None = None,
) -> Formula:
    """The formula; with `bounds`, ReLUs of fixed state are not in it."""
    z3 = load_z3()
    made = Formula(assertions=[], numbers={}, choices={})
    columns: list[Any] = []
    costs = []
    for g in range(lowered.features):
        if lowered.numeric[g]:
            term, cost = _number(lowered, person, g, made)
            columns.append(term)
        else:
            cost = _choice(lowered, person, g, made, columns)
        costs.append(cost)
    total = exact(budget**2 if lowered.norm is Norm.L2 else budget)
    if lowered.norm is Norm.LINF:
        made.assertions.extend(cost <= total for cost in costs)
    else:
        made.assertions.append(z3.Sum(costs) <= total)
    made.assertions.extend(_support(lowered, person, made))
    outputs = _network(lowered, columns, bounds, made)
    outputs = outputs if forest is None else tree_sums(forest, made)
    made.assertions.extend(z >= exact(least) for z, least in zip(outputs, need.tolist(), strict=True))
    return made


def _number(lowered: Lowered, person: Person, g: int, made: Formula) -> tuple[Any, Any]:
    """A number's term and its cost."""
    z3 = load_z3()
    low, high, factual = float(person.lower[g]), float(person.upper[g]), float(person.factual[g])
    rate, fall, jump = exact(lowered.rate[g]), exact(lowered.rate_down[g]), exact(lowered.jump[g])
    if low == high:
        moved = exact(abs(Fraction(low) - Fraction(factual)))
        cost = (rate if low > factual else fall) * moved + (jump if low != factual else exact(0.0))
        return exact(low), z3.simplify(cost * cost if lowered.norm is Norm.L2 else cost)
    if lowered.step[g]:
        steps, step = z3.Int(f"steps{g}"), float(lowered.step[g])
        made.steps[g] = steps
        term = exact(factual) + exact(written(step)) * z3.ToReal(steps)
        made.assertions.extend([steps >= steps_to(factual, low, step), steps <= steps_to(factual, high, step)])
    else:
        term = z3.Real(f"x{g}")
        made.assertions.extend([term >= exact(low), term <= exact(high)])
    made.numbers[g] = term
    change = term - exact(factual)
    if lowered.norm is Norm.L2:
        if lowered.rate[g] == lowered.rate_down[g]:
            return term, rate * rate * change * change
        return term, z3.If(change >= exact(0.0), rate * rate, fall * fall) * change * change
    cost = z3.Real(f"cost{g}")
    made.assertions.extend([cost >= rate * change, cost >= -fall * change])
    if lowered.jump[g] > 0.0:
        cost = cost + z3.If(term == exact(factual), exact(0.0), jump)
    return term, cost


def _choice(lowered: Lowered, person: Person, g: int, made: Formula, columns: list[Any]) -> Any:
    """A choice's columns, 0 or 1, and its cost."""
    z3 = load_z3()
    start, end = int(lowered.start[g]), int(lowered.start[g + 1])
    zero, one = exact(0.0), exact(1.0)
    allowed = [j for j in range(start, end) if person.allowed[j]]
    bools = {j: z3.Bool(f"option{g}_{j - start}") for j in allowed}
    made.choices[g] = [(j - start, bools[j]) for j in allowed]
    made.assertions.append(z3.PbEq([(chosen, 1) for chosen in bools.values()], 1))
    columns.extend(z3.If(bools[j], one, zero) if j in bools else zero for j in range(start, end))
    return z3.Sum([z3.If(chosen, exact(person.cost[j]), zero) for j, chosen in bools.items()])


def _support(lowered: Lowered, person: Person, made: Formula) -> list[Any]:
    """At most so many changes; a feature only with its partner."""
    z3 = load_z3()
    changed = []
    for g in range(lowered.features):
        if g in made.numbers:
            changed.append(made.numbers[g] != exact(person.factual[g]))
        elif g in made.choices:
            kept = [chosen for k, chosen in made.choices[g] if k == int(person.factual[g])]
            changed.append(z3.Not(kept[0]) if kept else z3.BoolVal(True))
        else:
            changed.append(z3.BoolVal(bool(person.lower[g] != person.factual[g])))
    rules = [z3.Implies(changed[g], changed[partner]) for g, partner in lowered.partners.tolist()]
    if lowered.most_changes < lowered.features:
        counted = [(one, 1) for one, counts in zip(changed, lowered.counts.tolist(), strict=True) if counts]
        rules.append(z3.PbLe(counted, lowered.most_changes))
    return rules


def _edges(lowered: Lowered) -> dict[tuple[int, int], float]:
    """How far below 0 each neuron of a rule may be. Its numbers are rounded, so a row on the edge of the rule may be a
    hair below: no row that the rule's own judgement allows is left out, and that judgement has the last word."""
    low, high = UnrolledColumns(lowered.question.schema).ends
    size = np.maximum(np.abs(low), np.abs(high))
    edges: dict[tuple[int, int], float] = {}
    whole = dict(zip(map(tuple, lowered.required.tolist()), lowered.required_whole.tolist(), strict=True))
    for i, (weight, bias) in enumerate(lowered.layers):
        size = np.abs(weight) @ size + np.abs(bias)
        edges |= {
            (k, j): 0.5 if is_whole else RULE_EDGE * float(size[j]) for (k, j), is_whole in whole.items() if k == i
        }
    return edges


def _network(lowered: Lowered, columns: list[Any], bounds: Bounds | None, made: Formula) -> list[Any]:
    """The conditions C s - d as terms."""
    z3 = load_z3()
    h = columns
    zero, edges = exact(0.0), _edges(lowered)
    for i, (weight, bias) in enumerate(lowered.layers):
        z = []
        for row, b in zip(weight, bias.tolist(), strict=True):
            check_limits()
            z.append(z3.Sum([exact(b), *(exact(w) * term for w, term in zip(row.tolist(), h, strict=True) if w)]))
        if i == len(lowered.layers) - 1:
            return z
        rules = set(lowered.required[lowered.required[:, 0] == i, 1].tolist())
        made.assertions.extend(z[j] >= exact(-edge) for (k, j), edge in edges.items() if k == i)
        h = []
        for j, value in enumerate(z):
            if j in rules or (bounds is not None and bounds.upper[i][j] <= 0.0):  # nothing follows from a rule
                h.append(zero)
                continue
            before = z3.Real(f"z{i}_{j}")
            made.assertions.append(before == value)
            if bounds is not None and bounds.lower[i][j] >= 0.0:
                h.append(before)
                continue
            after = z3.Real(f"h{i}_{j}")
            made.assertions.append(z3.Or(z3.And(after == before, before >= zero), z3.And(after == zero, before < zero)))
            h.append(after)
    raise AssertionError("a network has layers")


def tree_sums(forest: PersonTrees, made: Formula) -> list[Any]:
    """The conditions C s - d of an ensemble as terms. Excluded leaves are not reached together."""
    z3 = load_z3()
    lefts = _Sides(forest, made)
    for g, cuts in forest.cuts.items():
        if g not in made.steps:
            term = made.numbers[g]
            made.assertions.extend(
                z3.Or(term <= exact(left), term >= exact(right))
                for left, right in zip(cuts.left.tolist(), cuts.right.tolist(), strict=True)
            )
    for combination in forest.excluded:
        reached = [
            literal
            for row, tree in zip(combination.tolist(), forest.reachable, strict=True)
            for literal in lefts.way(tree, row) or [z3.BoolVal(False)]
        ]
        made.assertions.append(z3.Not(z3.And(reached)))
    return [
        z3.Sum([exact(start), *(lefts.value(tree, weight) for tree in forest.reachable)])
        for start, weight in zip(forest.constant.tolist(), forest.weight, strict=True)
    ]


@dataclass(frozen=True)
class _Sides:
    """Splits as Z3's Bools."""

    forest: PersonTrees
    made: Formula

    def left(self, split: Split) -> Any:
        """Does the row go left?"""
        z3, g = load_z3(), split.feature
        if g in self.made.choices:
            return z3.Or([chosen for k, chosen in self.made.choices[g] if k in split.options])
        end = float(self.forest.cuts[g].left[split.place])
        return self.made.steps[g] <= round(end) if g in self.made.steps else self.made.numbers[g] <= exact(end)

    def value(self, tree: ReachableTree, weight: Floats) -> Any:
        """What the tree adds."""
        if isinstance(tree, Leaf):
            check_limits()
            return exact(float(weight[tree.row]))
        return load_z3().If(self.left(tree), self.value(tree.left, weight), self.value(tree.right, weight))

    def way(self, tree: ReachableTree, row: int) -> list[Any] | None:
        """What must hold for the leaf of this row to be reached; None where it cannot be."""
        if isinstance(tree, Leaf):
            return [load_z3().BoolVal(True)] if tree.row == row else None
        for side, literal in ((tree.left, self.left(tree)), (tree.right, load_z3().Not(self.left(tree)))):
            rest = self.way(side, row)
            if rest is not None:
                return [literal, *rest]
        return None
