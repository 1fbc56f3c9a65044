"""Composed scikit-learn estimators: calibration, thresholds, votes, stacking, one class against the rest.

Each member is read as a score form (`forms`) with what the score is. What wraps it moves a threshold through a monotone
function of the score (found by bisection over the floats), or adds up curves of scores. Scores of the original are
those of the fitted members themselves; its own `predict` decides.

    threshold, one calibrator      the member's score, compared with the last float that is refused
    several calibrators, soft vote the sum of sigmoids (or of interpolations) of scores, a smooth network
    hard vote                      the k-th largest score: of coalitions that win, the largest least score
    stacking                       the final estimator over probabilities or scores
    one class against the rest     one score per class
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import flow_of
from ifonly.model.importers.column_kinds import Column
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.forms import (
    Floats,
    Form,
    affine,
    beside,
    expit,
    interpolated,
    kth_largest,
    outputs_of,
    sigmoids,
    weighted,
)
from ifonly.model.importers.members import Combined, MemberReader, ScoredMember, check_two_classes
from ifonly.model.importers.sklearn_estimators import LOGISTIC, reader_of
from ifonly.model.importers.sklearn_original import raised
from ifonly.model.importers.sklearn_parts import Front, parts_of
from ifonly.model.importers.transformers import sklearn_name, transformed
from ifonly.model.operations import Majorant
from ifonly.schema import Real, Schema

MOST_VOTERS = 7


# ---------------------------------------------------------------------- thresholds


@dataclass(frozen=True)
class AffineScores:
    """factor * score + shift."""

    factor: float
    shift: float

    def __call__(self, scores: Floats) -> Floats:
        return self.factor * scores + self.shift


@dataclass(frozen=True, eq=False)
class LargestLeast:
    """The largest over coalitions of the least score of each, above its threshold."""

    thresholds: Floats
    coalitions: tuple[tuple[int, ...], ...]

    def __call__(self, scores: Floats) -> Floats:
        own = scores - self.thresholds
        return np.max([own[:, list(some)].min(axis=1) for some in self.coalitions], axis=0)[:, None]


def _cut(accepts: Callable[[Floats], NDArray[np.bool_]], name: str) -> tuple[float, float]:
    """Sign and constant so that sign * score + constant > 0 iff a monotone function accepts the score."""
    low, high = -(2.0**60), 2.0**60
    ends = accepts(np.array([low, high]))
    if ends[0] == ends[1]:
        raise UnsupportedModel(
            f"The {name} decides the same for every score: there is nothing that changes its decision.",
            operation=f"constant {name}",
        )
    ranks = np.array([low, high]).view(np.int64)
    first, last = (int(r) if r >= 0 else -(2**63) - int(r) for r in ranks)
    while last - first > 1:
        middle = (first + last) // 2
        same = bool(accepts(np.array([_float(middle)]))[0]) == bool(ends[0])
        first, last = (middle, last) if same else (first, middle)
    return (-1.0, _float(last)) if ends[0] else (1.0, -_float(first))


def _float(rank: int) -> float:
    return float(np.array(rank if rank >= 0 else -(2**63) - rank, dtype=np.int64).view(np.float64))


def _compared(member: ScoredMember, accepts: Callable[[Floats], NDArray[np.bool_]], name: str) -> ScoredMember:
    """The member's score less the last one that is refused."""
    sign, constant = _cut(accepts, name)
    call = Combined((member.call,), AffineScores(sign, constant))
    return ScoredMember(affine(member.form, sign, constant, name=name), "margin", call, name, tie=member.tie)


