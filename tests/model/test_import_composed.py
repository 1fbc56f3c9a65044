"""Composed estimators of scikit-learn: calibration, thresholds, votes, stacking, one class against the rest; against
enumeration and their own `predict`."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ifonly import (
    Accepted,
    AcceptedBySome,
    Binary,
    Categorical,
    Explainer,
    Integer,
    OtherTarget,
    ProbabilityTarget,
    Schema,
    ScoreTarget,
    import_model,
)
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.methods import Enumerate
from ifonly.model import Model

SCHEMA = Schema([Integer("age", 18, 32), Integer("n", 0, 6), Categorical("job", ["a", "b", "c"]), Binary("own")])
RNG = np.random.default_rng(0)
POINTS = SCHEMA.sample(300, RNG)
TABLE = pd.DataFrame([SCHEMA.row(point) for point in POINTS])
ENCODED = SCHEMA.encode(POINTS)
MERIT = (TABLE.age - 25) / 5 + (TABLE.n - 3) / 3 + (TABLE.job == "b") + TABLE.own + RNG.normal(size=len(TABLE)) / 2
LABELS = (MERIT > 1.0).to_numpy().astype(int)
THREE = np.digitize(MERIT, [0.3, 1.3])


def encoder() -> Any:
    return ColumnTransformer([("s", StandardScaler(), ["age", "n"]), ("o", OneHotEncoder(), ["job", "own"])])


def raw(estimator: Any) -> Any:
    return make_pipeline(encoder(), estimator)


LINEAR, SVM = LogisticRegression(), LinearSVC()
NET = make_pipeline(StandardScaler(), MLPClassifier((3,), solver="lbfgs", max_iter=100, random_state=1))
FOREST, TREE = RandomForestClassifier(4, max_depth=3, random_state=0), DecisionTreeClassifier(max_depth=3)
BOOSTED = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)


def calibrated(estimator: Any, method: str = "sigmoid", ensemble: bool = True) -> Any:
    return CalibratedClassifierCV(estimator, method=method, ensemble=ensemble, cv=2)


def fixed(estimator: Any, threshold: float, **options: Any) -> Any:
    return FixedThresholdClassifier(estimator, threshold=threshold, **options)


def votes(voting: str, *members: Any, weights: Any = None) -> Any:
    return VotingClassifier([(f"m{i}", one) for i, one in enumerate(members)], voting=voting, weights=weights)


def stacked(*members: Any, final: Any = LINEAR, **options: Any) -> Any:
    return StackingClassifier([(f"m{i}", one) for i, one in enumerate(members)], final, cv=2, **options)


CASES: dict[str, Any] = {
    "sigmoids of linear scores": calibrated(SVM),
    "isotonic, of linear scores": calibrated(SVM, "isotonic"),
    "one sigmoid, forest": calibrated(FOREST, ensemble=False),
    "one isotonic, boosting": calibrated(BOOSTED, "isotonic", ensemble=False),
    "sigmoids, pipeline inside": calibrated(raw(LINEAR)),
    "threshold, linear": fixed(LINEAR, 0.3),
    "threshold, forest": fixed(FOREST, 0.25),
    "threshold, the other class": fixed(LINEAR, 0.3, pos_label=0),
    "threshold, calibrated": fixed(calibrated(LINEAR), 0.3),
    "tuned": TunedThresholdClassifierCV(raw(LINEAR), cv=2),
    "soft vote": votes("soft", raw(LINEAR), raw(NET), raw(SGDClassifier(loss="log_loss")), weights=[1, 2, 1]),
    "soft vote of forests in pipelines": votes("soft", raw(FOREST), raw(TREE)),
    "hard vote": votes("hard", LINEAR, SVM, NET),
    "stack": stacked(LINEAR, NET),
    "stack, and the columns": stacked(LINEAR, SVM, passthrough=True),
    "stack of trees": stacked(FOREST, TREE),
}
MORE: dict[str, Any] = {
    "one isotonic, linear": calibrated(LINEAR, "isotonic", ensemble=False),
    "one sigmoid, linear": calibrated(LINEAR, ensemble=False),
    "one isotonic, perceptron": calibrated(NET, "isotonic", ensemble=False),
    "sigmoids, perceptron": calibrated(NET),
    "sigmoids, tree": calibrated(TREE),
    "isotonic, tree": calibrated(TREE, "isotonic"),
    "one sigmoid, xgboost": calibrated(XGBClassifier(n_estimators=4, max_depth=2), ensemble=False),
    "pipeline of calibration": raw(calibrated(SVM)),
    "threshold, scores": fixed(SVM, 0.2),
    "threshold, boosting": fixed(BOOSTED, 0.55),
    "threshold, perceptron": fixed(NET, 0.7, response_method="predict_proba"),
    "threshold, xgboost": fixed(XGBClassifier(n_estimators=4, max_depth=2), 0.4),
    "threshold, histogram": fixed(HistGradientBoostingClassifier(max_iter=4), 0.4),
    "hard vote, weights": votes("hard", LINEAR, SVM, NET, RidgeClassifier(), weights=[1, 2, 1, 1]),
    "stack of a perceptron": stacked(LINEAR, NET, final=NET),
    "stack of trees, scaled": stacked(FOREST, TREE, final=make_pipeline(StandardScaler(), LINEAR)),
    "curves of forests": calibrated(FOREST),
    "mixed soft vote": votes("soft", LINEAR, FOREST),
    "mixed stack, scaled": stacked(LINEAR, FOREST, BOOSTED, final=make_pipeline(StandardScaler(), LINEAR)),
    "threshold of a mixture": fixed(votes("soft", LINEAR, FOREST), 0.4),
    "one against the rest, two classes": OneVsRestClassifier(LINEAR),
    "search": GridSearchCV(votes("soft", LINEAR, LogisticRegression(C=0.1)), {"m0__C": [0.1, 1.0]}, cv=2),
}
SEVERAL: dict[str, Any] = {
    "linear": OneVsRestClassifier(raw(LINEAR)),
    "perceptrons": OneVsRestClassifier(NET),
    "boosting": OneVsRestClassifier(BOOSTED),
    "forests": OneVsRestClassifier(FOREST),
    "votes": OneVsRestClassifier(votes("soft", LINEAR, NET)),
}


def fitted(estimator: Any, labels: Any = LABELS) -> tuple[Any, Any]:
    """The estimator, and what it takes for points."""
    reads_words = "ColumnTransformer" in repr(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(estimator).fit(TABLE if reads_words else ENCODED, labels)
    return found, (lambda points: pd.DataFrame([SCHEMA.row(p) for p in points])) if reads_words else SCHEMA.encode


def agrees(model: Model, predict: Any, *, rows: int = 2, target: Any = None) -> None:
    """The search with enumeration, and the answers with the estimator's own word."""
    asked = {} if target is None else {"target": target}
    explainer = Explainer(model)
    for point in SCHEMA.sample(rows, np.random.default_rng(1)):
        row = SCHEMA.row(point)
        found, listed = explainer.explain(row, **asked), explainer.using(Enumerate()).explain(row, **asked)
        assert found.status == listed.status == "nearest"
        assert found.distance == pytest.approx(listed.distance, abs=1e-9)
        assert predict(SCHEMA.read(found.counterfactual)[None, :]) != predict(point[None, :])


