"""One case as objects of ifonly: what is given to ifonly, and what is true of it by plain loops over all rows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from benchmarks.attack import distance, network, target
from benchmarks.attack.constraints import Constraint, allows, built, lattice, merged
from benchmarks.attack.space import Row, columns, count, encode, is_number, rows, values

MOST_ROWS = 12_000
"""Of a space that is listed row by row."""
ROUNDING = 1e-12
"""Of the largest possible sum: by how much a row must clear the margin where its floats may be off by a rounding."""


class World:
    """A case with "features", "layers", "row", "target", "distance", and constraints "rules", "everybody", "mine"."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.features: list[dict[str, Any]] = case["features"]
        self.layers = case["layers"]
        self.row: Row = tuple(
            float(v) if f["kind"] == "real" else v for f, v in zip(self.features, case["row"], strict=True)
        )
        self.distance = case.get("distance", {"norm": "l1"})
        self.deployed = network.Deployed(
            self.features, self.layers, case.get("precision", "float64"), case.get("order", 0)
        )
        self.decided = target.decision(self.deployed.scores(self.row))
        self.target = case.get("target") or {"class": 1 - self.decided, "margin": 1e-6}
        self.rules, self.everybody = self.levels()
        self.constraints = merged(self.rules, self.everybody, case.get("mine", ()))

    def levels(self) -> tuple[list[Constraint], list[Constraint]]:
        """The schema's rules, and those for everybody. Rules of the schema between features are facts, which a person's
        own row lifts and reasons never drop: such rules are asked of everybody, unless all people keep them."""
        rules, everybody = list(self.case.get("rules", ())), list(self.case.get("everybody", ()))
        people = [tuple(row) for row in (self.case["row"], *self.case.get("people", ()))]
        facts = [c for c in rules if c["is"] == "rule" and len(_named(c["rule"], self.features)) > 1]
        moved = [
            c for c in facts
            if self.case["kind"] == "reasons" or not all(allows(c, self.features, one, one) for one in people)
        ]  # fmt: skip
        return [c for c in rules if c not in moved], [*moved, *everybody]

    # ------------------------------------------------------------------ for ifonly

    @cached_property
    def schema(self) -> Any:
        from ifonly.schema.io import schema_from_json

        data: dict[str, Any] = {"format": "ifonly-schema", "version": 1, "features": self.features}
        if self.rules:
            data["rules"] = [built({**c, "object": False}, self.features) for c in self.rules]
        return schema_from_json(data)

    @cached_property
    def model(self) -> Any:
        import ifonly

        net = ifonly.Network.of([(layer["w"], layer["b"]) for layer in self.layers])
        outputs = len(self.layers[-1]["b"])
        classes = () if self.case.get("regression") else tuple(range(max(2, outputs)))
        precision: Any = self.case.get("precision", "float64")
        made = ifonly.Model(
            function=net, schema=self.schema, original=self.deployed, classes=classes, precision=precision
        )
        return made.as_log_odds() if "probability" in self.target else made

    @cached_property
    def explainer(self) -> Any:
        import ifonly

        return ifonly.Explainer(self.model, constraints=self.built(self.everybody))

    def built(self, constraints: Sequence[Constraint]) -> list[Any]:
        return [built(c, self.features) for c in constraints]

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments of a question."""
        import ifonly

        spec = {key: value for key, value in self.distance.items() if key != "transitions"}
        moves: dict[str, dict[Any, float]] = {}
        for name, a, b, cost in self.distance.get("transitions", ()):
            moves.setdefault(name, {})[(a, b)] = cost
        return {
            "target": asked_target(self.case.get("target")),
            "distance": ifonly.Distance(spec.pop("norm"), **spec, transitions=moves),
            "constraints": self.built(self.case.get("mine", ())),
        }

    # ------------------------------------------------------------------ the truth

    def domains(self, constraints: Sequence[Constraint]) -> list[Sequence[Any]] | None:
        """What each feature may be; None where one has too many values to list."""
        found: list[Sequence[Any]] = []
        for feature, value in zip(self.features, self.row, strict=True):
            every = lattice(feature, value, constraints) if feature["kind"] == "real" else values(feature)
            if every is None:
                return None
            found.append(every)
        return found if count(found) <= MOST_ROWS else None

    def met(self, row: Row) -> bool:
        """Does the deployed model decide the row as asked? Where a float may be off by a rounding: surely."""
        return target.met(self.target, self.deployed.scores(row), self.decided, self.slack(row))

    def sure(self, row: Row, rounding_bound: float) -> bool:
        """Is the row's exact score above the margin by the blur? Where a float may be off by a rounding: surely."""
        scores = network.exact(self.layers, encode(self.features, row))
        return target.met(self.target, scores, self.decided, Fraction(rounding_bound) + Fraction(self.slack(row)))

    def slack(self, row: Row) -> float:
        rounded = any(f["kind"] == "real" and a != b for f, a, b in zip(self.features, self.row, row, strict=True))
        if not rounded:
            return 0.0
        h = [abs(x) for x in encode(self.features, row)]
        for layer in self.layers:
            h = [sum(abs(w) * v for w, v in zip(weights, h, strict=True)) + abs(b)
                 for weights, b in zip(layer["w"], layer["b"], strict=True)]  # fmt: skip
        return ROUNDING * max(h)

    @cached_property
    def settled(self) -> bool:
        """Is the person decided as asked already? Then nothing has to change, whatever the rules."""
        return target.stands(self.target, self.deployed.scores(self.row), self.decided)

    def size(self, row: Row) -> Fraction:
        return distance.measure(self.features, self.row, row, self.distance)

    def shown(self, size: Fraction) -> float:
        return distance.shown(size, self.distance)

    def allowed(self, row: Row, constraints: Sequence[Constraint]) -> bool:
        return all(allows(c, self.features, self.row, row) for c in constraints)

    def favourable(self, constraints: Sequence[Constraint] | None = None) -> list[tuple[Fraction, Row]] | None:
        """All allowed rows that are decided as asked, nearest first; None where there are too many rows to list."""
        held = self.constraints if constraints is None else constraints
        domains = self.domains(held)
        if domains is None:
            return None
        found = [(self.size(row), row) for row in rows(domains) if self.allowed(row, held) and self.met(row)]
        if self.settled and not any(row == self.row for _, row in found):
            found.append((Fraction(0), self.row))
        return sorted(found, key=lambda pair: pair[0])


