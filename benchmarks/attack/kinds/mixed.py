"""Real numbers with room, wide integers, many options, many features: no loop can list the rows.

Every answer is checked exactly. Its bound is attacked with rows: those of another method (a MIP), of chance, between
the person and the answer, and beside the answer. Linear models of one wide integer are solved by hand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from benchmarks.attack import asks, draw
from benchmarks.attack.asking import Fault, Outcome, Refused, ask
from benchmarks.attack.network import exact
from benchmarks.attack.space import Row, encode, is_number, options
from benchmarks.attack.verdict import wrong
from benchmarks.attack.world import World, snapped

SECONDS = 3.0


class Mixed:
    """Reals, integers and options together, with a MIP as a second opinion."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = draw.space(chance, rows=200)[:3]
        features += [draw.real(chance, f"r{i}") for i in range(chance.randint(1, 3))]
        chance.shuffle(features)
        row = tuple(draw.value(chance, f) for f in features)
        outputs = chance.choice([1, 1, 2, 3])
        tame = chance.random() < 0.7
        held = asks.constraints(chance, features, row, 2)
        return {
            "features": features,
            "row": list(row),
            "layers": draw.network(chance, features, outputs=outputs, tame=tame),
            "target": asks.target(chance, outputs),
            "distance": asks.distance(chance, features, costs=tame),
            "order": chance.randrange(100),
            **held,
            "mip": chance.random() < 0.5,
            "chance": chance.randrange(2**30),
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        world = World(case)
        limits = ifonly.Limits(seconds=SECONDS)
        answer = ask(world.explainer.using(reasons=False).explain, case["row"], **world.asked, limits=limits)
        faults = list(wrong(world, answer, None))
        rivals = list(tried(world, answer, random.Random(case.get("chance", 0))))
        if case.get("mip"):
            second = self.second(world, case, limits)
            if second is not None and second.counterfactual is not None:
                rivals.append(tuple(second.counterfactual.values()))
        faults += beaten(world, answer, rivals)
        return Outcome(answer.status, faults)

    def second(self, world: World, case: dict[str, Any], limits: Any) -> Any:
        """What a MIP says; its word on bounds is its own affair, its rows count."""
        import ifonly

        try:
            return ask(
                world.explainer.using(ifonly.methods.MipObj(), reasons=False).explain,
                case["row"],
                **world.asked,
                limits=limits,
            )
        except Refused:
            return None
        except Fault as fault:
            if "Contradiction" in str(fault):  # a solver's bound, above its own row by the solver's tolerance
                return None
            raise


def beaten(world: World, answer: Any, rivals: list[Row]) -> list[str]:
    """Is one of these rows allowed, surely decided as asked, and nearer than what is called proven?"""
    for row in rivals:
        if row == world.row:
            continue
        far = world.shown(world.size(row))
        near = far < answer.lower * (1 - 1e-9) and world.allowed(row, world.constraints)
        if near and world.met(row) and world.sure(row, answer.rounding_bound):
            scores = [float(s) for s in exact(world.layers, encode(world.features, row))]
            return [f"{answer.status}, nothing nearer than {answer.lower!r}, but {row} at {far!r} with scores {scores}"]
    return []


def tried(world: World, answer: Any, chance: random.Random, many: int = 150) -> Iterator[Row]:
    """Rows that might be nearer: of chance, between person and answer, beside the answer."""
    features, before = world.features, world.row
    for _ in range(many):
        row = list(before)
        for at in chance.sample(range(len(features)), chance.randint(1, len(features))):
            row[at] = draw.value(chance, features[at])
            if is_number(features[at]) and chance.random() < 0.7:
                row[at] = snapped(features[at], before[at] + (row[at] - before[at]) * 10 ** -chance.uniform(0, 6))
        yield tuple(row)
    if answer.counterfactual is None:
        return
    after = tuple(answer.counterfactual.values())
    some = chance.sample(range(len(features)), min(len(features), 12))
    for at in some:
        feature = features[at]
        yield (*after[:at], before[at], *after[at + 1 :])
        for option in (options(feature) or ())[:20]:
            yield (*after[:at], option, *after[at + 1 :])
    for share in [k / 20 for k in range(1, 20)] + [1 - 10.0**-k for k in range(2, 9)]:
        yield tuple(_part(f, a, b, share) for f, a, b in zip(features, before, after, strict=True))
        for at in some:
            if is_number(features[at]) and after[at] != before[at]:
                yield (*after[:at], _part(features[at], before[at], after[at], share), *after[at + 1 :])


def _part(feature: Any, a: Any, b: Any, share: float) -> Any:
    return snapped(feature, a + (b - a) * share) if is_number(feature) else b


class Wide(Mixed):
    """Integers up to 10**9, five hundred options, three hundred features."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        how = chance.choice(["integer", "integer", "options", "features"])
        features: list[dict[str, Any]] = []
        if how == "integer":
            low, high = chance.choice([(0, 10**9), (-(10**9), 10**9), (10**9, 2 * 10**9), (0, 10**8), (0, 2**40)])
            features = [
                {"kind": "integer", "name": "x0", "lower": low, "upper": high, "step": chance.choice([1, 1, 7])}
            ]
            features[0]["upper"] -= (high - low) % features[0]["step"]
            if chance.random() < 0.5:
                features.append(draw.integer(chance, "x1", 5))
        elif how == "options":
            named = [f"o{i}" for i in range(500)]
            features = [
                {
                    "kind": "categorical",
                    "name": "x0",
                    "categories": named,
                    "encoding": chance.choice(["onehot", "code"]),
                }
            ]
            features.append({"kind": "ordinal", "name": "x1", "levels": named[:200], "encoding": "thermometer"})
        else:
            features = [draw.integer(chance, f"x{i}", 6) if i % 2 else draw.real(chance, f"x{i}") for i in range(300)]
        row = [draw.value(chance, f) for f in features]
        layers = draw.network(chance, features, tame=True)
        if how == "integer" and chance.random() < 0.6:
            layers = [{"w": [[chance.choice([1.0, -1.0, 0.001, 1e-6, 3.0])] + [1.0] * (len(features) - 1)], "b": [0.0]}]
            draw.tie(layers, features, tuple(draw.value(chance, f) for f in features))
        mine = [c for c in [asks.constraint(chance, features, tuple(row))] if c and c["is"] != "rule"]
        case: dict[str, Any] = {"features": features, "row": row, "layers": layers, "target": None, "order": 0}
        norm = chance.choice(["l1", "linf", "l2", "l0"])
        return {
            **case,
            "distance": {"norm": norm},
            "mine": mine if chance.random() < 0.4 else [],
            "chance": chance.randrange(2**30),
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        told = super().run(case)
        if len(case["layers"]) == 1 and case["features"][0]["kind"] == "integer" and not case.get("mine"):
            import ifonly

            world = World(case)
            answer = ask(
                world.explainer.using(reasons=False).explain,
                case["row"],
                **world.asked,
                limits=ifonly.Limits(seconds=SECONDS),
            )
            near = sorted((world.size(row), row) for row in by_hand(world) if world.met(row))
            told.faults += wrong(world, answer, near)
        return told


def by_hand(world: World) -> Iterator[Row]:
    """Of a linear model: for each value of the other features, the wide integer just at the boundary."""
    from benchmarks.attack.space import rows, values

    wide, *rest = world.features
    weights, bias = world.layers[0]["w"][0], world.layers[0]["b"][0]
    step, low, high = wide["step"], wide["lower"], wide["upper"]
    for others in rows([values(f) or [0] for f in rest]):
        x = encode(rest, others)
        constant = Fraction(bias) + sum(
            (Fraction(w) * Fraction(v) for w, v in zip(weights[1:], x, strict=True)), Fraction(0)
        )
        places = [world.row[0]]
        for margin in (Fraction(0), Fraction(world.target["margin"]), -Fraction(world.target["margin"])):
            at = (margin - constant) / Fraction(weights[0]) if weights[0] else Fraction(low)
            middle = low + (int(at) - low) // step * step
            places += [middle + k * step for k in range(-2, 4)]
        for place in places:
            if low <= place <= high:
                yield (place, *others)
