"""Small charts as inline SVG, in the colour of the text around them, with a text alternative."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .fragments import words

WIDTH, HEIGHT = 160, 22
PAD = 9
PLOT = (640, 240)


def arrow(before: float, after: float, least: float, most: float) -> str:
    """From one number to another on a line between two ends: a ring, an arrow, a dot."""
    span = most - least

    def at(value: float) -> float:
        return PAD + (WIDTH - 2 * PAD) * (0.5 if span <= 0.0 else min(max((value - least) / span, 0.0), 1.0))

    start, end, middle = at(before), at(after), HEIGHT / 2
    way = 1.0 if end >= start else -1.0
    tip = (
        f'<path d="M{end - 12 * way:.1f} {middle - 4:.1f}L{end - 6 * way:.1f} {middle:.1f}L{end - 12 * way:.1f} '
        f'{middle + 4:.1f}" fill="none"/>'
    )
    shaft = f'<path d="M{start + 4 * way:.1f} {middle:.1f}H{end - 6 * way:.1f}"/>' if abs(end - start) > 16 else ""
    return (
        f'<svg class="ifonly-mark" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true" '
        f'focusable="false"><path class="ifonly-track" d="M{PAD} {middle:.1f}H{WIDTH - PAD}"/>{shaft}'
        f'{tip if shaft else ""}<circle class="ifonly-ring" cx="{start:.1f}" cy="{middle:.1f}" r="4"/>'
        f'<circle class="ifonly-dot" cx="{end:.1f}" cy="{middle:.1f}" r="4"/></svg>'
    )


def curve(values: Sequence[float], level: float, marks: Sequence[int], alternative: str) -> str:
    """Values from left to right with a level that matters, and the numbers of what begins at some of them."""
    wide, high = PLOT
    low, top = min(*values, level), max(*values, level)
    span = (top - low) or 1.0

    def y(value: float) -> float:
        return 20 + (high - 48) * (1.0 - (value - low) / span)

    def x(k: int) -> float:
        return 12 + (wide - 24) * k / max(len(values) - 1, 1)

    line = "L".join(f"{x(k):.1f} {y(value):.1f}" for k, value in enumerate(values))
    below = "".join(
        f'<path class="ifonly-track" d="M{x(k):.1f} 16V{high - 20}"/><text x="{x(k):.1f}" y="{high - 5}">{i}.</text>'
        for i, k in enumerate(marks, 1)
    )
    return (
        f'<svg class="ifonly-plot" viewBox="0 0 {wide} {high}" role="img" aria-label="{words(alternative)}">{below}'
        f'<path class="ifonly-level" d="M12 {y(level):.1f}H{wide - 12}"/>'
        f'<text x="{wide - 14}" y="{y(level) - 5:.1f}" text-anchor="end">the boundary</text>'
        f'<path class="ifonly-curve" d="M{line}"/></svg>'
    )


def stairs(times: Sequence[float], lower: Sequence[float], upper: Sequence[float], alternative: str) -> str:
    """Two bounds that approach each other over time, each as stairs: the lower a line, the upper a broken one."""
    wide, high = PLOT
    finite = [value for value in (*lower, *upper) if math.isfinite(value)]
    top, end = max(finite, default=0.0) or 1.0, times[-1] or 1.0
    left, bottom = 12, high - 44

    def line(values: Sequence[float]) -> str:
        known = [i for i, value in enumerate(values) if math.isfinite(value)]
        ways = [
            f"H{left + (wide - 24) * times[i] / end:.1f}V{bottom - (bottom - 28) * values[i] / top:.1f}" for i in known
        ]
        if not ways:
            return ""
        begin = f"M{ways[0][1:].replace('V', ' ')}"
        return begin + "".join(ways[1:]) + f"H{wide - left}"

    met = ""
    if math.isfinite(upper[-1]) and upper[-1] - lower[-1] < 0.01 * top:
        y = bottom - (bottom - 28) * upper[-1] / top
        met = f'<circle class="ifonly-dot" cx="{wide - left}" cy="{y:.1f}" r="4.5"/>'
    words_below = (
        f'<text x="{left}" y="{bottom + 16}">0 s</text>'
        f'<text x="{wide - left}" y="{bottom + 16}" text-anchor="end">{end:.3g} s</text>'
        f'<text x="{wide - left}" y="16" text-anchor="end">{top:.4g}</text>'
        f'<path class="ifonly-curve" d="M{left} {high - 10}h28"/><text x="{left + 36}" y="{high - 6}">nothing nearer '
        f'exists</text><path class="ifonly-level" d="M{left + 190} {high - 10}h28"/><text x="{left + 226}" '
        f'y="{high - 6}">a row is known</text>'
    )
    return (
        f'<svg class="ifonly-plot" viewBox="0 0 {wide} {high}" role="img" aria-label="{words(alternative)}">'
        f'<path class="ifonly-track" d="M{left} {bottom}H{wide - left}"/>{words_below}'
        f'<path class="ifonly-curve" d="{line(lower)}"/><path class="ifonly-level" d="{line(upper)}"/>{met}</svg>'
    )


def pins(bars: Sequence[tuple[float, float, str]], alternative: str, below: str) -> str:
    """A pin per whole number from 1 on, as high as its upper bound, with its words; a tick at its lower bound."""
    wide, high = PLOT
    top = max((upper for _, upper, _ in bars if math.isfinite(upper)), default=0.0) or 1.0
    step, bottom = min((wide - 24) / max(len(bars), 1), 120.0), high - 44
    drawn = []
    for k, (lower, upper, text) in enumerate(bars):
        x, known = 12 + step * (k + 0.5), math.isfinite(upper)
        y, tick = (bottom - (bottom - 40) * (value / top if known else 0.0) for value in (upper, lower))
        if known:
            between = f"M{x - 7:.1f} {tick:.1f}h14" if tick - y > 4 else ""  # where it is not proven
            drawn.append(f'<path d="M{x:.1f} {bottom}V{y:.1f}{between}"/>'
                         f'<circle class="ifonly-dot" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')  # fmt: skip
        drawn.append(f'<text x="{x:.1f}" y="{y - 12:.1f}" text-anchor="middle">{words(text)}</text>'
                     f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{k + 1}</text>')  # fmt: skip
    return (
        f'<svg class="ifonly-plot" viewBox="0 0 {wide} {high}" role="img" aria-label="{words(alternative)}">'
        f'<path class="ifonly-track" d="M12 {bottom}H{12 + step * len(bars):.1f}"/>{"".join(drawn)}'
        f'<text x="{12 + step * len(bars) / 2:.1f}" y="{high - 8}" text-anchor="middle">{words(below)}</text></svg>'
    )
