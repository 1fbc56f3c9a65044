"""The model of a certificate with what is asked of it: a network, trees, or several of these side by side, in integers.

Several networks become one: the hidden neurons of each layer one model after the other. A network with fewer layers
passes its last hidden layer on through ReLUs, which changes nothing, since that is never negative; one without hidden
layers gets one, if another has some. The conditions of several ensembles of trees are those of each, one after the
other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ..format import canonical
from .activations import IDENTITY, Curve
from .layers import (
    MAX_WEIGHTS,
    Integers,
    columns_of,
    fingerprint,
    integers,
    read_network,
    read_target,
    with_hidden_layer,
)
from .reading import CheckBudget, Refusal, entries, listed
from .reading_activations import Curves, read_activations, with_logistic
from .reconstruction import read_reconstruction
from .schema import StatedChoice, StatedSchema
from .softmax import ScoreRows
from .trees import StatedForest, StatedLeaf, read_forest

MAX_MODELS = 64


@dataclass(frozen=True, slots=True)
class StatedModel:
    """A model, and the conditions that its target asks for."""

    network: Integers
    """Of what has no networks, two layers that hold nothing but the literals to come."""
    forest: StatedForest | None
    wanted: str
    """What is asked, in words, with the margin."""
    margins: tuple[float | None, ...]
    words: str
    fingerprint: str
    curves: tuple[tuple[int, int], ...] = ()
    """Of the network's conditions, where those of a probability begin, and how many other classes there are."""
    curved: Curves = ()
    """Of each hidden layer: the neurons that are no ReLUs. Nothing where all are."""


def read_model(
    model: Any, schema: StatedSchema, target: Any, grid: int, meter: CheckBudget, planes: Any = None
) -> StatedModel:
    """The model, checked, with one target: of several models `{"all": [...]}`. `planes`: those of a probability."""
    kind = model.get("kind") if isinstance(model, dict) else None
    if kind == "several":
        return _read_several(model, schema, (target, planes), grid, meter)
    return _read_one(model, schema, (target, planes), grid, meter)


_Target = tuple[Any, Any]
"""A target, and the planes of a probability."""


def _read_one(model: Any, schema: StatedSchema, target: _Target, grid: int, meter: CheckBudget) -> StatedModel:
    kind = model.get("kind") if isinstance(model, dict) else None
    is_curve = isinstance(target[0], dict) and "log_odds" in target[0]
    if kind == "trees":
        forest, wanted, margin = read_forest(model, schema, lambda outputs: _conditions(target, outputs, meter), meter)
        curve = len(model["start"]) - 1 if is_curve else 0
        words = f"Trees: {len(forest.trees)} trees, {forest.leaves} leaves"
        own = hashlib.sha256(canonical(model)).hexdigest()
        forest = replace(forest, curves=((0, curve),) if curve else ())
        return StatedModel(_nothing(schema), forest, _with_margin(wanted, margin), (margin,), words, own)
    if kind == "reconstruction":
        return _read_error(model, schema, target, grid, meter)
    if kind not in ("network", "smooth"):
        raise Refusal(f"there is no kind of model {str(kind)[:60]!r}")
    smooth = ["activations"] if kind == "smooth" else []
    layers = entries(model, "the model", "kind", "layers", *smooth)["layers"]
    stack = read_network(layers, len(schema.columns), meter)
    wanted, margin, rows = _conditions(target, len(stack[-1][1]), meter)
    exponents, weights, biases = integers(stack, rows, margin, grid, meter)
    names: list[str] = []
    curved: Curves = ()
    if smooth:
        names, curved, doubled = read_activations(model["activations"], [len(bias) for _, bias in stack[:-1]], meter)
        weights, biases = with_logistic(weights, biases, doubled, grid, meter)
    network = exponents, weights, biases, columns_of(schema, weights[0], meter)
    sizes = ", ".join(str(len(bias)) for _, bias in stack[:-1]) or "no hidden neurons"
    words = f"Network: {len(schema.columns)} inputs, hidden layers of {sizes}"
    words += f" with {', '.join(names)}" if names else ""
    curves = ((0, len(stack[-1][1]) - 1),) if is_curve else ()
    own = hashlib.sha256(canonical(model)).hexdigest() if smooth else fingerprint(stack, meter)
    return StatedModel(network, None, _with_margin(wanted, margin), (margin,), words, own, curves, curved)


