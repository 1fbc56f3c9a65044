"""Graphs of causes: who causes whom, as a mapping or a networkx `DiGraph`; their order, and their cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ifonly.errors import ModelError
from ifonly.printing import shown
from ifonly.schema import Schema
from ifonly.schema.arguments import items

Graph = dict[str, tuple[str, ...]]
"""Of each feature with causes, these."""


def graph_of(graph: Any, schema: Schema) -> Graph:
    """The causes of each feature that has some: of a mapping {feature: causes}, or of a networkx `DiGraph`."""
    if hasattr(graph, "predecessors") and hasattr(graph, "nodes"):
        found: dict[Any, Any] = {node: list(graph.predecessors(node)) for node in graph.nodes}
    elif isinstance(graph, Mapping):
        found = dict(graph)
    else:
        raise ModelError(
            f"Give a graph as a mapping, as {{'Balance': ['Salary']}}, or a networkx DiGraph; got {shown(graph)}."
        )
    result: Graph = {}
    for name, causes in found.items():
        listed = items(causes)
        if listed is None:
            raise ModelError(f"The causes of {shown(name)} must be a list of features; got {shown(causes)}.")
        for one in (name, *listed):
            schema.index(one)
        if len(set(listed)) < len(listed):
            raise ModelError(f"The causes of '{name}' name a feature twice: {shown(listed)}.")
        if listed:
            result[name] = listed
    in_order(result)
    return result


def in_order(graph: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The features with causes, each after its causes; a ModelError where some cause themselves."""
    order: list[str] = []
    done: set[str] = set()
    while len(order) < len(graph):
        ready = [n for n in graph if n not in done and all(p in done or p not in graph for p in graph[n])]
        if not ready:
            raise ModelError(f"The causes go in a circle: {' -> '.join(f'{n!r}' for n in _cycle(graph, done))}.")
        order += ready
        done.update(ready)
    return tuple(order)


def _cycle(graph: Mapping[str, Sequence[str]], done: set[str]) -> list[str]:
    """Features that cause one another, from a cause to what it causes, the first once more at the end."""
    path = [next(name for name in graph if name not in done)]
    while True:
        cause = next(one for one in graph[path[-1]] if one in graph and one not in done)
        if cause in path:
            found = path[path.index(cause) :]
            return [cause, *reversed(found)]
        path.append(cause)
