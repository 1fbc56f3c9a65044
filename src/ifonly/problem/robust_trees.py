"""Robustness to lost trees: whichever few trees of an ensemble are removed, the others must accept the row, too.

A disjunctive constraint with one alternative at a time: where the worst trees to lose change the decision about an
answer (a sort of what each tree adds there), the ensemble without them is one more model that must accept. Whatever
all of them accept, those found so far do, so that the answer is the nearest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ifonly.caching import PREPARING
from ifonly.errors import QuestionError, UnsupportedModel, UnsupportedQuestion
from ifonly.model.trees.removal import Removals
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.disjunctions import Alternative, Floats, Ordinary, PersonContext
from ifonly.problem.target import MARGIN, ProbabilityTarget, Target
from ifonly.schema import Schema
from ifonly.schema.arguments import whole_number


@dataclass(frozen=True)
class RobustToTrees:
    """An ensemble must accept, and also without any of its trees, up to `most` of them.

    `RobustToTrees(2, of=Accepted(by=forest, target="approve"))`. The trees that are left are averaged where the model
    averages its trees, and added up where it adds them up. A row that is accepted without them is accepted with any
    smaller weights of them, too: what is asked of a score is linear in the weights.
    """

    most: int
    of: Accepted
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = "How many trees may be removed is a whole number >= 1; it is"
        object.__setattr__(self, "most", whole_number(self.most, words, 1))
        if not isinstance(self.of, Accepted):
            raise QuestionError(f"Say of which ensemble with of=Accepted(by=model, target=...); got {shown(self.of)}.")

    def check(self, schema: Schema) -> None:
        self.of.check(schema)
        removals, target = self._removals(schema), self._target(schema)
        if isinstance(target, ProbabilityTarget):
            raise UnsupportedQuestion("Robustness to lost trees is asked of a class or a score, not of a probability.")
        if self.most >= removals.count:
            raise QuestionError(
                f"'{self.of.name}' has {removals.count} trees, so at most {removals.count - 1} can be removed; got "
                f"{self.most}."
            )

    def bound(self, schema: Schema) -> RobustToTrees:
        """The same with the model imported."""
        of = self.of.bound(schema)
        return self if of is self.of else replace(self, of=of)

    def without(self, missing: Any) -> RobustToTrees:
        """The same for rows in which these numbers are missing."""
        return replace(self, of=self.of.without(missing)) if missing else self

    def _removals(self, schema: Schema) -> Removals:
        try:
            return Removals.of(self.of.model(schema))
        except UnsupportedModel as error:
            raise UnsupportedQuestion(str(error)) from None

    def _target(self, schema: Schema) -> Target:
        """What is asked, with a margin: an edge would be lost in rounding."""
        target = self.of.target_of(schema)
        return target if target.margin > 0.0 else replace(target, margin=MARGIN)

    def lost(self, schema: Schema, point: Floats, margin: float) -> tuple[int, ...] | None:
        """Trees without which the row is not accepted by such a margin; None if there are none."""
        removals = self._removals(schema)
        conditions, ends = self._target(schema).conditions(removals.model)
        for condition, end in zip(conditions, ends.tolist(), strict=True):
            least, gone = removals.worst(point, condition, end + margin, self.most)
            if least < 0.0:
                return gone
        return None

    def holds(self, context: PersonContext, after: Floats) -> bool:
        """By half of the margin: what is searched has all of it."""
        return self.lost(context.schema, after, 0.5 * self._target(context.schema).margin) is None

    def holds_unchanged(self, context: PersonContext) -> bool:
        """Of the person's own row, no margin is required."""
        return self.lost(context.schema, context.before, 0.0) is None

    def alternatives(self, context: PersonContext, after: Floats, chosen: Sequence[Ordinary]) -> Iterator[Alternative]:
        gone = self.lost(context.schema, after, 0.5 * self._target(context.schema).margin)
        assert gone is not None
        yield Alternative(0.0, (self._left(context.schema, gone),))  # type: ignore[arg-type]

    def _left(self, schema: Schema, gone: tuple[int, ...]) -> Accepted:
        key = schema, gone
        if key not in self._made:
            with PREPARING:
                name = f"{self.of.name} without {len(gone)} trees"
                model = self._removals(schema).without(gone)
                self._made[key] = Accepted(by=model, target=self._target(schema), name=name)
        found: Accepted = self._made[key]
        return found

    def describe(self) -> str:
        trees = "tree" if self.most == 1 else f"{self.most} trees"
        return f"{self.of.name} accepts without any {trees}"
