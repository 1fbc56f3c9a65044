"""Functions of single numbers before trees, linear models and perceptrons: against enumeration and the pipeline itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

from ifonly import Accepted, Categorical, Explainer, Integer, Network, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.methods import Enumerate
from ifonly.model import network_model
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.model.trees import Trees


def schema(kind: Any = Integer, most: int = 40) -> Schema:
    return Schema([kind("income", 0, most), kind("debt", 0, 20), Categorical("job", ["a", "b", "c"])])


RNG = np.random.default_rng(0)
POINTS = schema().sample(300, RNG)
TABLE = pd.DataFrame([schema().row(point) for point in POINTS])
MERIT = np.log1p(TABLE.income) - 0.5 * np.sqrt(TABLE.debt) + (TABLE.job == "b") + 0.3 * RNG.normal(size=len(TABLE))
LABELS = (MERIT.median() < MERIT).to_numpy().astype(int)

LINEAR, NET = LogisticRegression(), MLPClassifier((3,), solver="lbfgs", max_iter=100, random_state=0)
FOREST = RandomForestClassifier(4, max_depth=3, random_state=0)
BOOSTED = GradientBoostingClassifier(n_estimators=4, random_state=0)
CURVES: dict[str, Any] = {
    "log1p": FunctionTransformer(np.log1p),
    "log1p, scaled": make_pipeline(FunctionTransformer(np.log1p), StandardScaler()),
    "square": FunctionTransformer(np.square),
    "power": PowerTransformer(),
    "scaled, power": make_pipeline(StandardScaler(), PowerTransformer()),
    "quantiles": QuantileTransformer(n_quantiles=12),
    "quantiles, normal": QuantileTransformer(n_quantiles=12, output_distribution="normal"),
    "splines": SplineTransformer(degree=1, n_knots=4),
    "cubic splines": SplineTransformer(degree=3, n_knots=4, extrapolation="linear"),
}
ORDERED = [name for name in CURVES if "splines" not in name]


def pipeline(curve: Any, estimator: Any) -> Any:
    columns = ColumnTransformer([("t", curve, ["income", "debt"]), ("o", OneHotEncoder(), ["job"])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(columns, estimator).fit(TABLE, LABELS)


def check(found: Any, described: Schema, *, listed: bool = True) -> Any:
    model = import_model(found, described)
    explainer = Explainer(model)
    for point in schema().sample(2, np.random.default_rng(5)):
        row = described.row(point)
        answer = explainer.explain(row)
        assert answer.status == "nearest"
        changed = found.predict(pd.DataFrame([answer.counterfactual]))
        assert changed != found.predict(pd.DataFrame([row]))
        if listed:
            assert answer.distance == pytest.approx(explainer.using(Enumerate()).explain(row).distance, abs=1e-9)
    return model


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("estimator", [LINEAR, NET], ids=["linear", "perceptron"])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_whole_numbers(curve: Any, estimator: Any) -> None:
    check(pipeline(curve, estimator), schema())


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", [Real, Integer])
@pytest.mark.parametrize("estimator", [FOREST, BOOSTED], ids=["forest", "boosting"])
@pytest.mark.parametrize("name", ORDERED)
def test_trees(name: str, estimator: Any, kind: Any) -> None:
    """Cuts are moved through the curve, to the last bit: the comparison at every split says so."""
    model = check(pipeline(CURVES[name], estimator), schema(kind), listed=kind is Integer)
    assert isinstance(model.function, Trees) and model.deviation == 0.0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("estimator", [LINEAR, NET], ids=["linear", "perceptron"])
@pytest.mark.parametrize("name", ["quantiles", "splines"])
def test_real_numbers_between_knots(name: str, estimator: Any) -> None:
    """What is linear between knots is a network, for any number."""
    found = pipeline(CURVES[name], estimator)
    model = check(found, schema(Real), listed=False)
    assert not isinstance(model.function, Trees | SmoothNetwork)
    fine = schema(Real).sample(2000, np.random.default_rng(0))
    assert np.abs(model.exact_scores(fine) - model.scores(fine)).max() <= model.error.max()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("estimator", [LINEAR, NET], ids=["linear", "perceptron"])
@pytest.mark.parametrize("name", ["log1p", "log1p, scaled", "square", "power", "scaled, power"])
def test_powers_of_real_numbers(name: str, estimator: Any) -> None:
    """Powers and logarithms are smooth units of a network, for any number, within its bound."""
    found = pipeline(CURVES[name], estimator)
    model = check(found, schema(Real), listed=False)
    assert isinstance(model.function, SmoothNetwork) and model.deviation < 1e-10
    fine = schema(Real).sample(2000, np.random.default_rng(0))
    assert (np.abs(model.exact_scores(fine) - model.scores(fine)) <= model.error_at(fine)).all()


@pytest.mark.parametrize(
    "curve", [FunctionTransformer(np.square), make_pipeline(StandardScaler(), PolynomialFeatures(2))]
)
def test_squares_of_numbers_on_both_sides_of_zero(curve: Any) -> None:
    """Before a linear model, by two powers: those of each number alone."""
    both = Schema([Real("x", -2.0, 5.0), Real("z", -7.0, 1.0)])
    points = both.sample(300, np.random.default_rng(1))
    columns = ColumnTransformer([("x", curve, [0]), ("z", clone(curve), [1])])
    fitted = make_pipeline(columns, LogisticRegression()).fit(points, (points**2).sum(axis=1) > 20)
    model = import_model(fitted, both)
    assert isinstance(model.function, SmoothNetwork) and model.deviation < 1e-10
    assert (np.abs(model.exact_scores(points) - model.scores(points)) <= model.error_at(points)).all()
    answer = Explainer(model).explain({"x": 0.5, "z": -0.5}, distance="l2")
    assert answer.status == "nearest" and fitted.predict(np.array([list(answer.counterfactual.values())]))[0]


def test_a_power_below_0_beside_a_rule_of_several_layers() -> None:
    """It passes a layer lifted by as much as it can be below 0: with too little, there was no row "by proof"."""
    wide = Schema([Real("a", 1, 4000), Real("b", 1, 4000)])
    points = np.exp(np.random.default_rng(0).uniform(0, 8, (400, 2)))
    fitted = make_pipeline(FunctionTransformer(np.log), LogisticRegression()).fit(
        points, points.prod(axis=1) > np.exp(8)
    )
    explainer = Explainer(fitted, schema=wide)
    rule = "a <= 20 or b <= 20 or a + b <= 30"
    answer = explainer.explain({"a": 3, "b": 4}, constraints=[rule])
    assert answer.status == "nearest"
    first = explainer.explain({"a": 3, "b": 4}, constraints=["a <= 20"])
    other = explainer.explain({"a": 3, "b": 4}, constraints=["b <= 20"])
    assert answer.upper == pytest.approx(min(first.upper, other.upper), rel=1e-6)
    deep = Network.of([(np.eye(2), np.zeros(2))] * 3 + [([[1.0, 1.0]], [-150.0])])
    beside = Accepted(by=network_model(deep, wide), target=0, name="deep")
    both = explainer.explain({"a": 3, "b": 4}, constraints=[beside])
    assert both.status == "nearest" and sum(both.counterfactual.values()) < 150.0


def test_powers_are_refused_by_what_they_are_not() -> None:
    with pytest.raises(ModelError, match="exponent of a power is a number other than 1; got 1.0"):
        Activation("power", 1.0)


def test_the_remedy_for_a_root() -> None:
    """A lower bound above 0."""
    above = Schema([Real("income", 0.01, 40), Real("debt", 0.01, 20), schema()["job"]])
    found = pipeline(FunctionTransformer(np.sqrt), LINEAR)
    row = {"income": 3.5, "debt": 15.25, "job": "a"}
    answer = Explainer(import_model(found, above)).explain(row)
    assert answer.status == "nearest"
    assert found.predict(pd.DataFrame([answer.counterfactual])) != found.predict(pd.DataFrame([row]))


def test_an_absolute_value_is_bent() -> None:
    described = Schema([Real("balance", -5, 5)])
    table = pd.DataFrame({"balance": np.linspace(-5, 5, 40)})
    labels = (np.abs(table.balance) > 2).astype(int)
    found = make_pipeline(FunctionTransformer(np.abs), LogisticRegression(C=100.0)).fit(table, labels)
    answer = Explainer(import_model(found, described)).explain({"balance": 0.5})
    assert answer.status == "nearest" and abs(answer.counterfactual["balance"]) == pytest.approx(2.0, abs=0.2)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("encoding", ["onehot", "code"])
@pytest.mark.parametrize("estimator", [LINEAR, NET], ids=["linear", "perceptron"])
def test_interactions_of_choices(estimator: Any, encoding: Any) -> None:
    described = Schema(
        [
            Integer("income", 0, 40),
            Categorical("job", ["a", "b", "c"], encoding=encoding),
            Categorical("city", ["x", "y", "z"], encoding=encoding),
        ]
    )
    table = pd.DataFrame([described.row(point) for point in described.sample(300, np.random.default_rng(1))])
    labels = ((table.income > 20) ^ ((table.job == "b") & (table.city != "x"))).astype(int)
    products = make_pipeline(
        OneHotEncoder(), PolynomialFeatures(2, interaction_only=True), StandardScaler(with_mean=False)
    )
    columns = ColumnTransformer([("n", StandardScaler(), ["income"]), ("c", products, ["job", "city"])])
    found = make_pipeline(columns, estimator).fit(table, labels)
    explainer = Explainer(import_model(found, described))
    for point in described.sample(3, np.random.default_rng(2)):
        row = described.row(point)
        answers = [one.explain(row) for one in (explainer, explainer.using(Enumerate()))]
        assert answers[0].distance == pytest.approx(answers[1].distance, abs=1e-9)
        assert found.predict(pd.DataFrame([answers[0].counterfactual])) != found.predict(pd.DataFrame([row]))


REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "real": (
        CURVES["quantiles, normal"], LINEAR, schema(Real),
        "'income' reaches 'LogisticRegression' curved by QuantileTransformer.*Integer",
    ),
    "many": (CURVES["cubic splines"], NET, schema(most=600), "so that it has at most 512 values"),
    "a root from 0": (FunctionTransformer(np.sqrt), LINEAR, schema(Real), "curved by np.sqrt.*lower bound above 0"),
    "lambda": (FunctionTransformer(lambda x: x + 1), LINEAR, schema(), r"FunctionTransformer\(np\.log1p\)"),
    "products of numbers": (PolynomialFeatures(2), LINEAR, schema(), "multiplies feature 'income'.*after the OneHotEncoder"),
    "splines before trees": (CURVES["splines"], FOREST, schema(), "give the trees the number itself"),
    "periodic": (
        SplineTransformer(extrapolation="periodic"), LINEAR, schema(), "fit it with extrapolation='constant' or 'linear'",
    ),
}  # fmt: skip


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("curve", "estimator", "described", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(curve: Any, estimator: Any, described: Schema, words: str) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        import_model(pipeline(curve, estimator), described)


def test_numbers_without_a_logarithm() -> None:
    wider = Schema([Integer("income", -3, 40), *schema().features[1:]])
    with pytest.raises(ModelError, match="takes np.log1p of feature 'income', which reaches from -3 to 40"):
        import_model(pipeline(CURVES["log1p"], LINEAR), wider)
    positive = TABLE.assign(income=TABLE.income + 1, debt=TABLE.debt + 1)
    box_cox = make_pipeline(PowerTransformer(method="box-cox"), LINEAR).fit(positive[["income", "debt"]], LABELS)
    with pytest.raises(ModelError, match="takes numbers above 0 only"):
        import_model(box_cox, Schema(schema().features[:2]))
    check_box = Schema([Integer("income", 1, 41), Integer("debt", 1, 21)])
    assert import_model(box_cox, check_box).deviation < 1e-9


@pytest.mark.long
def test_the_remedy_steps() -> None:
    """What is refused for real numbers and for many is answered in steps."""
    found = pipeline(CURVES["quantiles, normal"], NET)
    stepped = Schema([Integer("income", 0, 600, step=20), Integer("debt", 0, 20), schema()["job"]])
    answer = Explainer(import_model(found, stepped)).explain({"income": 20, "debt": 15, "job": "a"})
    assert answer.status == "nearest"
