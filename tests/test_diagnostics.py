"""Doubts about data, the way from a person to an answer, what fewer changes cost, and how a search went."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from ifonly import (
    Categorical,
    Distance,
    Explainer,
    Integer,
    Limits,
    MaxChanges,
    Network,
    OneOfTarget,
    Query,
    Real,
    Schema,
    datasets,
    import_model,
)
from ifonly.diagnostics import bounds_over_time, cost_by_changes, schema_conflicts, score_path
from ifonly.errors import QuestionError
from ifonly.methods import Enumerate
from ifonly.mining import ObservedRows
from ifonly.model import network_model
from ifonly.results import Progress


@pytest.fixture(scope="module")
def credit():
    return Explainer(datasets.network("credit", rules=False), classes=["deny", "approve"]), datasets.load(
        "credit", rules=False
    )


def test_data_that_fits_leaves_no_doubt(credit):
    explainer, data = credit
    assert schema_conflicts(explainer, [data.row(i) for i in range(50)]) == ()


def test_bounds_and_rules_that_the_data_speaks_against(credit):
    explainer, data = credit
    rows = [{**data.row(i), "TotalMonthsOverdue": 10_000 if i < 3 else 5} for i in range(10)]
    rules = [
        "TotalMonthsOverdue <= 4",
        "isMale = 1 or isMale = 0",
        "MostRecentBillAmount >= MaxBillAmountOverLast6Months",
    ]
    told = schema_conflicts(Explainer(explainer.model, constraints=rules), rows)
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
    assert [words for _, words in path.changes] == [
        "most recent payment: $0 \N{RIGHTWARDS ARROW} $1,454.304", "total months overdue: 4 \N{RIGHTWARDS ARROW} 0",
    ]  # fmt: skip
    scores = explainer.model.scores(np.array([explainer.schema.read(row) for row in path.rows]))[:, 0]
    assert np.allclose(path.score_margin, scores) and path.score_margin[0] < 0 < path.score_margin[-1]
    there = [row for row, score_margin in zip(path.rows, path.score_margin, strict=True) if score_margin > 0]
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
    assert (
        all(schema.admits(schema.read(row)) for row in path.rows) and path.score_margin[0] < 0 <= path.score_margin[-1]
    )


@pytest.mark.parametrize("steps", [0, True, 1.5, 10**9])
def test_ways_that_there_are_not(credit, steps):
    explainer, data = credit
    with pytest.raises(QuestionError, match="this answer has none"):
        score_path(explainer, explainer.explain(data.row(0), target="deny"))
    with pytest.raises(QuestionError, match="number of steps"):
        score_path(explainer, explainer.explain(data.row(0)), steps=steps)


# ---------------------------------------------------------------------- what fewer changes cost

AWKWARD = ['<b>pay</b> & "more"', "a$b$c", "A"]
"""Names that a page or a formula could mistake."""


def picture_of(shown):
    """The inline SVG of a fragment, as XML; nothing in the fragment is a script or comes from a name."""
    page = shown._repr_html_()
    assert "<script" not in page and "<b>pay" not in page
    return ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])


def three(weights, bias, names=AWKWARD):
    schema = Schema([Integer(name, 0, 10) for name in names])
    return Explainer(network_model(Network.of([([weights], [bias])]), schema, classes=("deny", "approve")))


def test_costs_are_those_of_direct_questions(credit):
    explainer, data = credit
    rules = ["isMale is fixed", "TotalMonthsOverdue is fixed"]
    told = cost_by_changes(explainer, data.row(0), distance="linf", constraints=rules)
    direct = [
        explainer.explain(data.row(0), distance="linf", constraints=[*rules, MaxChanges(k)]) for k in range(1, 15)
    ]
    shown = len(told.answers)
    assert told.costs == pytest.approx([answer.upper for answer in direct[:shown]], rel=1e-6)
    assert all(answer.status == "nearest" for answer in told.answers)
    assert all(len(answer.changes) <= k for k, answer in enumerate(told.answers, 1))
    assert all(a > b for a, b in zip(told.costs, told.costs[1:], strict=False)) and shown > 2
    assert all(answer.upper == pytest.approx(told.costs[-1], rel=1e-6) for answer in direct[shown:])


def test_no_row_with_one_change_is_said_so():
    explainer = three([1.0, 1.0, 1.0], -24.5)
    told = cost_by_changes(explainer, [0, 0, 0])
    assert told.costs == (math.inf, math.inf, pytest.approx(25 / 30))
    assert [answer.status for answer in told.answers] == ["none exists", "none exists", "nearest"]
    said = [text.text for text in picture_of(told).iter("text")]
    assert said == ["none exists", "1", "none exists", "2", "0.8333", "3", "changes at most"]
    assert repr(told) == "<CostByChanges: 1: none exists; 2: none exists; 3: 0.8333>"
    pytest.importorskip("matplotlib")
    axes = told.plot()
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.texts] == ["none exists", "none exists", "0.8333"]


def test_more_changes_that_do_not_help_are_not_asked_for():
    told = cost_by_changes(three([3.0, 1.0, 1.0], -2.5), [0, 0, 0], query=Query(fewest_first=True))
    assert told.costs == (pytest.approx(1 / 30),)
    frame = pytest.importorskip("pandas") and told.to_frame()
    assert frame.index.tolist() == [1] and frame["distance"].tolist() == [pytest.approx(1 / 30)]
    nothing = cost_by_changes(three([1.0, 1.0, 1.0], -99.0), [0, 0, 0])
    assert [answer.status for answer in nothing.answers] == ["none exists"]


def test_nothing_to_compare():
    with pytest.raises(QuestionError, match="decided as asked already"):
        cost_by_changes(three([1.0, 1.0, 1.0], -2.5), [5, 5, 5], target="approve")


# ---------------------------------------------------------------------- how a search went


def test_a_quick_search_has_a_start_and_an_end(credit):
    explainer, data = credit
    told, answer = bounds_over_time(explainer, data.row(0)), explainer.explain(data.row(0))
    assert (told.seconds[0], told.lower[0], told.upper[0]) == (0.0, 0.0, math.inf)
    assert (told.lower[-1], told.upper[-1]) == (answer.lower, answer.upper) and told.seconds[-1] > 0.0
    assert told.answer.counterfactual == answer.counterfactual
    assert told.to_dict()["upper_bound"][0] is None


class Telling:
    """A method that tells what it is given to tell, and then answers by looking at every row."""

    name = "telling"

    def __init__(self, *events):
        self.events = events

    def prepare(self, question, tolerances):
        self.inner = Enumerate().prepare(question, tolerances)
        return self

    def solve(self, points, limits, *, threads=1, listen=None):
        for event in self.events:
            listen(event)
        return self.inner.solve(points, limits, threads=threads, listen=listen)


def bounds(lower, upper, nodes, seconds=0.0):
    return Progress(finished=0, people=1, lower=lower, upper=upper, nodes=nodes, seconds=seconds)


def test_bounds_approach_the_answer_and_never_say_more():
    heard = []
    method = Telling(
        bounds(0.3, 0.4, 50),  # an earlier search, about something else
        bounds(0.0, math.inf, 1),
        bounds(0.02, 0.3, 2),
        bounds(0.01, 0.2, 3),  # worse than what was proven before
        bounds(0.5, 0.001, 4),  # more than is true: a row that the model refused
    )
    explainer = three([1.0, 1.0, 1.0], -2.5).using(method, listen=heard.append)
    told = bounds_over_time(explainer, [0, 0, 0])
    assert told.answer.upper == pytest.approx(0.1)
    assert told.lower == (0.0, 0.0, 0.02, 0.02, told.answer.lower, told.answer.lower)
    assert told.upper == (math.inf, math.inf, 0.3, 0.2, 0.2, told.answer.upper)
    assert list(told.seconds) == sorted(told.seconds)
    assert [event.nodes for event in heard[:5]] == [50, 1, 2, 3, 4]  # whoever listened before still does
    lines = [path.get("d") for path in picture_of(told).iter("path")]
    assert "nan" not in "".join(lines) and "inf" not in "".join(lines)
    pytest.importorskip("matplotlib")
    assert told.plot().get_lines()[0].get_ydata().tolist() == list(told.lower)


def test_every_ending_has_a_picture(credit):
    explainer, data = credit
    none = bounds_over_time(three([1.0, 1.0, 1.0], -99.0), [0, 0, 0])
    found = bounds_over_time(three([1.0, 1.0, 1.0], -2.5), [0, 0, 0])
    stopped = bounds_over_time(explainer.using(limits=Limits(nodes=1)), data.row(0))
    endings = {": none exists.": none, ": the nearest is at 0.1.": found, "nodes: nothing nearer than ": stopped}
    for words, told in endings.items():
        assert words in repr(told) and words in picture_of(told).get("aria-label")
    pytest.importorskip("matplotlib")
    for told in endings.values():
        told.plot().figure.canvas.draw()


def test_several_searches_for_one_answer():
    schema = Schema([Integer("x", 0, 10)])
    model = network_model(Network.of([([[0.0], [1.0], [2.0]], [0.0, -4.5, -14.5])]), schema, classes=("a", "b", "c"))
    told = bounds_over_time(Explainer(model), [0], target=OneOfTarget(["b", "c"]))
    direct = Explainer(model).explain([0], target=OneOfTarget(["b", "c"]))
    assert (told.lower[-1], told.upper[-1]) == (direct.lower, direct.upper)
    assert all(a <= b for a, b in zip(told.lower, told.lower[1:], strict=False))


@pytest.mark.long
def test_usualness_of_an_impossible_answer() -> None:
    data = datasets.load("credit")
    rows = ObservedRows(data.columns, data.schema)
    impossible = Explainer(datasets.network("credit", rules=False)).explain(data.row(51))
    told = rows.usualness(impossible)
    assert told is not None and not told.possible
    assert any("TotalMonthsOverdue" in words for words in told.breaks)
    assert "TotalOverdueCounts = 1 and TotalMonthsOverdue = 0" in told.unseen
    assert "breaks what all rows obey" in str(told)
    possible = Explainer(datasets.network("credit")).explain(data.row(51))
    good = rows.usualness(possible)
    assert good is not None and good.possible and not good.unseen
    assert rows.impossible([impossible, possible]) == 1


def test_the_nearest_real_row_and_pairs() -> None:
    schema = Schema([Integer("a", 0, 3), Categorical("c", ["x", "y", "z"]), Real("r", 0, 10)])
    rng = np.random.default_rng(1)
    a, r = rng.integers(0, 4, 400), rng.random(400) * 10
    c = np.where(a == 0, rng.integers(0, 2, 400), rng.integers(0, 3, 400))  # a = 0 and c = z never
    table = {"a": a.tolist(), "c": [("x", "y", "z")[k] for k in c], "r": r.tolist()}
    explainer = Explainer(network_model(Network.of([([[-1.0, 0.0, 0.0, 5.0, 0.0]], [-4.5])]), schema))
    answer = explainer.explain({"a": 0, "c": "y", "r": 5.0})
    assert answer.counterfactual == {"a": 0, "c": "z", "r": 5.0}
    told = ObservedRows(table, schema).usualness(answer)
    assert told is not None and "a = 0 and c = z" in told.unseen
    point = schema.read(answer.counterfactual)
    points = np.array([schema.read(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)])
    distances = Distance().between(schema, point, points)
    assert told.nearest_row == int(distances.argmin())
    assert told.nearest_distance == float(distances.min())
    none = explainer.explain({"a": 0, "c": "y", "r": 5.0}, constraints=["c is fixed"])
    assert ObservedRows(table, schema).usualness(none) is None
    assert ObservedRows(table, schema).impossible([none]) == 0
    with pytest.raises(QuestionError, match="no rows"):
        ObservedRows({"a": [], "c": [], "r": []}, schema)
