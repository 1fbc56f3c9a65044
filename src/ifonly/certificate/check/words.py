"""The statement of a certificate in words: complete, so that two questions never read the same.

Whatever a file can choose freely (names, options, labels) is quoted, printable, within one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...printing import json_object, quoted
from .reading import ticking
from .rule_reading import OWN
from .schema import StatedChoice, StatedInteger, StatedReal
from .statement import Statement

MOST_OPTIONS = 12
"""Of a feature that are listed; the question's sha256 covers the others."""


def describe(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    """What is claimed; then the network, the distance and the features it is claimed of, line by line. Of actions, the
    statement is that of the set on which the witness is."""
    schema = statement.schema
    lines = [
        claim_words(statement, lower, upper, witness),
        f"{statement.model}; sha256 {statement.fingerprint}",
        f"Question (schema, model, row, distance, constraints, target): sha256 {statement.question}",
        f"Distance: {_distance(statement)}, {len(schema)} features",
    ]
    lines += [
        f"Feature {one.name}: {one.values}; now {one.now}; {one.cost}; {one.limits or 'free'}"
        for one in feature_words(statement, witness)
    ]
    lines += [f"Rule: {rule}" for rule in rule_words(statement)]
    return "\n".join([*lines, *(f"Causes: {words}" for words in cause_words(statement))])


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureWords:
    """A feature of the question: what it may be, what it is now, what it is in the row named, cost, own constraints."""

    name: str
    values: str
    now: str
    instead: str | None
    cost: str
    limits: str

    @property
    def changed(self) -> bool:
        return self.instead is not None and self.instead != self.now

    def to_dict(self) -> dict[str, Any]:
        return {**json_object(self), "changed": self.changed}


def feature_words(statement: Statement, witness: Any) -> tuple[FeatureWords, ...]:
    """Every feature, in order; `witness` is the row named, or None."""
    own: dict[str, list[str]] = {}
    for constraint in ticking(statement.constraints, statement.meter):
        if constraint["kind"] not in OWN:
            feature = statement.schema[constraint["feature"]]
            own.setdefault(feature.name, []).append(_constraint(constraint, feature))
    moves: dict[int, list[str]] = {}
    for (g, *ends), change in ticking(statement.costs.transitions.items(), statement.meter):
        names = (_value(statement.schema.features[g], float(option)) for option in ends)
        moves.setdefault(g, []).append(f", {' to '.join(names)} counts {float(change)!r}")
    return tuple(
        FeatureWords(
            name=quoted(feature.name),
            values=_values(feature),
            now=_value(feature, statement.factual[g]),
            instead=None if witness is None else _value(feature, float.fromhex(witness[g])),
            cost=_costs(statement, g) + "".join(moves.get(g, ())),
            limits="; ".join(own.get(feature.name, [])),
        )
        for g, feature in enumerate(ticking(statement.schema.features, statement.meter))
    )


def rule_words(statement: Statement) -> tuple[str, ...]:
    """The rules between features."""
    return tuple(
        _rule(statement, constraint)
        for constraint in ticking(statement.constraints, statement.meter)
        if constraint["kind"] in OWN
    )


def _costs(statement: Statement, g: int) -> str:
    """What a change costs, and, where they differ, in which direction."""
    words, costs = f"weight {float(statement.weights[g])!r}, scale {float(statement.scales[g])!r}", statement.costs
    if costs.up[g] != 1 or costs.down[g] != 1:
        words += f", times {float(costs.up[g])!r} up and {float(costs.down[g])!r} down"
    return words


def _rule(statement: Statement, rule: dict[str, Any]) -> str:
    """A rule in the words of the rule language."""
    schema = statement.schema
    if rule["kind"] == "only_with":
        return f"{quoted(rule['feature'])} changes only with {quoted(rule['partner'])}"
    if rule["kind"] in ("max_changes", "fewest_changes"):
        uncounted = ", ".join(quoted(name) for name in rule["uncounted"])
        without = f" (not counted: {uncounted})" if uncounted else ""
        proven = f", which is the fewest: with {rule['most'] - 1} there is no such row" if rule["most"] else ""
        return f"at most {rule['most']} changes{without}{proven if rule['kind'] == 'fewest_changes' else ''}"
    if rule["kind"] == "apart":
        return _apart(schema, rule)
    return " or ".join(_literal(schema, one) for one in rule["any"]) or "nothing (this rule cannot hold)"


def _apart(schema: Any, rule: dict[str, Any]) -> str:
    """At least so far from another row: which row, and what distance."""
    shares = zip(("l0", "l1"), (rule["jump"], rule["rate"]), strict=True)
    norm = " + ".join(f"{float.fromhex(share)!r}*{name}" for name, share in shares if float.fromhex(share))
    values = [
        f"{quoted(f.name)}={_value(f, float.fromhex(v))}" for f, v in zip(schema.features, rule["point"], strict=True)
    ]
    weights = ", ".join(
        f"{quoted(f.name)} weight {float.fromhex(w)!r}" + ("" if v is None else f", scale {float.fromhex(v)!r}")
        for f, w, v in zip(schema.features, rule["weights"], rule["scales"], strict=True)
        if v is not None or float.fromhex(w) != 1.0
    )
    return (
        f"at least {float.fromhex(rule['at_least'])!r} ({norm}{f'; {weights}' if weights else ''}) from the row with "
        f"{', '.join(values)}"
    )


def _literal(schema: Any, one: dict[str, Any]) -> str:
    if "feature" in one:
        feature = schema[one["feature"]]
        return f"{quoted(feature.name)} in ({_options(feature, one['options'])})"
    top, bottom = one["constant"]
    if len(one["numbers"]) == 1 and not one["options"] and abs(one["numbers"][0][1]) == 1:
        ((name, sign),) = one["numbers"]
        over = "" if bottom == 1 else f" / {bottom}"
        return f"{quoted(name)} {'>=' if sign > 0 else '<='} {-sign * top}{over}"
    terms = [f"{bottom * a} * {quoted(name)}" for name, a in one["numbers"]]
    for name, values in one["options"]:
        feature = schema[name]
        for option, value in enumerate(values):
            if value:
                terms.append(f"{bottom * value} * [{quoted(name)} = {_value(feature, float(option))}]")
    return f"{' + '.join(terms) or '0'} >= {-top}"


def claim_words(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    """What is claimed, in a sentence."""
    what = f"gives {statement.wanted}"
    if statement.actions is not None:
        return _action_words(statement, lower, upper, witness)
    if lower is None:
        return f"No allowed row {what} (real arithmetic on the stored weights)."
    text = f"Every allowed row that {what} is at a distance of at least {lower!r}"
    if upper is not None:
        features = statement.schema.features
        point = [float.fromhex(v) for v in witness]
        changed = [
            f"{quoted(f.name)}={_value(f, v)}"
            for f, v, old in zip(features, point, statement.factual, strict=True)
            if v != old
        ]
        text += f", and one with {', '.join(changed) or 'no change'} is within {upper!r}"
    return f"{text} (real arithmetic on the stored weights)."


def _action_words(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    """The same of actions, and of the rows that follow."""
    what, real = (
        f"the row that follows gives {statement.wanted}",
        "(real arithmetic on the stored weights and equations)",
    )
    if lower is None:
        return f"There is no action after which {what} {real}."
    text = f"Every action after which {what} costs at least {lower!r}"
    if upper is None or statement.actions is None:
        return f"{text} {real}."
    done: list[str] = []
    after: list[str] = []
    for g, (f, v, old) in enumerate(zip(statement.schema.features, witness, statement.factual, strict=True)):
        value = float.fromhex(v)
        if g in statement.actions.acted and value == old:
            done.append(f"hold {quoted(f.name)} at {_value(f, value)}")
        elif value != old:
            (after if g in statement.follows else done).append(f"{quoted(f.name)}={_value(f, value)}")
    follows = f", from which {', '.join(after)} follows" if after else ""
    return f"{text}, and one costs at most {upper!r}: {', '.join(done) or 'nothing'}{follows} {real}."


def cause_words(statement: Statement) -> tuple[str, ...]:
    """What each feature with causes follows from; the person's own deviation from it, the noise, is kept."""
    schema, found = statement.schema, []
    for equation in ticking(statement.equations, statement.meter):
        name = quoted(schema.features[equation.feature].name)
        if equation.layers is not None:
            hidden = ", ".join(str(len(bias)) for _, bias in equation.layers[:-1])
            found.append(f"{name} follows from a network with hidden layers of {hidden}, and the noise")
        for case in ticking(equation.cases, statement.meter):
            where = " and ".join(_condition(schema, one) for one in case.when)
            terms = [f"{float(a)!r} * {quoted(schema.features[g].name)}" for g, a in case.numbers]
            for g, values in case.options:
                f = schema.features[g]
                terms += [
                    f"{float(v)!r} * [{quoted(f.name)} = {_value(f, float(o))}]" for o, v in enumerate(values) if v
                ]
            value = " + ".join([*terms, repr(float(case.constant))])
            found.append(f"{f'if {where} then ' if where else ''}{name} follows from {value}, and the noise")
        step = isinstance(schema.features[equation.feature], StatedReal) and equation.below == equation.above
        exact = f"within {float(equation.below)!r}" if step else "to the nearest step"
        found.append(f"{name} follows {exact}; acting on it counts {float(equation.holding)!r} beside its change")
    return tuple(found)


def _condition(schema: Any, one: Any) -> str:
    feature = schema.features[one.feature]
    if one.options:
        return f"{quoted(feature.name)} in ({_options(feature, sorted(one.options))})"
    low, high = ("any" if end is None else repr(end) for end in (one.low, one.high))
    return f"{quoted(feature.name)} from {low} to {high}"


def _distance(statement: Statement) -> str:
    if statement.norm_name != "l0+l1":
        return statement.norm_name
    return f"{float(statement.jump)!r}*l0 + {float(statement.rate)!r}*l1"


def _values(feature: Any) -> str:
    if isinstance(feature, StatedChoice):
        return f"{feature.kind} ({_options(feature, range(len(feature.options)))}), encoded as {feature.encoding}"
    by = f" in steps of {feature.step}" if isinstance(feature, StatedInteger) else ""
    if isinstance(feature, StatedReal) and feature.step is not None:
        by = f" in steps of {feature.step} from {feature.start}"
    return f"{feature.kind} in [{feature.lower!r}, {feature.upper!r}]{by}"


def _options(feature: Any, which: Any) -> str:
    shown = ", ".join(_value(feature, float(option)) for option in which[:MOST_OPTIONS])
    return shown + (f" and {len(which) - MOST_OPTIONS} more" if len(which) > MOST_OPTIONS else "")


def _value(feature: Any, number: float) -> str:
    value = feature.value(number)
    if value is None:
        return "missing"
    return quoted(value) if isinstance(value, str) else repr(value)


def _constraint(constraint: dict[str, Any], feature: Any) -> str:
    kind = constraint["kind"]
    if kind == "range":
        ends = (constraint["lower"], constraint["upper"])
        low, high = ("any" if end is None else repr(float.fromhex(end)) for end in ends)
        return f"range from {low} to {high}"
    if kind == "max_delta":
        by, share = (None if constraint[key] is None else float.fromhex(constraint[key]) for key in ("by", "share"))
        return f"changes by at most {by!r}" if share is None else f"changes by at most {share!r} of what it is"
    if kind == "steps":
        return f"changes in steps of {float.fromhex(constraint['step'])!r}"
    if kind == "allowed":
        return f"only {_options(feature, constraint['options']) or 'nothing'}"
    return {"fixed": "fixed", "only_up": "only up", "only_down": "only down"}[kind]
