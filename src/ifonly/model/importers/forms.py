"""Score forms: what a member of a composed estimator computes, as values of a network or as trees over features.

Sums, scalings and averages keep the form. A curve of a value exists in a network, or where a tree stands alone: then it
is a curve of the values of its leaves. Anything else, a sum of both or of curves of ensembles, is a `Mixture`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.kind import Precision
from ifonly.model.mixed import Curve, Interpolated, MixedSum
from ifonly.model.smooth import Activation
from ifonly.model.trees import EVERY, Ensemble, Summation, Trees, reachable
from ifonly.model.trees.merging import merged
from ifonly.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mixture:
    """weight @ curves of ensembles + flow + shift (see `ifonly.model.mixed.MixedSum`)."""

    ensembles: tuple[Ensemble, ...]
    curves: tuple[Curve, ...]
    weight: Floats
    shift: Floats
    flow: Flow | None = None

    @classmethod
    def of(cls, ensemble: Ensemble, curve: Curve) -> Mixture:
        return cls((ensemble,), (curve,), np.ones((1, 1)), np.zeros(1))

    def to_kind(self, schema: Schema, precision: Precision) -> MixedSum:
        """`precision`: that of the flow."""
        parts = tuple(Trees(reachable(one, schema), schema) for one in self.ensembles)
        network = None if self.flow is None else self.flow.to_network()
        return MixedSum(parts, self.curves, self.weight, self.shift, network, precision)


Form: TypeAlias = Flow | Ensemble | Mixture
SIGMOID = Activation("sigmoid")
INTERPOLATED = 32.0 * 2.0**-53
"""What interpolation between probabilities rounds, at most."""


def outputs_of(form: Form) -> int:
    if isinstance(form, Mixture):
        return len(form.shift)
    return form.width if isinstance(form, Flow) else form.outputs


def affine(form: Form, factor: float, shift: float, *, name: str) -> Form:
    """factor * form + shift."""
    if isinstance(form, Flow):
        return form.scale(factor, shift, name=name)
    if isinstance(form, Mixture):
        flow = None if form.flow is None else form.flow.scale(factor, 0.0, name=name)
        return replace(form, weight=factor * form.weight, shift=factor * form.shift + shift, flow=flow)
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
    """weight @ forms + shift; weight of shape (outputs, outputs of all forms). Trees have one output each."""
    flows = [form for form in forms if isinstance(form, Flow)]
    if len(flows) == len(forms):
        return beside(flows, name=name).linear(weight, shift, name=name)
    ensembles = [form for form in forms if isinstance(form, Ensemble)]
    if len(ensembles) < len(forms):
        return _mixed(forms, weight, shift, name=name)
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


def _mixed(forms: Sequence[Form], weight: Floats, shift: Floats, *, name: str) -> Mixture:
    """The same, of forms of several sorts."""
    ensembles: list[Ensemble] = []
    curves: list[Curve] = []
    columns: list[Floats] = []
    flows: list[tuple[Flow, Floats]] = []
    total, before = np.array(shift, dtype=np.float64), 0
    for form in forms:
        own = weight[:, before : before + outputs_of(form)]
        before += outputs_of(form)
        if isinstance(form, Flow):
            flows.append((form, own))
            continue
        mixture = form if isinstance(form, Mixture) else Mixture.of(form, None)
        ensembles += mixture.ensembles
        curves += mixture.curves
        columns += list((own @ mixture.weight).T)
        total = total + own @ mixture.shift
        if mixture.flow is not None:
            flows.append((mixture.flow, own))
    flow = None
    if flows:
        together = np.concatenate([own for _, own in flows], axis=1)
        flow = beside([one for one, _ in flows], name=name).linear(together, np.zeros(len(total)), name=name)
    return Mixture(tuple(ensembles), tuple(curves), np.column_stack(columns), total, flow)


def _precision(ensembles: Sequence[Ensemble]) -> Precision:
    return "float32" if any(one.summation.precision == "float32" for one in ensembles) else "float64"


def beside(flows: Sequence[Flow], *, name: str) -> Flow:
    return flows[0].joined(flows[1:], name=name) if len(flows) > 1 else flows[0]


def sigmoids(forms: Sequence[Form], *, name: str) -> list[Form]:
    """1 / (1 + exp(-form)) of each. Those of a network share one layer, however deep each is."""
    flows = [(i, form) for i, form in enumerate(forms) if isinstance(form, Flow)]
    result = [form if isinstance(form, Flow) else curve_of(form, SIGMOID, name=name) for form in forms]
    if flows:
        curve = beside([flow for _, flow in flows], name=name).smooth(SIGMOID)
        for k, (i, _) in enumerate(flows):
            result[i] = curve.select([k], name=name)
    return result


def expit(values: Floats) -> Floats:
    """1 / (1 + exp(-value)), as scikit-learn computes it."""
    from scipy import special

    return np.asarray(special.expit(values))


def curve_of(form: Form, curve: Activation | Interpolated, *, name: str) -> Form:
    """A curve of trees: of the leaves of a single one, or of the sum."""
    if isinstance(form, Ensemble):
        known = expit if curve == SIGMOID else curve
        return of_leaves(form, known) if len(form.roots) == 1 else Mixture.of(form, curve)
    raise UnsupportedModel(
        f"{name} takes a curve of a sum of trees and other models, which has no exact form here; calibrate the members "
        f"instead, or explain what is inside it.",
        operation=f"{name} of a mixture",
    )


def of_leaves(ensemble: Ensemble, curve: Callable[[Floats], Floats]) -> Ensemble:
    """The curve of a single tree's value: of each of its leaves."""
    how = ensemble.summation
    values = (how.start[0] + ensemble.values[:, 0]) / how.divisor * how.scale + how.shift[0]
    return replace(
        ensemble, values=curve(values)[:, None], summation=replace(Summation.plain(1), precision=how.precision)
    )


def interpolated(form: Form, knots: Floats, values: Floats, *, name: str) -> Form:
    """Linear between knots, and constant beyond the first and the last."""
    if not isinstance(form, Flow):
        return curve_of(form, Interpolated(np.asarray(knots, float), np.asarray(values, float)), name=name)
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