def asked_target(spec: dict[str, Any] | None) -> Any:
    """The target as ifonly takes it."""
    import ifonly

    if spec is None:
        return None
    margin = spec["margin"]
    if "class" in spec:
        return ifonly.ClassTarget(spec["class"], margin)
    if "score" in spec:
        low, high = spec["score"]
        return ifonly.ScoreTarget(at_least=low, at_most=high, output=spec["output"], margin=margin)
    if "probability" in spec:
        return ifonly.ProbabilityTarget(spec["probability"], at_least=spec["at_least"], margin=margin)
    if "one_of" in spec:
        return ifonly.OneOfTarget(spec["one_of"], margin)
    if "other" in spec:
        return ifonly.OtherTarget(margin)
    return ifonly.TopTarget(spec["top"], spec["k"], margin)


def snapped(feature: dict[str, Any], x: float) -> Any:
    """A number of the feature near x."""
    if feature["kind"] == "real":
        return min(max(float(x), float(feature["lower"])), float(feature["upper"]))
    step, low = feature.get("step", 1), feature["lower"]
    with contextlib.suppress(OverflowError, ValueError):
        return low + step * min(max(round((x - low) / step), 0), (feature["upper"] - low) // step)
    return low


__all__ = ["World", "asked_target", "columns", "is_number", "snapped"]


def _named(tree: Any, features: list[dict[str, Any]]) -> set[str]:
    """The features that a rule names."""
    if isinstance(tree, str):
        return {tree} & {feature["name"] for feature in features}
    return set().union(*(_named(part, features) for part in tree)) if isinstance(tree, list | tuple) else set()
