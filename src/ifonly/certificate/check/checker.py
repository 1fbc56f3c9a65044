"""`check`: VALID with the proven statement in words, or INVALID with the first step that fails.

Answers of other solvers are VALID EXCEPT FOR THE SOLVER'S BOUND at best: all but the lower bound is verified.

The claim is about the network as real arithmetic on its stored weights. Three things are verified, in integers and
rationals: the witness (a row of the schema, allowed, decided as asked, as near as claimed); that the tree's leaves
cover the space (splits have two sides, so they do, if every node has its children); and that no leaf holds a favourable
row nearer than claimed. Leaves are bounded in integers, rounded outward where a division is needed.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...printing import escaped, is_printable, json_object, lines
from ..format import Certificate, canonical, canonical_in_steps, file_text, read_text
from .distance import MAXIMUM, SQUARED
from .reading import CheckBudget, Refusal, Stopped, entries, listed, number, whole
from .reasons import StatedReason, check_contrasts, read_question
from .schema import read_point
from .statement import MAX_BITS, Statement
from .tree_walk import TreeWalk
from .words import FeatureWords, cause_words, describe, feature_words, rule_words

ENTRIES = ("format", "version", "made_by", "question", "claim", "witness", "deployed", "proof", "sha256")
VALID, TRUSTED, UNDECIDED, INVALID = "VALID", "VALID EXCEPT FOR THE SOLVER'S BOUND", "UNDECIDED", "INVALID"
CODES = {VALID: 0, INVALID: 1, TRUSTED: 3, UNDECIDED: 4}
"""Exit codes of the commands; 2 is wrong usage."""
LONGEST_SECONDS = 3600.0
MOST_SCORES = 20
"""Of the deployed model that are repeated."""
FREE_BITS, BITS_PER_BYTE = 2**29, 256
"""The numbers that a check keeps may have so many bits, and so many more per byte of the certificate's text."""
MOST_SHOWN = 20_000
"""Characters of a statement in a notebook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The verdict on a certificate. `statement` is what was proven; `failure` the first step that fails.

    `trusted` names the solver whose word the lower bound is, when that is all there is: then the rest was verified, and
    `valid` is False. `deployed` is what the certificate says of the deployed model's own answer: it was not checked.
    `network` is the model's fingerprint; `question` and `schema` are the sha256 of the question and of its schema.
    `features` has what each feature is now and instead, `rules` the rules between features, all in words.
    """

    verdict: str
    statement: str = ""
    failure: str = ""
    lower: float = 0.0
    upper: float | None = None
    nodes: int = 0
    leaves: int = 0
    trusted: str = ""
    deployed: str = ""
    network: str = ""
    question: str = ""
    schema: str = ""
    features: tuple[FeatureWords, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """All of the statement is proven."""
        return self.verdict == VALID

    def _repr_html_(self) -> str:
        stated, failure = (escape(lines(text, MOST_SHOWN), quote=True) for text in (self.statement, self.failure))
        below = f"<details><summary>what is stated</summary><pre>{stated}</pre></details>" if stated else ""
        return f"<p><b>{self.verdict}</b>{f': {failure}' if failure else ''}</p>{below}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an infinite lower bound (no such row) is None."""
        return json_object(self)

    def __str__(self) -> str:
        from ..showing import as_text

        return as_text(self)


def check(certificate: Certificate | str | Path, *, seconds: float = LONGEST_SECONDS) -> CheckResult:
    """Check a certificate, or the file of one, step by step in exact arithmetic, for at most so many seconds."""
    meter = CheckBudget(time.monotonic() + seconds)
    try:
        text = _text_of(certificate) if isinstance(certificate, Certificate) else file_text(certificate)
        data = read_text(text, meter.tick)
        meter.bits = FREE_BITS + BITS_PER_BYTE * len(text)
        del text
        return _check(data, meter)
    except (Refusal, FileError) as refusal:
        return CheckResult(verdict=INVALID, failure=escaped(str(refusal)))
    except Stopped:
        return CheckResult(verdict=UNDECIDED, failure=f"the check was not over after {seconds:g} seconds")
    except (RecursionError, MemoryError):
        return CheckResult(verdict=INVALID, failure="the certificate is too deeply nested or too large")


def _text_of(certificate: Certificate) -> bytes:
    try:
        return canonical(certificate.data)
    except (TypeError, ValueError) as error:
        raise Refusal(f"this is no plain data: {error}") from None


def _check(data: dict[str, Any], meter: CheckBudget) -> CheckResult:
    asked = data.get("question")
    more = ["contrasts"] if isinstance(asked, dict) and "reason" in asked else []
    entries(data, "a certificate", *ENTRIES, *more)
    _text(data["made_by"], "what made the certificate", 1_000)
    word = isinstance(data["proof"], dict) and "trusted" in data["proof"]
    parts = ["trusted" if word else "tree", *(["planes"] if has_curve(asked) else [])]
    proof = entries(data["proof"], "the proof", "grid", "cost_grid", *parts)
    grid, cost_grid = (whole(proof[key], f"the proof's {key}", 8, MAX_BITS) for key in ("grid", "cost_grid"))
    free, reason = read_question(asked, grid, cost_grid, meter, proof.get("planes"))
    statements = free if reason is None else reason.held_in(free)
    statement = statements[0]
    claim = entries(data["claim"], "the claim", "lower", "upper")
    lower = None if claim["lower"] is None else number(claim["lower"], "the claimed lower bound")
    if lower is not None and lower < 0.0:
        raise Refusal("the claimed lower bound is negative")
    upper = _check_witness(statements, data["witness"], claim["upper"], lower)
    deployed = read_deployed(data["deployed"])
    if reason is not None:
        check_contrasts(reason, free, data["contrasts"], (lower, upper))
    if statement.rules.fewest is not None and upper is None:
        raise Refusal("the fewest changes are those of a row, and there is none")
    if deployed and upper is None:
        raise Refusal("an answer of the deployed model is recorded, but no row that it is about")
    words = _words(_shown(statements, data["witness"], upper), lower, upper, data["witness"], reason)
    about: dict[str, Any] = {
        "lower": math.inf if lower is None else lower, "upper": upper, "deployed": deployed,
        "network": statement.fingerprint, "question": statement.question,
        "schema": hashlib.sha256(canonical_in_steps(data["question"]["schema"], meter.tick)).hexdigest(),
        "features": feature_words(statement, data["witness"]),
        "rules": (*rule_words(statement), *cause_words(statement)),
    }  # fmt: skip
    if word:
        solver = _text(proof["trusted"], "the trusted solver")
        return CheckResult(verdict=TRUSTED, statement=_not_proven(solver, about) + words, trusted=solver, **about)
    nodes, leaves = check_trees(statements, lower, listed(proof["tree"], "the tree"))
    return CheckResult(verdict=VALID, statement=words, nodes=nodes, leaves=leaves, **about)


def _not_proven(solver: str, about: dict[str, Any]) -> str:
    what = "that no such row exists" if about["lower"] == math.inf else "the lower bound"
    rest = "nothing else is claimed." if about["upper"] is None else "that the row named is such a row was verified."
    return f"NOT PROVEN: {what} is the word of {solver}; {rest}\n"


def has_curve(question: Any) -> bool:
    """Is a probability of one of several classes asked for?"""
    target = question.get("target") if isinstance(question, dict) else None
    targets = [target]
    for key in ("any", "all"):
        parts = [one[key] for one in targets if isinstance(one, dict) and isinstance(one.get(key), list)]
        targets += [one for part in parts for one in part]
    return any(isinstance(one, dict) and "log_odds" in one for one in targets)


def _shown(statements: Sequence[Statement], witness: Any, upper: float | None) -> Statement:
    """The statement whose set of actions leads to the witness; the first one, where there is none."""
    if upper is None or statements[0].actions is None:
        return statements[0]
    point = read_point(statements[0].schema, witness, "the witness")
    return next(one for one in statements if not witness_refusal(one, point, upper))


def _words(
    statement: Statement, lower: float | None, upper: float | None, witness: Any, reason: StatedReason | None
) -> str:
    words = describe(statement, lower, upper, witness)
    return words if reason is None else f"{reason.words}\n{words}"


def _text(value: Any, what: str, most: int = 200) -> str:
    if not isinstance(value, str) or not is_printable(value) or not 0 < len(value) <= most:
        raise Refusal(f"{what} must be named in at most {most} printable characters")
    return value


def read_deployed(value: Any) -> str:
    """What a certificate says of the deployed model's own answer about the witness, in words."""
    if value is None:
        return ""
    entries(value, "the deployed model's answer", "precision", "scores", "agrees", "margin")
    scores = [number(v, "a score of the deployed model") for v in listed(value["scores"], "the deployed scores")]
    shown = ", ".join(map(repr, scores[:MOST_SCORES])) + (", ..." if len(scores) > MOST_SCORES else "")
    if value["precision"] not in ("float32", "float64") or not isinstance(value["agrees"], bool):
        raise Refusal("the deployed model's answer must have a precision (float32 or float64) and say if it agrees")
    margin = None if value["margin"] is None else number(value["margin"], "the margin that covers the deployed model")
    if value["agrees"] is not (margin is None):
        raise Refusal("the deployed model's answer must have a margin that covers it exactly where it does not agree")
    recorded = f"Recorded, not checked: the deployed model, in {value['precision']}, gives the row scores of [{shown}]"
    if value["agrees"]:
        return f"{recorded} and decides as asked."
    return f"{recorded} and does NOT decide as asked; a margin of {margin!r} covers its rounding."


def radius_of(statement: Statement, lower: float | None) -> int | None:
    """The cost that changes must not stay below, in units of 2^-K, rounded up: fees are paid before; None when there
    must be no row at all."""
    if lower is None:
        return None
    cost = Fraction(lower) ** (2 if statement.norm == SQUARED else 1)
    if statement.norm == MAXIMUM:
        cost = Fraction(0) if statement.fee >= cost else cost
    else:
        cost -= statement.fee
    cost = max(cost, Fraction(0)) * 2**statement.cost_unit
    return -(-cost.numerator // cost.denominator)


def parts_of(statement: Statement, lower: float | None) -> list[tuple[Statement, int | None]]:
    """What has to be shown of one alternative, each by a tree: nothing below a radius (None: nothing at all)."""
    found: list[tuple[Statement, int | None]] = [(statement, radius_of(statement, lower))]
    if statement.rules.fewest is not None and statement.rules.limits[statement.rules.fewest][0]:
        found.insert(0, (replace(statement, rules=statement.rules.with_fewer()), None))
    return found


def check_trees(statements: Sequence[Statement], lower: float | None, tree: list[Any]) -> tuple[int, int]:
    """Check the trees of all alternatives, one after the other; how many nodes and leaves they have."""
    nodes = leaves = 0
    parts = [part for one in statements for part in parts_of(one, lower)]
    for k, (part, radius) in enumerate(parts):
        walk = TreeWalk(part, radius)
        walk.check_tree(tree, nodes, last=k == len(parts) - 1)
        nodes, leaves = walk.nodes, leaves + walk.leaves
    return nodes, leaves


def _check_witness(statements: tuple[Statement, ...], witness: Any, upper: Any, lower: float | None) -> float | None:
    statement = statements[0]
    if witness is None:
        if upper is not None:
            raise Refusal("an upper bound is claimed without a row that shows it")
        return None
    point = read_point(statement.schema, witness, "the witness")
    bound = number(upper, "the claimed upper bound")
    refusals = [witness_refusal(one, point, bound) for one in statements]
    if all(refusals):
        raise Refusal(f"the witness fails: {refusals[0]}")
    if lower is None or lower > bound:
        raise Refusal("the witness is nearer than the claimed lower bound")
    return bound


def witness_refusal(statement: Statement, point: tuple[float, ...], upper: float) -> str:
    """Why a row is not an allowed favourable row within `upper`, exactly; or nothing."""
    if refusal := row_refusal(statement, point):
        return refusal
    most = Fraction(upper)
    if most < 0 or statement.cost(point) > (most * most if statement.norm == SQUARED else most):
        return f"it is farther than {upper!r}"
    return ""


def row_refusal(statement: Statement, point: tuple[float, ...]) -> str:
    """Why a row is not an allowed favourable row, at any distance; or nothing."""
    if refusal := statement.allows(point):
        return refusal
    for r, value in enumerate(statement.conditions(point)):
        if value < 0:
            return f"condition {r} is missed"
    return ""
