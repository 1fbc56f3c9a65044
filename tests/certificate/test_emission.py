"""What the search answers, it can prove: the certificate is emitted, valid, and tight."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import ifonly
from cases import load
from certificate.random_questions import KINDS
from ifonly import Binary, Certificate, ClassTarget, Distance, Explainer, Limits, Network, Real, Schema, certify, check
from ifonly.certificate.check.box import Box
from ifonly.certificate.check.region import Region
from ifonly.certificate.check.statement import read_statement
from ifonly.certificate.check.tree_walk import TreeWalk
from ifonly.certifying.certifier import Certifier
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.certifying.leaves import Leaves, NetworkFloats
from ifonly.errors import UnsupportedQuestion
from ifonly.methods import Enumerate, MipObj, Search, Tolerances
from ifonly.model import network_model
from ifonly.problem import Question
from ifonly.resources import LimitReached, limited
from ifonly.results import Claim, StoppedBy
from ifonly.solvers.search.solver import SearchSolver
from ifonly.tolerances import DEFAULT
from oracles.random_problems import random_problem

TOLERANCES = Tolerances()
SEVERAL_NODES = 6
"""A random problem that takes more than one."""
REFERENCE = [("compas", "2x10", "raw", 4), ("credit", "2x10", "norm", 3), ("adult", "2x10", "raw", 3),
             ("credit", "2x50", "norm", 1), ("adult", "2x50", "norm", 1)]  # fmt: skip


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize(("dataset", "arch", "variant", "rows"), REFERENCE)
def test_reference_cases(dataset, arch, variant, rows, norm):
    model, points, optima = load(dataset, arch, variant)
    question = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm))
    for i in range(rows):
        certificate = Certifier(question, TOLERANCES).proven(points[i], Limits())
        checked = check(certificate)
        assert checked.valid, checked.failure
        assert checked.upper - checked.lower <= TOLERANCES.allowed(checked.upper)
        if norm in optima and not math.isnan(optima[norm][i]):
            assert checked.lower <= optima[norm][i] + 1e-9 and abs(checked.upper - optima[norm][i]) <= 1e-6


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_random_problems(seed, finite):
    """Everything random, both claims; where the search leaves a row on the margin open, exact arithmetic decides."""
    question, points = random_problem(seed, finite=finite)
    claim = Search(records=True).prepare(question).solve(points[:1], Limits())[0]
    checked = check(Certifier(question, TOLERANCES).certificate(points[0], claim))
    assert checked.valid, checked.failure
    if finite:  # every row, looked at
        seen = Enumerate().prepare(question).solve(points[:1], Limits())[0]
        sure = math.inf if seen.point is None else question.distance.between(question.schema, points[0], seen.point)
        assert checked.lower <= sure * (1.0 + 1e-12) and (checked.upper or math.inf) >= seen.lower_any_rounding * (
            1.0 - 1e-12
        )
    if checked.upper is None:
        assert checked.lower == math.inf or checked.lower <= claim.lower
    else:
        assert checked.upper - checked.lower <= TOLERANCES.allowed(checked.upper)
        assert checked.upper >= claim.lower_any_rounding * (
            1.0 - 1e-6
        )  # a row on the very margin, which exact arithmetic takes


def test_the_verbs(tmp_path):
    model, points, _ = load("compas")
    explainer = ifonly.Explainer(model)
    row = model.schema.row(points[0])
    certificate = ifonly.certify(explainer, row, distance="l2")
    answer = explainer.explain(row, distance="l2")
    path = tmp_path / "answer.cert"
    certificate.save(path)
    assert Certificate.load(path) == certificate and path.read_bytes() == certificate.content
    checked = ifonly.check(path)
    assert checked.valid and checked == ifonly.check(certificate)
    assert checked.lower <= answer.upper + 1e-12 and abs(checked.upper - answer.upper) <= 1e-9
    assert "at least" in checked.statement and str(checked).startswith("VALID\n")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("dataset", "norm"), [("credit", "l2"), ("compas", "l0")])
def test_certify_searches_once_for_the_row_that_explain_gives(dataset, norm, monkeypatch):
    """Of equally near rows (compas is tabulated, and l0 has many), the witness is the answer's."""
    model, points, _ = load(dataset)
    explainer = ifonly.Explainer(model)
    solve, seen = SearchSolver.solve, []

    def counted(self, *arguments, **options):
        seen.append(self)
        return solve(self, *arguments, **options)

    for point in points[:4]:
        row = model.schema.row(point)
        answer = explainer.explain(row, distance=norm)
        monkeypatch.setattr(SearchSolver, "solve", counted)
        certificate = ifonly.certify(explainer, row, distance=norm)
        monkeypatch.undo()
        witness = np.array([float.fromhex(value) for value in certificate.data["witness"]])
        assert model.schema.row(witness) == answer.counterfactual and check(certificate).valid
    assert len(seen) == 4 and len(set(seen)) == 1


