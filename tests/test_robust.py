"""Robustness to changed weights: the sign of inputs, scaling, words, JSON, blame, open targets, what is refused."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import (
    Accepted,
    ClassTarget,
    Explainer,
    Network,
    NoneExists,
    OneOfTarget,
    Query,
    Real,
    RobustToWeights,
    Schema,
    ScoreTarget,
    StoppedBy,
    certify,
    import_model,
)
from ifonly.errors import QuestionError, UnsupportedQuestion
from ifonly.model import network_model
from ifonly.results.robustness import TreeRobustness

SCHEMA = Schema([Real("A", -4, 4), Real("B", 0, 10)])
LINEAR = network_model(Network.of([([[1.0, 0.5]], [-2.0])]), SCHEMA, classes=("no", "yes"))
PERSON = {"A": 0.0, "B": 1.0}


def test_the_larger_weight_gives_the_smaller_product_of_a_negative_input() -> None:
    """A check with (w - delta) x for every x accepts a row that a network within delta refuses: x is negative."""
    schema = Schema([Real("X", -4, 4)])
    model = network_model(Network.of([([[-1.0]], [-1.5])]), schema, classes=("no", "yes"))
    row, delta = {"X": -2.0}, 0.3
    weight, bias = -1.0, -1.5
    assert (weight - delta) * row["X"] + (bias - delta) > 0.0  # what such a check takes for the lowest score
    assert (weight + delta) * row["X"] + (bias - delta) < 0.0  # the score of a network that is within delta
    robust = RobustToWeights(delta)
    assert not robust.accepted(model, ClassTarget("yes")).accepts(schema, np.array([[-2.0]]))[0]
    found = Explainer(model).robustness(row)
    assert found.upper == pytest.approx(0.5 / 3.0)  # 0.5 - delta (|x| + 1) = 0
    assert found.exact
    assert found.lower <= found.upper
    answer = Explainer(model).explain({"X": 0.0}, constraints=[robust])
    assert (weight + delta) * answer.counterfactual["X"] + (bias - delta) > 0.0
    assert answer.counterfactual["X"] == pytest.approx(-1.8 / 0.7, abs=1e-4)


def test_a_linear_model_by_hand() -> None:
    """A + 0.5 B - 2 less delta (|A| + B + 1): in l1 over the ranges 8 and 10, A is the cheaper way."""
    answer = Explainer(LINEAR).explain(PERSON, constraints=[RobustToWeights(0.1)])
    assert answer.status == "nearest"
    assert answer.counterfactual["A"] == pytest.approx(1.7 / 0.9, abs=1e-4)
    share = Explainer(LINEAR).explain(PERSON, constraints=["robust to weights within 10 %"])
    assert share.counterfactual["A"] == pytest.approx(1.75 / 0.9, abs=1e-4)  # 0.9 A + 0.45 - 2.2
    assert Explainer(LINEAR).explain(PERSON).upper < answer.upper < share.upper
    assert Explainer(LINEAR).explain(PERSON, constraints=[RobustToWeights(0.0)]).upper == pytest.approx(
        Explainer(LINEAR).explain(PERSON).upper, abs=1e-6
    )


def test_weights_are_those_of_the_model_after_its_scaling() -> None:
    """Of a pipeline, changes are of the classifier's own weights, on inputs that the scaler has centred."""
    rng = np.random.default_rng(0)
    x = rng.normal([1.0, 5.0], [1.0, 2.0], size=(300, 2))
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((4,), random_state=0, max_iter=400, tol=1e-3))
    pipeline.fit(x, x[:, 0] + 0.3 * x[:, 1] > 2.5)
    answer = Explainer(pipeline, schema=SCHEMA).explain(PERSON, target=True, constraints=[RobustToWeights(0.03)])
    row = np.array([[answer.counterfactual["A"], answer.counterfactual["B"]]])
    classifier = pipeline[-1]
    kept = [part.copy() for part in (*classifier.coefs_, *classifier.intercepts_)]
    scores = []
    for k in range(400):
        for part, own in zip((*classifier.coefs_, *classifier.intercepts_), kept, strict=True):
            shift = rng.choice([-1.0, 1.0], own.shape) if k % 2 else rng.uniform(-1, 1, own.shape)
            part[...] = own + 0.03 * shift
        scores.append(pipeline.predict_proba(row)[0, 1])
    assert min(scores) > 0.5
    found = Explainer(import_model(_restored(pipeline, kept), SCHEMA))
    robust = found.robustness(answer)
    assert robust.exact and 0.03 <= robust.lower <= robust.upper == pytest.approx(robust.lower, rel=1e-6)
    assert robust.upper < 0.031  # it is the nearest such row


