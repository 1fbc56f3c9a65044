"""Proof writing: one recorded search, and its tree written so that the checker accepts it.

The search's records say how the space was split and which rows closed each box. Every leaf is tried with the checker's
own arithmetic; where it does not hold there (the search's floating point was too tight, or its ball larger), better
multipliers and slopes are looked for, and the leaf is split further if that is not enough. If a box cannot be closed at
all, the claimed lower bound is lowered.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.certificate.check.alternatives import acting_on, sets_of
from ifonly.certificate.check.checker import (
    UNDECIDED,
    check,
    check_trees,
    parts_of,
    row_refusal,
    witness_refusal,
)
from ifonly.certificate.check.distance import SQUARED
from ifonly.certificate.check.reading import Refusal
from ifonly.certificate.check.statement import Statement, read_statement
from ifonly.certificate.check.tree_walk import MAX_DEPTH, MAX_NODES
from ifonly.certificate.format import FORMAT, FREE_TEXT, MAX_BYTES, VERSION, Certificate, canonical, stamped
from ifonly.certifying.effort import Effort, ProofBudget, Verification, within_limits
from ifonly.certifying.grids import grids
from ifonly.certifying.statement import (
    NO_EXTRAS,
    StatedExtras,
    hexes,
    question_data,
    stated_planes,
)
from ifonly.errors import FileError, UnsupportedQuestion
from ifonly.problem import (
    Question,
    Steps,
)
from ifonly.problem.already_satisfied import already_decided, broken_by
from ifonly.resources import LimitReached, check_limits, seconds_left
from ifonly.results.claim import Claim, Limits, Solver
from ifonly.results.claims import Claims
from ifonly.results.deployed import deployed_answer
from ifonly.results.shorten import shortened
from ifonly.results.stop import StoppedBy
from ifonly.solvers.search.search import Search
from ifonly.tolerances import Tolerances

if TYPE_CHECKING:
    from ifonly.certifying.forest import ForestCells
    from ifonly.certifying.leaves import NetworkFloats
    from ifonly.solvers.search.record import Record

SHARE = 0.9
"""Of the allowed gap between lower and upper that a certificate uses."""
NEARER = 40
"""Witnesses that may be replaced by nearer ones."""
LEFT_OPEN = (StoppedBy.ROUNDING, StoppedBy.CLOSE, StoppedBy.EDGE)
"""What stops floating point, but not exact arithmetic."""
STEPS = (1.0, 10.0, 1e2, 1e3, 1e4, 1e5)
"""By how many allowed gaps the lower bound is lowered, attempt after attempt, when a leaf cannot be closed."""


class Certifier:
    """Writes certificates of one question, for any number of people: what they share is prepared once.

    Leaves of floating point that are doubtful, and small trees, are verified by the checker's own arithmetic, and
    closed there anew where they do not hold (docs/certificate.md). `verified`: True verifies all of every tree, which
    takes up to three times as long, more for large trees; False verifies nothing. `deployed` is the question to the
    model whose scores of the witness are recorded, where that is another one. `extras`: what is
    stated beside the question.
    """

    def __init__(
        self,
        question: Question,
        tolerances: Tolerances,
        *,
        verified: bool | None = None,
        deployed: Question | None = None,
        extras: StatedExtras = NO_EXTRAS,
    ) -> None:
        self.question, self.tolerances, self.verified = question, tolerances, verified
        self.deployed = deployed or question
        self._data = question_data(question, extras.others)
        self._data["constraints"] += extras.constraints
        self._data |= {} if extras.causes is None else {"causes": extras.causes}
        self._acted = extras.acted
        self._planes = stated_planes(question, extras.claim)
        self._meter = ProofBudget()

    @property
    def _ways(self) -> tuple[Verification, ...]:
        if self.verified is None:
            return (Verification.DOUBTFUL,)
        return (Verification.DOUBTFUL, Verification.ALL) if self.verified else (Verification.NONE,)

    @cached_property
    def records(self) -> bool:
        """Is the proof written from the records of the search? They know nothing of literals and of steps."""
        asked = self.question
        stepped = asked.schema.grids or any(isinstance(one, Steps) for one in asked.by_feature)
        network = asked.model.function.as_network() is not None
        return network and not (asked.rules or stepped or asked.others) and asked.distance.is_symmetric

    @cached_property
    def _solver(self) -> Solver:
        method = Search(records=True, table_rows=0) if self.records else Search()
        return method.prepare(self.question.joint, self.tolerances)

    def decides_already(self, point: NDArray[np.float64]) -> bool:
        """Is this person decided as asked already? Where a certificate cannot say so, it would mislead: refused."""
        question = self.question
        scores = question.model.scores(point[None, :])
        if not already_decided(question.single_target, question.model, point[None, :], scores)[0]:
            return False
        if not all(one.accepts_unchanged(question.schema, point[None, :])[0] for one in question.others):
            return False
        start = "This person is decided as asked already, so nothing needs to change; but"
        broken = broken_by(question.schema, point, question.constraints)
        if broken:
            raise UnsupportedQuestion(f"{start} the row breaks '{broken[0]}', and a certificate is about allowed rows.")
        _, statement, _ = self._stated(point)
        refusal = witness_refusal(statement, tuple((point + 0.0).tolist()), 0.0)
        if refusal:
            raise UnsupportedQuestion(
                f"{start} a certificate is about exact scores that reach the margin of {question.target.margin:g}: "
                f"{refusal}. Ask with a smaller margin."
            )
        return True

    def proven(self, point: NDArray[np.float64], limits: Limits, *, spent: float = 0.0) -> Certificate:
        """Search, and write the proof out, within the limits, of which so many seconds are spent already."""
        begun = time.perf_counter() - spent
        with within_limits(limits, spent):
            solver = self._solver
            spent = time.perf_counter() - begun
            claims = Claims.of(solver.solve(point[None, :], limits.after(spent)), point[None, :])
            claim = claims.counting(spent, limits)[0]
            return self.certificate(point, claim, nodes=limits.nodes)

    def certificate(
        self, point: NDArray[np.float64], claim: Claim, *, shorten: bool = True, nodes: int | None = None
    ) -> Certificate:
        """The certificate of a claim that the search made about this person, with records; its nodes and the splits
        beyond them are at most `nodes` together. `shorten`: its witness may have shorter numbers than the claimed row.
        """
        if claim.stop is not None and claim.stop.by not in LEFT_OPEN:
            raise UnsupportedQuestion(f"There is no proof to write out: the search hit its {claim.stop.words()}.")
        question_data, statement, network = self._stated(point)
        found = self._witness(statement, point, claim, shorten=shorten)
        more = None if nodes is None else max(nodes - claim.nodes, 0)
        failure = "a box could not be closed"
        for verify in self._ways:
            part = (statement, network, claim.record)
            proof = exact_proof([part], claim, found, self.tolerances, Effort(verify, more))
            if proof is None:
                break
            refusal = _refusal(statement, proof) if self.verified else too_large(proof[0])
            if not refusal:
                return self._written(question_data, statement, claim, proof[1:], {"tree": proof[0]})
            failure = refusal
        raise UnsupportedQuestion(
            f"The search's answer could not be proven in exact arithmetic: {failure}; `explain` gives it without proof."
        )

    def trusted(self, point: NDArray[np.float64], claim: Claim) -> Certificate:
        """The certificate of what another solver claims: its row is checked, its lower bound is its word."""
        question_data, statement, _ = self._stated(point)
        witness, upper = self._witness(statement, point, claim, shorten=False)
        lower = claim.lower if upper is None else min(claim.lower, upper)
        if math.isinf(lower) and claim.stop is not None:
            raise UnsupportedQuestion(f"There is nothing to write out: {claim.method} hit its {claim.stop.words()}.")
        stated = (None if math.isinf(lower) else lower, witness, upper)
        certificate = self._written(question_data, statement, claim, stated, {"trusted": claim.method})
        left = seconds_left()
        checked = check(certificate) if left is None else check(certificate, seconds=left)
        if checked.verdict == UNDECIDED:
            raise LimitReached("seconds")
        if not checked.trusted:
            raise UnsupportedQuestion(f"What {claim.method} says cannot be written out: {checked.failure}.")
        return certificate

    def _witness(
        self, statement: Statement, point: NDArray[np.float64], claim: Claim, *, shorten: bool
    ) -> tuple[Witness, float | None]:
        """The claimed row, with shorter numbers where they pass too; and its distance, rounded up."""
        if claim.point is None:
            return None, None
        rows = [claim.point]
        if shorten:
            rows = [shortened(self.question.joint, point[None, :], [claim], self.tolerances).points[0], claim.point]
        for row in rows:
            witness = tuple((row + 0.0).tolist())
            upper = _distance(statement, witness)
            if not row_refusal(statement, witness) and self.tolerances.close(min(claim.lower, upper), upper):
                return witness, upper
        return None, None

    def _stated(self, point: NDArray[np.float64]) -> tuple[dict[str, Any], Statement, NetworkFloats | ForestCells]:
        from ifonly.certifying.forest import ForestCells
        from ifonly.certifying.leaves import NetworkFloats
        from ifonly.certifying.prepared import Prepared, prepared

        question_data = {**self._data, "factual": hexes(point)}
        fine = grids(self.question, point)

        def read() -> Prepared:
            self._meter.kept = 0
            try:
                statement = read_statement(question_data, *fine, self._meter, planes=self._planes)
            except Refusal as refusal:
                raise UnsupportedQuestion(f"A certificate of this question would not be checked: {refusal}.") from None
            floats = NetworkFloats(statement) if statement.forest is None else ForestCells(statement)
            return Prepared(statement, floats, self._meter.kept)

        if "causes" in self._data:
            return question_data, *self._of_actions(question_data, fine)
        found = prepared(self.question.model.function, self._data, fine, self._meter, read)
        self._meter.kept = found.kept
        return question_data, found.statement.about(tuple((point + 0.0).tolist())), found.floats

    def _of_actions(
        self, question_data: dict[str, Any], fine: tuple[int, int]
    ) -> tuple[Statement, NetworkFloats | ForestCells]:
        """The statement about the certifier's own set of features with causes."""
        from ifonly.certifying.forest import ForestCells
        from ifonly.certifying.leaves import NetworkFloats

        try:
            statement = read_statement(question_data, *fine, self._meter)
            own = acting_on(statement, sets_of(statement)[self._acted])
        except Refusal as refusal:
            raise UnsupportedQuestion(f"A certificate of this recourse would not be checked: {refusal}.") from None
        return own, NetworkFloats(own) if own.forest is None else ForestCells(own)

    def _written(
        self, question_data: dict[str, Any], statement: Statement, claim: Claim, stated: Stated, proof: dict[str, Any]
    ) -> Certificate:
        lower, witness, upper = stated
        question = canonical(question_data)
        deployed = None if witness is None else deployed_answer(self.deployed.joint, np.array(witness)).to_data()
        data: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"ifonly {claim.method}",
            "question": json.loads(question),  # a copy: what is stated of a model is kept
            "claim": {"lower": None if lower is None else lower.hex(), "upper": None if upper is None else upper.hex()},
            "witness": None if witness is None else [v.hex() for v in witness],
            "deployed": deployed,
            "proof": {
                "grid": statement.grid,
                "cost_grid": statement.cost_grid,
                **({} if self._planes is None else {"planes": self._planes}),
                **proof,
            },
        }
        certificate = stamped(data, question)
        if len(certificate.content) > MAX_BYTES:
            raise UnsupportedQuestion(
                f"The proof takes {len(certificate.content) >> 20} MiB; a certificate has at most {MAX_BYTES >> 20}."
            )
        if len(certificate.content) > FREE_TEXT:
            try:
                Certificate.from_bytes(certificate.content)
            except FileError as error:
                raise UnsupportedQuestion(f"The proof cannot be written so that it can be read: {error}") from None
        return certificate