def check(estimator: Any, labels: Any = LABELS, target: Any = None) -> Model:
    found, given = fitted(estimator, labels)
    model = import_model(found, SCHEMA)
    points = SCHEMA.sample(100, np.random.default_rng(2))
    decided = [model.classes[k] for k in model.decide(model.scores(points))]
    assert decided == found.predict(given(points)).tolist()
    assert pickle.loads(pickle.dumps(model)).deviation == model.deviation
    agrees(model, lambda points: found.predict(given(points))[0], target=target)
    if model.probabilities is not None:
        own = found.predict_proba(given(points))
        assert np.allclose(model.probabilities(points), own, rtol=0.0, atol=1e-12)
    return model


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)
def test_two_classes(estimator: Any) -> None:
    check(estimator)


@pytest.mark.long
@pytest.mark.parametrize("estimator", MORE.values(), ids=MORE)
def test_more_of_two_classes(estimator: Any) -> None:
    check(estimator)


@pytest.mark.long
@pytest.mark.parametrize("estimator", SEVERAL.values(), ids=SEVERAL)
def test_one_class_against_the_rest(estimator: Any) -> None:
    check(estimator, THREE, OtherTarget())


@pytest.mark.parametrize(
    "estimator",
    [
        VotingRegressor([("a", LinearRegression()), ("b", Ridge())], weights=[1, 3]),
        StackingRegressor([("a", LinearRegression()), ("b", Ridge())], Ridge(), cv=2),
        StackingRegressor(
            [("a", RandomForestRegressor(3, max_depth=2)), ("b", RandomForestRegressor(2))], Ridge(), cv=2
        ),
    ],
    ids=["votes", "stack", "stack of forests"],
)
def test_regressions(estimator: Any) -> None:
    found = clone(estimator).fit(ENCODED, MERIT)
    model = import_model(found, SCHEMA)
    assert not model.classes
    points = SCHEMA.sample(200, np.random.default_rng(0))
    assert np.allclose(model.scores(points)[:, 0], found.predict(SCHEMA.encode(points)), rtol=0.0, atol=1e-12)
    target = ScoreTarget(at_least=float(np.quantile(MERIT, 0.8)))
    row = SCHEMA.row(POINTS[int(MERIT.argmin())])
    answers = [one.explain(row, target=target) for one in (Explainer(model), Explainer(model).using(Enumerate()))]
    assert answers[0].distance == pytest.approx(answers[1].distance, abs=1e-9)
    with pytest.raises(ModelError, match="is a regression; it has no classes"):
        import_model(found, SCHEMA, classes=("a", "b"))


