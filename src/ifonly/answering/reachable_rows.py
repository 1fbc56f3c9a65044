"""The rows that a person can reach by acting on each of many sets of features, in linear forms, and bounds on them.

Within an amount that may be spent, the row that follows from acting on a set is affine in the changes of the features
that are acted on, up to small terms between bounds:

    row = own + forms . (changes, terms)        terms: rounding to steps; all of what follows by trees or networks

A model's conditions are bounded from above on such rows by linear relaxation of its ReLUs (Zhang et al., "Efficient
Neural Network Robustness Certification with General Activation Functions", 2018), and what a linear function can gain
is what the norm gives for the amount: with l1, the steepest gain per cost times the amount. All of it with what
rounding can do on top. Rules and what limits the values of followers are left out, so bounds are only weaker for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.causes.causal_model import TIE, value_ends
from ifonly.causes.compiled_equations import CompiledEquation
from ifonly.causes.tree_equations import step_of
from ifonly.problem import Norm, People
from ifonly.problem.boxes import FeatureBoxes
from ifonly.schema import Choice

if TYPE_CHECKING:
    from ifonly.answering.action_bounds import ActionBounds

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROOM = 1e-9
"""Relative: more than rounding can do to sums of so few terms."""
SETTLED = 8.0
"""Of how near a number is settled at a value: so much wider are the intervals that searches keep to."""
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
