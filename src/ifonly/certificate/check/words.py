"""The statement of a certificate in words: complete, so that two questions never read the same.

Whatever a file can choose freely (names, options, labels) is quoted, printable, within one line.
"""

from __future__ import annotations

from typing import Any

from ifonly.certificate.check.statement import Statement
from ifonly.printing import quoted
from ifonly.schema import Choice, Integer

MOST_OPTIONS = 12
"""Of a feature that are listed; the question's sha256 covers the others."""


def describe(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    """What is claimed; then the network, the distance and the features it is claimed of, line by line."""
    schema = statement.schema
    sizes = ", ".join(map(str, statement.sizes[:-1])) or "no hidden neurons"
    lines = [
        _claim(statement, lower, upper, witness),
        f"Network: {len(schema.columns)} inputs, hidden layers of {sizes}; sha256 {statement.fingerprint}",
        f"Question (schema, network, row, distance, constraints, target): sha256 {statement.question}",
        f"Distance: {_distance(statement)}, {len(schema)} features",
    ]
    constraints: dict[str, list[str]] = {}
    for constraint in statement.constraints:
        feature = schema[constraint["feature"]]
        constraints.setdefault(feature.name, []).append(_constraint(constraint, feature))
    for feature, before, weight, scale in zip(
        schema.features, statement.factual, statement.weights, statement.scales, strict=True
    ):
        rules = "; ".join(constraints.get(feature.name, ["free"]))
        lines.append(
            f"Feature {quoted(feature.name)}: {_values(feature)}; now {_value(feature, before)}; "
            f"weight {float(weight)!r}, scale {float(scale)!r}; {rules}"
        )
    return "\n".join(lines)


def _claim(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    what = f"gives {statement.wanted} with margin {statement.margin!r}"
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


def _distance(statement: Statement) -> str:
    if statement.norm_name != "l0+l1":
        return statement.norm_name
    return f"{float(statement.jump)!r}*l0 + {float(statement.rate)!r}*l1"


def _values(feature: Any) -> str:
    if isinstance(feature, Choice):
        return f"{feature.kind} ({_options(feature, range(len(feature.options)))}), encoded as {feature.encoding}"
    by = f" in steps of {feature.step}" if isinstance(feature, Integer) else ""
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
    if kind == "allowed":
        return f"only {_options(feature, constraint['options']) or 'nothing'}"
    return {"fixed": "fixed", "only_up": "only up", "only_down": "only down"}[kind]