def test_probabilities_can_be_asked_for() -> None:
    """Of averages, whose scores are probabilities, and of one sigmoid, whose log-odds is the score."""
    for estimator in (calibrated(SVM), calibrated(FOREST, ensemble=False)):
        found, given = fitted(estimator)
        explainer, target = Explainer(import_model(found, SCHEMA)), ProbabilityTarget(1, at_least=0.6)
        row = SCHEMA.row(POINTS[int(MERIT.argmin())])
        answers = [one.explain(row, target=target) for one in (explainer, explainer.using(Enumerate()))]
        assert answers[0].distance == pytest.approx(answers[1].distance, abs=1e-9)
        reached = found.predict_proba(given(SCHEMA.read(answers[0].counterfactual)[None, :]))[0, 1]
        assert reached >= 0.6


def test_ties_of_a_threshold_are_accepted() -> None:
    """A forest's fraction that is exactly the threshold."""
    found, _ = fitted(fixed(RandomForestClassifier(4, max_depth=1, random_state=0), 0.5))
    fractions = np.unique(found.predict_proba(ENCODED)[:, 1])
    at = clone(found).set_params(threshold=float(fractions[len(fractions) // 2])).fit(ENCODED, LABELS)
    model = import_model(at, SCHEMA)
    points = SCHEMA.sample(500, np.random.default_rng(2))
    tied = at.predict_proba(SCHEMA.encode(points))[:, 1] == at.threshold
    assert tied.any()
    assert (model.decide(model.scores(points)) == at.predict(SCHEMA.encode(points))).all()
    assert (model.decide(model.exact_scores(points)) == at.predict(SCHEMA.encode(points))).all()


def test_one_of_several_outputs() -> None:
    labels = np.column_stack([LABELS, 1 - LABELS, THREE > 0])
    found = make_pipeline(encoder(), MultiOutputClassifier(LINEAR)).fit(TABLE, labels)
    for output in (0, "2"):
        model = import_model(found, SCHEMA, output=output)
        agrees(model, lambda points, k=int(output): found.predict(own_values(points))[0, k])
    for output, words in (
        (None, "say which one is asked about"),
        (5, "outputs 0 to 2; there is no 5"),
        ("x", "no 'x'"),
    ):
        with pytest.raises(ModelError, match=words):
            import_model(found, SCHEMA, output=output)
    with pytest.raises(ModelError, match="gives one answer; leave out output=1"):
        import_model(fitted(LINEAR)[0], SCHEMA, output=1)


def own_values(points: Any) -> Any:
    return pd.DataFrame([SCHEMA.row(point) for point in points])


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "mixed hard vote": (votes("hard", LINEAR, FOREST, SVM), LABELS, r"AcceptedBySome\(2, of="),
    "classes": (calibrated(LINEAR), THREE, r"explain its estimator \(calibrated_classifiers_\[0\]"),
    "votes of classes": (votes("soft", LINEAR, NET), THREE, "more than two classes.*one against the rest"),
    "decisions": (stacked(LINEAR, NET, stack_method="predict"), LABELS, "stack_method='predict_proba'"),
    "final": (stacked(FOREST, TREE, final=GaussianNB()), LABELS, "with a linear final estimator it is supported"),
    "no sigmoid": (votes("soft", SVM, LINEAR), LABELS, "probabilities of LinearSVC, which are no sigmoid"),
    "constant": (fixed(LINEAR, 2.0), LABELS, "decides the same for every score"),
}


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("estimator", "labels", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals(estimator: Any, labels: Any, words: str) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        import_model(fitted(estimator, labels)[0], SCHEMA)


@pytest.mark.long
def test_the_remedy_for_a_hard_vote_of_trees_and_others() -> None:
    found, _ = fitted(votes("hard", LINEAR, FOREST, NET))
    members = [import_model(one, SCHEMA) for one in found.estimators_]
    everything = SCHEMA.sample(4000, np.random.default_rng(0))
    for point in POINTS[:3]:
        wanted = 1 - int(found.predict(SCHEMA.encode(point[None, :]))[0])
        some = AcceptedBySome(2, of=[Accepted(by=m, target=wanted, name=f"m{k}") for k, m in enumerate(members)])
        anything = ScoreTarget(at_least=-1e6)
        answer = Explainer(members[0]).explain(SCHEMA.row(point), target=anything, constraints=[some])
        reached = SCHEMA.read(answer.counterfactual)
        assert found.predict(SCHEMA.encode(reached[None, :]))[0] == wanted
        fits = everything[found.predict(SCHEMA.encode(everything)) == wanted]
        widths = np.array([14.0, 6.0, 1.0, 1.0])
        moved = np.abs(fits - point)
        moved[:, 2:] = moved[:, 2:] != 0.0
        assert answer.distance <= (moved / widths).mean(axis=1).min() + 1e-9