def test_what_rounding_leaves_open_is_proven_in_exact_arithmetic():
    """Rows are left that some rounding of float32 accepts; that none reaches the margin under any is certified."""
    schema = Schema((Real("x", 0, 1), Real("y", 0, 1000)))
    network = Network.of([([[1.0, 1.0], [0.0, 1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [-1e-7 - 1.0])])
    explainer = ifonly.Explainer(network_model(network, schema, classes=("deny", "approve"), precision="float32"))
    row = {"x": 0, "y": 500}
    answer = explainer.explain(row, target="approve")
    assert answer.stop.by is StoppedBy.ROUNDING
    checked = check(ifonly.certify(explainer, row, target="approve"))
    assert checked.valid and checked.lower == math.inf


def test_a_limit_is_no_proof():
    model, points, _ = load("credit")
    question = Question(model=model, target=ClassTarget(1), distance=Distance("l2"))
    with pytest.raises(ifonly.IfonlyError, match="no proof"):
        Certifier(question, TOLERANCES).proven(points[1], Limits(nodes=2))


def test_without_records_the_proof_is_found_anew():
    """Records only guide: from nothing, the emitter splits by itself."""
    model, points, _ = load("compas")
    question = Question(model=model, target=ClassTarget(1), distance=Distance("l2"))
    claim = Search(table_rows=0).prepare(question).solve(points[:1], Limits())[0]
    assert claim.record is None
    assert check(Certifier(question, TOLERANCES).certificate(points[0], claim)).valid


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_lying_search_is_not_believed(norm):
    """A search that overlooks rows, or claims too much: what is certified is the truth, or nothing is."""
    model, points, _ = load("compas")
    question = Question(model=model, target=ClassTarget(1), distance=Distance(norm))
    claim = Search(records=True).prepare(question).solve(points[:1], Limits())[0]
    honest = check(Certifier(question, TOLERANCES).certificate(points[0], claim))
    nothing = replace(claim, point=None, lower=math.inf)
    too_much = replace(claim, lower=claim.lower * 1.5)
    for lie in (nothing, too_much, replace(nothing, record=None)):
        try:
            checked = check(Certifier(question, TOLERANCES).certificate(points[0], lie))
        except ifonly.IfonlyError:
            continue
        assert checked.valid and checked.lower <= honest.upper and checked.upper >= honest.lower


def test_target_is_met_already():
    model, points, _ = load("compas")
    question = Question(model=model, target=ClassTarget(0, margin=0.0), distance=Distance("l1"))
    checked = check(Certifier(question, TOLERANCES).proven(np.array(points[0]), Limits()))
    assert checked.valid and checked.lower == checked.upper == 0.0


def answered(seed: int) -> tuple[Certifier, np.ndarray, Claim]:
    """Whoever writes, whom it is about, and what the search claims of them."""
    question, points = random_problem(seed)
    certifier = Certifier(question, DEFAULT)
    claim = certifier._solver.solve(points[:1], Limits())[0]
    assert claim.stop is None and check(certifier.certificate(points[0], claim)).valid
    return certifier, points[0], claim


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(seconds=1e-9), "time limit of 1e-09 s"),
        (Limits(memory_bytes=3000), "memory limit of 0 MiB"),
        (Limits(nodes=1), "node limit of 1"),
    ],
)
def test_limits_hold_while_the_proof_is_written(limits, words, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has its answer; writing it out would take more than it may, and says so."""
    certifier, point, claim = answered(SEVERAL_NODES)
    claim = replace(claim, nodes=1, record=None)  # so the proof needs splits of its own
    monkeypatch.setattr(type(certifier._solver), "solve", lambda self, points, limits: [claim])
    with pytest.raises(UnsupportedQuestion, match=f"could not be written out within the {words}; raise it"):
        certifier.proven(point, limits)
    assert check(certifier.proven(point, Limits(seconds=600.0, memory_bytes=2**30, nodes=10**6))).valid


@pytest.mark.parametrize("limits", [Limits(seconds=1e-9), Limits(memory_bytes=3000), Limits(nodes=2)])
@pytest.mark.parametrize(("kind", "seed"), [("rules", 2), ("trees", 25)])
def test_limits_hold_under_rules_and_for_trees(kind, seed, limits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their proofs are not written from records: the splits are counted, and what is kept of them."""
    question, points = KINDS[kind](seed)
    certifier = Certifier(question, DEFAULT)
    claim = replace(certifier._solver.solve(points[:1], Limits())[0], nodes=1, record=None)
    monkeypatch.setattr(type(certifier._solver), "solve", lambda self, points, limits: [claim])
    with pytest.raises(UnsupportedQuestion, match="could not be written out within the (time|memory|node) limit"):
        certifier.proven(points[0], limits)
    assert check(certifier.proven(points[0], Limits(seconds=600.0, memory_bytes=2**30, nodes=10**6))).valid


def test_what_is_kept_with_a_model_serves_every_margin() -> None:
    """The statement that is moved to another margin says the same as one that is read anew."""
    question, points = random_problem(SEVERAL_NODES)
    for margin in (1e-9, 0.0, 1.1e-13, 0.25):
        asked = replace(question, target=replace(question.single_target, margin=margin))
        data, moved, floats = Certifier(asked, DEFAULT)._stated(points[0])
        fresh = read_statement(data, moved.grid, moved.cost_grid)
        more = moved.exponents[-1] - fresh.exponents[-1]  # bits: it is fine enough for all margins so far
        assert more >= 0 and moved.margins == fresh.margins == (margin,)
        for one, other in (
            (moved.biases[-1], fresh.biases[-1]),
            *zip(moved.weight_rows[-1], fresh.weight_rows[-1], strict=True),
        ):
            assert list(one) == [v << more for v in other]
        assert moved.conditions(points[0]) == [v << more for v in fresh.conditions(points[0])]
        np.testing.assert_array_equal(floats.biases, NetworkFloats(fresh).biases)
        np.testing.assert_array_equal(floats.weights, NetworkFloats(fresh).weights)


def test_time_runs_inside_exact_arithmetic_and_inside_the_kernels() -> None:
    certifier, point, claim = answered(3)
    _, statement, network = certifier._stated(point)
    leaves = Leaves(statement, network, None)
    with limited(1e-9, None):
        for work in (
            lambda: certifier._stated(point),
            lambda: Region(statement, Box.whole(statement), None),
            lambda: TreeWalk(statement, None).check_tree([]),
            lambda: leaves.of_record(claim.record),
        ):
            with pytest.raises(LimitReached, match="seconds"):
                work()
    start = leaves.low, leaves.high, leaves.mask, np.zeros(leaves.hidden, dtype=np.uint8), leaves.known
    nodes = [
        len(
            FLOAT_CHECK.now.walk(
                leaves.proof_question, claim.record.log, claim.record.phases, *start, np.full(1, halt, np.uint8)
            )[0]
        )
        for halt in (0, 1)
    ]
    assert nodes[0] > 0 and nodes[1] == 0


@pytest.mark.long
def test_certify_keeps_to_the_limits_of_the_explainer() -> None:
    data = ifonly.datasets.load("credit", rules=False)
    explainer = ifonly.Explainer(ifonly.datasets.network("credit", rules=False))
    for limits, words in (
        (Limits(seconds=1e-9), "time limit of 1e-09 s"),
        (Limits(memory_bytes=1000), "memory limit of 0 MiB"),
        (Limits(nodes=1), "node limit of 1"),
    ):
        with pytest.raises(UnsupportedQuestion, match=words):
            ifonly.certify(explainer.using(limits=limits), data.row(15))
        word = explainer.using(MipObj(), limits=Limits())
        solver = ifonly.certify(word, data.row(15))
        with pytest.raises(ifonly.IfonlyError, match=f"{words}|not over after 1e-09 seconds"):
            ifonly.certifying.prove(solver, limits=limits)


def test_what_is_done_to_a_certificate_does_not_change_the_next_one():
    explainer = ifonly.Explainer(ifonly.datasets.network("compas"))
    row = ifonly.datasets.load("compas").row(1)
    first = ifonly.certify(explainer, row)
    text = first.content
    first.data["question"]["model"]["layers"][0]["weight"][0][0] = "0x0.0p+0"
    first.data["question"]["schema"].clear()
    assert ifonly.certify(explainer, row).content == text


@pytest.mark.parametrize("person", [10, 18])
def test_a_grid_of_cents_under_rules_is_split_at_the_solution(person):
    """Two amounts that a rule ties: splits at a corner of the ball instead would walk along it cent by cent."""
    explainer = ifonly.Explainer(ifonly.datasets.network("credit")).using(limits=Limits(seconds=60))
    certificate = ifonly.certify(explainer, ifonly.datasets.load("credit").row(person))
    checked = check(certificate)
    assert checked.valid, checked.failure
    assert checked.upper - checked.lower <= TOLERANCES.allowed(checked.upper)
    assert len(certificate.data["proof"]["tree"]) < 100


@pytest.mark.parametrize(
    "name", ["forest", "gradient boosting", "histogram boosting", "AdaBoost", "XGBoost", "LightGBM", "CatBoost"]
)
def test_every_library_of_trees(name):
    """The tie of gradient boosting is a shift of 5e-324: in units of 2^-1074, its leaves are beyond any float."""
    sklearn = pytest.importorskip("sklearn.ensemble")
    make = {
        "forest": lambda: sklearn.RandomForestClassifier(5, max_depth=3, random_state=0),
        "gradient boosting": lambda: sklearn.GradientBoostingClassifier(n_estimators=5, random_state=0),
        "histogram boosting": lambda: sklearn.HistGradientBoostingClassifier(max_iter=5),
        "AdaBoost": lambda: sklearn.AdaBoostClassifier(n_estimators=5),
        "XGBoost": lambda: pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, max_depth=3),
        "LightGBM": lambda: pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, verbose=-1),
        "CatBoost": lambda: pytest.importorskip("catboost").CatBoostClassifier(
            iterations=5, depth=3, verbose=False, allow_writing_files=False
        ),
    }[name]
    schema = Schema([Real("income", 0, 9000, step=0.01), Real("debt", 0, 9000)])
    points = schema.sample(300, np.random.default_rng(0))
    labels = (points[:, 0] - 0.5 * points[:, 1] > 2000).astype(int)
    explainer = ifonly.Explainer(make().fit(points, labels), schema=schema)
    for point in points[:3]:
        row = schema.row(point)
        answer, checked = explainer.explain(row), check(ifonly.certify(explainer, row))
        assert checked.valid, checked.failure
        assert checked.upper == pytest.approx(answer.distance, abs=1e-6)


def test_a_split_between_steps_that_no_float64_is():
    """Half a step from -0.22, as a change, has too many digits for one float64: the split was made again and again."""
    schema = Schema([Real("x0", -1, 3), Real("x1", -1, 3), Binary("x2")])
    layers = [([[0.1, -0.2, 1.4], [-0.2, 0.5, -0.4], [0.1, -0.5, 2.3]], [0.0, -0.1, 0.2]), ([[-0.9, 0.8, -1.2]], [0.2])]
    explainer = Explainer(Network.of(layers), schema=schema, classes=("no", "yes")).using(limits=Limits(nodes=2_000))
    steps = ["x0 changes in steps of 0.5", "x1 changes in steps of 0.5"]
    for x1 in (-0.22, 0.1, 0.7):
        assert check(certify(explainer, {"x0": 0.911, "x1": x1, "x2": True}, constraints=steps)).valid
