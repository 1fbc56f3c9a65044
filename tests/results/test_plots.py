"""Pictures of answers: drawn into given axes or new ones, with the values in words."""

import pytest

from ifonly import Explainer, datasets
from ifonly.errors import QuestionError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def asked():
    model, data = datasets.network("credit", rules=False), datasets.load("credit", rules=False)
    words = model.schema.labelled({"TotalMonthsOverdue": "months $overdue$"}, {"MostRecentPaymentAmount": "$"})
    return Explainer(model, schema=words), data


def told(axes):
    axes.figure.savefig(__import__("io").BytesIO(), format="png")
    ticks = [label.get_text() for label in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    return " | ".join([*ticks, *(text.get_text() for text in axes.texts), axes.get_xlabel()])


def test_one_answer(asked):
    explainer, data = asked
    answer = explainer.explain(data.row(0))
    text = told(answer.plot())
    assert r"months \$overdue\$" in text and r"\$0 → \$1,454.304" in text
    with pytest.raises(QuestionError, match="nothing to draw"):
        explainer.explain(data.row(0), target=0).plot()


def test_alternatives_and_many(asked):
    from matplotlib.figure import Figure

    explainer, data = asked
    several = explainer.explain_diverse(data.row(0), 3)
    assert "alternative, and its l1 distance" in told(several.plot())
    answers = explainer.explain_many([data.row(i) for i in range(40)])
    axes = Figure().add_subplot()
    assert answers.plot(axes, by=[i % 3 for i in range(40)]) is axes
    groups = [text.get_text() for text in answers.plot(by=["$1$", "$2$"] * 20).get_legend().get_texts()]
    assert groups[0].startswith(r"\$1\$ (")  # a label is no formula
    heights = [line.get_ydata()[-1] for line in axes.get_lines()]
    assert heights == pytest.approx([100.0] * 3)
    with pytest.raises(QuestionError, match="40 answers, but 2 labels"):
        answers.plot(by=["a", "b"])
    with pytest.raises(QuestionError, match="nobody"):
        answers[:0].plot()


def test_labels_in_whatever_holds_them(asked):
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    explainer, data = asked
    answers = explainer.explain_many([data.row(i) for i in range(8)])
    listed = ["a", "b"] * 4
    meant = answers.plot(by=listed).get_legend_handles_labels()[1]
    for labels in (pd.Series(listed), pd.Series(listed, index=range(10, 18)), pd.Categorical(listed), np.array(listed),
                   pd.Index(listed), tuple(listed)):  # fmt: skip
        assert answers.plot(by=labels).get_legend_handles_labels()[1] == meant
    assert len(answers.plot(by=pd.Series([True, False] * 4)).get_lines()) == 2
    for wrong in ("isMale", 5, {"a": 1}):
        with pytest.raises(QuestionError, match="one label per row"):
            answers.plot(by=wrong)


def test_a_group_with_a_formula_for_a_name(asked):
    explainer, data = asked
    axes = explainer.explain_many([data.row(i) for i in range(4)]).plot(by=["$x_1$"] * 4)
    assert axes.get_legend_handles_labels()[1] == [r"\$x_1\$ (4)"]


def test_a_notebook_shows_new_pictures(asked, monkeypatch):
    from matplotlib import pyplot

    from ifonly.results import plots

    explainer, data = asked
    answer = explainer.explain(data.row(0))
    assert answer.plot().figure not in map(pyplot.figure, pyplot.get_fignums())
    monkeypatch.setattr(plots, "in_notebook", lambda: True)
    axes = answer.plot()  # the cell shows, and closes, what pyplot knows
    assert axes.figure in map(pyplot.figure, pyplot.get_fignums())
    pyplot.close(axes.figure)
