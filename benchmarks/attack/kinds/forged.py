"""Certificates: what `certify` writes is VALID and true; what is altered, stamp renewed, is never VALID and false.

The truth is looked up by a loop over all rows of the certificate's own question, read here once more from
docs/certificate.md, in rationals.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from benchmarks.attack import asks, draw
from benchmarks.attack.asking import Outcome, ask
from benchmarks.attack.distance import scale
from benchmarks.attack.kinds.edits import alter
from benchmarks.attack.network import Exact
from benchmarks.attack.space import columns, options, rows, values
from benchmarks.attack.world import World

MOST_ROWS = 3000


class Certified:
    """`certify`, then `check`: VALID, and true."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = draw.space(chance, rows=120)
        row = tuple(draw.value(chance, f) for f in features)
        outputs = chance.choice([1, 1, 2, 3])
        drawn = [asks.constraint(chance, features, row) for _ in range(chance.randint(0, 2))]
        margin = chance.choice([1e-6, 0.0, 0.1])
        target: dict[str, Any] = {"class": chance.randrange(max(2, outputs)), "margin": margin}
        if chance.random() < 0.3:
            target = {"score": [round(chance.gauss(0, 1), 1), None], "output": 0, "margin": margin}
        return {
            "features": features,
            "row": list(row),
            "layers": draw.network(chance, features, outputs=outputs, tame=chance.random() < 0.5),
            "target": target,
            "distance": asks.distance(chance, features, costs=False),
            "mine": [c for c in drawn if c and c["is"] in ("fixed", "up", "down", "range", "allowed")],
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        world = World(case)
        made = ask(ifonly.certify, world.explainer.using(limits=ifonly.Limits(nodes=5000)), case["row"], **world.asked)
        told = ask(ifonly.check, made, seconds=10)
        faults = [] if told.verdict == "VALID" else [f"certify wrote what is {told.verdict}: {told.failure}"]
        if told.verdict == "VALID":
            faults += untrue(made.data)
        return Outcome(told.verdict, faults)


class Forged(Certified):
    """Altered certificates: claims, trees, witnesses, questions, layers added, features reordered, weights scaled."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        return {**super().make(chance), "edits": [chance.randrange(2**30) for _ in range(6)]}

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly.certificate.format import stamp

        world = World(case)
        made = ask(ifonly.certify, world.explainer.using(limits=ifonly.Limits(nodes=5000)), case["row"], **world.asked)
        faults: list[str] = []
        valid = 0
        for edit in case["edits"]:
            data = copy.deepcopy(made.data)
            how = alter(random.Random(edit), data)
            data["sha256"] = stamp(data)
            told = ask(lambda data=data: ifonly.check(ifonly.Certificate(data), seconds=2))
            if told.verdict == "VALID":
                valid += 1
                faults += [f"VALID after '{how}', but {fault}" for fault in untrue(data)]
        return Outcome(f"{(valid > 0 and 'some true') or 'all refused'}", faults)


def untrue(data: dict[str, Any]) -> list[str]:
    """What is false about the claim of a certificate, by the words of docs/certificate.md; nothing if it is true."""
    asked, claim = data["question"], data["claim"]
    features = asked["schema"]["features"]
    before = [_number(x) for x in asked["factual"]]
    lower = None if claim["lower"] is None else _cost(_number(claim["lower"]), asked)
    scores = _scores(asked)
    for row in _allowed(asked, features, before):
        if not _favourable(asked, features, row, scores):
            continue
        cost = _distance(asked, features, before, row)
        if lower is None:
            return [f"{row} is favourable where none is to be"]
        if cost < lower:
            return [f"{row} costs {float(cost)!r}, less than {claim['lower']}"]
    witness = data["witness"]
    if witness is None:
        return ["an upper bound without a witness"] if claim["upper"] is not None else []
    there = [_number(x) for x in witness]
    if _distance(asked, features, before, there) > _cost(_number(claim["upper"]), asked):
        return [f"the witness is farther than {claim['upper']}"]
    return [] if _favourable(asked, features, there, scores) else ["the witness is not favourable"]


def _number(x: Any) -> Fraction:
    return Fraction(float.fromhex(x)) if isinstance(x, str) else Fraction(x)


def _cost(far: Fraction, asked: dict[str, Any]) -> Fraction:
    return far * far if asked["distance"]["norm"] == "l2" else far


def _allowed(asked: dict[str, Any], features: list[dict[str, Any]], before: list[Fraction]) -> Iterator[list[Fraction]]:
    """All allowed points; where they are too many, some of them."""
    domains = []
    for g, feature in enumerate(features):
        named = options(feature)
        every = range(len(named)) if named is not None else values(feature)
        if every is None:
            every = [float(feature["lower"]), float(feature["upper"]), float(before[g])]
        domain = [Fraction(v) for v in every[:MOST_ROWS]]
        for c in asked["constraints"]:
            if c["feature"] == (feature["name"] if isinstance(c["feature"], str) else g):
                domain = [v for v in domain if _keeps(c, before[g], v)]
        domains.append(domain)
    for i, row in enumerate(rows(domains)):
        if i > MOST_ROWS:
            return
        yield list(row)


def _keeps(c: dict[str, Any], before: Fraction, after: Fraction) -> bool:
    match c["kind"]:
        case "fixed":
            return after == before
        case "only_up":
            return after >= before
        case "only_down":
            return after <= before
        case "range":
            low, high = c["lower"], c["upper"]
            return (low is None or after >= _number(low)) and (high is None or after <= _number(high))
        case "allowed":
            return after in [Fraction(o) for o in c["options"]]
    raise ValueError(c)


def _scores(asked: dict[str, Any]) -> Exact:
    return Exact([
        {"w": [[_number(w) for w in line] for line in layer["weight"]], "b": [_number(b) for b in layer["bias"]]}
        for layer in asked["model"]["layers"]
    ])  # fmt: skip


def _favourable(asked: dict[str, Any], features: list[dict[str, Any]], row: list[Fraction], exact: Exact) -> bool:
    """Every condition of the target, with the margin, in rationals."""
    x: list[Any] = []
    for feature, v in zip(features, row, strict=True):
        named = options(feature)
        x += columns(feature, named[int(v)]) if named is not None else [v]
    order = asked["schema"].get("columns")
    if order:
        names = [n for f in features for n in column_names(f)]
        x = [x[names.index(name)] for name in order]
    scores = exact(x)
    target = asked["target"]
    margin = _number(target["margin"])
    if "class" in target:
        c = target["class"]
        if len(scores) == 1:
            return (scores[0] if c == 1 else -scores[0]) >= margin
        return all(scores[c] - s >= margin for j, s in enumerate(scores) if j != c)
    s = scores[target["output"]]
    low, high = target["at_least"], target["at_most"]
    return (low is None or s - _number(low) >= margin) and (high is None or _number(high) - s >= margin)


def column_names(feature: dict[str, Any]) -> list[str]:
    """The names of the encoded columns."""
    named = options(feature)
    how = feature.get("encoding", {"ordinal": "thermometer", "categorical": "onehot"}.get(feature["kind"], "code"))
    if named is None or how == "code":
        return [feature["name"]]
    sign = "=" if how == "onehot" else ">="
    return [f"{feature['name']}{sign}{'missing' if o is None else o}" for o in named]


def _distance(
    asked: dict[str, Any], features: list[dict[str, Any]], before: list[Fraction], after: list[Fraction]
) -> Fraction:
    """The cost: the distance, of l2 its square."""
    spec = asked["distance"]
    jump, rate = _number(spec["jump"]), _number(spec["rate"])
    parts = []
    for g, feature in enumerate(features):
        moved = abs(after[g] - before[g])
        size = (Fraction(moved != 0) if feature["kind"] in ("binary", "categorical") else moved) / _number(
            spec["scales"][g]
        )
        parts.append(_number(spec["weights"][g]) * (jump * (moved != 0) + rate * size))
    if spec["norm"] == "l2":
        return sum((p * p for p in parts), Fraction(0)) / len(features)
    return (max(parts) if spec["norm"] == "linf" else sum(parts, Fraction(0))) / len(features)


__all__ = ["Certified", "Forged", "scale"]
