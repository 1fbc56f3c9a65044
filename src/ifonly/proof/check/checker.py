"""`check`: VALID with the proven statement in words, or INVALID with the first step that fails.

Answers of other solvers are VALID EXCEPT FOR THE SOLVER'S WORD at best: all but the lower bound is verified.

The claim is about the network as real arithmetic on its stored weights. Three things are verified, in integers and
rationals: the witness (a row of the schema, allowed, decided as asked, as near as claimed); that the tree's leaves
cover the space (splits have two sides, so they do, if every node has its children); and that no leaf holds a favourable
row nearer than claimed. Leaves are bounded in integers, rounded outward where a division is needed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ifonly.errors import FileError
from ifonly.proof.certificate import Certificate
from ifonly.proof.check.region import Bounds, Box, Region
from ifonly.proof.check.statement import (
    MAX_BITS,
    SQUARED,
    Clock,
    Refusal,
    Statement,
    Stopped,
    entries,
    listed,
    number,
    read_point,
    read_statement,
    scaled,
    whole,
)
from ifonly.schema import Choice

MAX_NODES = 2_000_000
MAX_DEPTH = 20_000
MAX_ROWS = 1_000


VALID, TRUSTED, UNDECIDED, INVALID = "VALID", "VALID EXCEPT FOR THE SOLVER'S WORD", "UNDECIDED", "INVALID"
LONGEST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict on a certificate. `statement` is what was proven; `failure` the first step that fails.

    `trusted` names the solver whose word the lower bound is, when that is all there is: then the rest was verified, and
    `valid` is False. `deployed` is what the certificate says of the deployed model's own answer: it was not checked.
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

    @property
    def valid(self) -> bool:
        """All of the statement is proven."""
        return self.verdict == VALID

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an infinite lower bound (no such row) is None."""
        return {
            "verdict": self.verdict,
            "statement": self.statement,
            "failure": self.failure,
            "lower": None if math.isinf(self.lower) else self.lower,
            "upper": self.upper,
            "nodes": self.nodes,
            "leaves": self.leaves,
            "trusted": self.trusted,
            "deployed": self.deployed,
        }

    def __str__(self) -> str:
        told = f"{self.verdict}: {self.statement or self.failure}"
        return f"{told} {self.deployed}" if self.deployed else told


def check(certificate: Certificate | str | Path, *, seconds: float = LONGEST_SECONDS) -> Checked:
    """Check a certificate, or the file of one, step by step in exact arithmetic, for at most so many seconds."""
    clock = Clock(time.monotonic() + seconds)
    try:
        if not isinstance(certificate, Certificate):
            certificate = Certificate.load(certificate)
        else:
            certificate = Certificate.from_bytes(_content(certificate))
        return _check(certificate.data, clock)
    except (Refusal, FileError) as refusal:
        return Checked(verdict=INVALID, failure=str(refusal))
    except Stopped:
        return Checked(verdict=UNDECIDED, failure=f"the check was not over after {seconds:g} seconds")
    except (RecursionError, MemoryError):
        return Checked(verdict=INVALID, failure="the certificate is too deeply nested or too large")


def _content(certificate: Certificate) -> bytes:
    try:
        return certificate.content
    except (TypeError, ValueError) as error:
        raise Refusal(f"this is no plain data: {error}") from None


def _check(data: dict[str, Any], clock: Clock) -> Checked:
    entries(
        data, "a certificate", "format", "version", "made_by", "question", "claim", "witness", "deployed", "proof",
        "sha256",
    )  # fmt: skip
    word = isinstance(data["proof"], dict) and "trusted" in data["proof"]
    proof = entries(data["proof"], "the proof", "grid", "cost_grid", "trusted" if word else "tree")
    grid, cost_grid = (whole(proof[key], f"the proof's {key}", 8, MAX_BITS) for key in ("grid", "cost_grid"))
    statement = read_statement(data["question"], grid, cost_grid, clock)
    claim = entries(data["claim"], "the claim", "lower", "upper")
    lower = None if claim["lower"] is None else number(claim["lower"], "the claimed lower bound")
    if lower is not None and lower < 0.0:
        raise Refusal("the claimed lower bound is negative")
    upper = _check_witness(statement, data["witness"], claim["upper"], lower)
    deployed = read_deployed(data["deployed"])
    about: dict[str, Any] = {"lower": math.inf if lower is None else lower, "upper": upper, "deployed": deployed}
    words = describe(statement, lower, upper, data["witness"])
    if word:
        solver = _text(proof["trusted"], "the trusted solver")
        words += (
            f" NOT PROVEN: {'that no such row exists' if lower is None else 'the lower bound'} is the word of {solver};"
            f" {'that the row named is such a row was verified.' if upper is not None else 'nothing else is claimed.'}"
        )
        return Checked(verdict=TRUSTED, statement=words, trusted=solver, **about)
    walk = Walk(statement, radius_of(statement, lower))
    walk.check_tree(listed(proof["tree"], "the tree"))
    return Checked(verdict=VALID, statement=words, nodes=walk.nodes, leaves=walk.leaves, **about)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 200:
        raise Refusal(f"{what} must be named in at most 200 printable characters")
    return value