def _threshold(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name = type(estimator).__name__
    inner = getattr(estimator, "estimator_", None) or estimator.estimator
    member = reader.read(inner, front)
    check_two_classes(member, name)
    method = estimator._get_response_method()
    methods = [method] if isinstance(method, str) else list(method)
    used = next(one for one in methods if hasattr(inner, one))
    limit = getattr(estimator, "best_threshold_", None)
    if limit is None:
        limit = (0.5 if used == "predict_proba" else 0.0) if estimator.threshold == "auto" else estimator.threshold
    label = estimator.pos_label if hasattr(estimator, "pos_label") else estimator._curve_scorer._get_pos_label()
    second = label is None or label == estimator.classes_[1]
    link = expit if used == "predict_proba" and member.kind == "log-odds" else lambda x: x

    def accepts(scores: Floats) -> NDArray[np.bool_]:
        own = link(scores)
        if second:
            return np.asarray(own >= limit)
        return np.asarray((1.0 - own if used == "predict_proba" else -own) < limit)

    return _compared(member, accepts, name)


# ---------------------------------------------------------------------- calibration


def _calibrated(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name, parts = type(estimator).__name__, estimator.calibrated_classifiers_
    members = [reader.read(part.estimator, front) for part in parts]
    if len(estimator.classes_) != 2:
        raise UnsupportedModel(
            f"The {name} calibrates {len(estimator.classes_)} classes one by one and divides by their sum, which has "
            f"no exact form here; explain its estimator (calibrated_classifiers_[0].estimator) instead.",
            operation=f"{name} with several classes",
        )
    for member in members:
        check_two_classes(member, name)
    if len(parts) == 1:
        return _once_calibrated(members[0], parts[0], name)
    forms = [_calibrated_form(member, part, name) for member, part in zip(members, parts, strict=True)]
    curved = [i for i, (_, is_sigmoid) in enumerate(forms) if is_sigmoid]
    found = [form for form, _ in forms]
    for i, form in zip(curved, sigmoids([found[i] for i in curved], name=name), strict=True):
        found[i] = form
    weight = np.full((1, len(found)), 1.0 / len(found))
    mean = weighted(found, weight, np.zeros(1), reader.arithmetic.schema, name=name)
    return ScoredMember(mean, "probability", reader.call(estimator, front, "predict_proba"), name, decides=False)


def _platt(part: Any, member: ScoredMember) -> tuple[float, float] | None:
    """The log-odds of a calibrated probability as an affine function of the member's score: factor and shift."""
    read_as_score = member.decides or member.kind == "probability"
    if part.method == "sigmoid" and read_as_score:
        return -float(part.calibrators[0].a_), -float(part.calibrators[0].b_)
    if part.method == "temperature" and member.decides:
        return 2.0 * float(part.calibrators[0].beta_), 0.0
    return None


def _once_calibrated(member: ScoredMember, part: Any, name: str) -> ScoredMember:
    """A monotone function of one score."""
    platt = _platt(part, member)
    if platt is not None and platt[0] != 0.0:
        call = Combined((member.call,), AffineScores(*platt))
        tie = member.tie * abs(platt[0])
        return ScoredMember(affine(member.form, *platt, name=name), "log-odds", call, name, decides=False, tie=tie)
    link = _link(member)

    def accepts(scores: Floats) -> NDArray[np.bool_]:
        own = link(scores)
        if part.method == "temperature":
            given = part.calibrators[0].predict(np.column_stack([1.0 - own, own]))
            return np.asarray(given[:, 1] > given[:, 0])
        found = np.asarray(part.calibrators[0].predict(own))
        return np.asarray(found > 1.0 - found)

    return _compared(member, accepts, name)


def _link(member: ScoredMember) -> Callable[[Floats], Floats]:
    """From the score to what a calibrator reads: the decision function, or else the probability."""
    return expit if not member.decides and member.kind == "log-odds" else np.asarray


def _calibrated_form(member: ScoredMember, part: Any, name: str) -> tuple[Form, bool]:
    """The calibrated probability, and whether a sigmoid of the form is still to be taken."""
    form = member.form
    if not member.decides and member.kind == "log-odds":
        form = sigmoids([form], name=name)[0]
    if part.method == "isotonic":
        calibrator = part.calibrators[0]
        return interpolated(form, calibrator.X_thresholds_, calibrator.y_thresholds_, name=name), False
    platt = _platt(part, member) or (-float(part.calibrators[0].a_), -float(part.calibrators[0].b_))
    return affine(form, *platt, name=name), True


# ---------------------------------------------------------------------- votes and stacking


def _members(reader: MemberReader, estimator: Any, front: Front) -> list[ScoredMember]:
    return [reader.read(one, front) for one in estimator.estimators_ if one != "drop"]


def _weights(estimator: Any) -> Floats:
    given = estimator._weights_not_none
    return np.ones(len(estimator.estimators_)) if given is None else np.asarray(given, dtype=np.float64)


def _vote(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name, members, weights = type(estimator).__name__, _members(reader, estimator, front), _weights(estimator)
    schema = reader.arithmetic.schema
    if estimator.voting == "hard":
        return _hard_vote(members, weights, name)
    forms = reader.probabilities(members, name)
    mean = weighted(forms, weights[None, :] / weights.sum(), np.zeros(1), schema, name=name)
    return ScoredMember(mean, "probability", reader.call(estimator, front, "predict_proba"), name, decides=False)


def _hard_vote(members: list[ScoredMember], weights: Floats, name: str) -> ScoredMember:
    for member in members:
        check_two_classes(member, name)
    least = int(weights.sum() // 2) + 1 if (weights == 1.0).all() else None
    flows = [
        member.form.scale(1.0, -member.threshold, name=name) if member.threshold else member.form
        for member in members
        if isinstance(member.form, Flow)
    ]
    if len(flows) < len(members):
        ask = f"AcceptedBySome({least}, of=[...])" if least else "Accepted(by=...) for each"
        raise UnsupportedModel(
            f"The votes of trees in this {name} are no sum over leaves; import its members (estimators_) as models of "
            f"their own and ask for a row that {least or 'enough'} of them accept: constraints=[{ask}], or train it "
            f"with voting='soft' over trees and forests alone.",
            operation="hard voting",
        )
    if len(members) > MOST_VOTERS:
        raise UnsupportedModel(
            f"A hard vote of {len(members)} members has too many ways to be won; at most {MOST_VOTERS} are supported.",
            operation="hard voting",
        )
    winning = _coalitions(weights)
    shifts = np.array([member.threshold for member in members])
    call = Combined(tuple(member.call for member in members), LargestLeast(shifts, tuple(winning)))
    return ScoredMember(kth_largest(flows, winning, name=name), "margin", call, name, decides=False)


def _coalitions(weights: Floats) -> list[tuple[int, ...]]:
    """The least sets of voters whose weights are more than half."""
    found: list[tuple[int, ...]] = []
    for size in range(1, len(weights) + 1):
        for some in itertools.combinations(range(len(weights)), size):
            wins = 2.0 * weights[list(some)].sum() > weights.sum()
            if wins and not any(set(smaller) <= set(some) for smaller in found):
                found.append(some)
    return found


def _mean(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name, members, weights = type(estimator).__name__, _members(reader, estimator, front), _weights(estimator)
    forms = [member.form for member in members]
    mean = weighted(forms, weights[None, :] / weights.sum(), np.zeros(1), reader.arithmetic.schema, name=name)
    return ScoredMember(mean, "prediction", reader.call(estimator, front, "predict"), name)


def _stack(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name, members = type(estimator).__name__, _members(reader, estimator, front)
    methods = [m for m, one in zip(estimator.stack_method_, estimator.estimators_, strict=False) if one != "drop"]
    final = estimator.final_estimator_
    forms = [member.form for member in members]
    curved = [i for i, method in enumerate(methods) if method == "predict_proba"]
    for i, form in zip(curved, reader.probabilities([members[i] for i in curved], name), strict=True):
        forms[i] = form
    if any(
        method == "predict" and member.kind != "prediction" for method, member in zip(methods, members, strict=True)
    ):
        raise UnsupportedModel(
            f"The {name} stacks decisions, which jump; fit it with stack_method='predict_proba'.",
            operation="stacked decisions",
        )
    if estimator.passthrough:
        forms.append(flow_of(reader.columns(front), reader.arithmetic, reader.encoded, name))
    if not all(isinstance(form, Flow) for form in forms):
        return _stack_of_trees(reader, estimator, front, forms)
    flow = beside([form for form in forms if isinstance(form, Flow)], name=name)
    steps, last = parts_of(final)
    if steps:
        weight, shift, sizes = _scaled(steps, flow.width, name)
        flow = flow.linear(weight, shift, name=name, sizes=sizes)
    read = reader_of(last)(last, flow)
    return _final(reader, estimator, front, read.flow, read.answer)


def _scaled(steps: Front, width: int, name: str) -> tuple[Floats, Floats, Majorant]:
    """What transformers before a final estimator make of so many stacked columns."""
    stacked = Columns(Schema([Real(f"column {i}", -1e9, 1e9) for i in range(width)]))
    columns: list[Column] = [stacked.raw(i) for i in range(width)]
    for where, step in steps:
        columns = transformed(step, columns, stacked, f"{name}.{where}")
    return stacked.matrix(columns, name)


def _stack_of_trees(reader: MemberReader, estimator: Any, front: Front, forms: list[Form]) -> ScoredMember:
    name = type(estimator).__name__
    steps, final = parts_of(estimator.final_estimator_)
    if not hasattr(final, "coef_"):
        raise UnsupportedModel(
            f"The {name} ends in {type(final).__name__} over trees; with a linear final estimator it is supported.",
            operation=f"{name} with {type(final).__name__}",
        )
    answer = reader_of(final)(final, Flow.of(int(final.n_features_in_))).answer
    weight, shift = np.atleast_2d(np.asarray(final.coef_, dtype=np.float64)), np.ravel(final.intercept_)
    if steps:
        scale, offset, _ = _scaled(steps, sum(outputs_of(form) for form in forms), name)
        weight, shift = weight @ scale, shift + weight @ offset
    form = weighted(forms, weight, np.broadcast_to(shift, (len(weight),)), reader.arithmetic.schema, name=name)
    return _final(reader, estimator, front, form, answer)


def _final(reader: MemberReader, estimator: Any, front: Front, form: Form, answer: str) -> ScoredMember:
    """What a stack decides by its final estimator."""
    name, final, several = type(estimator).__name__, parts_of(estimator.final_estimator_)[1], outputs_of(form) > 1
    if answer == "predict":
        return ScoredMember(form, "prediction", reader.call(estimator, front, "predict"), name)
    if answer == "logits":
        shallow = replace_final(estimator)
        call = reader.call(shallow, front, "predict_proba", all_columns=several)
        return ScoredMember(form, "log-odds", call, name, decides=False)
    logistic = sklearn_name(final, LOGISTIC) or getattr(final, "loss", None) == "log_loss"
    call = reader.call(estimator, front, "decision_function", all_columns=several)
    return ScoredMember(form, "log-odds" if logistic else "margin", call, name)


def replace_final(estimator: Any) -> Any:
    """The stack (a shallow copy) whose final perceptron gives logits."""
    shallow = copy.copy(estimator)
    shallow.final_estimator_ = raised(estimator.final_estimator_)
    return shallow


# ---------------------------------------------------------------------- one class against the rest


def _one_against_rest(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    name = type(estimator).__name__
    if estimator.multilabel_:
        raise UnsupportedModel(
            f"The {name} gives several labels at once (multilabel); import one of them: estimators_[k].",
            operation="multilabel",
        )
    members = [reader.read(one, front) for one in estimator.estimators_]
    for member in members:
        check_two_classes(member, name)
    if len(members) == 1:
        return replace(members[0], name=name, decides=members[0].decides)
    kinds = {member.kind for member in members}
    forms, calls = [member.form for member in members], tuple(member.call for member in members)
    function: Callable[[Floats], Floats] = np.asarray
    if kinds == {"log-odds"} and not members[0].decides and all(isinstance(form, Flow) for form in forms):
        forms, function = sigmoids(forms, name=name), expit
    joined = weighted(forms, np.eye(len(forms)), np.zeros(len(forms)), reader.arithmetic.schema, name=name)
    return ScoredMember(
        joined, "margin", Combined(calls, function), name, decides=False, tie=max(m.tie for m in members)
    )


def _of_several(reader: MemberReader, estimator: Any, front: Front) -> ScoredMember:
    count = len(estimator.estimators_)
    raise ModelError(
        f"The {type(estimator).__name__} gives {count} answers at once; say which one is asked about: "
        f"import_model(model, schema, output=0), up to output={count - 1}."
    )


COMPOSED: dict[str, Callable[[MemberReader, Any, Front], ScoredMember]] = {
    "CalibratedClassifierCV": _calibrated,
    "FixedThresholdClassifier": _threshold,
    "TunedThresholdClassifierCV": _threshold,
    "VotingClassifier": _vote,
    "VotingRegressor": _mean,
    "StackingClassifier": _stack,
    "StackingRegressor": _stack,
    "OneVsRestClassifier": _one_against_rest,
    "MultiOutputClassifier": _of_several,
}