def _restored(pipeline, kept):  # type: ignore[no-untyped-def]
    classifier = pipeline[-1]
    for part, own in zip((*classifier.coefs_, *classifier.intercepts_), kept, strict=True):
        part[...] = own
    return pipeline


def test_float32_networks_of_torch() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 5), torch.nn.ReLU(),
                                 torch.nn.Linear(5, 3))  # fmt: skip
    model = import_model(module, SCHEMA, classes=("a", "b", "c"))
    explainer = Explainer(model)
    now = model.classes[model.decide(model.scores(SCHEMA.read(PERSON)[None, :]))[0]]
    others = [name for name in model.classes if name != now]
    answer = explainer.explain(PERSON, target=OneOfTarget(others), constraints=[RobustToWeights(0.02)])
    assert answer.status in ("nearest", "within", "none exists")
    at = answer.counterfactual or PERSON
    found = explainer.robustness(at)
    decided = model.decide(model.scores(SCHEMA.read(at)[None, :]))[0]
    assert answer.counterfactual is None or found.lower >= 0.02 * (1 - 1e-3)
    x = torch.tensor([[at["A"], at["B"]]], dtype=torch.float32)
    with torch.no_grad():
        kept = [parameter.clone() for parameter in module.parameters()]
        for _ in range(300):
            for parameter, own in zip(module.parameters(), kept, strict=True):
                parameter.copy_(own + found.lower * 0.999 * torch.empty_like(own).uniform_(-1, 1).sign())
            assert int(module(x).argmax()) == decided


def test_words_json_and_processes() -> None:
    query = Query(target="yes", constraints=[RobustToWeights(0.1), "robust to weights within 5 %"])
    data = json.loads(query.to_json())
    assert data["constraints"][0] == {"kind": "robust_to_weights", "delta": 0.1, "relative": False}
    read = pickle.loads(pickle.dumps(Query.from_dict(data)))
    explainer = pickle.loads(pickle.dumps(Explainer(LINEAR)))
    assert explainer.explain(PERSON, read).upper == Explainer(LINEAR).explain(PERSON, query).upper
    check = Accepted(by=LINEAR, target="yes", name="check")
    around = Query(target="yes", constraints=[RobustToWeights(0.1, of=check)])
    named = Query.from_dict(json.loads(around.to_json()))
    known = Explainer(LINEAR).knowing(check)
    assert known.explain(PERSON, named).upper == pytest.approx(known.explain(PERSON, query).upper, abs=1e-6)


def test_blame_and_people_who_are_accepted_already() -> None:
    answer = Explainer(LINEAR).explain(PERSON, constraints=[RobustToWeights(0.9), "B is fixed"])
    assert isinstance(answer, NoneExists)
    assert "each network with weights within 0.9 accepts" in answer.reasons.blame
    assert "a network with weights within 0.9 may refuse" in {one.words for one in answer.reasons.relaxations}
    near = {"A": 1.6, "B": 1.0}  # accepted by the model, not by all around it
    assert Explainer(LINEAR).explain(near, target="yes").upper == 0.0
    assert Explainer(LINEAR).explain(near, target="yes", constraints=[RobustToWeights(0.1)]).upper > 0.0
    far = {"A": 4.0, "B": 1.0}
    assert Explainer(LINEAR).explain(far, target="yes", constraints=[RobustToWeights(0.1)]).upper == 0.0


def test_around_another_model() -> None:
    other = network_model(Network.of([([[0.0, 1.0]], [-3.0])]), SCHEMA, classes=("poor", "fine"))
    plain = Explainer(LINEAR).explain(PERSON, constraints=[Accepted(by=other, target="fine", name="wealth")])
    robust = RobustToWeights(0.1, of=Accepted(by=other, target="fine", name="wealth"))
    answer = Explainer(LINEAR).explain(PERSON, constraints=[robust])
    assert plain.counterfactual["B"] == pytest.approx(3.0, abs=1e-4)
    lowest = 0.9 * answer.counterfactual["B"] - 3.1 - 0.1 * abs(answer.counterfactual["A"])
    assert lowest == pytest.approx(0.0, abs=1e-4)
    assert "within 0.1 of wealth accepts" in robust.describe()


