"""Small charts as inline SVG, which take the colour of the text around them and say in words what they show."""

from __future__ import annotations

from collections.abc import Sequence

from ifonly.drawing.html import words

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


def curve(values: Sequence[float], level: float, marks: Sequence[tuple[int, str]], told: str) -> str:
    """Values from left to right with a level that matters, and what happens at some of them."""
    wide, high = PLOT
    low, top = min(*values, level), max(*values, level)
    span = (top - low) or 1.0

    def y(value: float) -> float:
        return 16 + (high - 60) * (1.0 - (value - low) / span)

    def x(k: int) -> float:
        return 12 + (wide - 24) * k / max(len(values) - 1, 1)

    line = "L".join(f"{x(k):.1f} {y(value):.1f}" for k, value in enumerate(values))
    below = "".join(
        f'<path class="ifonly-track" d="M{x(k):.1f} 16V{high - 40}"/><text x="{x(k):.1f}" '
        f'y="{high - 24 + 16 * (i % 2)}" text-anchor="{_side(k, len(values))}">{words(text[:60])}</text>'
        for i, (k, text) in enumerate(marks)
    )
    return (
        f'<svg class="ifonly-plot" viewBox="0 0 {wide} {high}" role="img" aria-label="{words(told)}">{below}'
        f'<path class="ifonly-level" d="M12 {y(level):.1f}H{wide - 12}"/>'
        f'<text x="{wide - 14}" y="{y(level) - 5:.1f}" text-anchor="end">the boundary</text>'
        f'<path class="ifonly-curve" d="M{line}"/></svg>'
    )


def _side(k: int, count: int) -> str:
    part = k / max(count - 1, 1)
    return "start" if part < 0.2 else "end" if part > 0.8 else "middle"
