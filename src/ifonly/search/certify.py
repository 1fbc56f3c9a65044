"""`certify`: ask the search, then write its proof out so that the checker accepts it.

The search's records say how the space was split and which rows closed each box. Every leaf is tried with the checker's
own arithmetic; where it does not hold there (the search's floating point was too tight, or its ball larger), better
multipliers and slopes are looked for, and the leaf is split further if that is not enough. If a box cannot be closed at
all, the claimed lower bound is lowered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import Model
from ifonly.problem import Allowed, ClassTarget, Constraint, Distance, Fixed, OnlyDown, OnlyUp, Question, Range
from ifonly.problem.target import MARGIN, Target
from ifonly.proof.certificate import FORMAT, VERSION, Certificate, stamp
from ifonly.proof.check.checker import radius_of, witness_refusal
from ifonly.proof.check.statement import MAX_BITS, SQUARED, Statement, read_statement
from ifonly.proof.claim import Claim, Limits
from ifonly.proof.tidy import tidied
from ifonly.schema import Numeric, Schema
from ifonly.schema.io import schema_to_json
from ifonly.search.prove import Nearer, Unclosed, prove
from ifonly.search.search import Search
from ifonly.tolerances import Tolerances

GRID_BITS = 80
COST_BITS = 96
RELATIVE_BITS = 64
"""Of the smallest rate, in the cost grid."""
SHARE = 0.9
"""Of the allowed gap between lower and upper that a certificate uses."""
NEARER = 8
"""Witnesses that may be replaced by nearer ones."""
STEPS = (1.0, 10.0, 1e2, 1e3, 1e4, 1e5)
"""By how many allowed gaps the lower bound is lowered, attempt after attempt, when a leaf cannot be closed."""


class Prepared(Protocol):
    """What `certify` needs of an Explainer."""

    model: Model
    schema: Schema
    tolerances: Tolerances


def certify(
    explainer: Prepared,
    row: Any,
    *,
    target: Any = None,
    distance: str | Distance = "l1",
    constraints: Sequence[Constraint] = (),
    limits: Limits | None = None,
) -> Certificate:
    """The answer to `explainer.explain(row, ...)` as a certificate that `ifonly.check` verifies in exact arithmetic.

    The proof is about the network in real arithmetic on its stored weights; `made_by` says by what it was made.
    """
    point = explainer.schema.read(row)
    question = Question(
        model=explainer.model,
        target=_target(explainer.model, target, point),
        distance=distance if isinstance(distance, Distance) else Distance(distance),
        constraints=constraints,
    )
    return certify_question(question, point, explainer.tolerances, limits or Limits())


def _target(model: Model, target: Any, point: NDArray[np.float64]) -> Target:
    """What was asked for, or the other of two classes."""
    if target is not None:
        return ClassTarget(target) if not hasattr(target, "conditions") else target
    return other_class(model, point, MARGIN)


def other_class(model: Model, point: NDArray[np.float64], margin: float) -> ClassTarget:
    """Of two classes the one that the model does not decide for."""
    if len(model.classes) != 2:
        raise QuestionError("Say which decision is wanted with target=...; the model does not decide between two.")
    return ClassTarget(model.classes[1 - int(model.decide(model.scores(point[None, :]))[0])], margin)


def certify_question(
    question: Question, point: NDArray[np.float64], tolerances: Tolerances, limits: Limits
) -> Certificate:
    """The certificate of one person's answer."""
    claim = Search(records=True).prepare(question, tolerances).solve(point[None, :], limits)[0]
    return certificate_of(question, point, claim, tolerances)


def certificate_of(question: Question, point: NDArray[np.float64], claim: Claim, tolerances: Tolerances) -> Certificate:
    """The certificate of a claim that the search made with records."""
    if claim.limit:
        raise UnsupportedQuestion(f"There is no proof to write out: the search hit its {claim.limit}.")
    asked = question_data(question, point)
    grid, cost_grid = _grids(question, point)
    statement = read_statement(asked, grid, cost_grid)
    witness, upper = _witness(question, statement, point, claim, tolerances)
    found = _exactly(statement, claim, witness, upper, tolerances)
    if found is None:
        raise UnsupportedQuestion("The search's answer could not be proven in exact arithmetic.")
    tree, lower, witness, upper = found
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"ifonly {claim.method}",
        "question": asked,
        "claim": {"lower": None if lower is None else lower.hex(), "upper": None if upper is None else upper.hex()},
        "witness": None if witness is None else [v.hex() for v in witness],
        "proof": {"grid": grid, "cost_grid": cost_grid, "tree": tree},
    }
    return Certificate({**data, "sha256": stamp(data)})


Witness = tuple[float, ...] | None
Proven = tuple[list[Any], float | None, Witness, float | None]