def _read_error(model: Any, schema: StatedSchema, target: _Target, grid: int, meter: CheckBudget) -> StatedModel:
    stack, words = read_reconstruction(model, schema, meter)
    wanted, margin, rows = _conditions(target, len(stack[-1][1]), meter)
    exponents, weights, biases = integers(stack, rows, margin, grid, meter)
    network = exponents, weights, biases, columns_of(schema, weights[0], meter)
    curves = ((0, len(stack[-1][1]) - 1),) if isinstance(target[0], dict) and "log_odds" in target[0] else ()
    own = hashlib.sha256(canonical(model)).hexdigest()
    return StatedModel(network, None, _with_margin(wanted, margin), (margin,), words, own, curves)


def _conditions(target: _Target, outputs: int, meter: CheckBudget) -> tuple[str, float, ScoreRows]:
    """What is asked of a model with so many outputs; None asks for nothing."""
    return ("", 0.0, []) if target[0] is None else read_target(target[0], outputs, target[1], meter)


def _with_margin(wanted: str, margin: float) -> str:
    return f"{wanted} with margin {margin!r}"


def _nothing(schema: StatedSchema) -> Integers:
    columns = tuple(((),) * (len(f.options) if isinstance(f, StatedChoice) else 1) for f in schema.features)
    return (0, 0), ((), ()), ((), ()), columns


# ---------------------------------------------------------------------- several models


def _read_several(
    model: Any, schema: StatedSchema, target_and_planes: _Target, grid: int, meter: CheckBudget
) -> StatedModel:
    target, planes = target_and_planes
    members = listed(entries(model, "the model", "kind", "models")["models"], "the models")
    if not 0 < len(members) <= MAX_MODELS:
        raise Refusal(f"several models are at least one, and at most {MAX_MODELS}")
    targets = listed(entries(target, "the target of several models", "all")["all"], "the targets", len(members))
    if all(one is None for one in targets):
        raise Refusal("the target asks for nothing")
    pairs = zip(members, targets, strict=True)
    read = [_read_one(one, schema, (goal, planes), grid, meter) for one, goal in pairs]
    used = [(k, one) for k, (one, goal) in enumerate(zip(read, targets, strict=True)) if goal is not None]
    own = [one for _, one in used if one.forest is None]
    networks = [one.network for one in own]
    starts = accumulate((len(network[2][-1]) for network in networks), initial=0)
    forests = [one.forest for _, one in used if one.forest is not None]
    words = "; ".join(f"{k}: {one.words[0].lower()}{one.words[1:]}, sha256 {one.fingerprint}"
                      for k, one in enumerate(read))  # fmt: skip
    return StatedModel(
        network=side_by_side(schema, networks, grid, meter) if networks else _nothing(schema),
        forest=_together(forests, meter) if forests else None,
        wanted=" and ".join(f"{one.wanted} by model {k}" for k, one in used),
        margins=tuple(None if goal is None else one.margins[0] for one, goal in zip(read, targets, strict=True)),
        words=f"Several models, numbered from 0: {words}; all of them",
        fingerprint=hashlib.sha256(canonical(model)).hexdigest(),
        curves=tuple((start + n, m) for start, one in zip(starts, own, strict=False) for n, m in one.curves),
        curved=_curved(own),
    )


def _curved(models: list[StatedModel]) -> Curves:
    """Of several networks side by side: the neurons of each hidden layer that are no ReLUs."""
    if not any(one.curved for one in models):
        return ()
    depth, found = max(len(one.network[0]) for one in models), []
    deep = [deepened_curves(one.curved, depth - 1) for one in models]
    for k in range(depth - 1):
        starts = accumulate((_width(one.network, k, depth) for one in models), initial=0)
        found.append({
            start + i: curve for start, own in zip(starts, deep, strict=False) if own for i, curve in own[k].items()
        })  # fmt: skip
    return tuple(found)


