"""Random questions with random rules: those of `random_problems`, and sentences about their features on top.

Inequalities between features and options, implications, forbidden combinations, either-or; how many features may change,
which only together; change limits and steps; costs by direction and by transition.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from random_problems import Floats, Rng, random_problem

from ifonly.problem import Constraint, Distance, Question, RowRule
from ifonly.problem.rules import read_constraint
from ifonly.schema import Choice, Feature, Integer, Numeric, Real, Schema
from ifonly.schema.decimals import rounded, written
from ifonly.schema.values import show_number


def random_ruled_problem(seed: int, *, finite: bool = False, steps: bool = False) -> tuple[Question, Floats]:
    """`random_problem` with one to three rules, and sometimes other costs."""
    question, points = random_problem(seed, finite=finite, steps=steps)
    rng = np.random.default_rng([seed, finite, 6])
    rules = [_rule(rng, question.schema) for _ in range(int(rng.integers(1, 4)))]
    rules += [read_constraint(_about_steps(rng, question.schema, points[0]), question.schema)] if steps else []
    distance = _costs(rng, question.schema, question.distance) if rng.random() < 0.3 else question.distance
    return replace(question, constraints=(*question.constraints, *rules), distance=distance), points


def _rule(rng: Rng, schema: Schema) -> Constraint | RowRule:
    return read_constraint(_sentence(rng, schema), schema)


def _about_steps(rng: Rng, schema: Schema, point: Floats) -> str:
    """What binds on a grid: sums that end on it, shares, steps of several steps."""
    if not schema.grids:
        return "at most 3 changes"
    g, h = (int(rng.choice(list(schema.grids))) for _ in range(2))
    name, other, grid, sign = schema.names[g], schema.names[h], schema.grids[g], rng.choice(["<=", ">="])
    decimal = grid.parts in (1, 4, 10, 100, 10_000)
    match int(rng.integers(6)):
        case 0:
            return f"{name} changes by at most {rng.choice([10, 25, 50, 100])} %"
        case 1 if decimal:
            return f"{name} changes in steps of {show_number(rounded(grid.step * int(rng.integers(1, 4))))}"
        case 2 if g != h and decimal:
            middle = grid.value(int(rng.integers(0, grid.steps + 1)))
            middle = written(middle) + written(float(point[h]) if rng.random() < 0.5 else float(grid.step))
            return f"{name} + {other} {sign} {show_number(rounded(middle))}"
        case 3 if g != h:
            return f"{name} {sign} {other}"
        case 4:
            gap = sorted(grid.value(int(k)) for k in rng.integers(0, grid.steps + 1, 2))
            return f"{name} <= {show_number(gap[0])} or {name} >= {show_number(gap[1])}"
        case _:
            return f"{name} {sign} {show_number(grid.value(int(rng.integers(0, grid.steps + 1))))}"


def _sentence(rng: Rng, schema: Schema) -> str:
    stepped = [f.name for f in schema.features if not isinstance(f, Real) or f.grid is not None]
    match int(rng.integers(9)):
        case 0:
            return f"at most {rng.integers(0, 4)} changes"
        case 1 if stepped and len(schema) > 1:
            partner = str(rng.choice(stepped))
            return f"{rng.choice([name for name in schema.names if name != partner])} changes only with {partner}"
        case 2:
            return f"if {_atom(rng, schema, strict=True)} then {_atom(rng, schema)}"
        case 3:
            return f"not ({_atom(rng, schema, strict=True)} and {_atom(rng, schema, strict=True)})"
        case 4:
            return " or ".join(_atom(rng, schema) for _ in range(int(rng.integers(2, 5))))
        case 5:
            return f"{_atom(rng, schema)} and ({_atom(rng, schema)} or {_atom(rng, schema)})"
        case _:
            return _atom(rng, schema)


def _atom(rng: Rng, schema: Schema, *, strict: bool = False) -> str:
    """An inequality; where real numbers are in it, one whose negation (`strict`) or that itself has a nearest row."""
    chosen = [schema.features[i] for i in rng.choice(len(schema), min(int(rng.integers(1, 3)), len(schema)), False)]
    if len(chosen) == 1 and isinstance(chosen[0], Choice):
        return _about_options(rng, chosen[0])
    terms, middle = [], 0.0
    for feature in chosen:
        factor = int(rng.choice([-2, -1, 1, 2]))
        if isinstance(feature, Numeric):
            terms.append(f"{factor} * {feature.name}")
            middle += factor * (feature.lower + feature.width * float(rng.choice([0.25, 0.5, 0.75])))
        else:
            terms.append(f"{factor} * [{_about_options(rng, feature)}]")
    if any(isinstance(feature, Real) for feature in chosen):
        return f"{' + '.join(terms)} {rng.choice(['<', '>'] if strict else ['<=', '>='])} {middle:.3f}"
    return f"{' + '.join(terms)} {rng.choice(['<=', '>=', '>=', '=', '!=', '>'])} {round(middle)}"


def _about_options(rng: Rng, feature: Feature) -> str:
    assert isinstance(feature, Choice)
    option = str(rng.choice([str(o) for o in feature.options])).lower()
    quoted = option if option in ("true", "false") else f"'{option}'"
    signs = ["=", "!=", ">=", "<"] if feature.ordered and len(feature.options) > 1 else ["=", "!="]
    return f"{feature.name} {rng.choice(signs)} {quoted}"


def _costs(rng: Rng, schema: Schema, distance: Distance) -> Distance:
    ordered = [f.name for f in schema.features if isinstance(f, Numeric) or f.ordered]
    several = [f for f in schema.features if isinstance(f, Choice) and len(f.options) > 1]
    return replace(
        distance,
        up={name: float(rng.choice([0.5, 2.0, 3.0])) for name in ordered if rng.random() < 0.5},
        down={name: float(rng.choice([0.5, 2.0, 3.0])) for name in ordered if rng.random() < 0.5},
        transitions={f.name: {(f.options[0], f.options[-1]): float(rng.choice([0.25, 2.0]))} for f in several
                     if rng.random() < 0.5},
    )  # fmt: skip


def is_free_of_reals(question: Question) -> bool:
    return all(isinstance(feature, Integer | Choice) for feature in question.schema.features)