def _exactly(
    statement: Statement, claim: Claim, witness: Witness, upper: float | None, tolerances: Tolerances
) -> Proven | None:
    """The tree, the lower bound that it proves, and the witness: the claimed one, or a nearer one.

    Rows on the margin to the last bit are neither returned nor ruled out by the search; exact arithmetic can do both.
    So more than the search's lower bound is tried first, and a row that stands in the way is the better answer.
    """
    for _ in range(NEARER):
        try:
            lower = None if upper is None else max(upper - SHARE * tolerances.allowed(upper), 0.0)
            return prove(statement, radius_of(statement, lower), claim.record), lower, witness, upper
        except Nearer as found:
            witness, upper = found.point, _distance(statement, found.point)
        except Unclosed:
            break
    for step in STEPS if upper is not None or claim.lower < math.inf else ():
        room = claim.lower if upper is None else tolerances.allowed(upper)
        most = claim.lower * (1.0 - 1e-9) if upper is None else min(claim.lower, upper - SHARE * room)
        lower = max(most - (step - 1.0) * room, 0.0)
        try:
            return prove(statement, radius_of(statement, lower), claim.record), lower, witness, upper
        except (Nearer, Unclosed):
            continue
    return None


def _distance(statement: Statement, point: tuple[float, ...]) -> float:
    """The distance of a row, rounded up."""
    cost = statement.cost(point)
    distance = math.sqrt(cost) if statement.norm == SQUARED else float(cost)
    while Fraction(distance) ** (2 if statement.norm == SQUARED else 1) < cost:
        distance = math.nextafter(distance, math.inf)
    return distance


def _witness(
    question: Question, statement: Statement, point: NDArray[np.float64], claim: Claim, tolerances: Tolerances
) -> tuple[Witness, float | None]:
    """The claimed row, with shorter numbers where they pass too, and its distance, rounded up."""
    if claim.point is None:
        return None, None
    for one in (*tidied(question, point[None, :], [claim], tolerances), claim):
        assert one.point is not None
        row = tuple((one.point + 0.0).tolist())
        upper = _distance(statement, row)
        if not witness_refusal(statement, row, upper):
            return row, upper
    return None, None


# ---------------------------------------------------------------------- the question as plain data


def question_data(question: Question, point: NDArray[np.float64]) -> dict[str, Any]:
    """The question as a certificate states it."""
    schema, distance = question.schema, question.distance
    return {
        "schema": schema_to_json(schema),
        "network": [
            {"weight": [_hexes(row) for row in layer.weight], "bias": _hexes(layer.bias)}
            for layer in question.model.network.layers
        ],
        "factual": _hexes(point),
        "distance": {
            "norm": distance.norm if isinstance(distance.norm, str) else "l0+l1",
            "jump": float(distance.jump).hex(),
            "rate": float(distance.rate).hex(),
            "weights": _hexes(distance.weight_vector(schema)),
            "scales": _hexes(distance.scale_vector(schema)),
        },
        "constraints": [_constraint(schema, constraint) for constraint in question.constraints],
        "target": _target_data(question),
    }


def _hexes(values: NDArray[np.float64]) -> list[str]:
    return [(v + 0.0).hex() for v in values.tolist()]  # + 0.0 turns -0.0 into 0.0


def _target_data(question: Question) -> dict[str, Any]:
    target, classes = question.target, question.model.classes
    margin = (target.margin + 0.0).hex()
    if isinstance(target, ClassTarget):
        wanted = target._index(question.model)
        return {"class": wanted, "label": str(classes[wanted]), "margin": margin}
    ends = {name: getattr(target, name) for name in ("at_least", "at_most")}
    return {
        "output": int(target.output),
        "margin": margin,
        **{name: None if end is None else (end + 0.0).hex() for name, end in ends.items()},
    }


def _constraint(schema: Schema, constraint: Constraint) -> dict[str, Any]:
    match constraint:
        case Fixed():
            return {"kind": "fixed", "feature": constraint.feature}
        case OnlyUp():
            return {"kind": "only_up", "feature": constraint.feature}
        case OnlyDown():
            return {"kind": "only_down", "feature": constraint.feature}
        case Range():
            ends = {"lower": constraint.lower, "upper": constraint.upper}
            listed = {name: None if math.isinf(end) else (end + 0.0).hex() for name, end in ends.items()}
            return {"kind": "range", "feature": constraint.feature, **listed}
        case Allowed():
            feature = schema[constraint.feature]
            options = sorted({int(feature.read(value)) for value in constraint.values})
            return {"kind": "allowed", "feature": constraint.feature, "options": options}


def _grids(question: Question, point: NDArray[np.float64]) -> tuple[int, int]:
    """How fine numbers and costs must be counted: numbers exactly, costs to about 2^-64 of the smallest rate."""
    schema, distance = question.schema, question.distance
    ends = [v for f in schema.features if isinstance(f, Numeric) for v in (f.lower, f.upper)]
    ends += [v for c in question.constraints if isinstance(c, Range) for v in (c.lower, c.upper) if math.isfinite(v)]
    finest = max(Fraction(v).denominator.bit_length() - 1 for v in [*ends, *point.tolist(), 1.0])
    rate = distance.weight_vector(schema) / distance.scale_vector(schema) * max(distance.rate, 2.0**-20)
    least = float(np.log2(rate.min() / len(schema))) * (2.0 if distance.name == "l2" else 1.0)
    cost = max(COST_BITS, RELATIVE_BITS + math.ceil(-least))
    if max(finest, cost) > MAX_BITS:
        raise UnsupportedQuestion("The numbers of this question are too small or too far apart for a certificate.")
    return max(GRID_BITS, finest), cost
