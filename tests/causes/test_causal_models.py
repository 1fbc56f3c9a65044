"""Causal models: equations, graphs, what follows from an action, files, fits, pictures, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ifonly import Binary, Categorical, CausalModel, Integer, Network, Ordinal, Real, Schema
from ifonly.causes import LinearEquation, ModelEquation, TableEquation
from ifonly.errors import FileError, IfonlyError, ModelError, QuestionError, RowError
from ifonly.model.smooth import RELU, Activation, SmoothNetwork
from ifonly.model.smooth.activations import SideBySide

SCHEMA = Schema(
    [
        Real("salary", 0, 200_000),
        Real("balance", 0, 100_000),
        Categorical("job", ["clerk", "nurse", "cook"]),
        Integer("years", 0, 10),
        Ordinal("grade", ["low", "middle", "high"]),
        Binary("owner"),
    ]
)
ANN = {"salary": 75_000, "balance": 25_000, "job": "nurse", "years": 3, "grade": "middle", "owner": False}
EQUATIONS: dict[str, Any] = {
    "balance": LinearEquation({"salary": 0.3}),
    "grade": TableEquation(["job", "years"], {
        (job, years): (years >= 5) + (job == "cook") for job in ("clerk", "nurse", "cook") for years in range(11)}),
    "salary": LinearEquation({"job": {"clerk": 20_000, "nurse": 30_000, "cook": 25_000}, "years": 2_000.0}, 10_000),
    "owner": ModelEquation(["balance"], Network.of([([[1 / 40_000]], [0.0])])),
}  # fmt: skip


def causes(**more: Any) -> CausalModel:
    return CausalModel(SCHEMA, {**EQUATIONS, **more})


def test_what_follows() -> None:
    mortgage = CausalModel(SCHEMA, {"balance": LinearEquation({"salary": 0.3})})
    assert mortgage.after(ANN, {"salary": 85_000})["balance"] == 28_000
    assert mortgage.after(ANN, {"salary": 85_000, "balance": 25_000})["balance"] == 25_000
    assert causes().after(ANN, {}) == causes().schema.row(SCHEMA.read(ANN))
    moved = causes().after(ANN, {"years": 5})
    assert (moved["salary"], moved["balance"], moved["grade"], moved["owner"]) == (79_000, 26_200, "high", False)
    assert causes().after(ANN, {"salary": 150_000})["owner"] is True, "22,500 are more than half of 40,000"
    assert causes().after(ANN, {"job": "clerk"})["grade"] == "middle", "the noise of this person stays"
    assert causes().order == tuple(map(SCHEMA.index, ("grade", "salary", "balance", "owner")))


def test_a_tie_goes_up() -> None:
    schema = Schema([Integer("x", 0, 9), Integer("y", 0, 9)])
    halves = CausalModel(schema, {"y": LinearEquation({"x": 0.5})})
    assert [halves.after({"x": 4, "y": 4}, {"x": x})["y"] for x in (1, 2, 3, 4, 5, 6)] == [3, 3, 4, 4, 5, 5]


def test_compiled_equations_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0, 200_000, 60), rng.uniform(0, 100_000, 60), rng.integers(0, 3, 60),
                              rng.integers(0, 11, 60), rng.integers(0, 3, 60), rng.integers(0, 2, 60)])  # fmt: skip
    model = causes()
    for g, equation in model.compiled.items():
        through = equation.network.scores(equation.unrolled(points[:, equation.places]) @ equation.codes.T)[:, 0]
        assert np.allclose(through, equation.values(points), rtol=1e-12, atol=1e-9)
        low, high = model.spans[g]
        assert (low <= through).all() and (through <= high).all()
    jobs = SCHEMA["job"].options  # type: ignore[union-attr]
    table = EQUATIONS["grade"].values
    grades = model.compiled[SCHEMA.index("grade")].values(points)
    assert all(abs(g - table[jobs[int(p[2])], int(p[3])]) < 1e-12 for g, p in zip(grades, points, strict=True))


@pytest.mark.parametrize(
    "regressor",
    [
        LinearRegression(),
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=5000, solver="lbfgs", random_state=0),
        RandomForestRegressor(3, max_depth=3, random_state=0),
        MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=5000, solver="lbfgs", random_state=0),
        make_pipeline(
            StandardScaler(),
            MLPRegressor(
                hidden_layer_sizes=(2,),
                activation="logistic",
                alpha=1e5,
                max_iter=50_000,
                solver="lbfgs",
                random_state=0,
            ),
        ),
    ],
)
def test_fitted_regressors_are_equations_and_are_written_and_read(regressor: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 11, 80), rng.integers(0, 2, 80)]).astype(float)
    regressor.fit(rows, 3_000 * rows[:, 0] + 5_000 * rows[:, 1] * (rows[:, 0] > 4))
    model = CausalModel.of({"balance": ["years", "owner"]}, {"balance": regressor}, SCHEMA)
    points = np.tile(SCHEMA.read(ANN), (80, 1))
    points[:, 3], points[:, 5] = rows.T
    assert np.allclose(model.compiled[1].values(points), regressor.predict(rows), rtol=1e-12)
    model.save(tmp_path / "causes.json")
    again = CausalModel.load(tmp_path / "causes.json", SCHEMA)
    assert np.allclose(again.noise(points), model.noise(points), rtol=1e-9, atol=1e-6)
    assert again.to_dict() == model.to_dict()


def test_activations_side_by_side_are_written_and_read() -> None:
    bends = [SideBySide(((Activation("power", 2.0), 1), (RELU, 2))), Activation("elu", 0.5)]
    layers = [(np.full((3, 1), 1e-6), np.zeros(3)), (np.eye(3), np.zeros(3)), (np.ones((1, 3)), np.zeros(1))]
    equation = ModelEquation(["salary"], SmoothNetwork(Network.of(layers), bends))
    model = CausalModel(SCHEMA, {"balance": equation})
    again = CausalModel.from_dict(json.loads(json.dumps(model.to_dict())), SCHEMA)
    assert again.to_dict() == model.to_dict() and again.compiled[1].network.activations == tuple(bends)  # type: ignore[union-attr]
    point = SCHEMA.read(ANN)[None, :]
    assert (again.noise(point) == model.noise(point)).all()


def test_plain_data() -> None:
    written = json.loads(json.dumps(causes().with_holding({"balance": 0.2}).to_dict(), allow_nan=False))
    again = CausalModel.from_dict(written, SCHEMA)
    assert again.to_dict() == written and again.holding_cost("balance") == 0.2 and again.holding_cost("grade") == 0.01
    point = SCHEMA.read(ANN)[None, :]
    assert (again.noise(point) == causes().noise(point)).all()


class DiGraph:
    """What is used of a networkx graph."""

    nodes = ("salary", "balance", "owner")

    def predecessors(self, node: str) -> list[str]:
        return {"balance": ["salary"], "owner": ["salary", "balance"]}.get(node, [])


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", ["linear", "network", "smooth", "boosted"])
def test_fit(kind: str) -> None:
    rng = np.random.default_rng(2)
    salary = rng.uniform(20_000, 120_000, 300)
    balance = 0.3 * salary + rng.normal(0, 500, 300) + 10_000
    table = {"salary": salary, "balance": balance, "job": ["cook"] * 300, "years": [1] * 300, "grade": ["low"] * 300,
             "owner": balance > 30_000}  # fmt: skip
    model = CausalModel.fit(DiGraph(), table, SCHEMA, equations=kind)
    assert model.graph == {"balance": ("salary",), "owner": ("salary", "balance")}
    first = model.fits[0]
    assert (first.feature, first.causes, first.kind, first.rows) == ("balance", ("salary",), kind, 300)
    moved = model.after(ANN, {"salary": 85_000, "owner": True})
    if kind == "boosted":  # which is constant in steps
        assert first.r2 > 0.95 and first.noise < 2_000 and abs(moved["balance"] - 28_000) < 2_000
    else:
        assert first.r2 > 0.99 and 300 < first.noise < 700 and "R2 0.99" in str(first)
        assert abs(moved["balance"] - 28_000) < 300
    linear = CausalModel.fit({"salary": ["job"]}, {**table, "job": ["cook", "nurse", "clerk"] * 100}, SCHEMA)
    values = linear.compiled[0].values(np.array([[0.0, 0.0, k, 0.0, 0.0, 0.0] for k in range(3)]))
    means = [salary[2::3].mean(), salary[1::3].mean(), salary[0::3].mean()]
    assert np.allclose(values, means), "least squares on options are their means"


def test_picture(tmp_path: Path) -> None:
    text = causes().to_svg(tmp_path / "graph.svg")
    assert text == (tmp_path / "graph.svg").read_text() and text.count("<rect") == 6 and text.count("<path") == 2 * 6
    assert "balance follows from salary" in text


def test_trees_over_numbers(tmp_path: Path) -> None:
    """Equations of trees over numbers and options: the values of scikit-learn, also on the cuts and beside them."""
    rng = np.random.default_rng(5)
    rows = np.stack(
        [rng.uniform(20_000, 120_000, 200).round(), rng.integers(0, 11, 200), rng.integers(0, 2, 200)], axis=1
    )
    regressor = RandomForestRegressor(4, max_depth=4, random_state=0)
    regressor.fit(rows, 0.3 * rows[:, 0] + 900 * rows[:, 1] * rows[:, 2])
    parents = ["salary", "years", "owner"]
    model = CausalModel.of({"balance": parents}, {"balance": regressor}, SCHEMA)
    equation = model.compiled[SCHEMA.index("balance")]
    cuts = np.concatenate([one.tree_.threshold[one.tree_.feature == 0] for one in regressor.estimators_])
    tried = np.repeat(rows[:50], 3, axis=0)
    tried[:, 0] = rng.choice(np.concatenate([cuts, cuts + 1e-3, cuts - 1e-3]), len(tried))
    points = np.tile(SCHEMA.read(ANN), (len(tried), 1))
    points[:, [SCHEMA.index(name) for name in parents]] = tried
    network = equation.network.steady_scores(equation.unrolled(points[:, equation.places]))[:, 0]
    assert np.allclose(network, regressor.predict(tried), rtol=1e-12)
    low, high = model.spans[SCHEMA.index("balance")]
    assert low <= network.min() and network.max() <= high
    model.save(tmp_path / "causes.json")
    again = CausalModel.load(tmp_path / "causes.json", SCHEMA)
    assert again.to_dict() == model.to_dict() and np.allclose(again.noise(points), model.noise(points), atol=1e-6)


def _vote() -> Any:
    rows, values = [[float(k)] for k in range(20)], [float(k % 3) for k in range(20)]
    network = MLPRegressor(hidden_layer_sizes=(2,), activation="tanh", max_iter=500, solver="lbfgs", random_state=0)
    return VotingRegressor([("tree", DecisionTreeRegressor(max_depth=2)), ("network", network)]).fit(rows, values)


def _smooth_equation(first: Any) -> ModelEquation:
    network = Network.of([(first, [0.0] * len(first)), ([[1.0] * len(first)], [0.0])])
    return ModelEquation(["salary"], SmoothNetwork(network, [Activation("softplus")]))


def _smooth_data(activations: Any) -> Any:
    """Plain data of an equation of two neurons."""
    layers = [{"weight": [[1.0], [2.0]], "bias": [0.0, 0.0]}, {"weight": [[1.0, 1.0]], "bias": [0.0]}]
    equation = {"kind": "smooth", "parents": ["salary"], "layers": layers, "activations": activations}
    return {"format": "ifonly-causes", "version": 1, "equations": {"balance": equation}}


def _large(columns: int) -> Any:
    """A tree with many cuts of a number, or many leaves over two."""
    rng = np.random.default_rng(0)
    rows = np.stack([rng.uniform(20, 120, 900), rng.integers(0, 11, 900)], axis=1)
    rows[:, 0] = 1000.0 * (rows[:, 0] if columns == 1 else rows[:, 0].round())
    return RandomForestRegressor(1 if columns == 1 else 6, max_leaf_nodes=600, random_state=0).fit(
        rows[:, :columns], rng.normal(size=900)
    )


WRONG: dict[str, tuple[Any, str]] = {
    "cycle": (lambda: CausalModel(SCHEMA, {
        "salary": LinearEquation({"balance": 1.0}), "balance": LinearEquation({"owner": 1.0}), "owner": LinearEquation({"salary": 1.0})}),
        "The causes go in a circle: 'salary' -> 'owner' -> 'balance' -> 'salary'."),
    "itself": (lambda: CausalModel(SCHEMA, {"salary": LinearEquation({"salary": 1.0})}), "circle: 'salary' -> 'salary'"),
    "unknown feature": (lambda: CausalModel(SCHEMA, {"salery": LinearEquation({"years": 1.0})}), "did you mean 'salary'?"),
    "unknown cause": (lambda: CausalModel(SCHEMA, {"salary": LinearEquation({"year": 1.0})}), "did you mean 'years'?"),
    "graph with unknown features": (lambda: CausalModel.of({"salary": ["ears"]}, {}, SCHEMA), "did you mean 'years'?"),
    "missing equation": (lambda: CausalModel.of({"salary": ["years"]}, {}, SCHEMA), "'salary' has causes (years), but no equation; give it one."),
    "equation without causes": (lambda: CausalModel.of({}, {"salary": EQUATIONS["salary"]}, SCHEMA), "'salary' has an equation, but no causes in the graph."),
    "other causes": (lambda: CausalModel.of({"salary": ["balance"]}, {"salary": EQUATIONS["salary"]}, SCHEMA), "has other causes than the graph"),
    "category": (lambda: CausalModel(SCHEMA, {"job": LinearEquation({"years": 1.0})}), "'job' has categories without order, to which no noise can be added"),
    "missing number": (lambda: CausalModel(Schema([Real("a", 0, 1, missing=True), Real("b", 0, 1)]), {"b": LinearEquation({"a": 1.0})}), "'a' may be missing"),
    "weight of a category": (lambda: CausalModel(SCHEMA, {"salary": LinearEquation({"job": 1.0})}), "give each of them a value"),
    "option left out": (lambda: CausalModel(SCHEMA, {"salary": LinearEquation({"job": {"clerk": 1.0, "cook": 2.0}})}), "gives no value to 'nurse' of 'job'"),
    "values of a number": (lambda: CausalModel(SCHEMA, {"salary": LinearEquation({"years": {1: 1.0}})}), "'years' is a number"),
    "table left out": (lambda: CausalModel(SCHEMA, {"grade": TableEquation(["owner"], {True: "low"})}), "The table of 'grade' has no value for False."),
    "table over reals": (lambda: CausalModel(SCHEMA, {"grade": TableEquation(["salary"], {1: 1})}), "where it jumps"),
    "table of other keys": (lambda: TableEquation(["owner", "job"], {True: 1}), "A table of 2 causes has keys of so many values; got True."),
    "unsupported regressor": (lambda: CausalModel.of({"salary": ["years"]}, {"salary": KNeighborsRegressor().fit([[1.0]] * 9, [1.0] * 9)}, SCHEMA), "The equation of 'salary': "),
    "no equation": (lambda: CausalModel(SCHEMA, {"salary": 3.0}), "is a LinearEquation, a TableEquation or a ModelEquation; got 3.0"),
    "no graph": (lambda: CausalModel.of(3, {}, SCHEMA), "networkx DiGraph; got 3"),
    "fee": (lambda: causes().with_holding(-1.0), "The cost of holding a feature is a number from 0 to 1e6; it is -1.0."),
    "fee of no follower": (lambda: causes().with_holding({"job": 1.0}), "'job' has no causes to hold it against"),
    "fit of another kind": (lambda: CausalModel.fit({}, {}, SCHEMA, equations="kernel"), "fitted as linear, network, smooth or boosted; got 'kernel'"),
    "sum of trees and a network": (lambda: CausalModel.of({"salary": ["years"]}, {"salary": _vote()}, SCHEMA), 'fit it as "linear", as a "network", a "smooth" network or "boosted" trees instead'),
    "steps by an inexact equation": (lambda: CausalModel(SCHEMA, {"grade": _smooth_equation([[1e9]])}), "too inexactly to say to which of its steps it follows"),
    "activations of another layer": (lambda: CausalModel.from_dict(_smooth_data([[["tanh", 1.0, 3]]]), SCHEMA), "a whole number; got 3"),
    "activations of fewer neurons": (lambda: CausalModel.from_dict(_smooth_data([[["tanh", 1.0, 1]]]), SCHEMA), "of a layer of 2 neurons are of so many neurons"),
    "an activation too few": (lambda: CausalModel.from_dict(_smooth_data([]), SCHEMA), "A network of 2 layers has 1 activations; got 0"),
    "no activations": (lambda: CausalModel.from_dict(_smooth_data(3), SCHEMA), "an entry per layer but the last; got 3"),
    "an activation of another name": (lambda: CausalModel.from_dict(_smooth_data([[["sinus", 1.0, 0]]]), SCHEMA), "An activation is one of"),
    "no activation": (lambda: CausalModel.from_dict(_smooth_data([["tanh"]]), SCHEMA), "a list of [name, alpha, count]; got 'tanh'"),
    "many cuts": (lambda: CausalModel.of({"balance": ["salary"]}, {"balance": _large(1)}, SCHEMA), "part 'salary' at"),
    "many leaves": (lambda: CausalModel.of({"balance": ["salary", "years"]}, {"balance": _large(2)}, SCHEMA), "leaves over several causes; at most 2000 can be searched exactly: fit fewer or smaller trees"),
    "trees of another format": (lambda: CausalModel.from_dict({"format": "ifonly-causes", "version": 1, "equations": {"balance": {"kind": "trees", "parents": ["salary"], "trees": {"format": "x"}}}}, SCHEMA), "not a file of trees of ifonly"),
    "few rows": (lambda: CausalModel.fit({}, [ANN] * 3, SCHEMA), "at least 10 complete rows; there are 3"),
    "out of range": (lambda: causes().after({**ANN, "balance": 99_000}, {"salary": 85_000}), "Then 'balance' would leave its range"),
    "plain data": (lambda: CausalModel.from_dict({"format": "x"}, SCHEMA), '"format": "ifonly-causes"'),
    "plain equation": (lambda: CausalModel.from_dict({"format": "ifonly-causes", "version": 1, "equations": {"salary": {"kind": "tree"}}}, SCHEMA), "The equation of 'salary': An equation is an object of a kind"),
}  # fmt: skip


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_refused_by_a_sentence(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(IfonlyError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)
    assert isinstance(error.value, ModelError | QuestionError | RowError | FileError | ValueError)


def test_a_number_off_its_steps_has_no_noise() -> None:
    schema = Schema([Real("x", 0, 1), Real("y", 0, 1, step=0.1)])
    model = CausalModel(schema, {"y": LinearEquation({"x": 1.0})})
    assert model.after({"x": 0.2, "y": 0.3}, {"x": 0.44})["y"] == 0.5
    with pytest.raises(RowError, match="'y' follows in steps"):
        model.after({"x": 0.2, "y": 0.35}, {"x": 0.4})