def deepened_curves(curved: Curves, layers: int) -> Curves:
    """The same neurons of a network with so many hidden layers, which pass on the values of the last: what may be
    negative as it is, the rest through ReLUs."""
    if not curved:
        return ()
    passing = {i: Curve(IDENTITY) for i, curve in curved[-1].items() if curve.may_be_negative}
    return (*curved, *(passing,) * (layers - len(curved)))


def side_by_side(schema: StatedSchema, networks: list[Integers], grid: int, meter: CheckBudget) -> Integers:
    """Several networks as one, whose conditions are those of each."""
    depth = max(len(exponents) for exponents, *_ in networks)
    widths = [sum(_width(network, k, depth) for network in networks) for k in range(depth)]
    if sum(a * b for a, b in zip(widths[1:], widths, strict=False)) > MAX_WEIGHTS:
        raise Refusal(f"the networks side by side have more than {MAX_WEIGHTS} weights")
    deep = [_deepened(schema, network, depth, grid) for network in networks]
    exponents = tuple(max(one[0][k] for one in deep) for k in range(depth))
    weights: list[tuple[tuple[int, ...], ...]] = []
    for k in range(depth):
        rows: list[tuple[int, ...]] = []
        before, width = 0, widths[k - 1] if k else 0
        for one in deep:
            shift, size = exponents[k] - one[0][k], len(one[2][k - 1]) if k else 0
            for row in one[1][k]:
                meter.keep(64 * (width or len(row)))
                own = tuple(w << shift for w in row)
                rows.append((*(0,) * before, *own, *(0,) * (width - before - size)) if k else own)
            before += size
        weights.append(tuple(rows))
    biases = tuple(
        tuple(b << exponents[k] - one[0][k] for one in deep for b in one[2][k]) for k in range(depth)
    )  # fmt: skip
    columns = tuple(
        tuple(
            tuple(w << exponents[0] - one[0][0] for one in deep for w in one[3][g][c]) for c in range(len(part))
        )
        for g, part in enumerate(deep[0][3])
    )  # fmt: skip
    return exponents, tuple(weights), biases, columns


def _width(network: Integers, k: int, depth: int) -> int:
    """How many neurons a network has in layer k when it has so many layers."""
    sizes = [len(bias) for bias in network[2]]
    return sizes[-1] if k == depth - 1 else sizes[min(k, max(len(sizes) - 2, 0))]


def _deepened(schema: StatedSchema, network: Integers, depth: int, grid: int) -> Integers:
    """The same function with so many layers."""
    if len(network[0]) == 1 < depth:
        network = with_hidden_layer(schema, network, grid)
    exponents, weights, biases, columns = network
    count = len(biases[-2]) if len(exponents) < depth else 0
    same = tuple(tuple(int(i == j) for j in range(count)) for i in range(count))
    while len(exponents) < depth:
        exponents = (*exponents[:-1], 0, exponents[-1])
        weights = (*weights[:-1], same, weights[-1])
        biases = (*biases[:-1], (0,) * count, biases[-1])
    return exponents, weights, biases, columns


def _together(forests: list[StatedForest], meter: CheckBudget) -> StatedForest:
    """Several ensembles as one: each tree adds to the conditions of its own."""
    counts, trees = [len(one.constants) for one in forests], []
    for m, one in enumerate(forests):
        meter.keep(64 * one.leaves * sum(counts))
        before, after = (0,) * sum(counts[:m]), (0,) * sum(counts[m + 1 :])
        trees += [
            tuple(StatedLeaf(leaf.above, leaf.below, leaf.options, (*before, *leaf.adds, *after)) for leaf in tree)
            for tree in one.trees
        ]
    constants = tuple(c for one in forests for c in one.constants)
    units = tuple(unit for one in forests for unit in one.units)
    starts = accumulate(counts, initial=0)
    curves = tuple((s + first, n) for s, one in zip(starts, forests, strict=False) for first, n in one.curves)
    return StatedForest(tuple(trees), constants, sum(one.leaves for one in forests), units, curves)
