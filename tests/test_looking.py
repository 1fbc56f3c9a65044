"""Doubts about data, and the way from a person to an answer."""

import numpy as np
import pytest

from ifonly import Explainer, Integer, Real, Schema, datasets, doubts, import_model, score_path
from ifonly.errors import QuestionError


@pytest.fixture(scope="module")
def credit():
    return Explainer(datasets.network("credit"), classes=["deny", "approve"]), datasets.load("credit")


def test_data_that_fits_leaves_no_doubt(credit):
    explainer, data = credit
    assert doubts(explainer, [data.row(i) for i in range(50)]) == ()


def test_bounds_and_rules_that_the_data_speaks_against(credit):
    explainer, data = credit
    rows = [{**data.row(i), "TotalMonthsOverdue": 10_000 if i < 3 else 5} for i in range(10)]
    rules = [
        "TotalMonthsOverdue <= 4",
        "isMale = 1 or isMale = 0",
        "MostRecentBillAmount >= MaxBillAmountOverLast6Months",
    ]
    told = doubts(Explainer(explainer.model, constraints=rules), rows)
    assert told[0].startswith(
        "'TotalMonthsOverdue' does not fit in 3 of 10 rows; the first: Feature 'TotalMonthsOverdue'"
    )
    assert "Every row breaks the rule 'TotalMonthsOverdue <= 4' as it is: is it the rule that is wrong?" in told
    assert any(words.startswith(tuple("1234567")) and "MostRecentBillAmount" in words for words in told)
    assert not any("isMale" in words for words in told)


def test_the_way_is_made_of_rows_and_ends_at_the_answer(credit):
    explainer, data = credit
    answer = explainer.explain(data.row(0))
    path = score_path(explainer, answer)
    assert path.rows[0] == dict(answer.factual) and path.rows[-1] == dict(answer.counterfactual)
    assert [words for _, words in path.changes] == [str(change) for change in answer.changes]
    scores = explainer.model.scores(np.array([explainer.schema.read(row) for row in path.rows]))[:, 0]
    assert np.allclose(path.lead, scores) and path.lead[0] < 0 < path.lead[-1]
    there = [row for row, lead in zip(path.rows, path.lead, strict=True) if lead > 0]
    assert all(row == dict(answer.counterfactual) for row in there)  # nothing nearer on this way either
    assert "<svg" in path._repr_html_() and "script" not in path._repr_html_()
    pytest.importorskip("matplotlib")
    assert len(path.plot().get_lines()) == 2 + len(path.changes)


def test_steps_options_and_several_classes():
    ensemble = pytest.importorskip("sklearn.ensemble")
    schema = Schema([Integer("n", 0, 90, 10), Real("x", 0, 1, 0.25)])
    rng = np.random.default_rng(0)
    rows = np.column_stack([10.0 * rng.integers(0, 10, 300), 0.25 * rng.integers(0, 5, 300)])
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(rows, (rows[:, 0] // 40).astype(int))
    explainer = Explainer(import_model(forest, schema))
    path = score_path(explainer, explainer.explain({"n": 0, "x": 0.5}, target=2), steps=7)
    assert all(schema.admits(schema.read(row)) for row in path.rows) and path.lead[0] < 0 <= path.lead[-1]


@pytest.mark.parametrize("steps", [0, True, 1.5, 10**9])
def test_ways_that_there_are_not(credit, steps):
    explainer, data = credit
    with pytest.raises(QuestionError, match="this answer has none"):
        score_path(explainer, explainer.explain(data.row(0), target="deny"))
    with pytest.raises(QuestionError, match="number of steps"):
        score_path(explainer, explainer.explain(data.row(0)), steps=steps)