def read_deployed(value: Any) -> str:
    """What a certificate says of the deployed model's own answer about the witness, in words."""
    if value is None:
        return ""
    entries(value, "the deployed model's answer", "precision", "scores", "agrees", "margin")
    scores = [number(v, "a score of the deployed model") for v in listed(value["scores"], "the deployed scores")]
    if value["precision"] not in ("float32", "float64") or not isinstance(value["agrees"], bool):
        raise Refusal("the deployed model's answer must have a precision (float32 or float64) and say if it agrees")
    margin = None if value["margin"] is None else number(value["margin"], "the margin that covers the deployed model")
    told = f"Recorded, not checked: the deployed model, in {value['precision']}, gives the row scores of {scores}"
    if value["agrees"]:
        return f"{told} and decides as asked."
    return f"{told} and does NOT decide as asked; a margin of {margin!r} covers its rounding."


def radius_of(statement: Statement, lower: float | None) -> int | None:
    """The cost that rows must not stay below, in units of 2^-K, rounded up; None when there must be none at all."""
    if lower is None:
        return None
    cost = Fraction(lower) ** (2 if statement.norm == SQUARED else 1) * 2**statement.cost_unit
    return -(-cost.numerator // cost.denominator)


def _check_witness(statement: Statement, witness: Any, upper: Any, lower: float | None) -> float | None:
    if witness is None:
        if upper is not None:
            raise Refusal("an upper bound is claimed without a row that shows it")
        return None
    point = read_point(statement.schema, witness, "the witness")
    bound = number(upper, "the claimed upper bound")
    if refusal := witness_refusal(statement, point, bound):
        raise Refusal(f"the witness fails: {refusal}")
    if lower is None or lower > bound:
        raise Refusal("the witness is nearer than the claimed lower bound")
    return bound


def witness_refusal(statement: Statement, point: tuple[float, ...], upper: float) -> str:
    """Why a row is not an allowed favourable row within `upper`, exactly; or nothing."""
    if refusal := statement.allows(point):
        return refusal
    for r, value in enumerate(statement.conditions(point)):
        if value < 0:
            return f"condition {r} is missed by {float(-value):.3g}"
    most = Fraction(upper)
    if most < 0 or statement.cost(point) > (most * most if statement.norm == SQUARED else most):
        return f"it is farther than {upper!r}"
    return ""


class Walk:
    """The way through a tree, given in preorder."""

    def __init__(self, statement: Statement, radius: int | None) -> None:
        self.statement, self.radius = statement, radius
        self.nodes = self.leaves = 0
        whole_region = Region(statement, Box.whole(statement), radius)
        self.known: Bounds | None = None if whole_region.empty else whole_region.bounds
        """Bounds over the whole ball: they hold in every leaf. None: nothing is left in the ball."""

    def check_tree(self, tree: list[Any]) -> None:
        if len(tree) > MAX_NODES:
            raise Refusal(f"the tree has more than {MAX_NODES} nodes")
        waiting = [(Box.whole(self.statement), 0)]
        for self.nodes, node in enumerate(tree, start=1):
            if not waiting:
                raise Refusal(f"node {self.nodes} of the tree is one too many")
            self.statement.clock.tick()
            box, depth = waiting.pop()
            if isinstance(node, dict):
                self._check_leaf(box, node)
                self.leaves += 1
                continue
            if depth >= MAX_DEPTH:
                raise Refusal(f"the tree is deeper than {MAX_DEPTH}")
            first, second = self._split(box, listed(node, f"node {self.nodes} of the tree"))
            waiting += [(second, depth + 1), (first, depth + 1)]
        if waiting:
            raise Refusal(f"the tree is cut off: {len(waiting)} regions are not closed")

    def _split(self, box: Box, node: list[Any]) -> tuple[Box, Box]:
        """["number", feature, change], ["option", feature, option] or ["relu", layer, neuron]."""
        where = f"node {self.nodes} of the tree"
        if len(node) != 3 or node[0] not in ("number", "option", "relu"):
            raise Refusal(f"{where} is no split")
        statement = self.statement
        if node[0] == "relu":
            layer = whole(node[1], f"{where}: the layer", 0, statement.layers - 2)
            return box.split_relu(layer, whole(node[2], f"{where}: the neuron", 0, statement.sizes[layer] - 1))
        g = whole(node[1], f"{where}: the feature", 0, len(statement.schema) - 1)
        feature = statement.schema.features[g]
        if isinstance(feature, Choice) != (node[0] == "option"):
            raise Refusal(f"{where} does not fit the kind of '{feature.name}'")
        if isinstance(feature, Choice):
            return box.split_option(g, whole(node[2], f"{where}: the option", 0, len(feature.options) - 1))
        change = scaled(number(node[2], f"{where}: the change"), statement.grid, f"{where}: the change")
        return box.split_number(statement, g, change)

    def _check_leaf(self, box: Box, leaf: dict[str, Any]) -> None:
        """{"rows": [[layer, neuron, sign, slopes, multiplier], ...]}: their combination must be negative everywhere."""
        where = f"node {self.nodes} of the tree"
        rows = listed(entries(leaf, where, "rows")["rows"], f"{where}: the rows")
        if len(rows) > MAX_ROWS:
            raise Refusal(f"{where} has more than {MAX_ROWS} rows")
        if self.known is None:
            return
        region = Region(self.statement, box, self.radius, self.known)
        if region.empty:
            return
        read = [self._row(box, listed(row, f"{where}: a row", 5), where) for row in rows]
        if not read or most_of_rows(region, read) >= 0:
            raise Refusal(f"{where} is not closed: a favourable row nearer than claimed may be in it")

    def _row(self, box: Box, row: list[Any], where: str) -> tuple[int, int, int, int, Fraction]:
        """(layer, neuron, sign, slopes, multiplier): sign * pre-activation >= 0 holds for favourable rows here."""
        statement = self.statement
        layer = whole(row[0], f"{where}: a row's layer", 0, statement.layers - 1)
        neuron = whole(row[1], f"{where}: a row's neuron", 0, statement.sizes[layer] - 1)
        sign = whole(row[2], f"{where}: a row's sign", -1, 1)
        if layer == statement.layers - 1:
            known = sign == 1
        else:
            known = box.sides.get((layer, neuron)) == {1: 1, -1: 2}.get(sign)
        if not known or sign == 0:
            raise Refusal(f"{where}: nothing says that row ({layer}, {neuron}, {sign}) holds there")
        bits = row[3]
        hidden = sum(statement.sizes[:-1])
        if not isinstance(bits, str) or len(bits) > hidden // 4 + 1 or set(bits) - set("0123456789abcdef"):
            raise Refusal(f"{where}: a row's slopes must be hexadecimal digits")
        multiplier = Fraction(number(row[4], f"{where}: a row's multiplier"))
        if multiplier <= 0:
            raise Refusal(f"{where}: a row's multiplier must be positive")
        return layer, neuron, sign, int(bits or "0", 16), multiplier


def most_of_rows(region: Region, rows: list[tuple[int, int, int, int, Fraction]]) -> int:
    """An upper bound, over the region, of the combination of rows; its sign is what counts."""
    planes = [region.plane(layer, neuron, sign, slopes) for layer, neuron, sign, slopes, _ in rows]
    finer = [multiplier.denominator.bit_length() - 1 for *_, multiplier in rows]
    units = [unit + bits for (_, _, unit), bits in zip(planes, finer, strict=True)]
    common = max(units)
    total, constant = [0] * len(region.columns), 0
    for (a, c, _), (*_, multiplier), unit in zip(planes, rows, units, strict=True):
        times = multiplier.numerator << (common - unit)
        total = [t + times * v for t, v in zip(total, a, strict=True)]
        constant += times * c
    return region.most(total, constant, common)


def describe(statement: Statement, lower: float | None, upper: float | None, witness: Any) -> str:
    """The proven statement in words."""
    schema = statement.schema
    start = ", ".join(f"{f.name}={f.value(v)!r}" for f, v in zip(schema.features, statement.factual, strict=True))
    count = len(statement.constraints)
    bound = f"Under {count} constraint(s) ({', '.join(map(_constraint, statement.constraints))})" if count else "Freely"
    what = f"gives {statement.wanted} with margin {statement.margin!r}"
    about = f"{bound}, starting from the row ({start}), under the distance {_distance(statement)}"
    if lower is None:
        return f"{about}: no allowed row {what} (real arithmetic on the stored weights)."
    text = f"{about}: every allowed row that {what} is at a distance of at least {lower!r}"
    if upper is not None:
        point = [float.fromhex(v) for v in witness]
        changed = [
            f"{f.name}={f.value(v)!r}"
            for f, v, old in zip(schema.features, point, statement.factual, strict=True)
            if v != old
        ]
        text += f", and one with {', '.join(changed) or 'no change'} is within {upper!r}"
    return text + " (real arithmetic on the stored weights)."


def _distance(statement: Statement) -> str:
    if statement.norm_name != "l0+l1":
        return statement.norm_name
    return f"{float(statement.jump)!r}*l0 + {float(statement.rate)!r}*l1"


def _constraint(constraint: dict[str, Any]) -> str:
    return f"{constraint['feature']}: {constraint['kind']}"
