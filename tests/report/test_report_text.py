"""Text of answers: every kind, many, the summary; the same page on a terminal."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from ifonly import Answers, Explainer, Failed, Nearest, NoneExists, Unknown, Within, datasets, report
from ifonly.report.page import Commands, Facts, Heading, Paragraph, TextTable, plain
from ifonly.report.terminal import draw
from ifonly.report.text import duration, share
from ifonly.results import Change, Stop, StoppedBy

COMMON = {
    "factual": {"Age": 31, "Income": 1200.5, "Job": None}, "target": "yes", "distance_name": "l1",
    "decision_before": "no", "score_before": -1.5, "method": "search", "seconds": 0.0012, "nodes": 34,
}  # fmt: skip
FOUND = {
    "counterfactual": {"Age": 31, "Income": 1301.1234567891, "Job": "cook"}, "decision_after": "yes",
    "score_after": 1e-6, "changes": (Change("Income", 1200.5, 1301.1234567891), Change("Job", None, "cook")),
}  # fmt: skip
NEAREST = Nearest(row=0, lower=0.25, upper=0.25, **COMMON, **FOUND)
NONE = NoneExists(row=1, lower=math.inf, **COMMON)
WITHIN = Within(row=2, lower=0.1, upper=0.25, stop=Stop(StoppedBy.SECONDS, 1.0), **COMMON, **FOUND)
UNKNOWN = Unknown(row=3, lower=0.1, stop=Stop(StoppedBy.SECONDS, 1.0), **COMMON)
FAILED = Failed(row=4, factual={}, target="", distance_name="", lower=0.0, error="Feature 'Age' has no value in row 4.")
ALREADY = Nearest(row=5, lower=0.0, upper=0.0, counterfactual=COMMON["factual"], decision_after="yes", score_after=1.0,
                  **{**COMMON, "decision_before": "yes"})  # fmt: skip
EVERY = Answers([NEAREST, NONE, WITHIN, UNKNOWN, FAILED, ALREADY], seconds=2.5)


def test_nearest_reads_well():
    assert (
        report.text(NEAREST)
        == """\
Row 0: decided no, wanted yes

  feature  now      instead
  Age      31
* Income   1,200.5  1,301.1234567891
* Job      missing  cook

If Income had been 1,301.1234567891 instead of 1,200.5 and Job had been cook instead of missing, the decision would have changed to \
yes. No smaller allowed change would have been enough.

decision  no -> yes
score     -1.5 -> 1e-06
distance  0.25 (l1)
proven    nothing nearer than 0.25 exists (gap 0)
time      1.2 ms (search, 34 nodes)"""
    )


def test_the_other_kinds_say_what_is_proven():
    assert "proven  no allowed row is decided so, at any distance" in report.text(NONE)
    assert "nothing nearer than 0.1 exists (gap 0.15)" in report.text(WITHIN)
    assert "note      time limit of 1 s" in report.text(WITHIN)
    assert "proven  nothing nearer than 0.1 exists" in report.text(UNKNOWN)
    assert "instead" not in report.text(UNKNOWN)
    assert report.text(FAILED).splitlines()[-1].endswith("Feature 'Age' has no value in row 4.")
    assert "nothing needs to change" in report.text(ALREADY)


def test_many_reads_well():
    assert (
        report.text(EVERY)
        == """\
row  decision    status       distance  lower    time  changes
  0  no -> yes   nearest          0.25   0.25  1.2 ms  Income: 1,200.5 -> 1,301.1234567891; Job: missing -> cook
  1  no -> yes   none exists         -      -  1.2 ms
  2  no -> yes   within           0.25    0.1  1.2 ms  Income: 1,200.5 -> 1,301.1234567891; Job: missing -> cook
  3  no -> yes   unknown             -    0.1  1.2 ms  time limit of 1 s
  4              error               -      -       -  Feature 'Age' has no value in row 4.
  5  yes -> yes  nearest             0      0  1.2 ms  none needed

