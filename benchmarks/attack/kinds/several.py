"""Questions with more than one row in the answer: diverse sets, reasons, audits; against loops over finite spaces."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from benchmarks.attack import asks, draw
from benchmarks.attack.asking import Outcome, ask
from benchmarks.attack.constraints import Constraint, merged
from benchmarks.attack.distance import measure, scale
from benchmarks.attack.kinds.finite import question
from benchmarks.attack.kinds.mixed import beaten, tried
from benchmarks.attack.space import Row, decimal, is_number
from benchmarks.attack.verdict import wrong
from benchmarks.attack.world import World


class Diverse:
    """Sets of answers, each the nearest that differs from the earlier ones, and how they end."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        case = question(chance, most=chance.choice([60, 300, 1000]), reals=chance.random() < 0.3)
        if chance.random() < 0.5:
            case = lattice_question(chance)
        differ = chance.choice(["distance", "distance", "features", "values"])
        if differ == "distance" and case["distance"]["norm"] == "l2":
            case["distance"]["norm"] = "l1"
        case["target"] = None if len(case["layers"][-1]["b"]) == 1 else {"other": True, "margin": 1e-6}
        apart = chance.choice([0.1, 0.1, 0.05, 0.01, 0.2, 0.25, 0.3, 0.5, 0.6, 1.0, round(chance.random(), 3) + 0.001])
        if chance.random() < 0.3:  # a distance that rows of the lattice have
            features = case["features"]
            two = [tuple(draw.value(chance, f) for f in features) for _ in range(2)]
            apart = float(measure(features, two[0], two[1], case["distance"], symmetric=True)) or apart
        return {**case, "k": chance.randint(2, 5), "apart": apart, "differ": differ}

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        world = World(case)
        told = ask(
            world.explainer.using(limits=ifonly.Limits(nodes=20_000)).explain_diverse, case["row"],
            ifonly.Diversity(case["k"], apart=case["apart"], differ=case["differ"]), **world.asked,
        )  # fmt: skip
        near = world.favourable()
        faults: list[str] = []
        earlier: list[Row] = []
        for i, answer in enumerate(told):
            left = None if near is None else [pair for pair in near if differs(world, case, pair[1], earlier)]
            faults += [f"answer {i + 1}: {fault}" for fault in wrong(world, answer, left) if "already" not in fault]
            row = tuple(answer.counterfactual[f["name"]] for f in world.features)
            if not differs(world, case, row, earlier):
                faults.append(f"answer {i + 1}: {row} does not differ from {earlier}")
            earlier.append(row)
        if told.ended is not None and near is not None:
            left = [pair for pair in near if differs(world, case, pair[1], earlier)]
            faults += [f"the end: {fault}" for fault in wrong(world, told.ended, left) if "already" not in fault]
        elif told.ended is None and len(told) < case["k"]:
            faults.append(f"{len(told)} of {case['k']} answers, and no end")
        return Outcome("proven" if told.proven else "open", faults)


