"""Sampled counterexamples: rows that are decided otherwise, found by trying and not by a search.

A search proves that there is none, and to find one it looks near the person first, which takes a forest of more than
two classes long. Where many features are free, rows that are decided otherwise are often plenty: some features of the
person's row take random values, derived features follow, and the model is called on all that obey the rules. What is
returned passes the same check as a row that a method claims. Nothing is proven by finding none. The same question is
tried with the same rows every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ifonly.answering.checked_solver import CheckedSolver
from ifonly.answering.values import Floats, ResolvedTarget
from ifonly.model import Model
from ifonly.problem import Derived, Query
from ifonly.problem.already_satisfied import already_decided
from ifonly.problem.hosts import few_values
from ifonly.problem.rule import is_row_rule, rows_allowed
from ifonly.results import check_witnesses

ROWS = 400
"""Tried at a time."""
FEW_FREE = 3
"""With no more free features than this, a search is as quick."""
BACKGROUND = 64
"""Rows that influence is measured in."""


def by_influence(model: Model, point: Floats, places: Sequence[int]) -> list[int]:
    """These features by how much the person's value of each moves the scores of other rows, the most first: sets that
    decide alone are likely to consist of these. An order to try them in, and no more than that."""
    rows = model.schema.sample(BACKGROUND, np.random.default_rng(0))
    tried = np.repeat(rows[None, :, :], 1 + len(places), axis=0)
    for k, g in enumerate(places, 1):
        tried[k, :, g] = point[g]
    scores = model.scores(tried.reshape(-1, rows.shape[1])).reshape(1 + len(places), -1)
    moved = np.nan_to_num(np.abs(scores[1:] - scores[0]).mean(axis=1))
    return [places[k] for k in np.argsort(-moved, kind="stable").tolist()]


class RowSampler:
    """Tries rows of one person. `places` are the features that may change by themselves."""

    def __init__(self, solver: CheckedSolver, resolved: ResolvedTarget, query: Query, point: Floats) -> None:
        self.solver, self.resolved, self.query, self.point = solver, resolved, query, point
        self.schema = solver.model.schema
        self.definitions = [one for one in query.constraints if isinstance(one, Derived)]
        self.rules: list[Any] = [one for one in query.constraints if is_row_rule(one)]
        self.kept: list[Floats] = []
        """Rows that were found, by this or by a search; with other features held they are tried again."""

    def otherwise(self, held: Sequence[int], free: Sequence[int]) -> Floats | None:
        """A row that is decided otherwise, in which the features at these places are the person's; None: not found."""
        if len(free) <= FEW_FREE:
            return None
        rows = self._obeying(self._tried(held, free))
        if not len(rows):
            return None
        model, target = self.solver.model, self.resolved.target or self.resolved.alternatives[0]
        met = already_decided(target, model, rows, model.scores(rows), self.resolved.now)
        found = rows[met]
        fewest = np.argsort((found[:, list(free)] != self.point[list(free)]).sum(axis=1), kind="stable")
        for row in found[fewest[:FEW_FREE]]:
            if self._checked(row):
                return np.asarray(row)
        return None

    def _tried(self, held: Sequence[int], free: Sequence[int]) -> Floats:
        """The person's row, in which a random part of the free features has random values."""
        rng = np.random.default_rng(len(held))
        values = self.schema.sample(ROWS, rng)
        share = rng.random((ROWS, 1))
        moved = rng.random((ROWS, len(free))) < share
        rows = np.repeat(self.point[None, :], ROWS, axis=0)
        columns = list(free)
        rows[:, columns] = np.where(moved, values[:, columns], rows[:, columns])
        if self.kept:
            again = np.array(self.kept)
            again[:, list(held)] = self.point[list(held)]
            rows = np.concatenate([again, rows])
        for rule in self.definitions:
            rows = self._followed(rows, rule)
        return rows

    def _followed(self, rows: Floats, rule: Derived) -> Floats:
        """The rows with the value of a derived feature, where it has few values."""
        g = self.schema.index(rule.feature)
        values = few_values(self.schema.features[g])
        for value in () if values is None else values.tolist():
            tried = rows.copy()
            tried[:, g] = value
            good = rows_allowed(rule, self.schema, rows, tried)
            rows[good, g] = value
        return rows

    def _obeying(self, rows: Floats) -> Floats:
        """Those that break no rule."""
        before = np.repeat(self.point[None, :], len(rows), axis=0)
        for rule in self.rules:
            good = rows_allowed(rule, self.schema, before[: len(rows)], rows)
            rows = rows[good]
        return rows

    def _checked(self, row: Floats) -> bool:
        """Does it pass the check of rows that a method claims, for one of the alternatives of the target?"""
        for target in self.resolved.alternatives:
            question = self.solver.question(target, self.query)
            witnesses = check_witnesses(question, self.point[None, :], row[None, :])
            if not witnesses.invalid and not witnesses.refused:
                return True
        return False