rows             6 in 2.5 s
nearest          2 (33%) proven nearest
none exists      1 (17%) proven that no allowed change does it
within           1 (17%) a change, not proven nearest
unknown          1 (17%) nothing found, nothing ruled out
error            1 (17%) not readable
stopped by       time limit of 1 s (2)
no change        1 already decided as asked
distance (l1)    min 0.25, median 0.25, p90 0.25, max 0.25
changes per row  min 2, median 2, p90 2, max 2
changed most     Income (2), Job (2)
time per row     min 1.2 ms, median 1.2 ms, p90 1.2 ms, max 1.2 ms"""
    )


def test_a_list_of_answers_is_as_good():
    assert report.text(list(EVERY)).startswith("row  decision")


def test_long_tables_are_cut_and_say_so():
    page = report.answers_page(Answers([NEAREST] * 7), most=5)
    assert plain(page).endswith("... and 2 more") and len(page[0].rows) == 5
    assert len(report.answers_page(Answers([NEAREST] * 7), most=None)[0].rows) == 7


def test_summary_is_plain_data():
    figures = report.summary(EVERY)
    assert figures["rows"] == 6 and figures["unchanged"] == 1 and figures["total_seconds"] == 2.5
    assert figures["distance"] == {"min": 0.25, "median": 0.25, "p90": 0.25, "max": 0.25}
    empty = report.summary(Answers([]))
    assert empty["distance"] is None and empty["seconds"] is None
    assert plain(report.summary_page(Answers([]))) == "rows  0"
    assert plain(report.summary_page(Answers([FAILED]))).splitlines() == ["rows   1", "error  1 (100%) not readable"]


def test_scores_of_many_classes_and_of_none():
    many = Nearest(**{**COMMON, **FOUND, "row": 0, "lower": 0.25, "upper": 0.25, "score_before": (1.0, 0.5),
                      "score_after": (0.0, 1.0)})  # fmt: skip
    assert "score     [1, 0.5] -> [0, 1]" in report.text(many)
    regression = Nearest(**{**COMMON, **FOUND, "row": 0, "lower": 0.25, "upper": 0.25, "decision_before": None,
                            "decision_after": None, "target": "a score of at least 2"})  # fmt: skip
    assert report.text(regression).startswith("Row 0: wanted a score of at least 2")
    assert "decision  " not in report.text(regression)
    assert "a score of at least 2  nearest" in report.text([regression])


def test_durations():
    shown = [duration(s) for s in (4e-6, 0.00099, 0.0012, 0.5, 1.0, 59.96, 119.0, 120.0, 3725.0)]
    assert shown == ["4 us", "990 us", "1.2 ms", "500 ms", "1 s", "60 s", "119 s", "2 min 0 s", "62 min 5 s"]


def test_shares_do_not_round_to_all_or_none():
    assert [share(k, 1000) for k in (0, 1, 333, 999, 1000)] == ["0%", "<1%", "33%", ">99%", "100%"]


def test_names_cannot_steer_a_terminal():
    page = (Heading("a\x1b[2J"), Paragraph("b\nc"), Facts([("d\r", "e\x07")]), Commands(["f\x1b"]),
            TextTable(header=("g\t", "h"), rows=[("i\u202e", "j")], marked=frozenset({0})))  # fmt: skip
    text = plain(page)
    assert not any(c in text for c in "\x1b\r\x07\t\u202e")
    drawn = io.StringIO()
    draw(page, Console(file=drawn, force_terminal=False, width=100))
    assert not any(c in drawn.getvalue() for c in "\x1b\r\x07\t\u202e")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_same_words_on_a_terminal(width):
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=width, color_system="truecolor")
    draw((*report.answer_page(NEAREST), *report.answers_page(EVERY), *report.summary_page(EVERY)), console)
    assert "Income" in drawn.getvalue() and "\x1b[" in drawn.getvalue()
    plain_text = io.StringIO()
    draw(report.answer_page(NEAREST), Console(file=plain_text, width=width))
    assert all(len(line) <= width for line in plain_text.getvalue().splitlines())


def test_markup_in_names_is_not_interpreted():
    drawn = io.StringIO()
    draw((Heading("[red]x[/red]"), TextTable(header=("[b]",), rows=[("[/i]",)])), Console(file=drawn, width=80))
    assert "[red]x[/red]" in drawn.getvalue() and "[/i]" in drawn.getvalue() and "[b]" in drawn.getvalue()


def test_a_real_answer():
    data = datasets.load("compas", rules=False)
    explainer = Explainer(datasets.network("compas", rules=False), classes=["low risk", "high risk"])
    answers = explainer.explain_many([data.row(i) for i in data.split()[1][:5]])
    assert report.text(answers[3]).startswith("Row 3: decided high risk, wanted low risk")
    assert "5 (100%) proven nearest" in report.text(answers)