class DiverseReals:
    """Sets of answers where real numbers may change: each row right, different from the others, and none skipped."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = draw.space(chance, rows=50)[:2] + [draw.real(chance, f"r{i}") for i in range(chance.randint(1, 2))]
        row = tuple(draw.value(chance, f) for f in features)
        held = asks.constraints(chance, features, row, 2)
        everybody = [c for c in held["everybody"] if c["is"] == "fixed"]
        if everybody and chance.random() < 0.7:
            held["mine"].append({"is": "free", "of": everybody[0]["of"]})
        return {
            "features": features,
            "row": list(row),
            "layers": draw.network(chance, features, tame=True),
            "target": None,
            "distance": {"norm": chance.choice(["l1", "linf"])},
            "order": 0,
            **held,
            "k": chance.randint(2, 3),
            "apart": chance.choice([0.01, 0.1, 0.25, 1e-6]),
            "differ": chance.choice(["distance", "features", "values"]),
            "chance": chance.randrange(2**30),
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        world = World(case)
        told = ask(
            world.explainer.using(limits=ifonly.Limits(seconds=1.0)).explain_diverse, case["row"],
            ifonly.Diversity(case["k"], apart=case["apart"], differ=case["differ"]), **world.asked,
        )  # fmt: skip
        faults: list[str] = []
        earlier: list[Row] = []
        for i, answer in enumerate([*told, *([told.ended] if told.ended is not None else [])]):
            faults += [f"answer {i + 1}: {fault}" for fault in wrong(world, answer, None) if "already" not in fault]
            rivals = [
                row for row in tried(world, answer, random.Random(case["chance"])) if far(world, case, row, earlier)
            ]
            faults += [f"answer {i + 1}: {fault}" for fault in beaten(world, answer, rivals)]
            if answer.counterfactual is not None:
                row = tuple(answer.counterfactual.values())
                if any(row == other for other in earlier):
                    faults.append(f"answer {i + 1}: {row} once more")
                earlier.append(row)
        return Outcome("proven" if told.proven else "open", faults)


def far(world: World, case: dict[str, Any], row: Row, earlier: Sequence[Row]) -> bool:
    """Differs, and where it is a length, by a little more than asked: real numbers keep 1e-12 clear of it."""
    more = {**case, "apart": case["apart"] * (1 + 1e-6) + 1e-9}
    return differs(world, more, row, earlier)


def lattice_question(chance: random.Random) -> dict[str, Any]:
    """Whole numbers, a plain boundary, few constraints: many rows, many of them exactly as far from one another."""
    many = chance.randint(1, 3)
    upper = {1: 1000, 2: 40, 3: 12}[many]
    features = [
        {"kind": "integer", "name": f"x{i}", "lower": 0, "upper": chance.randint(1, upper), "step": 1}
        for i in range(many)
    ]
    row = [draw.value(chance, f) for f in features]
    w = [chance.choice([0.0, 0.5, 1.0, -1.0, 2.0]) for _ in features]
    edge = sum(a * b for a, b in zip(w, (draw.value(chance, f) for f in features), strict=True)) - 0.01
    case = {"features": features, "row": row, "layers": [{"w": [w], "b": [-edge]}], "order": 0}
    held: dict[str, Any] = {"rules": [], "everybody": [], "mine": []}
    if chance.random() < 0.3:
        held = asks.constraints(chance, features, tuple(row), 2)
    return {**case, "distance": {"norm": chance.choice(["l1", "l1", "linf", "l0"])}, **held}


def differs(world: World, case: dict[str, Any], row: Row, earlier: Sequence[Row]) -> bool:
    """Does the row differ from each earlier one, by the decimals as they are written?"""
    return all(_differs(world, case, row, other) for other in earlier)


def _differs(world: World, case: dict[str, Any], row: Row, other: Row) -> bool:
    if case["differ"] == "features":
        return any(y != x and z == x for x, y, z in zip(world.row, other, row, strict=True))
    if case["differ"] == "values":
        for feature, a, b in zip(world.features, row, other, strict=True):
            if a != b and feature["kind"] != "real":
                return True
            if a != b and float(abs(decimal(a) - decimal(b)) / written_scale(feature, world.distance)) >= case["apart"]:
                return True  # worked out exactly and rounded once, as docs/diversity.md says
        return False
    spec = world.distance
    written = {
        **spec,
        "weights": {name: decimal(float(w)) for name, w in spec.get("weights", {}).items()},
        "scales": {f["name"]: written_scale(f, spec) for f in world.features if is_number(f)},
    }
    if isinstance(spec["norm"], dict):
        written["norm"] = {name: decimal(float(share)) for name, share in spec["norm"].items()}
    one, two = (
        tuple(decimal(v) if f["kind"] == "real" else v for f, v in zip(world.features, r, strict=True))
        for r in (other, row)
    )
    far = measure(world.features, one, two, written, symmetric=True)
    return float(far) >= case["apart"]


def written_scale(feature: dict[str, Any], spec: dict[str, Any]) -> Fraction:
    """The scale of a number, by the decimals of its bounds."""
    given = spec.get("scales", {}).get(feature["name"])
    if given is not None:
        return decimal(float(given))
    if feature["kind"] == "integer":
        return scale(feature, spec)
    return decimal(float(feature["upper"])) - decimal(float(feature["lower"])) or Fraction(1)


class Reasons:
    """Why there is none: blame rules it out and is minimal, relaxations help and are the nearest."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        case = question(chance, most=150, reals=False)
        row = tuple(case["row"])
        for _ in range(chance.randint(1, 4)):
            more = asks.constraint(chance, case["features"], row)
            if more is not None:
                case["mine"].append(more)
        case["target"] = None if len(case["layers"][-1]["b"]) == 1 else {"other": True, "margin": 1e-6}
        return case

    def run(self, case: dict[str, Any]) -> Outcome:
        world = World(case)
        answer = ask(world.explainer.explain, case["row"], **world.asked)
        faults = list(wrong(world, answer, world.favourable()))
        if answer.status != "none exists" or faults:
            return Outcome(answer.status, faults)
        held = ask(world.explainer.constraints_for, world.asked["constraints"])
        said = [c.describe() for c in held]
        mine = list(merged(world.rules, world.everybody, case["mine"]))
        if len(set(said)) < len(said) or len(said) != len(mine):
            return Outcome("none, not told apart", [])
        return Outcome("none, with reasons", why(world, answer.reasons, dict(zip(said, mine, strict=True))))


