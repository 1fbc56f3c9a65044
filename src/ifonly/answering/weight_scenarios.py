"""Outer approximation over networks: the nearest row that all networks within delta of the weights accept.

    relaxation  the nearest row that the networks found so far accept. Whatever all networks accept, these do, so its
                distance is a lower bound
    check       does every network within delta accept that row (`weight_verification`)? Then it is the nearest
    cut         otherwise a network that refuses it is one more that must accept
    bound       where the check decides nothing: the nearest row that the bound of `worst_case` accepts, an upper bound

With at most one hidden layer that bound is exact, and one search answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ifonly.answering.branching import Spent
from ifonly.answering.values import CheckedResult, Floats, SearchSettings
from ifonly.answering.weight_verification import Ask, WeightVerdict, verified
from ifonly.caching import cached_property
from ifonly.model import Model, Network
from ifonly.model.kind import Kind
from ifonly.model.model import network_model
from ifonly.model.network import Affine
from ifonly.model.own_layers import OwnLayers, own_layers
from ifonly.model.weight_box import WeightBox
from ifonly.problem import Accepted, Question, RobustToWeights, Target
from ifonly.problem.target import MARGIN
from ifonly.results import Claim, Limits, Progress, Stop, StoppedBy
from ifonly.tolerances import Tolerances

ROUNDS = 60
"""Networks that are added, at most."""
WEAK = 4.0
"""Slacks: a network that refuses a row by less than this moves the nearest row hardly at all."""
REPAIR = MARGIN
"""What is added to the margin then."""


class Searches(NamedTuple):
    """What is searched, each within limits: the nearest row of a point that these models accept, too; the nearest that
    the bound accepts; and what the search claims of another question."""

    solve: Callable[[Floats, Sequence[Accepted], Limits], CheckedResult]
    bound: Callable[[Floats, Limits], CheckedResult]
    ask: Callable[[Question, Floats, Limits], Claim]


@dataclass(frozen=True, eq=False)
class LaterNetwork(Network):
    """A network that refused what those before it accepted: searched alone first."""

    earlier: frozenset[str] = frozenset()

    def implies(self, other: Kind) -> bool:
        return other.fingerprint in self.earlier


@dataclass(frozen=True)
class Surroundings:
    """The networks around a model, and what they must decide."""

    constraint: RobustToWeights
    model: Model
    target: Target

    @cached_property
    def box(self) -> WeightBox:
        return WeightBox(own_layers(self.model), self.constraint.delta, self.constraint.relative)

    @property
    def slack(self) -> float:
        """What may be missing from the margin, for rounding."""
        return 0.5 * min(self.target.margin, MARGIN)

    def refusing(self, point: Floats, ask: Ask) -> WeightVerdict:
        """Whether it is known that all accept a row; and one that refuses it, where one was found."""
        encoded = self.model.schema.encode(point[None, :])[0]
        conditions, ends = self.target.conditions(self.model)
        known = True
        for condition, end in zip(conditions, (ends + self.target.margin).tolist(), strict=True):
            verdict = verified(self.box, encoded, condition, (end - self.slack, end - 0.5 * self.slack), ask)
            if verdict.network is not None:
                return verdict
            known &= verdict.decided
        return WeightVerdict(known)

    def short(self, network: OwnLayers, point: Floats) -> float:
        """What a row is missing of the margin in a network."""
        scores = network.scores(self.model.schema.encode(point[None, :]))
        conditions, ends = self.target.conditions(self.model)
        return float((ends + self.target.margin - scores @ conditions.T).max())

    def accepted(self, network: OwnLayers, earlier: frozenset[str]) -> Accepted:
        """One of them, as a model that must accept; those before it are likely to do so, too."""
        (weight, bias), *others = network.layers
        first = weight @ network.scale, weight @ network.shift + bias
        own = self.model
        made = network_model(
            LaterNetwork(tuple(Affine(*layer) for layer in (first, *others)), earlier=earlier),
            own.schema,
            classes=own.classes,
            precision=own.precision,
            regression=not own.classes,
        )
        made = made if own.probabilities is None else made.as_log_odds()
        return Accepted(by=made, target=self.target, name=f"a {self.constraint.around}")


def nearest_robust(
    around: Sequence[Surroundings],
    searches: Searches,
    points: Floats,
    settings: SearchSettings,
    tolerances: Tolerances,
) -> list[CheckedResult]:
    """The nearest row of each person, one after another."""
    result = []
    for point in points:
        result.append(_Scenarios(around, searches, point, settings.limits).nearest(tolerances))
        if settings.listen is not None:
            settings.listen(Progress(finished=len(result), people=len(points)))
    return result


class _Scenarios:
    """One person's search: the networks so far, and the bound that is proven."""

    def __init__(self, around: Sequence[Surroundings], searches: Searches, point: Floats, limits: Limits) -> None:
        self.around, self.searches, self.point, self.limits = around, searches, point, limits
        self.networks: list[Accepted] = []
        self.lower = 0.0
        seconds = None if limits.seconds is None else 0.5 * limits.seconds  # the rest is for the bound
        self.spent, self.whole = Spent(replace(limits, seconds=seconds)), Spent(limits)

    def nearest(self, tolerances: Tolerances) -> CheckedResult:
        """What is known in the end."""
        stop = None
        for _ in range(ROUNDS):
            found = self.searches.solve(self.point, self.networks, self.spent.left)
            self.spent.count(found)
            self.lower = max(self.lower, found.lower)
            if found.point is None:
                stop = found.claim.stop
                if stop is None or not stop.is_limit:
                    return found._replace(claim=self._counted(found.claim))
                break
            known, weak = self._cut(found.point)
            if weak is None and known:
                return found._replace(claim=self._counted(found.claim))
            stop = self.spent.stop or (Stop(StoppedBy.BOUND) if weak is None else None)
            if stop is None and weak and (repaired := self._repaired(tolerances)) is not None:
                return repaired
            if stop is not None:
                break
        return self._bounded(stop or Stop(StoppedBy.STEPS, ROUNDS), tolerances)

    def _cut(self, point: Floats) -> tuple[bool, bool | None]:
        """Add the networks that refuse a row. Is it known whether all accept it? Do they refuse it by hardly more than
        rounding; None if none does."""

        def ask(question: Question, values: Floats) -> Claim:
            return self.searches.ask(question, values, self.spent.left)

        earlier = frozenset(one.fingerprint for one in self.networks)
        known, weak = True, None
        for one in self.around:
            verdict = one.refusing(point, ask)
            known &= verdict.decided
            if verdict.network is not None:
                weak = weak is not False and one.short(verdict.network, point) <= WEAK * one.slack
                self.networks.append(one.accepted(verdict.network, earlier | {one.model.function.fingerprint}))
        return known, weak

    def _repaired(self, tolerances: Tolerances) -> CheckedResult | None:
        """The nearest row that the networks so far accept by a little more, if all accept it."""
        more = [replace(one, target=replace(one.target, margin=one.target.margin + REPAIR)) for one in self.networks]
        found = self.searches.solve(self.point, more, self.spent.left)
        self.spent.count(found)
        if found.point is None:
            return None
        known, weak = self._cut(found.point)
        if not known or weak is not None:
            return None
        return self._between(found, Stop(StoppedBy.CLOSE), tolerances)

    def _bounded(self, stop: Stop, tolerances: Tolerances) -> CheckedResult:
        """The row that the bound accepts."""
        found = self.searches.bound(self.point, self.whole.left)
        self.spent.count(found)
        return self._between(found, self._whole(stop), tolerances)

    def _between(self, found: CheckedResult, stop: Stop, tolerances: Tolerances) -> CheckedResult:
        """A row that all accept, and the lower bound of the networks so far."""
        lower = min(self.lower, found.upper)
        done = found.point is not None and tolerances.close(lower, found.upper)
        claim = replace(found.claim, lower=lower, lower_any_rounding=None, stop=None if done else stop)
        return found._replace(claim=self._counted(claim))

    def _whole(self, stop: Stop) -> Stop:
        """A limit as it was set, not what was left of it."""
        whole = {StoppedBy.SECONDS: self.limits.seconds, StoppedBy.NODES: self.limits.nodes}
        return replace(stop, amount=whole.get(stop.by, stop.amount))

    def _counted(self, claim: Claim) -> Claim:
        return replace(claim, nodes=self.spent.nodes, seconds=self.spent.seconds, record=None)


def surroundings(constraints: Sequence[object], model: Model, target: Target) -> list[Surroundings]:
    """Of those constraints whose bound is not exact: the networks that they speak of."""
    found = []
    for one in constraints:
        if isinstance(one, RobustToWeights):
            of = one.of
            own = (model, target) if of is None else (of.model(model.schema), of.target_of(model.schema))
            around = Surroundings(one, *own)
            one.accepted(model, target)  # refuses what has no such networks
            if not around.box.is_exact and one.delta > 0.0:
                found.append(around)
    return found
