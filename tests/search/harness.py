"""The kernels, callable from Python, and random nodes to call them on.

Kernels are compiled without a Python wrapper. `compiled` builds the same function once more, with one: only the
outermost function is compiled again, what it calls is the very code that the search runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.model import Network, network_model
from ifonly.problem import ClassTarget, Distance, Question, Rule, lower
from ifonly.problem.costs import People as Allowed
from ifonly.problem.lowering import Lowered
from ifonly.schema import Categorical, Feature, Integer, Ordinal, Real, Schema
from ifonly.solvers.search.batch import PackedQuestion
from ifonly.solvers.search.error_bounds import errors_everywhere
from ifonly.solvers.search.kernels import closed_forms, layout, network, node
from ifonly.solvers.search.kernels.layout import (
    BASE,
    CHOICE,
    FIRST,
    INTEGER,
    KIND,
    MAXIMUM,
    START,
    Pack,
    PackedPerson,
    Scratch,
)
from ifonly.solvers.search.pack import hidden_neurons, new_scratch, pack_question, units
from ifonly.solvers.search.smooth.kernels.layout import SOURCES
from ifonly.tolerances import DEFAULT
from kernel_cache import cached

Floats = NDArray[np.float64]
Rng = np.random.Generator

DISTANCES: tuple[Any, ...] = ("l0", "l1", "l2", "linf", {"l0": 0.3, "l1": 0.7})
"""All that a distance can be, the mixture last."""
IDS = ("l0", "l1", "l2", "linf", "mixture")


@cache
def compiled(kernel: Any) -> Callable[..., Any]:
    """The kernel with a Python wrapper."""
    options = {name: value for name, value in layout.OUTER.items() if name != "cache"}
    return cached(SOURCES, **options)(kernel.py_func)


# ---------------------------------------------------------------------------------------------- random questions


def random_schema(rng: Rng, *, numbers: bool = False) -> Schema:
    """A few features of every kind; only real numbers with `numbers`."""
    features: list[Feature] = []
    for i in range(int(rng.integers(2, 7))):
        kind = (
            "real" if numbers else rng.choice(["real", "integer", "ordinal", "categorical"], p=[0.4, 0.3, 0.15, 0.15])
        )
        low = float(rng.choice([0.0, -2.0, 17.0]))
        match kind:
            case "real":
                features.append(Real(f"f{i}", low, low + float(rng.choice([1.0, 3.0, 250.0]))))
            case "integer":
                step = int(rng.choice([1, 1, 3]))
                features.append(Integer(f"f{i}", int(low), int(low) + step * int(rng.integers(1, 30)), step))
            case "ordinal":
                features.append(Ordinal(f"f{i}", [f"level {k}" for k in range(int(rng.integers(2, 5)))]))
            case _:
                features.append(Categorical(f"f{i}", [f"option {k}" for k in range(int(rng.integers(2, 5)))]))
    return Schema(features)


def random_network(rng: Rng, schema: Schema, hidden: tuple[int, ...], outputs: int = 1) -> Network:
    """A network whose pre-activations change sign over the schema, whatever the units of its numbers."""
    encoded = schema.encode(schema.sample(200, rng))
    centre, spread = encoded.mean(axis=0), np.where(np.ptp(encoded, axis=0) > 0, np.ptp(encoded, axis=0), 1.0)
    widths = [len(schema.columns), *hidden, outputs]
    layers = []
    for a, b in zip(widths[:-1], widths[1:], strict=True):
        layers.append((rng.normal(size=(b, a)) * math.sqrt(2.0 / a), 0.3 * rng.normal(size=b)))
    first, bias = layers[0]
    layers[0] = (2.0 * first / spread, bias - 2.0 * first @ (centre / spread))
    return Network.of(layers)


def random_distance(rng: Rng, schema: Schema, norm: Any) -> Distance:
    weights = {name: float(rng.uniform(0.3, 3.0)) for name in schema.names if rng.random() < 0.5}
    return Distance(norm, weights)


def random_rule(rng: Rng, schema: Schema) -> Rule:
    """A linear inequality over some numbers, or one that follows from an option; most rows keep it, not all."""
    points = schema.sample(200, rng)
    numbers = [g for g, feature in enumerate(schema.features) if isinstance(feature, Real | Integer)]
    chosen = rng.choice(numbers, size=min(len(numbers), int(rng.integers(1, 4))), replace=False) if numbers else []
    factors = rng.choice([-3, -2, -1, 1, 2, 3], size=len(chosen))
    limit = int(np.quantile(points[:, chosen] @ factors, rng.uniform(0.5, 0.9))) if len(chosen) else 0
    left = " + ".join(f"{factor} * {schema.names[g]}" for factor, g in zip(factors, chosen, strict=True))
    options = [feature for feature in schema.features if isinstance(feature, Ordinal | Categorical)]
    if not options or (len(chosen) and rng.random() < 0.5):
        return Rule(f"{left} <= {limit}")
    one = options[rng.integers(len(options))]
    premise = f"{one.name} = '{one.options[rng.integers(len(one.options))]}'"
    if len(chosen):
        return Rule(f"if {premise} then {left} <= {limit}")
    return Rule(f"not {premise}")


# ---------------------------------------------------------------------------------------------- random nodes


@dataclass
class Node:
    """A box of one person's space inside a ball, as `evaluate` meets it, and everything that its kernels fill."""

    lowered: Lowered
    allowed: Allowed
    pack: Pack
    person: PackedPerson
    scratch: Scratch
    lo: Floats
    hi: Floats
    mask: NDArray[np.uint8]
    budget: float
    """The ball's cost (l2: squared distance)."""
    zl: Floats = field(init=False)
    zu: Floats = field(init=False)
    base_cost: float = math.nan
    items: int = 0

    def __post_init__(self) -> None:
        hidden = hidden_neurons(self.pack)
        self.zl, self.zu = np.full(hidden, -math.inf), np.full(hidden, math.inf)

    @property
    def F(self) -> Floats:  # noqa: N802  (as in the kernels)
        return self.scratch.F

    @property
    def I(self) -> NDArray[np.int64]:  # noqa: E743, N802  (as in the kernels)
        return self.scratch.I

    @property
    def norm(self) -> int:
        return self.pack.norm

    @property
    def base(self) -> Floats:
        """The cheapest corner."""
        return self.F[BASE, : self.lowered.features]

    @property
    def width(self) -> int:
        return int(self.I[FIRST, self.items])

    def clip(self) -> Node:
        kernel = compiled(node.clip_to_ball)
        self.base_cost = kernel(self.pack, self.person, self.budget, self.lo, self.hi, self.mask, self.F[BASE])
        return self

    def make_compact(self) -> Node:
        self.clip()
        kernel = compiled(node.compact)
        self.items = kernel(self.pack, self.person, self.lo, self.hi, self.mask, self.F, self.I, self.scratch.Wc)
        compiled(closed_forms.price_columns)(self.norm, self.items, self.F, self.I)
        return self

    def bound_hidden(self) -> int:
        """Fills zl and zu; returns how many ReLUs are unstable."""
        kernel = compiled(network.bound_layer)
        return sum(
            int(
                kernel(self.pack, layer, layout.ALL_GROUPS, self.person.slack, self.zl, self.zu,
                       self.budget - self.base_cost, self.items, self.F, self.I, self.scratch.Wc)
            )
            for layer in range(self.pack.layers - 1)
        )  # fmt: skip

    # ------------------------------------------------------------------ points, in plain numpy

    def kinds(self) -> NDArray[np.int64]:
        return self.pack.index[KIND, : self.lowered.features]

    def point(self, x: Floats) -> Floats:
        """Internal coordinates (changes and option numbers) as a point of the schema."""
        return np.where(self.kinds() == CHOICE, x, self.allowed.factual[0] + x * units(self.lowered))

    def costs(self, x: Floats) -> Floats:
        """What each of many points costs, feature by feature, by the definition in `problem.costs`."""
        low = self.lowered
        columns = []
        for g, kind in enumerate(self.kinds()):
            if kind == CHOICE:
                columns.append(self.allowed.cost[0, low.start[g] + x[:, g].astype(int)])
            else:
                change = np.abs(x[:, g]) * units(low)[g]
                own = low.jump[g] * (change > 0) + low.rate[g] * change
                columns.append(own**2 if self.norm == layout.SQUARED else own)
        return np.stack(columns, axis=1)

    def cost(self, x: Floats) -> Floats:
        each = self.costs(x)
        return each.max(axis=1) if self.norm == MAXIMUM else each.sum(axis=1)

    def pre_activations(self, x: Floats) -> tuple[Floats, Floats]:
        """All hidden pre-activations of many points, side by side, and the conditions' values."""
        h = self.lowered.unrolled(self.point(x))
        found = []
        for weight, bias in self.lowered.layers[:-1]:
            z = h @ weight.T + bias
            found.append(z)
            h = np.maximum(z, 0.0)
        weight, bias = self.lowered.layers[-1]
        return np.concatenate([*found, np.zeros((len(x), 0))], axis=1), h @ weight.T + bias

    def compact_columns(self, x: Floats) -> Floats:
        """Points of the box as vectors y over the compact columns."""
        y = np.zeros((len(x), self.width))
        for k in range(self.items):
            g = int(self.I[layout.FEATURE, k])
            for c in range(self.I[FIRST, k], self.I[FIRST, k + 1]):
                if self.I[layout.ITEM_KIND, k] != CHOICE:
                    y[:, c] = x[:, g] - self.base[g]
                else:
                    y[:, c] = x[:, g] == self.I[layout.COLUMN, c] - self.pack.index[START, g]
        return y

    def sample(self, count: int, rng: Rng, *, inside: bool = True) -> Floats:
        """Random points of the box, many at its ends and corners; only those in the ball with `inside`."""
        base = self.base.copy()
        x = np.tile(base, (count, 1))
        # a point near the sphere: features move in a random order, each as far as it likes of what it may
        moves = rng.random((count, len(base))) < rng.choice([0.2, 0.5, 1.0], size=(count, 1))
        for g, kind in enumerate(self.kinds()):
            if kind == CHOICE:
                first, last = self.pack.index[START, g : g + 2]
                options = np.flatnonzero(self.mask[first:last])
                new = rng.choice(options, size=count).astype(float)
            else:
                share = np.where(rng.random(count) < 0.3, rng.integers(0, 2, count), rng.random(count))
                new = self.lo[g] + share * (self.hi[g] - self.lo[g])
                new = np.clip(np.round(new) if kind == INTEGER else new, self.lo[g], self.hi[g])
            x[:, g] = np.where(moves[:, g], new, base[g])
        if not inside or math.isinf(self.budget):
            return x
        for _ in range(12):  # pull what is outside towards the base
            outside = self.cost(x) > self.budget
            if not outside.any():
                break
            for g, kind in enumerate(self.kinds()):
                if kind == CHOICE:
                    x[outside & (rng.random(count) < 0.3), g] = base[g]
                else:
                    pulled = base[g] + (x[:, g] - base[g]) * rng.choice([0.0, 0.6, 0.9, 0.97], size=count)
                    x[:, g] = np.where(outside, np.trunc(pulled) if kind == INTEGER else pulled, x[:, g])
        return x[self.cost(x) <= self.budget]


