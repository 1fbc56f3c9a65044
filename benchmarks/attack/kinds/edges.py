"""Constraints at their very edge, in decimals: the row at the edge is allowed, decided as asked, and the only one."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from benchmarks.attack.asking import Outcome, ask
from benchmarks.attack.constraints import Constraint
from benchmarks.attack.verdict import wrong
from benchmarks.attack.world import World


class Edges:
    """One number, and the last value that its constraints leave it."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        whole = chance.random() < 0.4
        places = 0 if whole else chance.choice([1, 2, 3])
        unit = Decimal(1).scaleb(-places)
        before = chance.randint(1, 10 ** (places + chance.choice([1, 2, 3]))) * unit
        sign = chance.choice([-1, 1])
        step = chance.randint(1, 30) * unit
        kind = chance.choice(["steps", "by", "percent", "range", "rule"])
        edge = before + sign * step * chance.randint(1, 12)
        held = self.held(chance, kind, before, edge, step)
        if kind == "percent":
            share = chance.randint(1, 150)
            edge = before * (1 + sign * Decimal(share) / 100)
            if whole and edge != int(edge):
                before, edge = Decimal(100), Decimal(100 + sign * share)
            held = [{"is": "percent", "of": "x", "most": str(share)}]
        reach = 3 * abs(edge - before) + 1
        low, high = before - reach, before + reach
        name: dict[str, Any] = {"kind": "integer", "name": "x", "lower": int(low), "upper": int(high), "step": 1}
        if not whole:
            name = {"kind": "real", "name": "x", "lower": float(low), "upper": float(high)}
        clear = float(edge) - sign * float(abs(edge - before)) * chance.choice([0.3, 0.01, 1e-6])
        for one in held:
            one["object"] = one["is"] != "rule" and chance.random() < 0.4
        where = chance.choice(PLACES)
        return {
            "features": [name],
            "row": [int(before) if whole else float(before)],
            "layers": [{"w": [[float(sign)]], "b": [-sign * clear]}],
            "target": {"class": 1, "margin": 0.0},
            "distance": {"norm": chance.choice(["l1", "l2", "linf"])},
            "order": 0,
            "edge": int(edge) if whole else float(edge),
            **{place: held if place == where else [] for place in PLACES},
        }

    def held(self, chance: random.Random, kind: str, before: Decimal, edge: Decimal, step: Decimal) -> list[Constraint]:
        """Constraints whose last allowed value is the edge."""
        away = abs(edge - before)
        ends: dict[str, Any] = (
            {"low": f"{edge:f}", "high": None} if edge < before else {"low": None, "high": f"{edge:f}"}
        )
        if kind == "steps":
            more: Constraint = chance.choice(
                [{"is": "by", "of": "x", "most": f"{away:f}"}, {"is": "range", "of": "x", **ends}]
            )
            return [{"is": "steps", "of": "x", "step": f"{step:f}"}, more]
        if kind == "range":
            return [{"is": "range", "of": "x", **ends}]
        if kind == "rule":
            return [{"is": "rule", "rule": ["sum", [["1", "x"]], ">=" if edge < before else "<=", f"{edge:f}"]}]
        return [{"is": "by", "of": "x", "most": f"{away:f}"}]

    def run(self, case: dict[str, Any]) -> Outcome:
        world = World(case)
        answer = ask(world.explainer.using(reasons=False).explain, case["row"], **world.asked)
        near = world.favourable()
        if near is None:
            row = (case["edge"],)
            fits = world.features[0]["lower"] <= row[0] <= world.features[0]["upper"]
            robustly = fits and world.allowed(row, world.constraints) and world.met(row)
            near = [(world.size(row), row)] if robustly else None
            if near and answer.counterfactual is not None:
                near = None  # something nearer than the edge is fine
        return Outcome(answer.status, list(wrong(world, answer, near)))


PLACES = ("rules", "everybody", "mine")
