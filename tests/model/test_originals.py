"""The original is the user's whole model: what wraps the part that is read has its say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import import_model, load_model
from ifonly.errors import ModelError
from model.forests import SCHEMA, points_and_labels

POINTS, LABELS = points_and_labels()
TABLE = SCHEMA.encode(POINTS)


class Contrary(GridSearchCV):
    """A search whose own decision is not that of the estimator that it found."""

    def predict(self, X: Any) -> Any:  # noqa: N803
        return 1 - super().predict(X)


def test_a_search_decides_itself() -> None:
    tree = DecisionTreeClassifier(random_state=0)
    with pytest.raises(ModelError, match="predicts . where its own scores"):
        import_model(Contrary(tree, {"max_depth": [2, 3]}).fit(TABLE, LABELS), SCHEMA)
    perceptron = make_pipeline(
        StandardScaler(), MLPClassifier((3,), solver="lbfgs", tol=1.0, max_iter=200, random_state=0)
    )
    for found in (tree, perceptron):
        search = GridSearchCV(found, {}, cv=2).fit(TABLE, LABELS)
        model = import_model(search, SCHEMA)
        assert np.array_equal(model.decide(model.scores(POINTS)), search.predict(TABLE))


def test_the_best_iteration_of_xgboost(tmp_path: Path) -> None:
    """An estimator predicts with its best rounds, also after it was loaded; a Booster, from the same file, with all."""
    xgboost = pytest.importorskip("xgboost")
    fitted = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=3, n_jobs=1, learning_rate=0.9)
    fitted.fit(TABLE, LABELS, eval_set=[(TABLE[:99], 1 - LABELS[:99])], verbose=False)
    fitted.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBClassifier()
    loaded.load_model(tmp_path / "model.json")
    rounds = loaded.get_booster().num_boosted_rounds()
    assert loaded.best_iteration + 1 < rounds
    model = import_model(loaded, SCHEMA)
    assert np.array_equal(model.exact_scores(POINTS)[:, 0], fitted.predict(TABLE, output_margin=True))
    with pytest.raises(ModelError, match=f"with the first {loaded.best_iteration + 1} of its {rounds} rounds"):
        load_model(tmp_path / "model.json", SCHEMA)
    loaded.get_booster()[: loaded.best_iteration + 1].save_model(tmp_path / "best.json")
    best = load_model(tmp_path / "best.json", SCHEMA)
    assert np.array_equal(best.exact_scores(POINTS), model.exact_scores(POINTS))


def test_what_a_module_does_after_its_sigmoid() -> None:
    """A hook that turns the probability around: the logits before it are not what the module decides by."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(TABLE.shape[1], 1), torch.nn.Sigmoid())
    assert import_model(module, SCHEMA).probabilities is not None
    module.register_forward_hook(lambda own, given, result: 1.0 - result)
    with pytest.raises(ModelError, match="does not follow from what it has before its last activation"):
        import_model(module, SCHEMA)