def random_node(
    seed: int,
    norm: Any,
    *,
    hidden: tuple[int, ...] | None = None,
    outputs: int = 1,
    numbers: bool = False,
    ball: bool = True,
    whole: bool = False,
    rules: int = 0,
) -> Node:
    """A random question, person, box and ball. `whole`: the box is the whole space; without `ball` the budget is infinite."""
    rng = np.random.default_rng([seed, IDS.index(norm) if isinstance(norm, str) else 4])
    schema = random_schema(rng, numbers=numbers)
    shape = hidden if hidden is not None else tuple(rng.integers(2, 8, int(rng.integers(1, 4))).tolist())
    model = network_model(random_network(rng, schema, shape, outputs), schema)
    question = Question(
        model=model,
        target=ClassTarget(1, margin=0.1),
        distance=random_distance(rng, schema, norm),
        constraints=tuple(random_rule(rng, schema) for _ in range(rules)),
    )
    lowered = lower(question)
    factual = schema.sample(1, rng)
    pack = pack_question(lowered, DEFAULT)
    allowed = lowered.domains(factual)
    people = PackedQuestion.of(lowered, DEFAULT, records=False).batch(allowed, errors_everywhere(lowered)).people
    person = PackedPerson(*(many[0] for many in people))
    lo, hi, mask = person.box[0].copy(), person.box[1].copy(), person.mask.copy()
    if not whole:
        _shrink(rng, pack, lo, hi, mask)
    made = Node(
        lowered=lowered, allowed=allowed, pack=pack, person=person, scratch=new_scratch(pack), lo=lo, hi=hi, mask=mask,
        budget=math.inf,
    )  # fmt: skip
    made.clip()
    if ball:
        far = np.quantile(made.cost(made.sample(200, rng)), 0.5)
        made.budget = float(made.base_cost + rng.choice([0.1, 0.5, 1.0]) * max(far - made.base_cost, 1e-3))
    return made


def _shrink(rng: Rng, pack: Pack, lo: Floats, hi: Floats, mask: NDArray[np.uint8]) -> None:
    """A part of the box such as splits leave: some numbers cut at or away from the factual, some options gone."""
    for g in range(len(lo)):
        if pack.index[KIND, g] == CHOICE:
            first, last = pack.index[START, g : g + 2]
            gone = rng.random(last - first) < 0.3
            gone[rng.integers(last - first)] = False
            mask[first:last][gone] = 0
        elif rng.random() < 0.6:
            ends = np.sort(lo[g] + (hi[g] - lo[g]) * rng.random(2))
            if pack.index[KIND, g] == INTEGER:
                ends = np.round(ends)
            if rng.random() < 0.4 and lo[g] <= 0.0 <= hi[g]:
                ends[int(rng.integers(2))] = 0.0
                ends.sort()
            lo[g], hi[g] = ends
