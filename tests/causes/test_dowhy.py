"""Causal models of DoWhy: read by their attributes; with the package where it is installed, with a stand-in elsewhere."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from ifonly import Categorical, CausalModel, Explainer, IfonlyError, Network, Real, Schema

SCHEMA = Schema([Real("income", 0, 200), Real("age", 18, 90), Real("balance", -100, 400)])
GRAPH = {"income": ["age"], "balance": ["income", "age"]}  # DoWhy takes causes by name: age, income


def data() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    age = rng.uniform(20, 80, 400)
    income = 40 + 0.8 * age + rng.normal(0, 5, 400)
    return {"income": income, "age": age, "balance": 0.5 * income + np.where(age > 50, 60, 0) + rng.normal(0, 4, 400)}


class Graph:
    nodes = ("age", "balance", "income")

    def predecessors(self, node: str) -> list[str]:
        return GRAPH.get(node, [])


class SklearnRegressionModel:
    def __init__(self, model: Any, encoders: Any = None) -> None:
        self.sklearn_model, self._encoders = model, encoders or {}


class AdditiveNoiseModel:
    def __init__(self, model: Any) -> None:
        self.prediction_model = model


class Invertible:
    """What is used of a `gcm.InvertibleStructuralCausalModel`."""

    graph: Any = Graph()

    def __init__(self, mechanisms: dict[str, Any]) -> None:
        self.mechanisms = mechanisms

    def causal_mechanism(self, node: str) -> Any:
        return self.mechanisms[node]


def stand_in() -> Invertible:
    table = data()
    income = LinearRegression().fit(table["age"][:, None], table["income"])
    rows = np.stack([table["age"], table["income"]], axis=1)
    balance = HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=4, max_bins=16).fit(rows, table["balance"])
    found = {"income": income, "balance": balance}
    return Invertible({name: AdditiveNoiseModel(SklearnRegressionModel(one)) for name, one in found.items()})


def test_causes_are_taken_by_name() -> None:
    model = stand_in()
    causes = CausalModel.from_dowhy(model, SCHEMA)
    assert causes.graph == {"income": ("age",), "balance": ("age", "income")}
    person = {"income": 100.0, "age": 30.0, "balance": 60.0}
    after = causes.after(person, {"age": 60.0})
    regressions = {name: one.prediction_model.sklearn_model for name, one in model.mechanisms.items()}
    income = 100.0 + 30.0 * regressions["income"].coef_[0]
    gain = np.diff(regressions["balance"].predict([[30.0, 100.0], [60.0, income]]))[0]
    assert after["income"] == pytest.approx(income) and after["balance"] == pytest.approx(60.0 + gain)
    bank = Explainer(Network.of([([[0.0, 0.0, 1.0]], [-70.0])]), schema=SCHEMA, classes=["no", "yes"])
    told = bank.recourse(person, causes, constraints=["balance is fixed", "age is fixed"])
    assert told.status == "none exists", "income alone does not do it"
    told = bank.recourse(person, causes, constraints=["balance is fixed"])
    assert (
        told.status == "nearest" and {"age"} <= {one.feature for one in told.actions} and dict(told.row)["balance"] > 70
    )


WRONG: dict[str, tuple[Any, str]] = {
    "another object": (lambda: CausalModel.from_dowhy(3, SCHEMA), "is a fitted gcm.InvertibleStructuralCausalModel; got 'int'."),
    "no schema": (lambda: CausalModel.from_dowhy(stand_in(), None), "Say what a row is with a Schema"),
    "no mechanism": (lambda: CausalModel.from_dowhy(Invertible({}), SCHEMA), "'balance' has no causal mechanism yet; assign one"),
    "other noise": (lambda: CausalModel.from_dowhy(Invertible({"balance": LinearRegression()}), SCHEMA), "is a LinearRegression; give it an AdditiveNoiseModel"),
    "own prediction": (lambda: CausalModel.from_dowhy(Invertible({"balance": AdditiveNoiseModel(3)}), SCHEMA), "predicts by a int; supported are regressions of scikit-learn"),
    "unknown node": (lambda: CausalModel.from_dowhy(stand_in(), Schema([Real("income", 0, 200), Real("age", 18, 90)])), "balance"),
    "columns": (lambda: _with_jobs(["b", "a"]), "make it Categorical with these options, in this order"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_refused_by_a_sentence(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(IfonlyError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)


def _with_jobs(options: list[str]) -> CausalModel:
    """Pay follows from a job, which DoWhy encodes by a column per option, in order."""
    encoder = OneHotEncoder().fit(np.array([["a"], ["b"]]))
    pay = LinearRegression().fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [10.0, 20.0, 10.0])
    model = Invertible({"pay": AdditiveNoiseModel(SklearnRegressionModel(pay, {0: encoder}))})
    model.graph = {"pay": ["job"]}
    return CausalModel.from_dowhy(model, Schema([Categorical("job", options), Real("pay", 0, 50)]))


def test_categories_have_the_columns_of_dowhy() -> None:
    assert _with_jobs(["a", "b"]).after({"job": "a", "pay": 12.0}, {"job": "b"})["pay"] == pytest.approx(22.0)


def test_a_model_of_dowhy_itself() -> None:
    pytest.importorskip("dowhy", reason="DoWhy is not installed; tools/check extras installs it")
    import networkx as nx
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dowhy import gcm

        table = pd.DataFrame(data())
        graph = nx.DiGraph([(cause, name) for name, causes in GRAPH.items() for cause in causes])
        model = gcm.InvertibleStructuralCausalModel(graph)
        model.set_causal_mechanism("age", gcm.EmpiricalDistribution())
        model.set_causal_mechanism("income", gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor()))
        boosted = gcm.ml.create_hist_gradient_boost_regressor(max_iter=5, max_leaf_nodes=4, max_bins=16)
        model.set_causal_mechanism("balance", gcm.AdditiveNoiseModel(boosted))
        with pytest.raises(IfonlyError, match="'income'"):
            CausalModel.from_dowhy(model, SCHEMA)  # not fitted
        gcm.fit(model, table)
        causes = CausalModel.from_dowhy(model, SCHEMA)
        for k in range(5):
            theirs = gcm.counterfactual_samples(model, {"age": lambda _: 55.0}, observed_data=table[k : k + 1])
            ours = causes.after(table.iloc[k].to_dict(), {"age": 55.0})
            assert [ours[name] for name in theirs] == pytest.approx(theirs.iloc[0].tolist(), rel=1e-9)
