"""Bounds on what actions can do, for many sets of acted features at once: sets that cannot do it need no search.

Within an amount that may be spent, the row that follows from acting on a set is affine in the changes of the features
that are acted on, up to small terms between bounds:

    row = own + forms . (changes, terms)        terms: rounding to steps; all of what follows by trees or networks

The model's conditions are bounded from above on such rows by linear relaxation of its ReLUs (Zhang et al., "Efficient
Neural Network Robustness Certification with General Activation Functions", 2018), and what a linear function can gain
is what the norm gives for the amount: with l1, the steepest gain per cost times the amount. All of it with what
rounding can do on top. Rules and what limits the values of followers are left out, so bounds are only weaker for it.

Of trees, what follows is in the intervals that these forms reach (`leaf_bounds`), to which searches keep, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.leaf_bounds import LeafBounds, TreeLeaves
from ifonly.caching import cached_property
from ifonly.causes import CausalModel
from ifonly.causes.causal_model import TIE, value_ends
from ifonly.causes.equations import CompiledEquation
from ifonly.causes.graphs import in_order
from ifonly.causes.tree_equations import step_of
from ifonly.model import Model, always_accepting
from ifonly.problem import ClassTarget, Lowered, Norm, People, ProbabilityTarget, Query, Question, Target
from ifonly.problem.action_query import without_fees
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.lowering import lower
from ifonly.problem.rules.derived import Derived
from ifonly.resources import check_limits
from ifonly.schema import Choice
from ifonly.solvers.search.error_bounds import errors_everywhere

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROOM = 1e-9
"""Relative: more than rounding can do to sums of so few terms."""
SETTLED = 8.0
"""Of how near a number is settled at a value: so much wider are the intervals that searches keep to."""
AT_ONCE = 4_000_000
"""Numbers of the largest array of the sets that are bounded in one go."""
COARSE = 1e-3
"""Of the range of a number: where its steps are larger, it is asked whether it can move by one at all."""


class Reach(NamedTuple):
    """What one person can change within the amount of each set, of the columns that can change at all."""

    columns: NDArray[np.intp]
    """Unrolled columns: numbers first, then the options of choices, feature by feature."""
    up: Floats
    """(set, number)"""
    up_cost: Floats
    down: Floats
    down_cost: Floats
    options: Mask
    """(set, option): can it be chosen?"""
    own: NDArray[np.intp]
    """Of each option, the place of the person's own among the options."""
    option_cost: Floats
    begins: NDArray[np.intp]
    """Where the options of each choice begin."""
    amount: Floats
    """(set)"""


class SetBounds(NamedTuple):
    """Of each set of features with causes that are acted on, within an amount."""

    out: Mask
    """Is no action on it that costs less enough?"""
    guess: Floats
    """At what its cheapest action costs."""
    boxes: FeatureBoxes | None
    """Where trees decide: what the row that follows stays in."""

    @classmethod
    def joined(cls, parts: Sequence[SetBounds]) -> SetBounds:
        """Those of some sets after those of others."""
        boxes = [one.boxes for one in parts if one.boxes is not None]
        out, guess = (np.concatenate([one[k] for one in parts]) for k in (0, 1))
        return cls(out, guess, FeatureBoxes.joined(boxes) if boxes else None)


