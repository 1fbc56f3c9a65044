"""Bounds on what actions can do, for many sets of acted features at once: sets that cannot do it need no search.

Within an amount that may be spent, bounds on the rows that can be reached (`reachable_rows`) bound the model's
conditions from above: a set with a condition that stays short is out. How short all are now guesses which set is
cheapest. Of trees, what follows is in the intervals that these forms reach (`leaf_bounds`), to which searches keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.leaf_bounds import LeafBounds, TreeLeaves
from ifonly.answering.reachable_rows import ROOM, ReachableRows
from ifonly.caching import cached_property
from ifonly.causes import CausalModel
from ifonly.causes.graphs import in_order
from ifonly.model import Model, always_accepting
from ifonly.problem import ClassTarget, Lowered, People, ProbabilityTarget, Query, Question, Target
from ifonly.problem.action_query import without_fees
from ifonly.problem.boxes import FeatureBoxes
from ifonly.problem.lowering import lower
from ifonly.problem.rules.derived import Derived
from ifonly.resources import check_limits
from ifonly.solvers.search.error_bounds import errors_everywhere

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

AT_ONCE = 4_000_000
"""Numbers of the largest array of the sets that are bounded in one go."""


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