Stated = tuple[float | None, "Witness", float | None]
"""Lower bound (None: no row exists), witness, and its distance."""
Witness = tuple[float, ...] | None
Parts = Sequence[tuple[Statement, "NetworkFloats | ForestCells", "Record | None"]]
"""Of each alternative of the target: the statement, what is prepared for it, and what the search recorded."""
Proven = tuple[list[Any], float | None, Witness, float | None]


def exact_proof(
    parts: Parts, claim: Claim, found: tuple[Witness, float | None], tolerances: Tolerances, effort: Effort
) -> Proven | None:
    """The tree, the lower bound that it proves, and the witness: the claimed one, or a nearer one.

    Rows on the margin to the last bit are neither returned nor ruled out by the search; exact arithmetic can do both.
    So more than the search's lower bound is tried first, and a row that prevents it is the better answer.
    """
    from ifonly.certifying.nearer import Nearer
    from ifonly.certifying.prover import Unclosed

    witness, upper = found
    for _ in range(NEARER):
        try:
            lower = None if upper is None else max(upper - SHARE * tolerances.allowed(upper), 0.0)
            return proof_trees(parts, lower, effort), lower, witness, upper
        except Nearer as nearer:
            own = [one for one, *_ in parts if not row_refusal(one, nearer.point)]
            witness, upper = nearer.point, min(_distance(one, nearer.point) for one in own)
        except Unclosed:
            break
    for step in STEPS if upper is not None or claim.lower < math.inf else ():
        allowed = claim.lower if upper is None else tolerances.allowed(upper)
        most = claim.lower * (1.0 - 1e-9) if upper is None else min(claim.lower, upper - SHARE * allowed)
        lower = max(most - (step - 1.0) * allowed, 0.0)
        try:
            return proof_trees(parts, lower, effort), lower, witness, upper
        except (Nearer, Unclosed):
            continue
    return None