@dataclass(frozen=True, eq=False)
class ActionBounds:
    """Bounds for one target under one query and causal model."""

    lowered: Lowered
    causes: CausalModel
    derived: dict[int, list[int]]
    """The places of features that follow from a definition, and of what each looks at."""
    trees: LeafBounds | None = None
    """Where trees decide, whose question `lowered` is not."""

    @classmethod
    def of(
        cls, model: Model, target: Target, causes: CausalModel, query: Query, leaves: TreeLeaves | None = None
    ) -> ActionBounds | None:
        """None where the model is no ReLU network or trees with these leaves, or what is asked of it is not linear."""
        curved = isinstance(target, ProbabilityTarget) and target.curved(model)
        definitions = {one.feature: one for one in query.constraints if isinstance(one, Derived)}
        among_causes = any(cause in definitions for some in causes.graph.values() for cause in some)
        if (model.function.as_network() is None and leaves is None) or curved or among_causes:
            return None
        by_feature = [one for one in query.constraints if hasattr(one, "restrict")]
        question = Question(model=model, target=target, distance=query.measure, constraints=by_feature)
        asked = question
        if leaves is not None:
            asked = replace(question, model=always_accepting(model.schema), target=ClassTarget(1))
        schema = question.schema
        bases = {name: tuple(one.bases(schema)) for name, one in definitions.items()}
        derived = {schema.index(name): [schema.index(base) for base in bases[name]] for name in in_order(bases)}
        lowered = lower(asked)
        trees = None if leaves is None else LeafBounds.of(question, lowered, leaves)
        made = cls(lowered, causes, derived, trees)
        return made if made.lowered.bends is None and made._costs_something else None

    @cached_property
    def _costs_something(self) -> bool:
        """Does every change of an option cost something?"""
        return all(bool((table + np.eye(len(table)) > 0.0).all()) for table in self.lowered.option_cost)

    @cached_property
    def _low(self) -> Floats:
        """What each condition must reach: nothing below is ever accepted."""
        return np.asarray(errors_everywhere(self.lowered).need[0, 0, : self.lowered.need.size])

    @cached_property
    def term_columns(self) -> NDArray[np.intp]:
        """The unrolled columns of what follows, by equations or definitions."""
        return np.flatnonzero(np.isin(self.lowered.feature_of, [*self.causes.compiled, *self.derived]))

    def _domains(self, point: Floats) -> People:
        """What a person may change; kept for the next call."""
        known: tuple[bytes, People] | None = self.__dict__.get("_last")
        if known is None or known[0] != point.tobytes():
            known = self.__dict__["_last"] = (point.tobytes(), self.lowered.domains(point[None, :]))
        return known[1]

    @cached_property
    def _numbers(self) -> int:
        """Of each set, in the largest array: forms of both signs, by column or neuron, or leaves."""
        width, leaves = self.lowered.width, 0 if self.trees is None else len(self.trees.leaves.row)
        tallest = max(width, *(len(bias) for _, bias in self.lowered.layers))
        return max(2 * tallest * (width + len(self.term_columns)), leaves)

    def of_sets(
        self, point: Floats, sets: Sequence[frozenset[int]], fees: Sequence[list[float]], cost: float
    ) -> SetBounds:
        """What can be said of actions on each set of features with causes that cost less than this; `LimitReached`
        where that takes longer than it may."""
        step = max(1, AT_ONCE // self._numbers)
        parts = []
        for k in range(0, len(sets), step):
            check_limits(8 * step * self._numbers)
            parts.append(self._of_some(point, sets[k : k + step], fees[k : k + step], cost))
        return SetBounds.joined(parts)

    def _of_some(
        self, point: Floats, sets: Sequence[frozenset[int]], fees: Sequence[list[float]], cost: float
    ) -> SetBounds:
        """The same of as many sets as are bounded in one go."""
        size, distance = self.lowered.features, self.lowered.question.distance
        amount = np.array([without_fees(distance, size, cost, some) for some in fees])
        acted = np.zeros((len(sets), size), dtype=np.bool_)
        for k, some in enumerate(sets):
            acted[k, list(some)] = True
        people, most_spent = self._domains(point), amount * (1.0 + ROOM)
        rows = ReachableRows(self, point, people, acted, most_spent)
        if self.trees is None:
            (most, now), boxes, need = rows.conditions(), None, self._low
        else:
            boxes, need = rows.boxes(), self.trees.need
            reach = boxes.lower, boxes.upper, np.concatenate(boxes.allowed, axis=1)
            most, now = self.trees.most(point, people, rows.able, reach, most_spent)
        short = np.clip((need - now) / np.maximum(most - now, 1e-300), 0.0, None).max(axis=1)
        share = np.minimum(short, 1.0)
        return SetBounds(np.asarray((most < need).any(axis=1)), np.asarray(share * amount + (cost - amount)), boxes)


class ReachableRows:
    """The forms of the rows that one person can reach by acting on each of many sets, and bounds on them."""

    # size: what a question is made of
    def __init__(self, bounds: ActionBounds, point: Floats, people: People, acted: Mask, amount: Floats) -> None:
        self.lowered, self.causes, self.derived = bounds.lowered, bounds.causes, bounds.derived
        self.point, self.acted = point, acted
        self.row = self.lowered.unrolled(point)
        self.reach = self._reached(people, amount)
        changes, sets = self.reach.columns, len(acted)
        self.terms = {int(c): len(changes) + k for k, c in enumerate(bounds.term_columns.tolist())}
        """The place of the term of each unrolled column that has one."""
        self.low, self.high = np.zeros((sets, len(self.terms))), np.zeros((sets, len(self.terms)))
        self.forms = np.zeros((sets, self.lowered.width, len(changes) + len(self.terms)))
        self.forms[:, changes, np.arange(len(changes))] = 1.0
        for g in self.causes.order:
            self._follow(g)
        for g, looked in self.derived.items():
            self._define(g, looked)

    def _columns(self, places: Iterable[int]) -> NDArray[np.intp]:
        """The unrolled columns of features."""
        start = self.lowered.start
        return np.concatenate([np.arange(start[g], start[g + 1]) for g in places])

    def _between(self, g: int, follows: Mask, low: Floats, high: Floats) -> None:
        """The terms of the columns of a feature, (set, column), where it follows."""
        for k, column in enumerate(self._columns([g]).tolist()):
            at = self.terms[column]
            self.forms[follows, column, at] = 1.0
            at -= len(self.reach.columns)
            self.low[:, at], self.high[:, at] = low[:, k], high[:, k]

    def _reached(self, people: People, amount: Floats) -> Reach:
        costs, able = self.lowered, self.able
        numbers = costs.numbers
        jump, whole = costs.jump[numbers], costs.in_steps[numbers] & (people.grid_offset[0, numbers] == 0.0)
        step, own, sides = np.where(whole, costs.step[numbers], 1.0), self.point[numbers], []
        for rate, room in (
            (costs.rate, people.upper[0, numbers] - own),
            (costs.rate_down, own - people.lower[0, numbers]),
        ):
            slope = np.maximum(rate[numbers], 1e-300)
            far = np.where(amount[:, None] < jump, 0.0, (amount[:, None] - jump) / slope)
            reach = np.where(able[:, numbers], np.clip(np.minimum(far, room), 0.0, None), 0.0)
            reach = np.where(whole, np.floor(reach / step * (1.0 + ROOM)) * step, reach)
            sides += [reach, np.where(reach > 0.0, jump + rate[numbers] * reach, np.inf)]
        some = ((sides[0] > 0.0) | (sides[2] > 0.0)).any(axis=0)
        cost = np.sqrt(people.cost[0]) if costs.norm is Norm.L2 else people.cost[0]
        other = people.allowed[0] & (cost > 0.0) & (able[:, costs.feature_of] & (cost <= amount[:, None])).any(axis=0)
        chosen = [g for g in costs.choices.tolist() if other[costs.start[g] : costs.start[g + 1]].any()]
        blocks = [np.arange(costs.start[g], costs.start[g + 1]) for g in chosen]
        option = np.concatenate([np.zeros(0, dtype=np.intp), *blocks])
        begins = np.cumsum([0, *map(len, blocks)])[:-1]
        mine = np.concatenate(
            [
                np.zeros(0, dtype=np.intp),
                *(
                    np.full(len(block), begin + int(self.point[g]))
                    for g, begin, block in zip(chosen, begins, blocks, strict=True)
                ),
            ]
        )
        open_to = people.allowed[0, option] & able[:, costs.feature_of[option]] & (cost[option] <= amount[:, None])
        columns = np.concatenate([costs.start[numbers[some]], option])
        return Reach(columns, *(side[:, some] for side in sides), open_to, mine, cost[option], begins, amount)  # type: ignore[call-arg]

    # ------------------------------------------------------------------ what a linear function can gain

    def most(self, functions: Floats) -> Floats:
        """(set, function): how much functions (set, function, change or term) can gain at most."""
        reach, (numbers, all_changes) = self.reach, (self.reach.up.shape[1], len(self.reach.columns))
        number, option, terms = np.split(functions, [numbers, all_changes], axis=2)
        gained = np.maximum(terms * self.low[:, None, :], terms * self.high[:, None, :]).sum(axis=2)
        up, down = number * reach.up[:, None, :], -number * reach.down[:, None, :]
        gain, slope = (
            np.maximum(up, down),
            np.maximum(up / reach.up_cost[:, None, :], down / reach.down_cost[:, None, :]),
        )
        if len(reach.begins):
            more = np.where(reach.options[:, None, :], option - option[:, :, reach.own], 0.0)
            steep = more / np.where(reach.option_cost > 0.0, reach.option_cost, np.inf)
            gain, slope = (
                np.concatenate([some, np.maximum.reduceat(part, reach.begins, axis=2)], axis=2)
                for some, part in ((gain, more), (slope, steep))
            )
        every = gain.sum(axis=2)  # each is at least 0: so is doing nothing
        match self.lowered.norm:
            case Norm.LINF:
                return np.asarray(gained + every)
            case Norm.L2:
                steepest = np.sqrt((slope**2).sum(axis=2))
            case _:
                steepest = slope.max(axis=2, initial=0.0)
        return np.asarray(gained + np.minimum(every, reach.amount[:, None] * steepest))

    def range(self, functions: Floats) -> tuple[Floats, Floats]:
        """(set, function): bounds of the change of each."""
        count = functions.shape[1]
        both = self.most(np.concatenate([functions, -functions], axis=1))
        return -both[:, count:] * (1.0 + ROOM), both[:, :count] * (1.0 + ROOM)

    @property
    def able(self) -> Mask:
        """(set, feature): can it be acted on?"""
        bases = [*self.causes.compiled, *self.derived]
        return self.acted | ~np.isin(np.arange(self.lowered.features), bases)

    def boxes(self) -> FeatureBoxes:
        """The values that features may have in the row that follows, by set, and a little more."""
        schema, start = self.causes.schema, self.lowered.start
        low, high = self.range(self.forms)
        least, most = self.row + low, self.row + high
        lower, upper = np.zeros(self.acted.shape), np.zeros(self.acted.shape)
        allowed = []
        for g, feature in enumerate(schema.features):
            columns = slice(int(start[g]), int(start[g + 1]))
            allowed.append(most[:, columns] > 0.5)
            if not isinstance(feature, Choice):
                allowed[g][:] = True
                ends = value_ends(feature)
                room = (
                    SETTLED * self.causes.snaps.get(g, 0.0)
                    + 0.25 * (step_of(feature) or 0.0)
                    + ROOM * max(map(abs, ends))
                )
                lower[:, g], upper[:, g] = least[:, columns.start] - room, most[:, columns.start] + room
        return FeatureBoxes(schema, lower, upper, tuple(allowed))

    # ------------------------------------------------------------------ what follows

    def _follow(self, g: int) -> None:
        """The forms of a feature where it follows."""
        feature, equation = self.causes.schema.features[g], self.causes.compiled[g]
        follows, causes = ~self.acted[:, g], self._columns(equation.places.tolist())
        if equation.slopes is not None:
            number = equation.slopes[None, :] @ self.forms[:, causes]
            low, high = np.zeros(len(follows)), np.zeros(len(follows))
        else:
            number, low, high = self._relaxed(equation, causes)
        step, term = step_of(feature), 2.0 * self.causes.snaps[g]
        low, high, half = low - term, high + term, np.full(len(follows), (0.5 + TIE) * (step or 0.0))
        if step is not None and (isinstance(feature, Choice) or step > COARSE * feature.width):
            least, most = self.range(number)
            first = np.rint((least[:, 0] + low) / step - TIE - ROOM)
            last = np.rint((most[:, 0] + high) / step + TIE + ROOM)
            if isinstance(feature, Choice):
                self._options(g, follows, first, last)
                return
            stays = (first == 0.0) & (last == 0.0)
            number[stays], low[stays], high[stays], half[stays] = 0.0, 0.0, 0.0, 0.0
        self.forms[follows, self._columns([g])[0]] = number[follows, 0]
        self._between(g, follows, (low - half)[:, None], (high + half)[:, None])

    def _options(self, g: int, follows: Mask, first: Floats, last: Floats) -> None:
        """A feature that follows to one of several levels: so many levels away, at least and at most."""
        columns, own = self._columns([g]), self.point[g]
        level = np.arange(len(columns))
        able = (level >= own + first[:, None]) & (level <= own + last[:, None]) & (level != own)
        self.forms[np.ix_(np.flatnonzero(follows), columns)] = 0.0
        self._between(g, follows, np.where(level == own, -1.0 * able.any(axis=1)[:, None], 0.0), 1.0 * able)

    def _define(self, g: int, looked: list[int]) -> None:
        """A feature that follows from a definition: it has any value where something that this looks at can change."""
        feature, every = self.causes.schema.features[g], np.ones(len(self.acted), dtype=np.bool_)
        least, most = self.range(self.forms[:, self._columns(looked)])
        moves = ((least < 0.0) | (most > 0.0)).any(axis=1)
        if isinstance(feature, Choice):
            far = np.where(moves, float(len(feature.options)), 0.0)
            self._options(g, every, -far, far)
            return
        self.forms[:, self._columns([g])] = 0.0
        low, high = ((moves * (end - self.point[g]))[:, None] for end in (feature.lower, feature.upper))
        self._between(g, every, low, high)

    def _relaxed(self, equation: CompiledEquation, causes: Any) -> tuple[Floats, Floats, Floats]:
        """The change of an equation that is not linear: a form, and what it may be off by."""
        least, most = self.range(self.forms[:, causes])
        row, now = self.row[causes], float(equation.values(self.point[None, :])[0])
        still = (least == 0.0).all(axis=1) & (most == 0.0).all(axis=1)
        if equation.trees is not None and equation.options == (0,):
            slope, low, high = equation.trees.secants(row[0] + least[:, 0], row[0] + most[:, 0])
            number = slope[:, None, None] * self.forms[:, causes]
            low, high = low - now + slope * row[0], high - now + slope * row[0]
        else:
            number = np.zeros((len(still), 1, self.forms.shape[2]))
            ends = equation.interval(row + least.min(axis=0), row + most.max(axis=0))
            low, high = (np.full(len(still), end - now) for end in ends)
        room = ROOM * (np.abs(low) + np.abs(high) + abs(now))
        number[still] = 0.0
        return number, np.where(still, 0.0, low - room), np.where(still, 0.0, high + room)

    # ------------------------------------------------------------------ the model

    def conditions(self) -> tuple[Floats, Floats]:
        """(set, condition): upper bounds of the model's conditions; and what these are now."""
        ends: list[tuple[Floats, Floats]] = []
        layers = self.lowered.layers
        for k, (weight, _) in enumerate(layers[:-1]):
            both = self._above(np.concatenate([weight, -weight]), k, ends)
            ends.append((-both[:, len(weight) :], both[:, : len(weight)]))
        now = self.row
        for k, (weight, bias) in enumerate(layers):
            now = weight @ (np.maximum(now, 0.0) if k else now) + bias
        return self._above(layers[-1][0], len(layers) - 1, ends), now

    def _above(self, functions: Floats, k: int, ends: Sequence[tuple[Floats, Floats]]) -> Floats:
        """Upper bounds of functions, of layer k's inputs, with the sign of its bias."""
        weight, bias = self.lowered.layers[k]
        signs = np.repeat([1.0, -1.0], len(bias))[: len(functions)]
        constant = np.tile(signs * np.resize(bias, len(functions)), (len(self.acted), 1))
        size = np.abs(constant)
        lines = np.broadcast_to(functions, (len(self.acted), *functions.shape))
        for j in range(k - 1, -1, -1):
            low, high = ends[j]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(low >= 0.0, 1.0, np.where(high <= 0.0, 0.0, high / (high - low)))
            shift = np.where((low < 0.0) & (high > 0.0), -share * low, 0.0)
            least = np.where((low >= 0.0) | ((high > 0.0) & (high > -low)), 1.0, 0.0)
            above, below = np.maximum(lines, 0.0), np.minimum(lines, 0.0)
            constant = constant + (above @ shift[:, :, None])[:, :, 0]
            lines = above * share[:, None, :] + below * least[:, None, :]
            weight, bias = self.lowered.layers[j]
            constant = constant + lines @ bias
            size = size + np.abs(constant) + np.abs(lines) @ np.abs(bias)
            lines = lines @ weight
        gain = self.most(lines @ self.forms)
        size = size + np.abs(lines) @ np.abs(self.row) + np.abs(gain)
        return np.asarray(constant + lines @ self.row + gain + ROOM * size)