def test_robustness_in_words() -> None:
    explainer = Explainer(LINEAR)
    answer = explainer.explain(PERSON, constraints=[RobustToWeights(0.1)])
    found = explainer.robustness(answer)
    assert str(found).startswith(
        "Every network with weights within 0.1 decides the same (proven); a network within 0.1"
    )
    assert found.to_dict().keys() == {"lower", "upper", "relative", "exact"}
    constant = network_model(Network.of([([[0.0, 0.0]], [1.0])]), SCHEMA, classes=("no", "yes"))
    assert Explainer(constant).robustness(PERSON, relative=True).upper == pytest.approx(1.0)
    rate = network_model(Network.of([([[1.0, 0.0]], [0.0])]), SCHEMA, regression=True)
    kept = Explainer(rate).robustness({"A": 3.0, "B": 0.0}, target=ScoreTarget(at_least=1.0))
    assert kept.upper == pytest.approx(0.5)  # 3 - delta (3 + 1) = 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RobustToWeights(-1), "'delta' is how far each weight may change, a number from 0 to 1e\\+06; it is -1"),
        (lambda: RobustToWeights(True), "'delta' is how far each weight may change"),
        (lambda: RobustToWeights(0.1, relative="yes"), "'relative' is True or False; got 'yes'"),
        (lambda: RobustToWeights(0.1, of=LINEAR), "Name another model with of=Accepted"),
        (lambda: Explainer(LINEAR).explain(PERSON, constraints=["robust to weights within x"]), "a number should stand"),
        (lambda: Explainer(LINEAR).robustness(PERSON, target="yes"), "The model does not decide this row as asked"),
        (lambda: Explainer(LINEAR).robustness(PERSON, target=OneOfTarget(["yes"])), "for one class"),
        (lambda: Explainer(LINEAR).robustness(PERSON, relative=1), "'relative' is True or False; got 1"),
    ],
)  # fmt: skip
def test_wrong_input_gets_a_sentence(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(QuestionError, match=message):
        make()


def test_what_is_not_proven_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    tree = Explainer(DecisionTreeClassifier(max_depth=3).fit(x, x[:, 0] > 0), schema=SCHEMA)
    with pytest.raises(UnsupportedQuestion, match=r"networks of linear layers .* Accepted\(by=...\)"):
        tree.explain(PERSON, constraints=[RobustToWeights(0.1)])
    assert isinstance(tree.robustness(PERSON), TreeRobustness)
    smooth = Explainer(MLPClassifier((3,), activation="tanh", max_iter=50, tol=1.0).fit(x, x[:, 0] > 0), schema=SCHEMA)
    with pytest.raises(UnsupportedQuestion, match="networks of linear layers"):
        smooth.explain(PERSON, constraints=[RobustToWeights(0.1)])
    double = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    with pytest.raises(UnsupportedQuestion, match="several linear layers in a row"):
        Explainer(double, schema=SCHEMA).explain(PERSON, constraints=[RobustToWeights(0.1)])
    linear = Explainer(LogisticRegression().fit(x, x[:, 0] > 0), schema=SCHEMA)
    assert linear.explain(PERSON, constraints=[RobustToWeights(0.01)]).status == "nearest"
    with pytest.raises(QuestionError, match="'each network with weights within 0.1': A certificate cannot state"):
        certify(Explainer(LINEAR), PERSON, constraints=[RobustToWeights(0.1)])


def test_three_hidden_layers_are_a_bracket() -> None:
    """What the networks that were found leave open between the two bounds is said; no drawn network refuses the row."""
    rng = np.random.default_rng(5)
    sizes = [2, 6, 6, 6, 1]
    layers = [(rng.normal(size=(b, a)), 0.3 * rng.normal(size=b)) for a, b in zip(sizes, sizes[1:], strict=False)]
    model = network_model(Network.of(layers), SCHEMA, classes=("no", "yes"))
    wanted = "yes" if model.scores(SCHEMA.read(PERSON)[None, :])[0, 0] <= 0.0 else "no"
    answer = Explainer(model).explain(PERSON, target=wanted, constraints=[RobustToWeights(0.03)])
    bound = RobustToWeights(0.03).accepted(model, ClassTarget(wanted))
    assert answer.status == "within"
    assert answer.stop.by is StoppedBy.BOUND
    assert "could not be decided" in str(answer)
    assert 0.0 < answer.lower < answer.upper
    point = SCHEMA.read(answer.counterfactual)[None, :]
    assert bound.accepts(SCHEMA, point)[0]