def proof_trees(parts: Parts, lower: float | None, effort: Effort) -> list[Any]:
    """The trees of all alternatives, one after the other."""
    from ifonly.certifying.forest import ForestCells, ForestProver
    from ifonly.certifying.nearer import Nearer
    from ifonly.certifying.prover import Unclosed
    from ifonly.certifying.prover import prove as prove_leaves

    tree: list[Any] = []
    for statement, prepared, record in parts:
        *fewer, whole = parts_of(statement, lower)
        for part, radius in (*fewer, whole):
            check_limits()
            try:
                if isinstance(prepared, ForestCells):
                    tree += ForestProver(part, prepared, radius, effort).prove()
                else:
                    tree += prove_leaves(part, prepared, radius, record, effort)
            except Nearer:
                if part is whole[0]:
                    raise
                raise Unclosed from None  # a row on the margin with fewer changes
    return tree


def too_large(tree: list[Any]) -> str:
    """Why a tree has more nodes, or more above each other, than are checked; or nothing."""
    if len(tree) > MAX_NODES:
        return f"the proof has {len(tree)} nodes; at most {MAX_NODES} are checked"
    if len(tree) > MAX_DEPTH:
        waiting, deepest = [0], 0
        for node in tree:
            depth = waiting.pop()
            deepest = max(deepest, depth)
            waiting += [depth + 1] * (2 if isinstance(node, list) else int("bounds" in node))
        if deepest > MAX_DEPTH:
            return f"the proof is {deepest} nodes deep; at most {MAX_DEPTH} are checked"
    return ""


def _refusal(statement: Statement, proven: Proven) -> str:
    """What the checker has against a proof, or nothing."""
    tree, lower, witness, upper = proven
    try:
        check_trees([statement], lower, tree)
    except Refusal as refusal:
        return str(refusal)
    if witness is None or upper is None:
        return ""
    if lower is None or lower > upper:
        return "the witness is nearer than the claimed lower bound"
    return witness_refusal(statement, witness, upper)


def _distance(statement: Statement, point: tuple[float, ...]) -> float:
    """The distance of a row, rounded up."""
    cost = statement.cost(point)
    distance = math.sqrt(cost) if statement.norm == SQUARED else float(cost)
    while Fraction(distance) ** (2 if statement.norm == SQUARED else 1) < cost:
        distance = math.nextafter(distance, math.inf)
    return distance
