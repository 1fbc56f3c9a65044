"""Programs whose numbers a solver cannot hold, rewritten into numbers that it can.

A solver drops matrix entries below its zero, takes whole columns for whole up to a tolerance, and believes its duals up
to another. Where a column ranges over 10^9 steps, each of these is worth as much as the answer: an entry of 1e-9 that
is dropped turns "500,000,001 steps do it" into "nothing does". So

    whole columns    v = sum of BASE^i d_i,  the d_i whole and narrow; a squared one also keeps a column for its square
    other columns    in units of the power of two that covers their range
    rows, objective  times a power of two that makes the largest entry about 1
    entries that are still below the solver's zero are taken out outward:  a.v <= limit  becomes
                     (a without j).v <= limit - min a_j v_j

All factors are powers of two and so exact; the last step relaxes. What is infeasible afterwards was so before, and a
bound afterwards is a bound before. Programs of ordinary numbers are passed on as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.exact.backends.protocol import TIGHTEST, Floats, Form, Outcome, Reach, Settings, When

BASE_BITS = 7
BASE = float(2**BASE_BITS)
SURELY = 1.0 + 1e-6
"""How far above a solver's zero an entry must be to be kept."""
LOST = 0.01 * TIGHTEST
"""Entries that a solver drops may be worth this much of a row's limit before anything is rewritten."""
ROUNDING = 1e-14
"""Relative to the terms: what limits are moved outward by when entries are taken out."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A form that says the same as another. New column k is `times[k]` of old column `of[k]` (-1: of none)."""

    form: Form
    columns: int
    of: NDArray[np.intp]
    times: Floats
    factor: float
    """The objective is that of the old form times this."""
    slack: float
    """Of the new objective: what reduced costs that are wrong by the tolerance are worth over the digits."""

    def settings(self, settings: Settings) -> Settings:
        """For the new form."""
        enough = None if settings.enough is None else settings.enough * self.factor
        return replace(settings, enough=enough, gap_absolute=max(settings.gap_absolute * self.factor, TIGHTEST))

    def outcome(self, outcome: Outcome) -> Outcome:
        """Of the old form."""
        values = outcome.values
        if values is not None:
            mine = self.of >= 0
            whole = np.where(self.form.integer, np.round(values), values)
            values = np.bincount(self.of[mine], (self.times * whole)[mine], minlength=self.columns)
        return replace(outcome, values=values, bound=(outcome.bound - self.slack) / self.factor)


def fits(form: Form, reach: Reach) -> bool:
    """Can the solver hold the program as it is?"""
    ends = np.maximum(np.abs(form.lower), np.abs(form.upper))
    ends = np.where(np.isfinite(ends), ends, 0.0)
    if (ends > reach.widest).any():
        return False
    for entries, far in ((form.rows, ends), *((when.row[None, :], ends[when.columns]) for when in form.when)):
        size = np.abs(entries)
        lost = np.where(size <= reach.smallest * SURELY, size, 0.0) @ far
        if size.max(initial=0.0) > reach.largest or lost.max(initial=0.0) > LOST:
            return False
    return True


