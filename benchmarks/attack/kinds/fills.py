"""Missing numbers that may be filled in: scorecards over grids, against a loop over all values in fractions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from benchmarks.attack import distance, draw
from benchmarks.attack.asking import Outcome, ask
from benchmarks.attack.decisions import Decision, Truth, wrong
from benchmarks.attack.space import Feature, Row, decimal, is_number, options, rows, values

CLASSES = ("deny", "approve")
GRIDS = (("0", "0.1"), ("1", "8"), ("0", "500"), ("-0.3", "0.2"), ("1000.5", "0.25"), ("0", "1/8"), ("5", "0.01"),
         ("-7", "3"))  # fmt: skip
"""Lower bound and step, as they are written."""


class Fills:
    """A person who lacks numbers, some of which may become known at a stated cost (docs/missing.md)."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = [number(chance, "x0")]
        for i in range(1, chance.randint(1, 4)):
            made = number(chance, f"x{i}") if chance.random() < 0.6 else draw.choice(chance, f"x{i}", 4)
            features.append(made)
        row = [None if f.get("missing") and chance.random() < 0.7 else draw_value(chance, f) for f in features]
        row[0] = None
        missing_names = [f for f, value in zip(features, row, strict=True) if value is None and is_number(f)]
        filled = [f["name"] for f in missing_names if chance.random() < 0.85]
        ranges = [
            [f["name"], *sorted(draw_value(chance, f) for _ in range(2))]
            for f in features
            if is_number(f) and chance.random() < 0.3
        ]
        cards = {f["name"]: bins(chance, f) for f in features if chance.random() < 0.9 or f is features[0]}
        spec: dict[str, Any] = {"norm": chance.choice(["l0", "l1", "l1", "l2", "linf", {"l0": 0.25, "l1": 0.75}])}
        if chance.random() < 0.4:
            spec["weights"] = {f["name"]: chance.choice([0.5, 2.0, 3.0]) for f in features if chance.random() < 0.5}
        most = sum(max(bin_["points"] for bin_ in card) for card in cards.values()) or 1.0
        return {
            "features": features,
            "row": row,
            "card": {"base": 0, "cutoff": round(most * chance.choice([0.5, 0.7, 0.9, 1.0]), 2), "features": cards},
            "fills": [[name, chance.choice([0.001, 0.1, 0.2, 0.5, 1.0, 1.5])] for name in filled],
            "ranges": ranges,
            "distance": spec,
            "object": chance.random() < 0.5,
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly.schema.io import schema_from_json

        features, before = case["features"], tuple(case["row"])
        schema = schema_from_json({"format": "ifonly-schema", "version": 1, "features": features})
        card = ifonly.Scorecard.from_dict({**case["card"], "classes": list(CLASSES)})
        explainer = ask(ifonly.Explainer, card, schema=schema).using(reasons=False)
        spec = dict(case["distance"])
        answer = ask(
            explainer.explain, dict(zip(schema.names, before, strict=True)), target=CLASSES[1],
            distance=ifonly.Distance(spec.pop("norm"), **spec), constraints=asked_for(case),
        )  # fmt: skip
        truth = Truth(
            features, before, CLASSES[1], lambda every: [decided(case["card"], features, row) for row in every],
            case["distance"], lambda row: measured(case, row), lambda row: kept(case, row),
        )  # fmt: skip
        if truth.decide([before])[0][0] == CLASSES[1]:
            return Outcome("already")
        return Outcome(answer.status, list(wrong(truth, answer, every_row(case))))


def number(chance: random.Random, name: str) -> Feature:
    """A number of few values that may be missing: whole, or on a grid of decimals or fractions, narrow or far away."""
    many = chance.choice([1, 1, 2, 3, 5, 9])
    if chance.random() < 0.3:
        low, step = chance.choice([-3, 0, 1, 17, 1000]), chance.choice([1, 2, 5, 100])
        return {"kind": "integer", "name": name, "lower": low, "upper": low + many * step, "step": step,
                "missing": True}  # fmt: skip
    low, step = chance.choice(GRIDS)
    high = Fraction(low) + many * Fraction(step)
    written: Any = step if "/" in step else float(step)
    return {"kind": "real", "name": name, "lower": float(low), "upper": float(high), "step": written, "missing": True}


def draw_value(chance: random.Random, feature: Feature) -> Any:
    return chance.choice(list(values(feature) or ()))


def bins(chance: random.Random, feature: Feature) -> list[dict[str, Any]]:
    """Bins of one feature: edges on, below and between its values, special values, the missing one."""
    named = options(feature)
    if named is not None:
        return [{"missing": True, "points": points(chance)} if option is None else
                {"is": option, "points": points(chance)} for option in named]  # fmt: skip
    own = list(values(feature) or ())
    edges = sorted(
        {chance.choice(own) + chance.choice([0, 0, 0.05, -0.05, 0.001]) for _ in range(chance.randint(1, 3))}
    )
    made: list[dict[str, Any]] = []
    if chance.random() < 0.2:
        made.append({"is": chance.choice(own), "points": points(chance)})
    made += [{chance.choice(["below", "up_to"]): edge, "points": points(chance)} for edge in edges]
    return [*made, {"missing": True, "points": points(chance)}, {"points": points(chance)}]


def points(chance: random.Random) -> float:
    return chance.choice([0.0, 0.0, 1.0, 5.0, 10.0, 12.5, 20.0, 0.25])


# ---------------------------------------------------------------------- the truth


def every_row(case: dict[str, Any]) -> Iterator[Row]:
    """All rows: a missing number stays so, or has any value where it may be filled in."""
    fillable = {name for name, _ in case["fills"]}
    domains: list[Sequence[Any]] = []
    for feature, value in zip(case["features"], case["row"], strict=True):
        own = list(values(feature) or ())
        if value is None and is_number(feature):
            own = [None, *own] if feature["name"] in fillable else [None]
        domains.append(own)
    return rows(domains)


def decided(card: dict[str, Any], features: Sequence[Feature], row: Row) -> Decision:
    total = Fraction(str(card["base"]))
    for feature, value in zip(features, row, strict=True):
        for bin_ in card["features"].get(feature["name"], ()):
            if holds(bin_, feature, value):
                total += Fraction(str(bin_["points"]))
                break
    return CLASSES[total >= Fraction(str(card["cutoff"]))], 1.0


def holds(bin_: dict[str, Any], feature: Feature, value: Any) -> bool:
    """Is the value in the bin? The first of a card's bins that says so gives the points."""
    if value is None or "missing" in bin_:
        return value is None and "missing" in bin_
    if "is" in bin_:
        return bool(type(bin_["is"]) is type(value) or is_number(feature)) and bool(bin_["is"] == value)
    if "below" in bin_:
        return decimal(value) < decimal(bin_["below"])
    return "up_to" not in bin_ or decimal(value) <= decimal(bin_["up_to"])


def kept(case: dict[str, Any], row: Row) -> bool:
    """Ranges hold of numbers that are there; what may not be filled in stays missing, and what is there stays there."""
    fillable, at = dict(case["fills"]), {f["name"]: i for i, f in enumerate(case["features"])}
    for feature, old, new in zip(case["features"], case["row"], row, strict=True):
        if is_number(feature) and (old is None) != (new is None) and (new is None or feature["name"] not in fillable):
            return False
    return all(row[at[name]] is None or low <= row[at[name]] <= high for name, low, high in case["ranges"])


def measured(case: dict[str, Any], row: Row) -> Fraction:
    """The distance, where filling in counts as its stated change."""
    spec, costs, deltas = case["distance"], dict(case["fills"]), {}
    for feature, old, new in zip(case["features"], case["row"], row, strict=True):
        if old is None and new is not None and is_number(feature):
            deltas[feature["name"]] = Fraction(str(costs[feature["name"]]))
        elif old != new:
            deltas[feature["name"]] = distance.change(feature, old, new, spec)
    return distance.combined(deltas, len(row), spec)


def asked_for(case: dict[str, Any]) -> list[Any]:
    """The constraints, as objects or as sentences."""
    import ifonly

    ranges: list[Any] = [f"{name} in [{low!r}, {high!r}]" for name, low, high in case["ranges"]]
    if case["object"]:
        ranges = [ifonly.Range(name, low, high) for name, low, high in case["ranges"]]
        return [*(ifonly.Imputable(name, change) for name, change in case["fills"]), *ranges]
    return [*(f"{name} may be filled in at {change}" for name, change in case["fills"]), *ranges]