def why(world: World, reasons: Any, held: dict[str, Constraint]) -> list[str]:
    """What is false about reasons; `held` are the constraints by what they are called."""

    def left(names: Sequence[str]) -> list[tuple[Fraction, Row]]:
        return world.favourable([held[name] for name in names]) or []

    faults = []
    blame = list(reasons.blame)
    if left(blame):
        faults.append(f"{blame} are blamed, but leave {left(blame)[0][1]}")
    if reasons.minimal:
        faults += [f"{name!r} is blamed, but not needed" for name in blame if not left([b for b in blame if b != name])]
    for relaxation in reasons.relaxations:
        rows = left([name for name in held if name not in relaxation.dropped])
        if not rows:
            faults.append(f"without {relaxation.dropped} there is still none")
            continue
        error = 4.0 * float(ask(lambda: world.model.error).max())  # of a difference of two scores, with caution
        robust = next(((size, row) for size, row in rows if world.sure(row, error)), None)
        if robust is not None and relaxation.lower > world.shown(robust[0]) * (1 + 1e-9):
            faults.append(f"without {relaxation.dropped} {robust[1]} is nearer than {relaxation.lower}")
        elif relaxation.distance < world.shown(rows[0][0]) * (1 - 1e-9):
            faults.append(f"without {relaxation.dropped} nothing is as near as {relaxation.distance}")
    if not reasons.note:
        dropped = {relaxation.dropped for relaxation in reasons.relaxations}
        single = [name for name in held if left([other for other in held if other != name])]
        missing = [name for name in single if (name,) not in dropped]
        if missing:
            faults.append(f"{missing} would help, but are not named")
    return faults


class Audit:
    """Recourse over a population: who needs it, who has it, at what cost, by group."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        case = question(chance, most=100, reals=False)
        outputs = len(case["layers"][-1]["b"])
        case["target"] = {"class": chance.randrange(max(2, outputs)), "margin": chance.choice([1e-6, 0.0])}
        case["distance"] = {"norm": "l1"}
        people = [[draw.value(chance, f) for f in case["features"]] for _ in range(chance.randint(1, 8))]
        for constraints in (case["rules"], case["everybody"], case["mine"]):  # those that speak of one person only
            constraints[:] = [c for c in constraints if c["is"] not in ("by", "percent", "steps")]
        labels = [chance.choice([1, "1", True, "b", None, 0, False, 2.5]) for _ in people]
        return {**case, "people": people, "labels": labels}

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        world = World(case)
        answers = ask(world.explainer.explain_many, case["people"], **world.asked)
        labels = case["labels"][: len(case["people"])]
        told = ask(ifonly.audit, answers, by=labels)
        faults: list[str] = []
        true: Counter[str] = Counter()
        by: Counter[Any] = Counter((type(label).__name__, label) for label in labels)
        for i, (person, answer) in enumerate(zip(case["people"], answers, strict=True)):
            one = World({**case, "row": person})
            near = one.favourable()
            faults += [f"person {i}: {fault}" for fault in wrong(one, answer, near)]
            true["unneeded" if one.settled else "recourse" if near else "without"] += 1
        everybody = told.everybody
        if not everybody.unknown:
            for name in ("unneeded", "recourse", "without"):
                if getattr(everybody, name) != true[name]:
                    faults.append(f"{getattr(everybody, name)} {name}, but {true[name]}")
        names = [group.name for group in told.groups]
        whole = sum(group.people for group in told.groups) == len(labels) and len(set(names)) == len(names)
        if not whole or not len(set(map(str, by))) >= len(names) >= min(1, len(labels)):
            faults.append(f"groups {[(g.name, g.people) for g in told.groups]} of {labels}")
        return Outcome("counted", faults)
