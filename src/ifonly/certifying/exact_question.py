"""The question in real arithmetic: networks without rounding, and margins larger by what deployed models may lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.model import Model
from ifonly.model.reconstruction import Reconstruction
from ifonly.problem import Accepted, Question, Target
from ifonly.problem.joint_target import JointTarget

Floats = NDArray[np.float64]


def other_models(questions: Sequence[Question]) -> tuple[Accepted, ...]:
    """All models that some of these questions ask besides their own, each once."""
    return tuple(dict.fromkeys(one for question in questions for one in question.others))


def in_real_arithmetic(
    questions: Sequence[Question], rounding_bounds: Sequence[float | None], found: Floats | None = None
) -> list[Question]:
    """The alternatives of a question, asked of the stored weights themselves: exact scores must be above each margin by
    what the deployed model may lose of a score, the same in all alternatives. None: the margins are kept. `found`: the
    row of the answer, at which the rounding counts of networks beside trees, whose search has a bound of trees alone.
    """
    first, others = questions[0], other_models(questions)
    lost: dict[Accepted | None, float | None] = dict.fromkeys((None, *others))
    for question, bound in zip(questions, rounding_bounds, strict=True):
        joint = question.joint.target
        scales = joint.scales.tolist() if isinstance(joint, JointTarget) else [1.0]
        for key, scale in zip((None, *question.others), scales, strict=True):
            lost[key] = None if bound is None else max(lost[key] or 0.0, bound / scale)
        if found is not None and bound is not None and question.joint.model.function.search == "trees":
            for key in (None, *question.others):
                lost[key] = max(lost[key] or 0.0, _lost_at(found, key, question))
    exact = {one: _accepted(one, first, lost[one]) for one in others}
    result = []
    for question in questions:
        model, target = _exact(question.model, question.single_target, lost[None])
        kept = [exact[one] if isinstance(one, Accepted) else one for one in question.constraints]
        result.append(replace(question, model=model, target=target, constraints=kept))
    return result


def _lost_at(found: Floats, one: Accepted | None, question: Question) -> float:
    """What a network may lose of its score at a row; 0 of trees, which round the same everywhere."""
    model = question.model if one is None else one.model(question.schema)
    if model.function.as_trees() is not None:
        return 0.0
    target = question.single_target if one is None else one.target_of(question.schema)
    return float(Question(model=model, target=target, distance=question.distance).error_at(found[None, :])[0])


def _accepted(one: Accepted, question: Question, rounding_bound: float | None) -> Accepted:
    model, target = _exact(one.model(question.schema), one.target_of(question.schema), rounding_bound)
    return Accepted(by=model, target=target, name=one.name)


def _exact(model: Model, target: Target, rounding_bound: float | None) -> tuple[Model, Target]:
    trees = model.function.as_trees()
    if trees is not None and rounding_bound is not None:
        coefficients = np.abs(target.conditions(model)[0]).sum(axis=1).max(initial=0.0)
        rounding_bound = max(rounding_bound, float(coefficients * trees.ensemble.rounding().max()))
    elif trees is None:
        if isinstance(model.function, Reconstruction):  # its network rounds: what is stated is the autoencoder
            return model, replace(target, margin=target.margin + (rounding_bound or 0.0))
        if model.function.as_network() is not None:
            model = model.of_network
        elif model.function.statement() is None:
            raise UnsupportedQuestion(f"A certificate cannot state {model.function.name} yet; `explain` can.")
    return model, replace(target, margin=target.margin + (rounding_bound or 0.0))
