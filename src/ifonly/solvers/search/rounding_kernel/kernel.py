"""The analysis of `model.rounding`, step by step over numbers: forward over a box, then backward from each score.

What the operations mean, and why the sum is a bound, is written there. Anything that is not finite is left to it.
"""

from __future__ import annotations

import math

from numba import njit

from ifonly.compiling import with_cache
from ifonly.solvers.search.rounding_kernel.layout import (
    BIAS,
    CENTRE,
    DENSE,
    DIAGONAL,
    ERROR,
    FAST,
    FOLD,
    FOLD_BIAS,
    FOLD_ERROR,
    FOLD_HIGH,
    FOLD_LOW,
    FOLD_SIZE,
    FOLD_SIZE_BIAS,
    FOLD_TERMS,
    FOLD_UNDERFLOWS,
    HIGH,
    INNER,
    LARGEST,
    LOCAL,
    LOW,
    NEXT_CENTRE,
    NEXT_RADIUS,
    OFF,
    ON,
    OPERATION,
    PEAK,
    RADIUS,
    RELU,
    SHARE,
    SHIFT,
    SIZE,
    SIZES,
    SOURCES,
    TERMS,
    UNDERFLOW,
    UNDERFLOWS,
    UNIT,
    UNIT_HIGH,
    UNIT_LOW,
    UNITS,
    WEIGHT,
    WIDTH,
    WORK_BIAS,
)

UNIT64 = 2.0**-53
LEAST64 = 2.0**-1022
FUSED = 8.0


@njit(**INNER)
def gamma(terms, unit):
    """The relative error of a sum of so many terms."""
    return terms * unit / (1.0 - terms * unit)


@njit(**INNER)
def affine(steps, numbers, constants, k, values, work):
    """Values and errors of an affine operation; the largest number inside it."""
    step, source, value, sizes = steps[k], values[k - 1], values[k], work[SIZES]
    inputs, width, dense = steps[k - 1, WIDTH], step[WIDTH], step[OPERATION] == DENSE
    total, count = 0.0, 0.0
    for j in range(inputs):
        sizes[j] = max(abs(source[LOW, j]), abs(source[HIGH, j])) + source[ERROR, j]
        total += sizes[j]
        count += 1.0 if sizes[j] > 0.0 else 0.0  # adding a zero is exact
    terms, largest = (count if step[TERMS] < 0 else step[TERMS]) + 2.0 + FUSED, 0.0
    if step[PEAK] >= 0:
        largest = numbers[step[PEAK]] * (1.0 + total)
    rounded = gamma(terms, constants[UNIT])
    for i in range(width):
        size, centre, radius, error = numbers[step[WORK_BIAS] + i], numbers[step[BIAS] + i], 0.0, 0.0
        first, last, shift = (0, inputs, i * inputs) if dense else (i, i + 1, 0)
        for j in range(first, last):
            w, low, high = numbers[step[WEIGHT] + shift + j], source[LOW, j], source[HIGH, j]
            size += sizes[j] * numbers[step[SIZE] + shift + j]
            centre += 0.5 * (low + high) * w
            radius += 0.5 * (high - low) * abs(w)
            error += source[ERROR, j] * abs(w)
        below = numbers[step[UNDERFLOWS] + i] * (1.0 + (total if dense else sizes[i]))
        largest = max(largest, size)
        radius += 1e-12 * size + LEAST64 * below
        value[LOCAL, i] = rounded * size + 2.0 * constants[UNDERFLOW] * below
        value[LOW, i], value[HIGH, i], value[ERROR, i] = centre - radius, centre + radius, error + value[LOCAL, i]
    return largest


@njit(**INNER)
def shift(steps, numbers, constants, k, values):
    """The same of a Shift."""
    step, source, value, largest = steps[k], values[k - 1], values[k], 0.0
    for i in range(step[WIDTH]):
        sign, bias, constant = numbers[step[WEIGHT] + i], numbers[step[BIAS] + i], numbers[step[SIZE] + i]
        one, other = source[LOW, i] * sign + bias, source[HIGH, i] * sign + bias
        size = max(abs(one), abs(other)) + source[ERROR, i]
        rounding, slack = 0.0, 0.0
        if bias != 0.0:  # else nothing is added
            rounding = constants[UNIT] * (1.0 + 1e-9) * (size + constant) + constant + 3.0 * constants[UNDERFLOW]
            slack = 1e-12 * (size + abs(bias))
        value[LOW, i], value[HIGH, i] = min(one, other) - slack, max(one, other) + slack
        value[LOCAL, i], value[ERROR, i] = rounding, source[ERROR, i] + rounding
        largest = max(largest, size)
    return largest


@njit(**INNER)
def folded(steps, numbers, k, values, work):
    """The affine map of a step's units as the network has it: its least and largest values, and its rounding."""
    step = steps[k]
    units, inputs = values[step[UNITS]], steps[step[UNITS], WIDTH]
    total = 1.0
    for j in range(inputs):
        total += max(abs(units[UNIT_LOW, j]), abs(units[UNIT_HIGH, j]))
    rounded = gamma(float(step[FOLD_TERMS] + inputs), UNIT64) if step[FOLD_TERMS] > 0 else 0.0
    for i in range(step[WIDTH]):
        centre, radius, size = numbers[step[FOLD_BIAS] + i], 0.0, numbers[step[FOLD_SIZE_BIAS] + i]
        for j in range(inputs):
            low, high, at = units[UNIT_LOW, j], units[UNIT_HIGH, j], i * inputs + j
            w = numbers[step[FOLD] + at]
            centre += 0.5 * (low + high) * w
            radius += 0.5 * (high - low) * abs(w)
            size += max(abs(low), abs(high)) * numbers[step[FOLD_SIZE] + at]
        below = LEAST64 * numbers[step[FOLD_UNDERFLOWS] + i] * total
        radius += 1e-12 * size + below
        work[FOLD_LOW, i], work[FOLD_HIGH, i] = centre - radius, centre + radius
        work[FOLD_ERROR, i] = rounded * size + 2.0 * below if step[FOLD_TERMS] > 0 else 0.0


