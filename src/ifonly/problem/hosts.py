"""Hosts: features with few values, of which other features are functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ifonly.problem.rules.derived import Derived
from ifonly.problem.rules.formulas import holds_each
from ifonly.problem.rules.normal import AtLeast
from ifonly.problem.rules.rule import Rule
from ifonly.problem.support import OnlyWith
from ifonly.schema import Choice, Feature, Integer, Schema

Floats = NDArray[np.float64]

MAX_VALUES = 32
"""Values of a host."""
MAX_ALTERNATIVES = 8
"""Values of an integer that becomes options for the sake of rules."""
MAX_DERIVED = 512
"""Values of a derived feature."""


@dataclass(frozen=True)
class Host:
    """A feature with few values, and what the derived features are for each of them."""

    place: int
    values: Floats
    derived: dict[int, Floats]
    """By place: the value of a derived feature for each value of the host."""


def hosts_of(schema: Schema, rules: tuple[Rule | OnlyWith, ...], held: frozenset[str]) -> Iterator[Host]:
    """The hosts under these rules. `held`: derived features with constraints of their own."""
    definitions = {rule.feature: rule for rule in rules if isinstance(rule, Derived)}
    held |= {name for rule in rules if isinstance(rule, OnlyWith) for name in (rule.feature, rule.partner)}
    found: dict[str, list[Derived]] = {}
    for name, rule in definitions.items():
        bases = rule.bases(schema)
        if len(bases) == 1 and not bases & set(definitions) and name not in held:
            found.setdefault(next(iter(bases)), []).append(rule)
    for base, some in found.items():
        values = few_values(schema[base])
        if values is None or any(isinstance(c, OnlyWith) and base in (c.feature, c.partner) for c in rules):
            continue
        derived = {schema.index(rule.feature): _followed(schema, rule, base, values) for rule in some}
        known = {g: values_of for g, values_of in derived.items() if values_of is not None}
        if known:
            yield Host(schema.index(base), values, known)


def alternatives(schema: Schema, rules: tuple[Rule | OnlyWith, ...], known: set[int]) -> Iterator[Host]:
    """Integers with few values that are alternatives of a rule ("Low <= 5 or ..."): with options, that is linear."""
    paired = {name for rule in rules if isinstance(rule, OnlyWith) for name in (rule.feature, rule.partner)}
    found: set[int] = set()
    for rule in rules:
        for clause in rule.clauses(schema) if isinstance(rule, Rule) and not isinstance(rule, Derived) else ():
            numbers = [one.numbers for one in clause if isinstance(one, AtLeast) and not one.options]
            if len(numbers) > 1:
                found |= {terms[0][0] for terms in numbers if len(terms) == 1}
    for g in sorted(found - known):
        values = few_values(schema.features[g], MAX_ALTERNATIVES)
        if values is not None and isinstance(schema.features[g], Integer) and schema.names[g] not in paired:
            yield Host(g, values, {})


def few_values(feature: Feature, most: int = MAX_VALUES) -> Floats | None:
    """All values of a feature, as they are in a point, if they are few."""
    if isinstance(feature, Choice):
        return np.arange(len(feature.options), dtype=np.float64) if 1 < len(feature.options) <= most else None
    if isinstance(feature, Integer) and 0 < (feature.upper - feature.lower) / feature.step < most:
        return np.arange(feature.lower, feature.upper + 0.5 * feature.step, feature.step)
    return None


def _followed(schema: Schema, rule: Derived, base: str, values: Floats) -> Floats | None:
    """The value of a derived feature for each value of its base; None where it is not exactly one."""
    g, host = schema.index(rule.feature), schema.index(base)
    own = few_values(schema.features[g], MAX_DERIVED)
    if own is None:
        return None
    points = np.zeros((len(values) * len(own), len(schema)))
    points[:, host], points[:, g] = np.repeat(values, len(own)), np.tile(own, len(values))
    held = holds_each(rule.formula(schema), points).reshape(len(values), len(own))
    return own[held.argmax(axis=1)] if (held.sum(axis=1) == 1).all() else None
