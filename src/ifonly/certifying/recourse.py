"""Certificates of recourse: that no action is cheaper, when the other features follow their causes.

A certificate states the equations, the cost of holding, and the row that follows. For each set of features with causes
that may be acted on it has a tree, which shows that no row that follows from actions on this set is decided so at a
smaller cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np

from ifonly.causes import CausalModel, TableEquation, check_causes
from ifonly.causes.tree_equations import Partition
from ifonly.certificate.check.alternatives import sets_of
from ifonly.certificate.format import Certificate
from ifonly.certifying.certificates import ClaimingExplainer, certificate_of_any, certify
from ifonly.certifying.certifier import Certifier
from ifonly.certifying.effort import within_limits
from ifonly.certifying.exact_question import in_real_arithmetic, other_models
from ifonly.certifying.statement import StatedExtras, hexes
from ifonly.errors import UnsupportedQuestion
from ifonly.model import Network
from ifonly.problem import Distance, Query
from ifonly.problem.query import query_of
from ifonly.results.claim import Claim
from ifonly.results.recourse import Recourse
from ifonly.schema import Choice, Feature, Numeric
from ifonly.solvers.search.search import Search

MOST_CASES = 400
"""Of one equation."""


class RecourseExplainer(ClaimingExplainer, Protocol):
    """What `certify_recourse` needs of an Explainer."""

    def recourse(self, row: Any, causes: CausalModel, query: Query | None = None) -> Recourse: ...


def certify_recourse(
    explainer: RecourseExplainer,
    row: Any,
    causes: CausalModel,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: str | Distance | None = None,
) -> Certificate:
    """The answer to `explainer.recourse(row, causes, ...)` as a certificate: no action is cheaper, in real arithmetic
    on the stored weights and equations."""
    query = query_of(query, target, distance)
    check_method(explainer)
    check_causes(causes, explainer.model.schema)
    if not causes.equations:
        return certify(explainer, row, query)
    return certificate_of_recourse(explainer, row, causes, query, explainer.recourse(row, causes, query))


def check_method(explainer: RecourseExplainer) -> None:
    """Refuse methods that prove nothing that could be written out."""
    if not isinstance(explainer.method, Search):
        raise UnsupportedQuestion("The cheapest action is proven by the search; leave out the other method.")


def certificate_of_recourse(
    explainer: RecourseExplainer, row: Any, causes: CausalModel, query: Query, told: Recourse
) -> Certificate:
    """The same, of recourse that was found before."""
    answer, limits = told.answer, explainer.limits
    if answer.stop is not None and answer.stop.is_limit:
        raise UnsupportedQuestion(f"There is no proof to write out: the search hit its {answer.stop.words()}.")
    with within_limits(limits):
        stated = stated_causes(causes)
        questions, point = explainer.questions(row, query)
        after = None if answer.counterfactual is None else causes.schema.read(answer.counterfactual)
        claim = Claim(point=after, lower=answer.lower, method=answer.method, rounding_bound=answer.rounding_bound)
        exact = in_real_arithmetic(questions, [answer.rounding_bound] * len(questions), after)
        others = other_models(exact)
        first = Certifier(exact[0], explainer.tolerances, extras=StatedExtras(others, causes=stated))
        sets = len(sets_of(first._stated(point)[1]))
        certifiers = [
            Certifier(
                one, explainer.tolerances, deployed=asked, extras=StatedExtras(others, causes=stated, acted=which)
            )
            for one, asked in zip(exact, questions, strict=True)
            for which in range(sets)
        ]
        return certificate_of_any(certifiers, point, [claim] * len(certifiers), nodes=limits.nodes, sets=sets)


# ---------------------------------------------------------------------- equations


def stated_causes(causes: CausalModel) -> list[dict[str, Any]]:
    """The equations as a certificate states them, each after those that it follows from."""
    found = []
    for g in causes.order:
        feature = causes.schema.features[g]
        snap = causes.snaps[g] if isinstance(feature, Numeric) and feature.step is None else None
        found.append({
            "feature": feature.name,
            "within": None if snap is None else float(snap).hex(),
            "holding": (causes.holding_cost(feature.name) + 0.0).hex(),
            **_equation(causes, g),
        })  # fmt: skip
    return found


def _equation(causes: CausalModel, g: int) -> dict[str, Any]:
    """Layers of a network with hidden ones; else cases."""
    schema, compiled = causes.schema, causes.compiled[g]
    is_table = isinstance(causes.equations[schema.names[g]], TableEquation)
    if is_table or compiled.trees is not None or compiled.slopes is not None:
        return {"cases": _cases(causes, g)}
    if not isinstance(compiled.network, Network):
        raise UnsupportedQuestion(
            f"A certificate cannot state the equation of '{schema.names[g]}', which is {compiled.network.name}; it "
            f"states linear ones, tables, ReLU networks and trees."
        )
    first, *others = compiled.network.layers
    places = np.concatenate([schema.feature_columns[place] for place in compiled.places.tolist()])
    wide = np.zeros((len(first.weight), len(schema.columns)))
    wide[:, places] = first.weight
    layers = [(wide, first.bias), *((layer.weight, layer.bias) for layer in others)]
    return {"layers": [{"weight": [hexes(row) for row in weight], "bias": hexes(bias)} for weight, bias in layers]}


def _cases(causes: CausalModel, g: int) -> list[dict[str, Any]]:
    """Where an equation is linear, one case; else one for each combination of a table, or each region of trees."""
    schema, feature = causes.schema, causes.schema.features[g]
    equation, compiled = causes.equations[feature.name], causes.compiled[g]
    parents = [schema.features[place] for place in compiled.places.tolist()]
    if isinstance(equation, TableEquation):
        pairs = equation.cases(schema, feature).items()
        _check_count(feature, len(pairs))
        return [_constant([_exactly(f, v) for f, v in zip(parents, key, strict=True)], value) for key, value in pairs]
    if compiled.trees is not None:
        regions = compiled.trees
        count = int(np.prod([len(one.values) for one in regions.partitions] or [1]))
        _check_count(feature, count)
        every = Partition(np.ones((1, int(regions.start[-1])), dtype=np.bool_), np.array([regions.intercept]))
        whole = reduce(lambda a, b: a.joined(b, regions.start), regions.partitions, every)
        return [
            _constant(
                [one for k, f in enumerate(parents) for one in _cells(f, regions.cuts[k], columns[regions.block(k)])], v
            )
            for columns, v in zip(whole.columns, whole.values.tolist(), strict=True)
        ]
    assert compiled.slopes is not None and isinstance(compiled.network, Network)
    layer, factors = compiled.network.layers[0], compiled.slopes
    numbers, options, at = [], [], 0
    for parent in parents:
        wide = len(parent.options) if isinstance(parent, Choice) else 1
        own = [(v + 0.0).hex() for v in factors[at : at + wide].tolist()]
        if isinstance(parent, Choice):
            options.append([parent.name, own])
        else:
            numbers.append([parent.name, own[0]])
        at += wide
    return [{"when": [], "numbers": numbers, "options": options, "constant": (float(layer.bias[0]) + 0.0).hex()}]


def _check_count(feature: Feature, count: int) -> None:
    if count > MOST_CASES:
        raise UnsupportedQuestion(
            f"A certificate cannot state the equation of '{feature.name}': it has {count} cases; at most "
            f"{MOST_CASES} can."
        )


def _constant(when: Sequence[dict[str, Any]], value: float) -> dict[str, Any]:
    return {"when": list(when), "numbers": [], "options": [], "constant": (float(value) + 0.0).hex()}


def _exactly(feature: Feature, value: float) -> dict[str, Any]:
    """That a feature has this value."""
    if isinstance(feature, Choice):
        return {"feature": feature.name, "options": [int(value)]}
    return {"feature": feature.name, "low": (value + 0.0).hex(), "high": (value + 0.0).hex()}


def _cells(feature: Feature, cuts: Any, columns: Any) -> Iterator[dict[str, Any]]:
    """That a cause of trees is in some of its cells, or has one of some options; nothing where it may be anything."""
    if columns.all():
        return
    here = np.flatnonzero(columns)
    if cuts is None:
        yield {"feature": feature.name, "options": here.tolist()}
        return
    first, last = int(here[0]), int(here[-1])
    low = None if first == 0 else (float(np.nextafter(cuts[first - 1], np.inf)) + 0.0).hex()
    high = None if last == len(cuts) else (float(cuts[last]) + 0.0).hex()
    yield {"feature": feature.name, "low": low, "high": high}