@njit(**INNER)
def relu(steps, numbers, k, values, work):
    """A ReLU, whose units are its values."""
    step, source, value = steps[k], values[k - 1], values[k]
    if step[FOLD] >= 0:
        folded(steps, numbers, k, values, work)
    for i in range(step[WIDTH]):
        low, high, error, local = source[LOW, i], source[HIGH, i], source[ERROR, i], 0.0
        unit_low, unit_high = low, high
        if step[FOLD] >= 0:
            local = numbers[step[SHARE] + i] * work[FOLD_ERROR, i]
            unit_low, unit_high = work[FOLD_LOW, i], work[FOLD_HIGH, i]
            low, high, error = max(unit_low, low - local), min(unit_high, high + local), error + local
        value[ON, i] = 1.0 if low - error >= 0.0 else 0.0
        value[OFF, i] = 1.0 if high + error <= 0.0 else 0.0
        off = value[OFF, i] == 1.0  # a zero in any arithmetic
        value[LOW, i], value[HIGH, i] = max(low, 0.0), max(high, 0.0)
        value[ERROR, i], value[LOCAL, i] = 0.0 if off else error, 0.0 if off else local
        value[UNIT_LOW, i], value[UNIT_HIGH, i] = max(unit_low, 0.0), max(unit_high, 0.0)


@njit(**INNER)
def backward(steps, numbers, output, values, work):
    """The sum over all steps of |J| times the local error, for one score."""
    centre, radius, next_centre, next_radius = CENTRE, RADIUS, NEXT_CENTRE, NEXT_RADIUS
    last, total = len(steps) - 1, 0.0
    for i in range(steps[last, WIDTH]):
        work[centre, i], work[radius, i] = 1.0 if i == output else 0.0, 0.0
    for k in range(last, -1, -1):
        step, value, width = steps[k], values[k], steps[k, WIDTH]
        for i in range(width):
            total += (abs(work[centre, i]) + work[radius, i]) * value[LOCAL, i]
        if step[OPERATION] == RELU:
            for i in range(width):
                if value[ON, i] == 1.0:
                    continue
                low, high = min(work[centre, i] - work[radius, i], 0.0), max(work[centre, i] + work[radius, i], 0.0)
                off = value[OFF, i] == 1.0
                work[centre, i] = 0.0 if off else 0.5 * (low + high)
                work[radius, i] = 0.0 if off else 0.5 * (high - low)
        elif step[OPERATION] == SHIFT:
            for i in range(width):
                work[centre, i] *= numbers[step[WEIGHT] + i]
        elif step[OPERATION] == DENSE or step[OPERATION] == DIAGONAL:
            inputs, dense, rounded = steps[k - 1, WIDTH], step[OPERATION] == DENSE, 4.0 * width * UNIT64
            for j in range(inputs):
                work[next_centre, j], work[next_radius, j] = 0.0, 0.0
            for i in range(width):
                c, r = work[centre, i], work[radius, i] + rounded * abs(work[centre, i])
                if c == 0.0 and r == 0.0:
                    continue
                first, end, at = (0, inputs, i * inputs) if dense else (i, i + 1, 0)
                for j in range(first, end):
                    w = numbers[step[WEIGHT] + at + j]
                    work[next_centre, j] += c * w
                    work[next_radius, j] += r * abs(w)
            centre, radius, next_centre, next_radius = next_centre, next_radius, centre, radius
    return total * (1.0 + 1e-9)


def _build_chain_errors(sources):
    @with_cache(**FAST)
    # size: called from Python with arrays only, so that the cache holds one signature
    def chain_errors(steps, numbers, constants, lower, upper, read, values, work, errors):
        """The error bound of each score over each box, into errors; False where numbers are too large for it."""
        if sources == 0:
            return False
        last, outputs = len(steps) - 1, steps[len(steps) - 1, WIDTH]
        for box in range(len(lower)):
            largest = 0.0
            for j in range(steps[0, WIDTH]):
                low, high = lower[box, j], upper[box, j]
                values[0, LOW, j], values[0, HIGH, j], values[0, UNIT_LOW, j], values[0, UNIT_HIGH, j] = (
                    low,
                    high,
                    low,
                    high,
                )
                values[0, ERROR, j], values[0, LOCAL, j] = read[box, j], read[box, j]
                largest = max(largest, max(abs(low), abs(high)))
            for k in range(1, last + 1):
                if steps[k, OPERATION] == RELU:
                    relu(steps, numbers, k, values, work)
                elif steps[k, OPERATION] == SHIFT:
                    largest = max(largest, shift(steps, numbers, constants, k, values) * (1.0 + 1e-9))
                else:
                    largest = max(largest, affine(steps, numbers, constants, k, values, work) * (1.0 + 1e-9))
            if steps[last, FOLD] >= 0:
                folded(steps, numbers, last, values, work)
                for i in range(outputs):
                    values[last, ERROR, i] += work[FOLD_ERROR, i]
                    values[last, LOCAL, i] += work[FOLD_ERROR, i]
            for i in range(outputs):
                error = min(values[last, ERROR, i], backward(steps, numbers, i, values, work)) * (1.0 + 1e-9)
                errors[box, i] = error
                if not (math.isfinite(error) and largest < constants[LARGEST]):
                    return False
        return True

    return chain_errors


chain_errors = _build_chain_errors(SOURCES)
