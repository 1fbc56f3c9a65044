"""Implied features: those that keep their values in every row that obeys the rules, where certain others keep theirs.

"if Overdue = 0 then MonthsOverdue = 0": with Overdue held at 0, MonthsOverdue is 0 in every row that counts. A search
that is told so need not find it out box by box.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ifonly.answering.values import Floats
from ifonly.problem.hosts import few_values
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import Rule
from ifonly.schema import Schema

MOST_VALUES = 2000
"""Of a feature that is tried value by value."""


class ImpliedFeatures:
    """Of one person. `places` are the features that sets consist of, by the number of their bit."""

    def __init__(self, schema: Schema, rules: Sequence[Any], point: Floats, places: Sequence[int]) -> None:
        self.schema, self.point, self.places = schema, point, places
        bit = {schema.names[g]: 1 << i for i, g in enumerate(places)}
        self.rules: list[tuple[Rule, int]] = []
        """Rules between such features only, and their sets."""
        for rule in rules:
            names = rule.features(schema) if isinstance(rule, Rule) else frozenset()
            if len(names) > 1 and names <= bit.keys():
                self.rules.append((rule, sum(bit[name] for name in names)))
        self.known: dict[tuple[int, int], bool] = {}

    def closure(self, held: int) -> int:
        """These features, and those that they imply."""
        while True:
            more = held
            for k, (_, members) in enumerate(self.rules):
                left = members & ~more
                if left and not left & (left - 1) and self._implied(k, left.bit_length() - 1):
                    more |= left
            if more == held:
                return held
            held = more

    def _implied(self, k: int, i: int) -> bool:
        """With the other features of rule k at the person's values: can feature i have no other value?"""
        if (k, i) not in self.known:
            g = self.places[i]
            values = few_values(self.schema.features[g], MOST_VALUES)
            others = np.zeros(0) if values is None else values[values != self.point[g]]
            rows = np.repeat(self.point[None, :], len(others), axis=0)
            rows[:, g] = others
            before = np.repeat(self.point[None, :], len(others), axis=0)
            allowed = rows_allowed(self.rules[k][0], self.schema, before, rows)
            self.known[k, i] = values is not None and not bool(allowed.any())
        return self.known[k, i]