def fitted(form: Form, reach: Reach, backend: str) -> Fitted:
    """The program in numbers that the solver can hold."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        made, of, times = _columns(form, reach)
        rows, limit = _rows(made.rows, made.limit, made, reach)
        when = tuple(_when(each, of, times, made, reach) for each in form.when)
        largest = float(max(np.abs(made.cost).max(initial=0.0), np.abs(made.square).max(initial=0.0)))
    numbers = (rows, limit, made.cost, made.square, *(each.row for each in when), *(each.limit for each in when))
    if not all(np.isfinite(part).all() for part in numbers):
        raise UnsupportedQuestion(
            f"The numbers of this question are too far apart for the backend '{backend}', which would drop some of them; "
            "ask with method=Search()."
        )
    factor = float(_power(np.array(largest)))
    digits = made.integer & (np.bincount(of[of >= 0], minlength=len(form.cost))[of] > 1)
    done = replace(made, rows=rows, limit=limit, when=when, cost=made.cost * factor, square=made.square * factor)
    slack = TIGHTEST * float((made.upper - made.lower)[digits].sum())
    return Fitted(form=done, columns=len(form.cost), of=of, times=times, factor=factor, slack=slack)


def _columns(form: Form, reach: Reach) -> tuple[Form, NDArray[np.intp], Floats]:
    """Digits and units. Rows that keep digits together with what they stand for come last."""
    of: list[int] = []
    times: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    whole: list[bool] = []
    ties: list[tuple[int, bool]] = []  # old column, and whether it is squared
    for j, (low, high) in enumerate(zip(form.lower.tolist(), form.upper.tolist(), strict=True)):
        far = max(abs(low), abs(high))
        if form.integer[j] and far > reach.widest:
            count = int(np.ceil(max(np.log2(far), 1.0) / BASE_BITS))
            top = BASE ** (count - 1)
            of += [j] * count
            times += [BASE**i for i in range(count)]
            lower += [0.0] * (count - 1) + [np.floor(low / top)]
            upper += [BASE - 1.0] * (count - 1) + [np.floor(high / top)]
            whole += [True] * count
            ties.append((j, bool(form.square[j])))
        else:
            unit = 1.0 if form.integer[j] or not np.isfinite(far) else 1.0 / float(_power(np.array(far)))
            of.append(j)
            times.append(unit)
            lower.append(low / unit)
            upper.append(high / unit)
            whole.append(bool(form.integer[j]))
    old, scale = np.array(of, dtype=np.intp), np.array(times)
    split = np.isin(old, [j for j, _ in ties])
    made = replace(
        form,
        cost=form.cost[old] * scale,
        square=np.where(split, 0.0, form.square[old] * scale**2),
        rows=form.rows[:, old] * scale,
        lower=np.array(lower),
        upper=np.array(upper),
        integer=np.array(whole),
    )
    for j, squared in ties:
        value = np.where(old == j, scale, 0.0)
        made, old, scale = _tied(made, old, scale, np.pad(value, (0, len(old) - len(value))), form, j, squared)
    return made, old, scale


def _tied(
    made: Form, of: NDArray[np.intp], times: Floats, value: Floats, form: Form, j: int, squared: bool
) -> tuple[Form, NDArray[np.intp], Floats]:
    """The digits stay within the ends of their column; a squared one gets a column for its value, in a unit."""
    low, high = float(form.lower[j]), float(form.upper[j])
    if not squared:
        rows = np.vstack([made.rows, value, -value])
        return replace(made, rows=rows, limit=np.append(made.limit, [high, -low])), of, times
    unit = 1.0 / float(_power(np.array(max(abs(low), abs(high)))))
    value = np.append(value, -unit)
    made = replace(
        made,
        cost=np.append(made.cost, 0.0),
        square=np.append(made.square, form.square[j] * unit**2),
        rows=np.vstack([np.pad(made.rows, ((0, 0), (0, 1))), value, -value]),
        limit=np.append(made.limit, [0.0, 0.0]),
        lower=np.append(made.lower, low / unit),
        upper=np.append(made.upper, high / unit),
        integer=np.append(made.integer, False),
    )
    return made, np.append(of, -1), np.append(times, 0.0)


def _rows(rows: Floats, limit: Floats, made: Form, reach: Reach) -> tuple[Floats, Floats]:
    """Each row times a power of two; what is then below the solver's zero taken out, outward."""
    factor = _power(np.abs(rows).max(axis=1, initial=0.0))
    rows, limit = rows * factor[:, None], limit * factor
    tiny = np.abs(rows) <= reach.smallest * SURELY
    ends = [np.where(tiny & (rows != 0.0), rows * end, 0.0) for end in (made.lower, made.upper)]
    least, most = np.minimum(*ends).sum(axis=1), np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=1)
    outward = np.where(most > 0.0, ROUNDING * (most + np.abs(limit)), 0.0)
    return np.where(tiny, 0.0, rows), limit - least + outward


def _when(when: When, of: NDArray[np.intp], times: Floats, made: Form, reach: Reach) -> When:
    row = np.zeros(int(max(of.max(), when.columns.max())) + 1)
    row[when.columns] = when.row
    wide = np.where(of >= 0, row[of], 0.0) * times
    rows, limit = _rows(wide[None, :], np.array([when.limit]), made, reach)
    used = np.flatnonzero(rows[0])
    binary = int(np.flatnonzero(of == when.binary)[0])
    return replace(when, binary=binary, columns=used, row=rows[0][used], limit=float(limit[0]))


def _power(size: Floats) -> Floats:
    """The power of two that takes a size into (1/2, 1]; 1 for 0."""
    mantissa, exponent = np.frexp(size)
    exponent = np.where(mantissa == 0.5, exponent - 1, exponent)
    return np.asarray(np.where(size > 0.0, np.ldexp(1.0, -exponent), 1.0))
