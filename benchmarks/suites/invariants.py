"""`invariants`: planted invariants found in random tables, false ones proposed, and how long a large table takes.

A table has a source, from which fresh rows can be drawn: planted invariants of every kind, near-misses that one row in
a thousand breaks, and noise (independent and correlated). A planted invariant counts as found if the rules that are
proposed refuse at least 99 % of the rows that break it (values of other rows put in place); a proposal is false if
fresh rows break it in a larger share than it states. Both are judged through the rule language, not by the miner's
own code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.terminal import console
from ifonly import Binary, Categorical, Integer, Real, Schema
from ifonly.mining import Invariants, invariants
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import Rule
from ifonly.schema.tables import user_columns

Column = NDArray[np.float64]
Columns = dict[str, Column]
Chance = np.random.Generator
KINDS = ("order", "difference", "sum", "affine", "bound", "equivalence", "dependency", "exclusion")
FRESH = 4000
JUDGED = 400
EXCEPTIONS = 1e-3
FOUND = 0.99


@dataclass
class Source:
    """Where rows come from: how each group of columns is drawn, and what is planted in it."""

    features: list[Any] = field(default_factory=list)
    draws: list[Callable[[Chance, int], Columns]] = field(default_factory=list)
    planted: list[tuple[str, tuple[str, ...], Callable[[Columns], NDArray[np.bool_]]]] = field(default_factory=list)

    def rows(self, chance: Chance, count: int) -> Columns:
        return {name: column for draw in self.draws for name, column in draw(chance, count).items()}

    @property
    def schema(self) -> Schema:
        return Schema(self.features)


def source(chance: Chance, width: int) -> Source:
    """A random source of at least `width` columns."""
    made = Source()
    number = 0
    while len(made.features) < width:
        number += 1
        if chance.random() < 0.4:
            kind = str(chance.choice(KINDS))
            _PLANTERS[kind](made, f"p{number}", chance, float(chance.random() < 0.25) * EXCEPTIONS)
        else:
            _noise(made, f"n{number}", chance)
    return made


def _amounts(chance: Chance) -> Callable[[Chance, int], Column]:
    scale, shape = 10.0 ** chance.integers(0, 5), int(chance.integers(3))
    if shape == 0:
        return lambda c, n: np.round(c.gamma(2.0, scale, n), 2)
    if shape == 1:
        return lambda c, n: np.round(c.lognormal(0.0, 0.8, n) * scale, 2)
    return lambda c, n: np.round(c.uniform(0.0, 3.0 * scale, n), 2)


def _noise(made: Source, name: str, chance: Chance) -> None:
    kind = int(chance.integers(5))
    if kind == 0:
        draw = _amounts(chance)
        made.features.append(Real(name, -1e7, 1e7))
        made.draws.append(lambda c, n: {name: draw(c, n)})
    elif kind == 1:
        mean = float(chance.uniform(1, 30))
        made.features.append(Integer(name, 0, 1000))
        made.draws.append(lambda c, n: {name: c.poisson(mean, n).astype(float)})
    elif kind == 2:
        odds = chance.dirichlet(np.ones(int(chance.integers(2, 9))))
        made.features.append(Categorical(name, [f"o{k}" for k in range(len(odds))]))
        made.draws.append(lambda c, n: {name: c.choice(len(odds), n, p=odds).astype(float)})
    elif kind == 3:
        mix = float(chance.uniform(0.3, 0.95))
        made.features += [Real(f"{name}a", -1e7, 1e7), Real(f"{name}b", -1e7, 1e7)]

        def correlated(c: Chance, n: int) -> Columns:
            a, b = c.normal(size=n), c.normal(size=n)
            return {f"{name}a": 10 + a, f"{name}b": 10 + mix * a + np.sqrt(1 - mix**2) * b}

        made.draws.append(correlated)
    else:
        table = chance.dirichlet(np.full(5, 0.7), size=4) * 0.98 + 0.004
        made.features += [Categorical(f"{name}a", list("wxyz")), Categorical(f"{name}b", list("abcde"))]

        def associated(c: Chance, n: int) -> Columns:
            a = c.integers(4, size=n)
            ends = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
            return {f"{name}a": a.astype(float), f"{name}b": (c.random((n, 1)) > ends[a]).sum(axis=1).clip(0, 4) * 1.0}

        made.draws.append(associated)


def _plant(made: Source, kind: str, names: tuple[str, ...], broken: Callable[[Columns], Any], rare: float) -> None:
    made.planted.append((kind if not rare else "near-miss", names, broken))


def _swap(c: Chance, n: int, rare: float, *columns: Column) -> tuple[Column, ...]:
    """The columns, with the last one shuffled in a rare share of the rows: exceptions."""
    some = np.flatnonzero(c.random(n) < rare)
    last = columns[-1].copy()
    last[some] = columns[-1][c.integers(n, size=len(some))]
    return (*columns[:-1], last)


def _order(made: Source, name: str, chance: Chance, rare: float) -> None:
    base, gap, ties = _amounts(chance), _amounts(chance), float(chance.uniform(0, 0.5))
    a, b = f"{name}high", f"{name}low"
    made.features += [Real(a, -1e7, 1e7), Real(b, -1e7, 1e7)]

    def draw(c: Chance, n: int) -> Columns:
        low = base(c, n)
        high = np.round(low + gap(c, n) * low.mean() / 1e3 * (c.random(n) > ties) + 0.01 * (c.random(n) < 0.5), 2)
        return dict(zip((a, b), _swap(c, n, rare, high, low), strict=True))

    made.draws.append(draw)
    _plant(made, "order", (a, b), lambda t: t[a] < t[b], rare)


def _difference(made: Source, name: str, chance: Chance, rare: float) -> None:
    low = int(chance.integers(0, 20))
    width = int(chance.integers(2, 10))
    a, b = f"{name}late", f"{name}early"
    made.features += [Integer(a, 0, 10000), Integer(b, 0, 10000)]

    def draw(c: Chance, n: int) -> Columns:
        early = c.integers(0, 60, n).astype(float)
        return dict(zip((a, b), _swap(c, n, rare, early + c.integers(low, low + width + 1, n), early), strict=True))

    made.draws.append(draw)
    _plant(made, "difference", (a, b), lambda t: (t[a] - t[b] < low) | (t[a] - t[b] > low + width), rare)


def _sum(made: Source, name: str, chance: Chance, rare: float) -> None:
    parts = [f"{name}part{k}" for k in range(int(chance.integers(2, 4)))]
    total, whole, draws = f"{name}total", chance.random() < 0.5, [_amounts(chance) for _ in parts]
    made.features += [(Integer if whole else Real)(one, 0, 1e9) for one in (*parts, total)]

    def draw(c: Chance, n: int) -> Columns:
        columns = [np.round(one(c, n), 0 if whole else 2) for one in draws]
        return dict(zip((*parts, total), _swap(c, n, rare, *columns, np.round(sum(columns), 2)), strict=True))

    made.draws.append(draw)
    _plant(made, "sum", (*parts, total), lambda t: np.abs(t[total] - sum(t[p] for p in parts)) > 0.02, rare)


def _affine(made: Source, name: str, chance: Chance, rare: float) -> None:
    slope, constant, base = int(chance.integers(2, 13)), int(chance.integers(0, 50)), _amounts(chance)
    a, b = f"{name}x", f"{name}y"
    made.features += [Real(a, -1e7, 1e9), Real(b, -1e7, 1e9)]

    def draw(c: Chance, n: int) -> Columns:
        x = base(c, n)
        return dict(zip((a, b), _swap(c, n, rare, x, np.round(slope * x + constant, 2)), strict=True))

    made.draws.append(draw)
    _plant(made, "affine", (a, b), lambda t: np.abs(t[b] - slope * t[a] - constant) > 0.02, rare)


def _bound(made: Source, name: str, chance: Chance, rare: float) -> None:
    limit, share = int(chance.integers(2, 8)) * 10, float(chance.uniform(0.2, 0.7))
    a, b = f"{name}plan", f"{name}use"
    made.features += [Categorical(a, ["basic", "plus", "pro"]), Integer(b, 0, 200)]

    def draw(c: Chance, n: int) -> Columns:
        plan = np.where(c.random(n) < share, 0.0, c.integers(1, 3, n))
        use = np.where(plan == 0, c.integers(0, limit + 1, n), c.integers(0, 101, n)).astype(float)
        return dict(zip((a, b), _swap(c, n, rare, plan, use), strict=True))

    made.draws.append(draw)
    _plant(made, "bound", (a, b), lambda t: (t[a] == 0) & (t[b] > limit), rare)


def _equivalence(made: Source, name: str, chance: Chance, rare: float) -> None:
    share, amount = float(chance.uniform(0.3, 0.7)), _amounts(chance)
    a, b = f"{name}flag", f"{name}amount"
    made.features += [Binary(a, ("no", "yes")), Real(b, 0, 1e9)]

    def draw(c: Chance, n: int) -> Columns:
        flag = (c.random(n) < share).astype(float)
        return dict(zip((a, b), _swap(c, n, rare, flag, flag * (1.0 + amount(c, n))), strict=True))

    made.draws.append(draw)
    _plant(made, "equivalence", (a, b), lambda t: (t[a] == 0) & (t[b] > 0), rare)


def _dependency(made: Source, name: str, chance: Chance, rare: float) -> None:
    group = chance.permutation(np.repeat(np.arange(3), 2)).astype(float)
    a, b = f"{name}city", f"{name}state"
    made.features += [Categorical(a, [f"c{k}" for k in range(6)]), Categorical(b, ["s0", "s1", "s2"])]

    def draw(c: Chance, n: int) -> Columns:
        city = c.integers(6, size=n)
        return dict(zip((a, b), _swap(c, n, rare, city.astype(float), group[city]), strict=True))

    made.draws.append(draw)
    _plant(made, "dependency", (a, b), lambda t: group[t[a].astype(int)] != t[b], rare)


def _exclusion(made: Source, name: str, chance: Chance, rare: float) -> None:
    a, b = f"{name}status", f"{name}role"
    made.features += [Categorical(a, ["single", "married", "widowed"]), Categorical(b, ["spouse", "child", "other"])]

    def draw(c: Chance, n: int) -> Columns:
        status = c.integers(3, size=n).astype(float)
        role = np.where(status == 1, c.integers(0, 3, n), c.integers(1, 3, n)).astype(float)
        return dict(zip((a, b), _swap(c, n, rare, status, role), strict=True))

    made.draws.append(draw)
    _plant(made, "exclusion", (a, b), lambda t: (t[a] != 1) & (t[b] == 0), rare)


_PLANTERS = {
    "order": _order, "difference": _difference, "sum": _sum, "affine": _affine, "bound": _bound,
    "equivalence": _equivalence, "dependency": _dependency, "exclusion": _exclusion,
}  # fmt: skip


# ---------------------------------------------------------------------- judging


@dataclass
class Score:
    """Of one table: planted and found by kind, proposals and false ones."""

    planted: list[tuple[str, bool]]
    proposed: int
    false: list[str]


def judged(seed: int, width: int, rows: int) -> Score:
    """One random table, mined and judged."""
    chance = np.random.default_rng([seed, width, rows])
    made = source(chance, width)
    table, schema = made.rows(chance, rows), made.schema
    points = np.column_stack([table[name] for name in schema.names])
    found = invariants(user_columns(schema, points), schema)
    rules = {rule: Rule(rule) for rule in found.rules}
    for rule in rules.values():
        rule.check(schema)
    fresh = made.rows(chance, FRESH)
    unused = np.column_stack([fresh[name] for name in schema.names])
    planted = []
    for kind, names, broken in made.planted:
        if kind != "near-miss":
            planted.append((kind, _is_found(schema, rules, points, names, broken, chance)))
    return Score(planted=planted, proposed=len(found), false=_false(schema, found, rules, unused))


def _is_found(schema: Schema, rules: dict[str, Rule], points: Any, names: Any, broken: Any, chance: Chance) -> bool:
    """Do the rules refuse rows that break what was planted?"""
    rows = points[chance.integers(len(points), size=20 * JUDGED)]
    which = [schema.index(name) for name in names]
    for r, row in enumerate(rows):
        g = which[r % len(which)]
        row[g] = points[int(chance.integers(len(points))), g]
    bad = rows[broken(dict(zip(schema.names, rows.T, strict=True)))][:JUDGED]
    kept = np.ones(len(bad), dtype=np.bool_)
    for rule in rules.values():
        kept &= rows_allowed(rule, schema, bad, bad)
    return bool((~kept).sum() >= FOUND * len(bad))


def _false(schema: Schema, found: Invariants, rules: dict[str, Rule], fresh: Any) -> list[str]:
    """Proposals that fresh rows break in a larger share than they state."""
    wrong = []
    for one in found:
        kept = np.all([rows_allowed(rules[rule], schema, fresh, fresh) for rule in one.rules], axis=0)
        count = int((~kept).sum())
        expected = one.upper * len(fresh)
        if count > expected + 4.0 * np.sqrt(expected) + 1.0:
            wrong.append(f"{one} (fresh rows: {count} of {len(fresh)})")
    return wrong


@click.command("invariants")
@click.option("--tables", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="Of the large table.")
@click.option("--columns", type=click.IntRange(2), default=50, show_default=True, help="Of the large table.")
def command(tables: int, seed: int, rows: int, columns: int) -> None:
    """Planted invariants found, false ones proposed, and the time of a large table."""
    scores = []
    for number in range(tables):
        chance = np.random.default_rng([seed, number])
        width, count = int(chance.integers(5, 41)), round(200 * 500 ** chance.random())
        scores.append(judged(seed * 100_000 + number, width, count))
        for words in scores[-1].false:
            console().print(f"table {number} ({width} columns, {count} rows), false: {words}")
    table = Table("planted", "tables' invariants", "found", "share")
    for kind in (*KINDS, "all"):
        all_of = [found for score in scores for planted, found in score.planted if kind in (planted, "all")]
        table.add_row(kind, str(len(all_of)), str(sum(all_of)), f"{sum(all_of) / max(1, len(all_of)):.1%}")
    console().print(table)
    false = sum(len(score.false) for score in scores)
    console().print(f"{tables} tables: {sum(s.proposed for s in scores)} proposals, {false} false")
    made = source(np.random.default_rng(seed), columns)
    data = made.rows(np.random.default_rng(seed), rows)
    people = user_columns(made.schema, np.column_stack([data[name] for name in made.schema.names]))
    begun = time.perf_counter()
    found = invariants(people, made.schema)
    console().print(
        f"{rows:,} rows, {len(made.schema)} columns: {time.perf_counter() - begun:.1f} s, {len(found)} proposals"
    )
