"""Rescaling: programs whose numbers a solver cannot hold, rewritten into numbers that it can.

A solver drops matrix entries below its zero, takes whole columns for whole up to a tolerance, and believes its duals up
to another. Where a column ranges over 10^9 steps, each of these is worth as much as the answer: an entry of 1e-9 that
is dropped turns "500,000,001 steps do it" into "nothing does". So

    whole columns    v = sum of BASE^i d_i,  the d_i whole and narrow; a squared one also keeps a column for its square.
                     One of more than COUNTED steps is taken for a real number: a step is below any tolerance then
    other columns    in units of the power of two that covers their range
    rows, objective  times a power of two that makes the largest entry about 1
    entries that are still below the solver's zero are taken out outward:  a.v <= limit  becomes
                     (a without j).v <= limit - min a_j v_j

All factors are powers of two and so exact; the others relax. What is infeasible afterwards was so before, and a
bound afterwards is a bound before. Programs of ordinary numbers are passed on as they are.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import UnsupportedQuestion
from ifonly.solvers.common.backends.protocol import TIGHTEST, Floats, Form, NumberRange, Outcome, Settings, When

BASE_BITS = 7
BASE = float(2**BASE_BITS)
COUNTED = BASE**4
"""Digits beyond these would be entries so small beside the others that solvers have proven what is false of them."""
WITH_ROUNDING = 1.0 + 1e-6
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
            values = np.zeros(self.columns)
            np.add.at(values, self.of[mine], (self.times * whole)[mine])
        return replace(outcome, values=values, bound=(outcome.bound - self.slack) / self.factor)


def fits(form: Form, reach: NumberRange) -> bool:
    """Can the solver hold the program as it is?"""
    ends = np.maximum(np.abs(form.lower), np.abs(form.upper))
    ends = np.where(np.isfinite(ends), ends, 0.0)
    if (ends > reach.widest).any():
        return False
    for entries, far in ((form.rows, ends), *((when.row[None, :], ends[when.columns]) for when in form.when)):
        size = np.abs(entries)
        lost = np.where(size <= reach.smallest * WITH_ROUNDING, size, 0.0) @ far
        if size.max(initial=0.0) > reach.largest or lost.max(initial=0.0) > LOST:
            return False
    return True


def fitted(form: Form, reach: NumberRange, backend: str) -> Fitted:
    """The program in numbers that the solver can hold."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        made, of, times = _columns(form, reach)
        rows, limit = _rows(made.rows, made.limit, made, reach)
        when = tuple(_when(each, of, times, made, reach) for each in form.when)
        largest = float(max(np.abs(made.cost).max(initial=0.0), np.abs(made.square).max(initial=0.0)))
    numbers = [rows.ravel(), limit, made.cost, made.square, *(np.append(each.row, each.limit) for each in when)]
    if not np.isfinite(np.concatenate(numbers)).all():
        raise UnsupportedQuestion(
            f"The numbers of this question are too far apart for the backend '{backend}', which would drop some of "
            "them; ask with method=Search()."
        )
    factor = float(_power(np.array(largest)))
    digits = made.integer & (np.bincount(of[of >= 0], minlength=len(form.cost))[of] > 1)
    done = replace(made, rows=rows, limit=limit, when=when, cost=made.cost * factor, square=made.square * factor)
    slack = TIGHTEST * float((made.upper - made.lower)[digits].sum())
    return Fitted(form=done, columns=len(form.cost), of=of, times=times, factor=factor, slack=slack)


def _columns(form: Form, reach: NumberRange) -> tuple[Form, NDArray[np.intp], Floats]:
    """Digits and units. Rows that keep digits within the ends of their column come last."""
    parts = [_column(form, j, reach) for j in range(len(form.cost))]
    count = [len(part) for part in parts]
    of = np.repeat(np.arange(len(form.cost)), count)
    times, lower, upper, whole = (np.array(field) for field in zip(*itertools.chain(*parts), strict=True))
    split = np.flatnonzero(np.array(count) > 1)
    made = replace(
        form,
        cost=form.cost[of] * times,
        square=np.where(np.isin(of, split), 0.0, form.square[of] * times**2),
        rows=form.rows[:, of] * times,
        lower=lower,
        upper=upper,
        integer=whole,
    )
    for j in split.tolist():
        value = np.zeros(len(made.cost))
        value[: len(of)] = np.where(of == j, times, 0.0)
        made = _with_square(made, value, form, j) if form.square[j] else _with_ends(made, value, form, j)
    more = len(made.cost) - len(of)  # columns that no old one is read from
    return made, np.append(of, np.full(more, -1)), np.append(times, np.zeros(more))


def _column(form: Form, j: int, reach: NumberRange) -> list[tuple[float, float, float, bool]]:
    """What an old column becomes: for each new one its factor, its ends, and whether it is whole."""
    low, high = float(form.lower[j]), float(form.upper[j])
    far = max(abs(low), abs(high))
    whole = bool(form.integer[j]) and far <= COUNTED
    if whole and far > reach.widest:
        count = math.ceil(math.log2(far + 1.0) / BASE_BITS)
        top = BASE ** (count - 1)
        digits = [(BASE**i, 0.0, BASE - 1.0, True) for i in range(count - 1)]
        return [*digits, (top, float(np.floor(low / top)), float(np.floor(high / top)), True)]
    unit = 1.0 if whole or not np.isfinite(far) else 1.0 / float(_power(np.array(far)))
    return [(unit, low / unit, high / unit, whole)]


def _with_ends(made: Form, value: Floats, form: Form, j: int) -> Form:
    """The digits, whose value is this row, stay within the ends of their column."""
    limit = np.append(made.limit, [form.upper[j], -form.lower[j]])
    return replace(made, rows=np.vstack([made.rows, value, -value]), limit=limit)


def _with_square(made: Form, value: Floats, form: Form, j: int) -> Form:
    """One more column, the digits' value in a unit, to be squared. Its ends are theirs."""
    low, high = float(form.lower[j]), float(form.upper[j])
    unit = 1.0 / float(_power(np.array(max(abs(low), abs(high)))))
    value = np.append(value, -unit)
    return replace(
        made,
        cost=np.append(made.cost, 0.0),
        square=np.append(made.square, form.square[j] * unit**2),
        rows=np.vstack([np.pad(made.rows, ((0, 0), (0, 1))), value, -value]),
        limit=np.append(made.limit, [0.0, 0.0]),
        lower=np.append(made.lower, low / unit),
        upper=np.append(made.upper, high / unit),
        integer=np.append(made.integer, False),
    )


def _rows(rows: Floats, limit: Floats, made: Form, reach: NumberRange) -> tuple[Floats, Floats]:
    """Each row times a power of two; what is then below the solver's zero taken out, outward."""
    factor = _power(np.abs(rows).max(axis=1, initial=0.0))
    rows, limit = rows * factor[:, None], limit * factor
    tiny = np.abs(rows) <= reach.smallest * WITH_ROUNDING
    ends = [np.where(tiny & (rows != 0.0), rows * end, 0.0) for end in (made.lower, made.upper)]
    least, most = np.minimum(*ends).sum(axis=1), np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=1)
    outward = np.where(most > 0.0, ROUNDING * (most + np.abs(limit)), 0.0)
    return np.where(tiny, 0.0, rows), limit - least + outward


def _when(when: When, of: NDArray[np.intp], times: Floats, made: Form, reach: NumberRange) -> When:
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
