"""Other models that must accept the row: words, JSON, names, errors, people who are accepted already, missing numbers."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import (
    Accepted,
    AcceptedBySome,
    Categorical,
    Distance,
    Explainer,
    Integer,
    Limits,
    Model,
    Network,
    NoneExists,
    OneOfTarget,
    ProbabilityTarget,
    Query,
    Real,
    Schema,
    ScoreTarget,
    certify,
    check,
)
from ifonly.certifying.identity import compared_model
from ifonly.errors import QuestionError
from ifonly.methods import MipObj, Search
from ifonly.model import network_model

SCHEMA = Schema([Real("Income", 0, 100), Integer("Debts", 0, 10), Categorical("Job", ["clerk", "nurse"])])
PERSON = {"Income": 20.0, "Debts": 5, "Job": "clerk"}


def linear(income: float, debts: float, nurse: float, bias: float) -> Network:
    return Network.of([([[income, debts, 0.0, nurse]], [bias])])


CREDIT = network_model(linear(1.0, -2.0, 0.0, -20.0), SCHEMA, classes=("deny", "approve"))
FRAUD = network_model(linear(-1.0, 0.0, 6.0, 25.0), SCHEMA, classes=("fraud", "fine"))  # income at most 25, nurses 31
RATE = network_model(linear(0.0, 1.0, 0.0, 0.0), SCHEMA, regression=True)
CHECK = Accepted(by=FRAUD, target="fine", name="fraud check")


def test_the_nearest_row_that_both_accept() -> None:
    alone = Explainer(CREDIT).explain(PERSON)
    assert alone.counterfactual["Income"] == pytest.approx(30.0, abs=1e-4)
    both = Explainer(CREDIT).explain(PERSON, constraints=[CHECK])
    assert both.counterfactual["Income"] <= 25.0 + 6.0 * (both.counterfactual["Job"] == "nurse")
    assert both.upper > alone.upper
    assert FRAUD.decide(FRAUD.scores(SCHEMA.read(both.counterfactual)[None, :]))[0] == 1
    for method in (MipObj(),):
        assert Explainer(CREDIT).using(method).explain(PERSON, constraints=[CHECK]).upper == pytest.approx(
            both.upper, abs=1e-6
        )


def test_blame_names_the_models() -> None:
    answer = Explainer(CREDIT).explain(PERSON, constraints=[CHECK, "Debts is fixed", "Job is fixed"])
    assert isinstance(answer, NoneExists)
    assert set(answer.reasons.blame) == {"fraud check accepts", "Debts is fixed", "Job is fixed"}
    assert "fraud check may refuse" in {one.words for one in answer.reasons.relaxations}


def test_a_person_whom_the_explained_model_accepts_and_another_refuses() -> None:
    rich = {**PERSON, "Income": 60.0}
    explainer = Explainer(CREDIT)
    assert explainer.explain(rich, target="approve").upper == 0.0
    answer = explainer.explain(rich, target="approve", constraints=[CHECK])
    assert answer.upper > 0.0
    assert answer.counterfactual["Income"] < 31.0
    some = explainer.explain(rich, target="approve", constraints=[AcceptedBySome(1, [CHECK])])
    assert some.upper == pytest.approx(answer.upper, abs=1e-6)
    accepted = {**PERSON, "Income": 22.0, "Debts": 0}
    assert explainer.explain(accepted, target="approve", constraints=[CHECK, AcceptedBySome(1, [CHECK])]).upper == 0.0


def test_scores_and_probabilities_of_others() -> None:
    explainer = Explainer(CREDIT)
    few = explainer.explain(
        PERSON, constraints=[Accepted(by=RATE, target=ScoreTarget(at_most=3), name="affordability")]
    )
    assert few.counterfactual["Debts"] <= 3
    sure = Accepted(by=FRAUD.as_log_odds(), target=ProbabilityTarget("fine", at_least=0.9), name="fraud check")
    answer = explainer.explain(PERSON, constraints=[sure])
    point = SCHEMA.read(answer.counterfactual)[None, :]
    assert FRAUD.as_log_odds().probabilities(point)[0, 1] >= 0.9


def test_an_estimator_is_imported_under_the_schema_of_the_explainer() -> None:
    rng = np.random.default_rng(0)
    x = SCHEMA.encode(SCHEMA.sample(200, rng))
    other = LogisticRegression().fit(x, np.where(x[:, 1] < 4, "low", "high"))
    answer = Explainer(CREDIT).explain(PERSON, constraints=[Accepted(by=other, target="low", name="burden")])
    assert other.predict(SCHEMA.encode(SCHEMA.read(answer.counterfactual)[None, :]))[0] == "low"


def test_by_name() -> None:
    explainer = Explainer(CREDIT).knowing(CHECK, Accepted(by=RATE, target=ScoreTarget(at_most=3), name="burden"))
    expected = explainer.explain(PERSON, constraints=[CHECK]).upper
    for said in ("fraud check accepts", " 'fraud  check' accepts ", Accepted(by="fraud check")):
        assert explainer.explain(PERSON, constraints=[said]).upper == expected
    one = explainer.explain(PERSON, constraints=["at least 1 of fraud check, burden accept"])
    both = explainer.explain(PERSON, constraints=["at least 2 of fraud check, burden accept"])
    assert one.upper <= expected <= both.upper
    assert explainer.explain(PERSON).upper == Explainer(CREDIT).explain(PERSON).upper  # known, not required
    with pytest.raises(QuestionError, match="No model is known as 'fraud chek'; did you mean 'fraud check'"):
        explainer.explain(PERSON, constraints=["fraud chek accepts"])
    always = Explainer(CREDIT, constraints=[CHECK])
    assert always.explain(PERSON).upper == expected


def test_json_by_fingerprint() -> None:
    query = Query(target="approve", constraints=[CHECK, AcceptedBySome(1, [CHECK])])
    data = json.loads(query.to_json())
    assert data["constraints"][0]["by"] == FRAUD.function.fingerprint
    read = Query.from_dict(data)
    assert json.loads(read.to_json()) == data
    explainer = Explainer(CREDIT)
    assert explainer.knowing(CHECK).explain(PERSON, read).upper == explainer.explain(PERSON, query).upper
    with pytest.raises(QuestionError, match="No model is known as"):
        explainer.explain(PERSON, read)


def test_tables_and_worker_processes() -> None:
    query = Query(target="approve", constraints=[CHECK])
    rows = [PERSON, {**PERSON, "Income": 3.0}, {**PERSON, "Job": "nurse"}]
    explainer = pickle.loads(pickle.dumps(Explainer(CREDIT)))
    many = explainer.explain_many(rows, pickle.loads(pickle.dumps(query)))
    for row, answer in zip(rows, many, strict=True):
        assert answer.upper == pytest.approx(Explainer(CREDIT).explain(row, query).upper, abs=1e-9)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (lambda: Accepted(by=None), "Say which model must accept with by=...; got None"),
        (lambda: Accepted(by=FRAUD, name="x"), "Say what 'x' must decide with target=...: one of 'fraud', 'fine'"),
        (lambda: Accepted(by=RATE, name="x"), "Say what 'x' must decide with target=...: a ScoreTarget"),
        (lambda: Accepted(by=FRAUD, target="no", name="x"), "The model has no class 'no'"),
        (lambda: Accepted(by=FRAUD, target=OneOfTarget(["fine", "fraud"])), "not for one of several decisions"),
        (lambda: Accepted(by=FRAUD, target="fine", name=3), "A model is named by a text"),
        (lambda: AcceptedBySome(2, [CHECK]), "Of 1 models, at least 1 and at most 1 can be asked to accept; got 2"),
        (lambda: AcceptedBySome(1, []), "Give the models as a list"),
        (
            lambda: AcceptedBySome(10, [Accepted(by=FRAUD, target="fine", name=f"{k}") for k in range(20)]),
            "184,756 ways",
        ),
        (
            lambda: Accepted(by=network_model(Network.of([([[1.0]], [0.0])]), Schema([Real("x", 0, 1)])), target=1),
            "'another model' has another schema than the model that is explained",
        ),
        (lambda: Accepted(by=3), "Say which model must accept"),
    ],
)
def test_wrong(constraint: object, message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        Explainer(CREDIT).explain(PERSON, constraints=[constraint()])  # type: ignore[operator]


def test_certificates_state_it() -> None:
    explainer = Explainer(CREDIT)
    checked = check(certify(explainer, PERSON, constraints=[CHECK]))
    assert checked.valid and "by model 1" in checked.statement
    certificate = certify(explainer, PERSON, constraints=[CHECK])
    assert compared_model(certificate, FRAUD, "fraud").words == "Model 1 of the 2 that were proven about is 'fraud'."
    assert not compared_model(certificate, RATE, "rate").same
    assert checked.lower == pytest.approx(explainer.explain(PERSON, constraints=[CHECK]).upper, abs=1e-6)


def test_a_search_that_is_cut_short_keeps_the_bound_of_fewer_models() -> None:
    schema = Schema([Real(f"x{k}", -1, 1) for k in range(6)])

    def random_model(seed: int) -> Model:
        rng = np.random.default_rng(seed)
        sizes = [6, 10, 10, 1]
        layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in zip(sizes, sizes[1:], strict=False)]
        return network_model(Network.of(layers), schema, classes=("no", "yes"))

    compared = 0
    for seed in range(6):
        model, other = random_model(seed), Accepted(by=random_model(100 + seed), target="yes", name="other")
        person = dict.fromkeys(schema.names, 0.0)
        explainer = Explainer(model).using(reasons=False)
        alone = explainer.explain(person, target="yes")
        both = explainer.explain(person, target="yes", constraints=[other], limits=Limits(nodes=alone.nodes + 2))
        if alone.upper > 0.0 and both.stop is not None and both.stop.is_limit:
            compared += 1
            assert both.lower >= alone.lower - 1e-9
    assert compared


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_several_networks_agree_with_all_rows_of_a_finite_space(norm: str) -> None:
    compare_with_all_rows(norm, range(12))


def compare_with_all_rows(norm: str, seeds: Iterable[int]) -> None:
    """Networks of random weights and depths, searched, beside the nearest row of all."""
    schema = Schema([Integer("a", 0, 6), Integer("b", 0, 5), Categorical("c", ["x", "y", "z"]), Integer("d", 0, 4)])
    rows = np.array(list(itertools.product(range(7), range(6), range(3), range(5))), dtype=float)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        models = [random_network(rng, schema) for _ in range(rng.integers(2, 6))]
        point = rows[rng.integers(len(rows))]
        scores = np.array([model.scores(rows)[:, 0] for model in models])
        accepted = (scores >= 1e-6).all(axis=0)
        if (np.abs(scores) < 1e-4).any() or accepted[(rows == point).all(axis=1)].any():
            continue
        explainer = Explainer(models[0]).using(Search(table_rows=0), reasons=False)
        others = [Accepted(by=one, target=1, name=f"model {k}") for k, one in enumerate(models[1:])]
        answer = explainer.explain(schema.row(point), target=1, distance=Distance(norm), constraints=others)
        if accepted.any():
            nearest = Distance(norm).between(schema, point, rows[accepted]).min()
            assert answer.status == "nearest", seed
            assert answer.upper == pytest.approx(nearest, abs=1e-6), seed
        else:
            assert answer.status == "none exists", seed


def random_network(rng: np.random.Generator, schema: Schema) -> Model:
    """Of one to three hidden layers, accepting a share of the rows."""
    sizes = [6, *rng.integers(2, 7, size=rng.integers(1, 4)), 1]
    layers = [
        (rng.normal(size=(n, m)), rng.normal(size=n) - (rng.normal() if n == 1 else 2.0))
        for m, n in itertools.pairwise(sizes)
    ]
    return network_model(Network.of(layers), schema, classes=(0, 1))
