"""Score forms: what a member of a composed estimator computes, as values of a network or as trees over features.

Sums, scalings and averages keep the form. A curve of a value exists in a network only, or where a tree stands alone:
then it is a curve of the values of its leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.kind import Precision
from ifonly.model.smooth import Activation
from ifonly.model.trees import EVERY, Ensemble, Summation, Trees
from ifonly.model.trees.merging import merged
from ifonly.schema import Schema

Floats = NDArray[np.float64]
Form: TypeAlias = Flow | Ensemble
INTERPOLATED = 32.0 * 2.0**-53
"""What interpolation between probabilities rounds, at most."""


def outputs_of(form: Form) -> int:
    return form.width if isinstance(form, Flow) else form.outputs


def affine(form: Form, factor: float, shift: float, *, name: str) -> Form:
    """factor * form + shift."""
    if isinstance(form, Flow):
        return form.scale(factor, shift, name=name)
    how = form.summation
    if factor == 1.0:
        return replace(form, summation=replace(how, shift=how.shift + shift))
    return replace(form, summation=replace(how, scale=how.scale * factor, shift=how.shift * factor + shift))


def second_column(ensemble: Ensemble) -> Ensemble:
    """Of an ensemble with two outputs, the second alone."""
    how = ensemble.summation
    return replace(
        ensemble,
        values=ensemble.values[:, 1:2],
        adds_to=np.zeros(len(ensemble.roots), dtype=np.int32),
        summation=replace(how, start=how.start[1:2], shift=how.shift[1:2]),
    )


def weighted(forms: Sequence[Form], weight: Floats, shift: Floats, schema: Schema, *, name: str) -> Form:
    """weight @ forms + shift, for forms of one output each; weight of shape (outputs, forms)."""
    flows = [form for form in forms if isinstance(form, Flow)]
    if len(flows) == len(forms):
        return beside(flows, name=name).linear(weight, shift, name=name)
    ensembles = [form for form in forms if isinstance(form, Ensemble)]
    if flows:
        raise UnsupportedModel(
            f"{name} adds up scores of trees and of other models, which has no exact form here; compose it of trees "
            f"(and forests) only, or of linear models and perceptrons only, or explain one of its members.",
            operation=f"{name} of trees and others",
        )
    joined = merged([Trees(one, schema) for one in ensembles]).ensemble
    factors = np.array([one.summation.scale / one.summation.divisor for one in ensembles])
    constants = [one.summation.start * f + one.summation.shift for one, f in zip(ensembles, factors, strict=True)]
    total = weight @ np.concatenate(constants) + shift
    return replace(
        joined,
        values=joined.values @ (weight * factors).T,
        adds_to=np.full(len(joined.roots), EVERY, dtype=np.int32),
        summation=Summation(start=np.zeros(len(weight)), shift=total, ordered=False, precision=_precision(ensembles)),
    )


def _precision(ensembles: Sequence[Ensemble]) -> Precision:
    return "float32" if any(one.summation.precision == "float32" for one in ensembles) else "float64"


def beside(flows: Sequence[Flow], *, name: str) -> Flow:
    return flows[0].joined(flows[1:], name=name) if len(flows) > 1 else flows[0]


def sigmoids(forms: Sequence[Form], *, name: str) -> list[Form]:
    """1 / (1 + exp(-form)) of each. Those of a network share one layer, however deep each is."""
    flows = [(i, form) for i, form in enumerate(forms) if isinstance(form, Flow)]
    result = [form if isinstance(form, Flow) else of_leaves(form, expit, name=name) for form in forms]
    if flows:
        curve = beside([flow for _, flow in flows], name=name).smooth(Activation("sigmoid"))
        for k, (i, _) in enumerate(flows):
            result[i] = curve.select([k], name=name)
    return result


def expit(values: Floats) -> Floats:
    """1 / (1 + exp(-value)), as scikit-learn computes it."""
    from scipy import special

    return np.asarray(special.expit(values))


def of_leaves(ensemble: Ensemble, curve: Callable[[Floats], Floats], *, name: str) -> Ensemble:
    """The curve of a tree's value: of each of its leaves."""
    if len(ensemble.roots) != 1:
        raise UnsupportedModel(
            f"{name} adds up curves of sums over {len(ensemble.roots)} trees, which is no sum over leaves; with one "
            f"curve alone it is supported (CalibratedClassifierCV with ensemble=False), or explain one of its members.",
            operation=f"{name} of several trees",
        )
    how = ensemble.summation
    values = (how.start[0] + ensemble.values[:, 0]) / how.divisor * how.scale + how.shift[0]
    return replace(
        ensemble, values=curve(values)[:, None], summation=replace(Summation.plain(1), precision=how.precision)
    )


def interpolated(form: Form, knots: Floats, values: Floats, *, name: str) -> Form:
    """Linear between knots, and constant beyond the first and the last."""
    if isinstance(form, Ensemble):
        return of_leaves(form, lambda x: np.interp(x, knots, values), name=name)
    if len(knots) == 1:
        return form.linear(np.zeros((1, 1)), values, name=name)
    held = form.clip(knots[0], knots[-1], name=name)
    return held.piecewise_linear(knots, values[:, None], name=name, error=INTERPOLATED)


def kth_largest(flows: Sequence[Flow], winning: Sequence[Sequence[int]], *, name: str) -> Flow:
    """The largest over coalitions of the least score of each: above 0 iff all of some coalition are."""
    found: Flow | None = None
    for coalition in winning:
        least = flows[coalition[0]]
        for i in coalition[1:]:
            least = least.minimum(flows[i], name=name)
        found = least if found is None else found.maximum(least, name=name)
    assert found is not None
    return found
