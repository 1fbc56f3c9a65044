"""Which models report probabilities whose log-odds is the score, and that an answer reaches what they report."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from ifonly import Explainer, Nearest, Network, Within, import_model
from ifonly.errors import ModelError
from ifonly.model import network_model
from ifonly.model.model import Logistic
from ifonly.problem import ProbabilityTarget
from ifonly.schema import Real, Schema

SCHEMA = Schema([Real(f"x{i}", -3.0, 3.0) for i in range(3)])
X = np.random.default_rng(0).normal(size=(300, 3)).clip(-3, 3)
Y = (X[:, 0] + 0.5 * X[:, 1] + 0.5 * np.random.default_rng(1).normal(size=300) > 0).astype(int)


def estimators() -> dict[str, tuple[Any, bool]]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    return {
        "logistic": (LogisticRegression(), True),
        "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), True),
        "mlp": (MLPClassifier((6,), max_iter=60, random_state=0), True),
        "lda": (LinearDiscriminantAnalysis(), True),
        "log loss": (SGDClassifier(loss="log_loss", random_state=0), True),
        "huber": (SGDClassifier(loss="modified_huber", random_state=0), False),
        "hinge": (SGDClassifier(random_state=0), False),
        "svc": (LinearSVC(), False),
        "ridge": (RidgeClassifier(), False),
    }


@pytest.mark.parametrize("name", list(estimators()))
def test_sklearn(name: str) -> None:
    model, speaks = estimators()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    imported = import_model(model, SCHEMA)
    assert (imported.probabilities is not None) == speaks
    if speaks:
        _reaches(imported, lambda row: model.predict_proba(row)[:, 1])


def test_several_classes_report_theirs_where_a_softmax_gives_them() -> None:
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    three = Y + (X[:, 2] > 1)
    model = LogisticRegression().fit(X, three)
    imported = import_model(model, SCHEMA)
    assert imported.probabilities is not None
    _reaches(imported, lambda row: model.predict_proba(row)[:, 1])
    each_against_the_rest = SGDClassifier(loss="log_loss", random_state=0).fit(X, three)
    assert import_model(each_against_the_rest, SCHEMA).probabilities is None
    with pytest.raises(ModelError, match="regression"):
        network_model(Network.of([([[1.0, 0.0, 0.0]], [0.0])]), SCHEMA, regression=True).as_log_odds()


@pytest.mark.parametrize("last", ["sigmoid", "softmax", "softmax of three", "log_softmax", "none"])
def test_torch(last: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    ends = {"sigmoid": [torch.nn.Sigmoid()], "softmax": [torch.nn.Softmax(1)], "log_softmax": [torch.nn.LogSoftmax(1)]}
    outputs = 3 if "three" in last else 2 if "softmax" in last else 1
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs), *ends.get(last.partition(" ")[0], [])
    )
    if outputs == 3:
        module[2].weight.data[1] = 2.0
    imported = import_model(module, SCHEMA)
    assert (imported.probabilities is not None) == (last != "none")

    def own(row: Any) -> Any:
        with torch.no_grad():
            given = module(torch.from_numpy(row).float()).double().numpy()
        if last == "none":
            return 1.0 / (1.0 + np.exp(-given[:, 0]))
        return np.exp(given)[:, 1] if last == "log_softmax" else given[:, min(1, outputs - 1)]

    _reaches(imported if last != "none" else imported.as_log_odds(), own)


@pytest.mark.parametrize("last", ["Sigmoid", "none"])
def test_onnx(last: str) -> None:
    onnx = pytest.importorskip("onnx")
    weight, bias = np.array([[1.0], [0.5], [-0.25]], dtype=np.float32), np.array([0.1], dtype=np.float32)
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["s"])]
    nodes += [helper.make_node(last, ["s"], ["p"])] if last != "none" else []
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", kind, ["N", 3])],
        [helper.make_tensor_value_info("p" if last != "none" else "s", kind, ["N", 1])],
        [onnx.numpy_helper.from_array(weight, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    imported = import_model(proto, SCHEMA)
    assert (imported.probabilities is not None) == (last != "none")
    if last != "none":
        from onnx.reference import ReferenceEvaluator

        session = ReferenceEvaluator(proto)
        _reaches(imported, lambda row: session.run(None, {"x": row.astype(np.float32)})[0][:, 0])


def _reaches(model: Any, own: Any) -> None:
    """The answer's probability by the user's own object is at least what was asked, and just so."""
    now = float(own(np.zeros((1, 3)))[0])
    wanted = round(min(0.95, now + 0.1), 3)
    answer = Explainer(model).explain(dict.fromkeys(SCHEMA.names, 0.0), target=ProbabilityTarget(1, at_least=wanted))
    assert isinstance(answer, Nearest if model.precision == "float64" else Nearest | Within)  # float32 leaves a gap
    assert answer.upper - answer.lower < 1e-4
    reached = float(own(np.array([list(dict(answer.counterfactual or {}).values())]))[0])
    assert wanted <= reached < wanted + 1e-4


def test_probabilities_of_extreme_scores() -> None:
    model = network_model(Network.of([([[1.0, 0.0, 0.0]], [0.0])]), SCHEMA)
    huge = Logistic(lambda points: 1e3 * model.scores(points))
    with np.errstate(all="raise", under="ignore"):
        given = huge(np.array([[-3.0, 0, 0], [0.0, 0, 0], [3.0, 0, 0]]))
    assert given.tolist() == [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
