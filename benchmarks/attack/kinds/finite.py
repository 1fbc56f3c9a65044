"""One question in a finite space, against a loop over all its rows: nearest, none, fewest first, limits, float32."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.attack import asks, draw
from benchmarks.attack.asking import Fault, Outcome, ask
from benchmarks.attack.network import exact
from benchmarks.attack.space import encode, rows, width
from benchmarks.attack.verdict import GAP, RELATIVE, wrong
from benchmarks.attack.world import World
from ifonly.problem import Query


def question(chance: random.Random, *, most: int = 400, reals: bool = True) -> dict[str, Any]:
    """A question about a person in a finite space; real numbers in it are fixed or move in steps."""
    features = draw.space(chance, rows=most)
    if reals and chance.random() < 0.4:
        features.append(draw.real(chance, "r"))
    row = tuple(draw.value(chance, f) for f in features)
    outputs = chance.choice([1, 1, 1, 2, 3])
    layers = draw.network(chance, features, outputs=outputs)
    if chance.random() < 0.2:
        draw.tie(layers, features, tuple(draw.value(chance, f) for f in features))
    held = asks.constraints(chance, features, row)
    if features[-1]["name"] == "r":
        held["mine"] += asks.stepped(chance, features[-1], row, len(features) - 1)
    return {
        "features": features,
        "row": list(row),
        "layers": layers,
        "target": asks.target(chance, outputs),
        "distance": asks.distance(chance, features),
        "order": chance.randrange(100),
        **held,
    }


class Nearest:
    """The nearest row, or that there is none."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        return {**question(chance), "fewest": chance.random() < 0.15}

    def run(self, case: dict[str, Any]) -> Outcome:
        world = World(case)
        answer = ask(self.asked, world, case)
        near = world.favourable()
        if case.get("fewest"):
            return Outcome(answer.status, fewest(world, answer, near))
        return Outcome(answer.status, [*wrong(world, answer, near), *self.more(world, answer)])

    def asked(self, world: World, case: dict[str, Any]) -> Any:
        return world.explainer.using(reasons=False).explain(
            world.case["row"], Query(fewest_first=bool(case.get("fewest"))), **world.asked
        )

    def more(self, world: World, answer: Any) -> list[str]:
        return []


def fewest(world: World, answer: Any, near: Any) -> list[str]:
    """Fewest changes first, then the nearest, of the rows that every rounding accepts: of the answers with bounds, only
    what is called nearest is compared."""
    faults = [] if answer.status == "nearest" else list(wrong(world, answer, None))
    if near and answer.status == "none exists":
        faults.append(f"none exists, but {near[0][1]}")
    if not near or answer.status != "nearest":
        return faults
    sure = [(size, row) for size, row in near if world.sure(row, answer.rounding_bound)]
    if not sure:
        return faults
    changes = [sum(a != b for a, b in zip(world.row, row, strict=True)) for _, row in sure]
    least = min(changes)
    if len(answer.changes) > least:
        faults.append(f"{len(answer.changes)} changes, but {least} are enough")
    best = world.shown(min(size for (size, _), count in zip(sure, changes, strict=True) if count == least))
    if len(answer.changes) == least and answer.upper > best * (1 + RELATIVE + GAP):
        faults.append(f"fewest at {answer.upper!r}, but {best!r} exists")
    return faults


class Limited(Nearest):
    """The same under limits: whatever is said must still hold."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        limits = chance.choice(
            [
                {"nodes": chance.randint(1, 30)},
                {"seconds": 10.0 ** chance.uniform(-6, -2)},
                {"memory_bytes": chance.randint(1, 10**5)},
            ]
        )
        return {**question(chance, most=200), "limits": limits}

    def asked(self, world: World, case: dict[str, Any]) -> Any:
        import ifonly

        return world.explainer.using(reasons=False).explain(
            world.case["row"], **world.asked, limits=ifonly.Limits(**case["limits"])
        )


class Float32(Nearest):
    """Models that compute in float32, sums in any order, and what they lose below the least normal number."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        import numpy as np

        case = question(chance, most=80, reals=False)
        outputs = len(case["layers"][-1]["b"])
        case["layers"] = draw.network(chance, case["features"], outputs=outputs, tame=True)
        tiny = chance.choice([1.0, 1.0, 1e-6, 1e-20, 1e-30, 1e6])
        for layer in case["layers"]:
            layer["w"] = [[float(np.float32(w * tiny)) for w in row] for row in layer["w"]]
            layer["b"] = [float(np.float32(b * tiny)) for b in layer["b"]]
        return {**case, "precision": "float32"}

    def more(self, world: World, answer: Any) -> list[str]:
        return off(world)


def off(world: World) -> list[str]:
    """Is E a bound on what the deployed model's rounding does?"""
    error = ask(lambda: world.model.error).tolist()
    domains = world.domains([*world.constraints])
    if domains is None:
        return []
    every = list(rows(domains))
    for row in every[:: max(1, len(every) // 20)]:
        for said, true, most in zip(
            world.deployed.scores(row), exact(world.layers, encode(world.features, row)), error, strict=True
        ):
            if abs(said) < float("inf") and abs(float(said) - true) > most:
                return [f"the deployed model says {said!r} of {row}, exactly {float(true)!r}, and E is {most!r}"]
    return []


class Flat(Nearest):
    """Scores that sit exactly on the margin over a region: dead and cancelling neurons, wide integers."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        many = chance.randint(1, 3)
        upper = chance.choice([10, 100, 10**4]) if many > 1 else 10**5
        features = [{"kind": "integer", "name": f"x{i}", "lower": 0, "upper": upper, "step": 1} for i in range(many)]
        n = sum(map(width, features))
        w = [[float(chance.randint(-3, 3)) for _ in range(n)] for _ in range(2)]
        how = chance.choice(["dead", "cancel", "relu"])
        layers: list[dict[str, Any]]
        if how == "dead":
            layers = [{"w": w, "b": [-1e9, -1e9]}, {"w": [[1.0, 1.0]], "b": [0.0]}]
        elif how == "cancel":
            layers = [{"w": [w[0], w[0]], "b": [1.0, 1.0]}, {"w": [[2.0, -2.0]], "b": [0.0]}]
        else:
            layers = [{"w": [w[0]], "b": [float(-chance.randint(0, upper))]}, {"w": [[1.0]], "b": [0.0]}]
        margin = chance.choice([0.0, 0.0, 1e-6])
        return {
            "features": features,
            "row": [chance.randint(0, upper) for _ in range(many)],
            "layers": layers,
            "target": {"class": chance.randint(0, 1), "margin": margin},
            "distance": {"norm": chance.choice(["l1", "l2", "linf", "l0"])},
            "order": 0,
        }


__all__ = ["Fault", "Flat", "Float32", "Limited", "Nearest", "question"]
