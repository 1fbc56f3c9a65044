"""The graph of a causal model as SVG: each feature below its causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ifonly.html.fragments import words
from ifonly.schema import Schema

WIDE, HIGH, GAP, BELOW = 150, 30, 24, 60


def graph_svg(schema: Schema, graph: Mapping[str, Sequence[str]]) -> str:
    """The features that cause or follow, in rows by their depth."""
    used = {*graph, *(cause for causes in graph.values() for cause in causes)}
    depth: dict[str, int] = {}
    rest = [name for name in schema.names if name in used]
    while rest:
        ready = [name for name in rest if all(cause in depth for cause in graph.get(name, ()))]
        for name in ready:
            depth[name] = 1 + max((depth[cause] for cause in graph.get(name, ())), default=-1)
        rest = [name for name in rest if name not in depth]
    rows: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=0))]
    for name in schema.names:
        if name in depth:
            rows[depth[name]].append(name)
    wide = GAP + (WIDE + GAP) * max(map(len, rows))
    high = GAP + (HIGH + BELOW) * len(rows) - BELOW + GAP
    place = {}
    for k, row in enumerate(rows):
        left = (wide - (WIDE + GAP) * len(row) + GAP) / 2
        for i, name in enumerate(row):
            place[name] = (left + i * (WIDE + GAP), GAP + k * (HIGH + BELOW))
    arrows = [_arrow(place[cause], place[name]) for name, causes in graph.items() for cause in causes]
    boxes = [_box(place[name], schema[name].label or name) for name in place]
    alternative = "; ".join(f"{name} follows from {', '.join(causes)}" for name, causes in graph.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img" aria-label="{words(alternative)}" font-family="sans-serif" font-size="12" stroke="currentColor" '
        f'fill="none">{"".join(arrows)}{"".join(boxes)}</svg>\n'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = end[0] + WIDE / 2, end[1]
    return (
        f'<path d="M{start[0] + WIDE / 2:.1f} {start[1] + HIGH:.1f}L{x:.1f} {y:.1f}" opacity="0.6"/>'
        f'<path d="M{x - 4:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7:.1f}"/>'
    )


def _box(place: tuple[float, float], label: str) -> str:
    short = label if len(label) <= 20 else label[:19] + "\N{HORIZONTAL ELLIPSIS}"
    return (
        f'<rect x="{place[0]:.1f}" y="{place[1]:.1f}" width="{WIDE}" height="{HIGH}" rx="4"/>'
        f'<text x="{place[0] + WIDE / 2:.1f}" y="{place[1] + HIGH / 2 + 4:.1f}" text-anchor="middle" '
        f'fill="currentColor" stroke="none">{words(short)}</text>'
    )
