"""Is what a certificate says true? Judged from its data alone, by going through every row of a finite space.

Shares no line with either checker: exact fractions, one row after the other.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

MOST_ROWS = 3_000


def dec(value: float | Fraction) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def num(text: str) -> Fraction:
    return Fraction(float.fromhex(text))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_odds(scores: list[Fraction], own: int) -> Decimal:
    """Of one of several classes, to many digits."""
    with localcontext() as context:
        context.prec = 60
        exact = [_decimal(s) for s in scores]
        return exact[own] - sum((s.exp() for k, s in enumerate(exact) if k != own), Decimal(0)).ln()


def _curve(z: Fraction, one: Any) -> Fraction:
    """The value of an activation, to many digits."""
    with localcontext() as context:
        context.prec = 180
        name = one if isinstance(one, str) else one["name"]
        number = Decimal(1) if isinstance(one, str) else _decimal(num(one.get("alpha", one.get("exponent"))))
        return Fraction(_CURVES[name](_decimal(z), number))


def _logistic(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


def _power(z: Decimal, p: Decimal) -> Decimal:
    if p > 1:
        return Decimal(0) if z <= 0 else z - 1 + 1 / p if z >= 1 else (p * z.ln()).exp() / p
    return 1 - z if z <= 1 else -z.ln() if p == 0 else -((p * z.ln()).exp() - 1) / p


def _gelu(z: Decimal, _: Decimal) -> Decimal:
    """z / 2 (1 + erf(z / sqrt 2)) by the Taylor series of erf, whose terms alternate."""
    if abs(z) > 18:  # the rest is below 10^-70
        return max(z, Decimal(0))
    x = z / Decimal(2).sqrt()
    total, power, k = Decimal(0), x, 0
    while k < 20 + 4 * z * z or abs(power) > Decimal(10) ** -85:
        total += power / (2 * k + 1)
        k += 1
        power = -power * x * x / k
    return z / 2 * (1 + 2 / Decimal(_PI).sqrt() * total)


def _gelu_tanh(z: Decimal, _: Decimal) -> Decimal:
    factor, cubic = _decimal(Fraction(0.7978845608028654)), _decimal(Fraction(0.044715))
    return z * _logistic(2 * factor * (z + cubic * z * z * z))


_PI = "3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067982148"
_CURVES = {
    "relu": lambda z, _: max(z, Decimal(0)), "sigmoid": lambda z, _: _logistic(z),
    "tanh": lambda z, _: 2 * _logistic(2 * z) - 1, "softplus": lambda z, _: (1 + z.exp()).ln(),
    "silu": lambda z, _: z * _logistic(z), "elu": lambda z, a: z if z >= 0 else a * (z.exp() - 1),
    "gelu": _gelu, "gelu_tanh": _gelu_tanh, "power": _power,
}  # fmt: skip


def _of_neurons(one: Any, width: int) -> list[Any]:
    """The activation of each neuron of a layer."""
    return [part for part, count in one for _ in range(count)] if isinstance(one, list) else [one] * width


class Space:
    """The rows of a question, and what it says of each."""

    def __init__(self, question: dict[str, Any]) -> None:
        self.asked = question
        self.features = question["schema"]["features"]
        self.names = [f["name"] for f in self.features]
        self.before = [float.fromhex(v) for v in question["factual"]]
        self.values = [self._values(f) for f in self.features]

    @property
    def is_finite(self) -> bool:
        return all(v is not None for v in self.values) and math.prod(map(len, self.values)) <= MOST_ROWS

    @staticmethod
    def options(feature: dict[str, Any]) -> list[Any] | None:
        return feature.get("values") or feature.get("levels") or feature.get("categories")

    def _values(self, feature: dict[str, Any]) -> list[float] | None:
        if feature["kind"] == "real":
            return [feature["lower"]] if feature["lower"] == feature["upper"] else None
        if feature["kind"] == "integer":
            return [float(v) for v in range(feature["lower"], feature["upper"] + 1, feature["step"])]
        return [float(i) for i in range(len(self.options(feature)))]  # type: ignore[arg-type]

    def rows(self) -> Any:
        return itertools.product(*self.values)

    # ------------------------------------------------------------------ what is allowed

    def allows(self, row: tuple[float, ...], constraints: list[Any] | None = None) -> bool:
        return all(
            self._allows(row, one) for one in (self.asked["constraints"] if constraints is None else constraints)
        )

    def _allows(self, row: tuple[float, ...], one: dict[str, Any]) -> bool:
        kind = one["kind"]
        if kind == "clause":
            return any(self._literal(row, literal) for literal in one["any"])
        if kind in ("max_changes", "fewest_changes"):
            moved = [a != b for a, b in zip(row, self.before, strict=True)]
            return (
                sum(m for m, name in zip(moved, self.names, strict=True) if name not in one["uncounted"]) <= one["most"]
            )
        if kind == "only_with":
            g, partner = (self.names.index(one[key]) for key in ("feature", "partner"))
            return row[g] == self.before[g] or row[partner] != self.before[partner]
        if kind == "apart":
            return self._apart(row, one)
        g = self.names.index(one["feature"])
        return self._one(kind, one, row[g], self.before[g])

    def _one(self, kind: str, one: dict[str, Any], after: float, before: float) -> bool:
        if kind == "range":
            low, high = one["lower"], one["upper"]
            return (low is None or after >= float.fromhex(low)) and (high is None or after <= float.fromhex(high))
        if kind == "max_delta":
            most = (
                dec(float.fromhex(one["by"]))
                if one["share"] is None
                else dec(float.fromhex(one["share"])) * abs(dec(before))
            )
            return abs(dec(after) - dec(before)) <= most
        if kind == "steps":
            return (dec(after) - dec(before)) % dec(float.fromhex(one["step"])) == 0
        return {"fixed": after == before, "only_up": after >= before, "only_down": after <= before,
                "allowed": after in one.get("options", ())}[kind]  # fmt: skip

    def _literal(self, row: tuple[float, ...], literal: dict[str, Any]) -> bool:
        if "feature" in literal:
            return row[self.names.index(literal["feature"])] in literal["options"]
        total = Fraction(*literal["constant"])
        total += sum(a * dec(row[self.names.index(name)]) for name, a in literal["numbers"])
        return total + sum(v[int(row[self.names.index(name)])] for name, v in literal["options"]) >= 0

    def _apart(self, row: tuple[float, ...], one: dict[str, Any]) -> bool:
        total = Fraction(0)
        jump, rate, least = (float.fromhex(one[key]) for key in ("jump", "rate", "at_least"))
        for f, a, text, weight, scale in zip(
            self.features, row, one["point"], one["weights"], one["scales"], strict=True
        ):
            b = float.fromhex(text)
            if a == b:
                continue
            if self.options(f):
                size = abs(dec(a) - dec(b)) / len(self.options(f)) if f["kind"] == "ordinal" else Fraction(1)  # type: ignore[arg-type]
            else:
                wide = dec(float(f["upper"])) - dec(float(f["lower"])) or 1
                size = abs(dec(a) - dec(b)) / (wide if scale is None else dec(float.fromhex(scale)))
            total += dec(float.fromhex(weight)) * (dec(jump) + dec(rate) * size) / len(self.features)
        return total >= (Fraction(least) + Fraction(math.nextafter(least, -math.inf))) / 2

    # ------------------------------------------------------------------ how far it is

    def cost(self, row: tuple[float, ...]) -> Fraction:
        distance, parts = self.asked["distance"], []
        listed = {(g, a, b): num(v) for g, a, b, v in distance["transitions"]}
        for g, (f, after, before) in enumerate(zip(self.features, row, self.before, strict=True)):
            if after == before:
                parts.append(Fraction(0))
                continue
            size = (
                abs(Fraction(after) - Fraction(before)) if f["kind"] in ("real", "integer", "ordinal") else Fraction(1)
            )
            size *= num(distance["up" if after > before else "down"][g]) / num(distance["scales"][g])
            if self.options(f):
                size = listed.get((g, int(before), int(after)), size)
            parts.append(num(distance["weights"][g]) * (num(distance["jump"]) + num(distance["rate"]) * size))
        n = len(parts)
        if distance["norm"] == "linf":
            return max(parts) / n
        return sum((p * p for p in parts) if distance["norm"] == "l2" else parts) / n

    # ------------------------------------------------------------------ what the models say

    def favourable(self, row: tuple[float, ...]) -> bool:
        target = self.asked["target"]
        return any(self._meets(row, self.asked["model"], one) for one in target.get("any", [target]))

    def _meets(self, row: tuple[float, ...], model: dict[str, Any], target: Any) -> bool:
        if target is None:
            return True
        if model["kind"] == "several":
            return all(self._meets(row, *pair) for pair in zip(model["models"], target["all"], strict=True))
        scores, margin = self.scores(row, model), num(target["margin"])
        if "output" in target:
            s = scores[target["output"]]
            low, high = target["at_least"], target["at_most"]
            return (low is None or s - num(low) >= margin) and (high is None or num(high) - s >= margin)
        own = target.get("class", target.get("ahead"))
        if "log_odds" in target:
            return _log_odds(scores, own) >= _decimal(num(target["log_odds"]) + margin)
        if len(scores) == 1:
            return (scores[0] if own == 1 else -scores[0]) >= margin
        others = target.get("of", [k for k in range(len(scores)) if k != own])
        return all(scores[own] - scores[k] >= margin for k in others)

    def scores(self, row: tuple[float, ...], model: dict[str, Any]) -> list[Fraction]:
        if model["kind"] == "trees":
            return self._tree_scores(row, model)
        if model["kind"] == "reconstruction":
            x, most = self.encoded(row), num(model["at_most"])
            y = self.scores(row, {"kind": "network", "layers": model["layers"]})
            off = [b - a for a, b in zip(x, y, strict=True)]
            if model["norm"] == "l1":
                return [most - sum(map(abs, off))]
            return [*(v - most for v in off), *(-v - most for v in off), Fraction(0)]
        x = self.encoded(row)
        for k, layer in enumerate(model["layers"]):
            x = [num(b) + sum(num(w) * v for w, v in zip(ws, x, strict=True))
                 for ws, b in zip(layer["weight"], layer["bias"], strict=True)]  # fmt: skip
            if k < len(model["layers"]) - 1:
                names = _of_neurons(model["activations"][k] if "activations" in model else "relu", len(x))
                x = [max(v, Fraction(0)) if name == "relu" else _curve(v, name)
                     for v, name in zip(x, names, strict=True)]  # fmt: skip
        return x

    def encoded(self, row: tuple[float, ...]) -> list[Fraction]:
        columns: dict[str, Fraction] = {}
        for f, value in zip(self.features, row, strict=True):
            options, encoding = self.options(f), "code" if f["kind"] == "binary" else f.get("encoding", "number")
            if encoding in ("number", "code"):
                columns[f.get("columns", [f["name"]])[0]] = Fraction(value)
                continue
            first = 1 if encoding == "dummy" else 0
            assert options is not None
            sign = ">=" if encoding == "thermometer" else "="
            words = ["missing" if o is None else str(o) for o in options]
            names = f.get("columns") or [f"{f['name']}{sign}{word}" for word in words[first:]]
            for o, name in enumerate(names, start=first):
                columns[name] = Fraction(int(value >= o if encoding == "thermometer" else value == o))
        order = self.asked["schema"].get("columns", list(columns))
        return [columns[name] for name in order]

    def _tree_scores(self, row: tuple[float, ...], model: dict[str, Any]) -> list[Fraction]:
        total = [num(v) for v in model["start"]]
        for tree in model["trees"]:
            at = 0
            while not isinstance(tree["nodes"][at][0], str):
                g, goes, right = tree["nodes"][at]
                left = row[g] in goes if isinstance(goes, list) else row[g] <= float.fromhex(goes)
                at = at + 1 if left else right
            values = [num(v) for v in tree["nodes"][at]]
            if tree["adds_to"] < 0:
                total = [a + b for a, b in zip(total, values, strict=True)]
            else:
                total[tree["adds_to"]] += values[0]
        scale = num(model["scale"]) / num(model["divisor"])
        return [t * scale + num(s) for t, s in zip(total, model["shift"], strict=True)]


class NotFinite(Exception):
    """A real number may be anything."""


class Actions:
    """What may be done, and what follows from it."""

    def __init__(self, space: Space, causes: list[dict[str, Any]]) -> None:
        self.space, self.causes = space, causes
        self.places = [space.names.index(one["feature"]) for one in causes]
        own = [one for one in space.asked["constraints"] if one["kind"] in ("fixed", "only_up", "only_down",
               "max_delta", "steps")]  # fmt: skip
        self.on_rows = [one for one in space.asked["constraints"] if one not in own and one["kind"] != "max_changes"]
        self.most = min((one["most"] for one in space.asked["constraints"] if one["kind"] == "max_changes"), default=99)
        self.uncounted = {name for one in space.asked["constraints"] if one["kind"] == "max_changes"
                          for name in one["uncounted"]}  # fmt: skip
        self.fixed = {one["feature"] for one in own if one["kind"] == "fixed"}
        self.choices: list[list[float | None]] = []
        for g, name in enumerate(space.names):
            mine = [one for one in own if one["feature"] == name]
            values = self._values(g, mine)
            kept = None if values is None else [v for v in values if self._may(g, v, mine)]
            self.choices.append([None] if name in self.fixed else kept if kept is None else [None, *kept])

    def _values(self, g: int, mine: list[dict[str, Any]]) -> list[float] | None:
        """All values of a feature; of a real number those in steps from its own."""
        space, steps = self.space, [one for one in mine if one["kind"] == "steps"]
        if space.values[g] is not None or not steps:
            return space.values[g]
        before, step = dec(space.before[g]), dec(num_float(steps[0]["step"]))
        low, high = dec(float(space.features[g]["lower"])), dec(float(space.features[g]["upper"]))
        first, last = math.ceil((low - before) / step), math.floor((high - before) / step)
        return [float(before + k * step) for k in range(first, last + 1)]

    def _may(self, g: int, value: float, mine: list[dict[str, Any]]) -> bool:
        before = self.space.before[g]
        return all(one["kind"] == "steps" or self.space._one(one["kind"], one, value, before) for one in mine)

    @property
    def is_finite(self) -> bool:
        return all(one is not None for one in self.choices) and math.prod(map(len, self.choices)) <= 4 * MOST_ROWS

    def all(self, named: Any = None) -> Any:
        """The row that follows from each action, and its cost. `named`: a row whose real numbers are taken where they
        are as near to what follows as is stated."""
        noise = [dec(self.space.before[g]) - self._value(one, self.space.before)
                 for g, one in zip(self.places, self.causes, strict=True)]  # fmt: skip
        for done in itertools.product(*self.choices):
            acted = [g for g, v in enumerate(done) if v is not None and (g in self.places or v != self.space.before[g])]
            counts = [g for g in acted if g in self.places or self.space.names[g] not in self.uncounted]
            if len(counts) > self.most:
                continue
            start: list[Any] = [b if v is None else v for v, b in zip(done, self.space.before, strict=True)]
            for row in self._follow(start, done, noise, named):
                if self.space.allows(tuple(row), self.on_rows):
                    yield tuple(row), self._cost(done, acted)

    def _follow(self, row: list[Any], done: Any, noise: list[Fraction], named: Any) -> list[list[Any]]:
        """The rows that follow: one, where every row is in one case of each equation."""
        rows = [row]
        for g, one, left in zip(self.places, self.causes, noise, strict=True):
            if done[g] is None:
                rows = [[*each[:g], value, *each[g + 1 :]]
                        for each in rows for value in self._next(g, one, left, each, named)]  # fmt: skip
        return rows

    def _next(self, g: int, one: dict[str, Any], left: Fraction, row: list[Any], named: Any) -> list[Any]:
        """What a feature may be where its causes are as in a row: what all cases that hold there say."""
        numbers = [value + left for value in self._values_of(one, row)]
        if not numbers:
            if self.space.values[g] is None:
                raise NotFinite
            return list(self.space.values[g])
        feature, options = self.space.features[g], self.space.options(self.space.features[g])
        if one["within"] is not None:
            within = dec(num_float(one["within"]))
            low, high = dec(float(feature["lower"])), dec(float(feature["upper"]))
            near = [min(max(numbers[0], low), high)]
            if named is not None:
                near = [value for value in (named[g],) if all(abs(dec(value) - v) <= within for v in numbers)] or near
            return [value for value in near if all(abs(dec(value) - v) <= within for v in numbers)]
        start, step = (0, 1) if options else (feature["lower"], feature["step"])
        steps = {math.floor((v - start) / step + Fraction(1, 2) + Fraction(1, 2**30)) for v in numbers}
        value = float(start + step * min(steps))
        return [value] if len(steps) == 1 and value in self.space.values[g] else []

    def _cases(self, one: dict[str, Any], row: Any) -> list[dict[str, Any]]:
        return [case for case in one["cases"] if all(self._holds(when, row) for when in case["when"])]

    def _value(self, one: dict[str, Any], row: Any) -> Fraction:
        (value,) = self._values_of(one, row)
        return value

    def _values_of(self, one: dict[str, Any], row: Any) -> list[Fraction]:
        if "layers" in one:
            return self.space.scores(row, {"kind": "network", "layers": one["layers"]})
        return [self._of_case(case, row) for case in self._cases(one, row)]

    def _of_case(self, case: dict[str, Any], row: Any) -> Fraction:
        total = dec(num_float(case["constant"]))
        for name, a in case["numbers"]:
            total += dec(num_float(a)) * dec(row[self.space.names.index(name)])
        return total + sum(dec(num_float(v[int(row[self.space.names.index(name)])])) for name, v in case["options"])

    def _holds(self, when: dict[str, Any], row: Any) -> bool:
        value = row[self.space.names.index(when["feature"])]
        if "options" in when:
            return value in when["options"]
        low, high = when["low"], when["high"]
        return (low is None or value >= num(low)) and (high is None or value <= num(high))

    def _cost(self, done: Any, acted: list[int]) -> Fraction:
        """The distance of what is done, with the fees."""
        space = self.space
        after = tuple(b if v is None else v for v, b in zip(done, space.before, strict=True))
        n, distance = len(after), space.asked["distance"]
        fees = [num(distance["weights"][g]) * num(one["holding"])
                for g, one in zip(self.places, self.causes, strict=True) if g in acted]  # fmt: skip
        changes = space.cost(after)
        if distance["norm"] == "linf":
            return max([changes, *(fee / n for fee in fees)])
        if distance["norm"] == "l2":
            return changes + sum((fee * fee for fee in fees), Fraction(0)) / n
        return changes + (num(distance["jump"]) + num(distance["rate"])) * sum(fees, Fraction(0)) / n


def num_float(text: str) -> float:
    return float.fromhex(text)


def untrue_of_actions(data: dict[str, Any]) -> str | None:
    """The same of a certificate about actions."""
    question = {key: value for key, value in data["question"].items() if key != "causes"}
    actions = Actions(Space(question), data["question"]["causes"])
    if not actions.is_finite:
        return None
    power = 2 if question["distance"]["norm"] == "l2" else 1
    lower, upper = (
        None if data["claim"][key] is None else num(data["claim"][key]) ** power for key in ("lower", "upper")
    )
    for row, cost in actions.all():
        if (lower is None or cost < lower) and actions.space.favourable(row):
            return f"an action that leads to {row} costs {float(cost)}"
    if upper is None:
        return ""
    named = [float.fromhex(v) for v in data["witness"]]
    found = any(cost <= upper and actions.space.favourable(row) for row, cost in actions.all(named))
    return "" if found else "no action is within the upper bound"


def untruth(data: dict[str, Any]) -> str | None:
    """What is false of a certificate's statement, or an empty text; None where the space is not small and finite."""
    if "causes" in data["question"]:
        try:
            return untrue_of_actions(data)
        except NotFinite:
            return None
    space = Space({key: value for key, value in data["question"].items() if key != "reason"})
    if not space.is_finite:
        return None
    reason = data["question"].get("reason")
    held = [space.names.index(name) for name in reason["held"]] if reason else []
    power = 2 if space.asked["distance"]["norm"] == "l2" else 1
    lower, upper = (
        None if data["claim"][key] is None else num(data["claim"][key]) ** power for key in ("lower", "upper")
    )
    fewest = next((one for one in space.asked["constraints"] if one["kind"] == "fewest_changes"), None)
    found, changed = False, []
    for row in space.rows():
        near = lower is None or space.cost(row) < lower
        if not space.allows(row) or not space.favourable(row):
            continue
        found |= upper is not None and space.cost(row) <= upper
        if near and reason:
            changed.append(frozenset(g for g, v in enumerate(row) if v != space.before[g]))
        if near and all(row[g] == space.before[g] for g in held):
            return f"the row {row} is favourable, at {float(space.cost(row))}"
        if fewest is not None and space.allows(row, [{**fewest, "most": fewest["most"] - 1}]):
            return f"the row {row} has fewer changes"
    if upper is not None and not found:
        return "no row is within the upper bound"
    if reason and reason["claim"] != "sufficient":
        smaller = [set(held) - {g} for g in held]
        if reason["claim"] == "smallest" and held:
            smaller = [set(some) for some in itertools.combinations(range(len(space.names)), len(held) - 1)]
        if any(all(one & some for one in changed) for some in smaller):
            return "a smaller set decides alone"
    return ""
