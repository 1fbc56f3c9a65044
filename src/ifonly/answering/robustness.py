"""How large a change of weights a decision survives: bisection on a proven bound, and on an evaluated attack; of an
ensemble, how many trees it can do without.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ifonly.answering.answerer import Answerer
from ifonly.answering.checked_solver import searched
from ifonly.answering.weight_verification import SEARCHED, verified
from ifonly.errors import QuestionError, UnsupportedModel, UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.own_layers import OwnLayers, own_layers
from ifonly.model.trees.removal import Removals
from ifonly.model.weight_attack import lowest_network
from ifonly.model.weight_box import WeightBox
from ifonly.problem import ClassTarget, OpenTarget, ProbabilityTarget, Query, Question, RobustToWeights, Target
from ifonly.problem.already_satisfied import already_decided
from ifonly.problem.robust import LARGEST
from ifonly.results import Answer, Claim, Limits
from ifonly.results.robustness import Robustness, TreeRobustness
from ifonly.tolerances import DEFAULT

Floats = NDArray[np.float64]
Found = TypeVar("Found")

FIRST = 1e-6
"""The first change that is tried."""
HALVINGS = 50
CLOSE = 1e-4
"""Relative: bounds that take searches are not brought closer than this."""
SECONDS = 10.0
"""Of one of these searches."""
Known: TypeAlias = tuple[float, float, OwnLayers | None]


def robustness_of(
    answerer: Answerer, answer: Any, target: Target | OpenTarget | None, relative: bool
) -> Robustness | TreeRobustness:
    """How far the weights may change before an answer's row, or any row, is no longer decided as it is now, or as a
    target says."""
    row = answer.counterfactual if isinstance(answer, Answer) else answer
    if isinstance(answer, Answer) and row is None:
        raise QuestionError(f"This answer has no row whose robustness could be found: it is '{answer.status}'.")
    if isinstance(target, OpenTarget):
        raise UnsupportedQuestion("Robustness is found for one class, score or probability; name one of them.")
    restricted, point, _ = answerer.kept_missing(answerer.schema.read(row), Query())
    return _of_point(restricted.model, point, target, relative)


def _of_point(model: Model, point: Floats, target: Target | None, relative: bool) -> Robustness | TreeRobustness:
    scores = model.scores(point[None, :])
    if target is None:
        if not model.classes:
            raise QuestionError("Say which score the row must keep with target=ScoreTarget(...): this is a regression.")
        target = ClassTarget(model.classes[int(model.decide(scores)[0])], margin=0.0)
    target.check(model)
    if isinstance(target, ProbabilityTarget) and target.curved(model):
        raise UnsupportedQuestion(
            "Robustness to changed weights cannot be proven of a probability of one of three or more classes; ask for "
            "a class."
        )
    if not already_decided(target, model, point[None, :], scores)[0]:
        raise QuestionError(f"The model does not decide this row as asked ({target.describe()}), so nothing is robust.")
    if model.function.as_trees() is not None:
        return _of_trees(model, target, point)
    return _of_weights(model, point, target, relative)


def _of_weights(model: Model, point: Floats, target: Target, relative: bool) -> Robustness:
    """How far each weight may change."""
    try:
        centre = own_layers(model)
    except UnsupportedModel as error:
        raise UnsupportedQuestion(str(error)) from None
    encoded = model.schema.encode(point[None, :])[0]

    def unproven(delta: float) -> bool | None:
        worst = RobustToWeights(delta, relative).accepted(model, target)
        return None if worst.accepts_unchanged(model.schema, point[None, :])[0] else True

    def refusing(delta: float) -> OwnLayers | None:
        return _refusing(model, target, WeightBox(centre, delta, relative), encoded)

    lower, _, _ = _edge(0.0, FIRST, unproven)
    _, upper, network = _edge(lower, max(FIRST, 2.0 * lower), refusing)
    if math.isfinite(upper):
        lower, upper, network = _between(model, target, centre, relative, encoded, (lower, upper, network))
    return Robustness(
        lower=lower,
        upper=upper,
        relative=relative,
        exact=upper - lower <= 2.0 * CLOSE * upper,
        refusing=None if network is None else network.layers,
    )


def _of_trees(model: Model, target: Target, point: Floats) -> TreeRobustness:
    """How many trees may be removed, whichever they are."""
    removals = Removals.of(model)
    conditions, ends = target.conditions(model)
    for most in range(1, removals.count):
        for condition, end in zip(conditions, ends.tolist(), strict=True):
            least, gone = removals.worst(point, condition, end + target.margin, most)
            if least < 0.0:
                return TreeRobustness(removals=len(gone) - 1, trees=removals.count, deciding=gone)
    return TreeRobustness(removals=removals.count - 1, trees=removals.count)


def _between(model: Model, target: Target, centre: OwnLayers, relative: bool, encoded: Floats, known: Known) -> Known:
    """The same bounds, closer: bisection with the check that two hidden layers need a search for."""
    lower, upper, network = known

    def ask(question: Question, point: Floats) -> Claim:
        return searched(question, point, Limits(seconds=SECONDS), DEFAULT)

    conditions, ends = target.conditions(model)
    while len(centre.layers) == SEARCHED and upper - lower > CLOSE * upper:
        middle = 0.5 * (lower + upper)
        box = WeightBox(centre, middle, relative)
        verdicts = [verified(box, encoded, c, (d, d), ask) for c, d in zip(conditions, ends.tolist(), strict=True)]
        found = [one.network for one in verdicts if one.network is not None]
        refusing = [one for one in found if not target.met(model, one.scores(encoded[None, :]), 0.0)[0]]
        if refusing:
            upper, network = middle, refusing[0]
        elif not found and all(one.decided for one in verdicts):
            lower = middle
        else:
            break
    return lower, upper, network


def _edge(low: float, high: float, find: Callable[[float], Found | None]) -> tuple[float, float, Found | None]:
    """The largest change where nothing is found, the least where something is, and what: by doubling and bisection."""
    found = find(high)
    while found is None and high < LARGEST:
        low, high = high, min(2.0 * high, LARGEST)
        found = find(high)
    if found is None:
        return low, math.inf, None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        one = find(middle)
        if one is None:
            low = middle
        else:
            high, found = middle, one
    return low, high, found


def _refusing(model: Model, target: Target, box: WeightBox, encoded: Floats) -> OwnLayers | None:
    """A network of the box that does not decide the row as asked, by its own scores."""
    for condition in target.conditions(model)[0]:
        _, network = lowest_network(box, encoded, condition)
        if not target.met(model, network.scores(encoded[None, :]), 0.0)[0]:
            return network
    return None
