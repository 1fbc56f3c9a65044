"""`ifonly diverse`: sets on the page, as JSON, and what is refused."""

from __future__ import annotations

import json

import pytest

from ifonly import Distance, datasets
from ifonly.cli import codes


def test_a_set_on_a_page(run):
    result = run("diverse", "--dataset", "compas", "--row", "0", "--row", "1", "-k", "4", "--differ", "features")
    assert result.exit_code == codes.PROVEN
    lines = result.stdout.splitlines()
    assert lines[0] == "Row 0: decided low risk, wanted high risk"
    assert "Row 1: decided low risk, wanted high risk" in lines
    assert any(line.endswith("PriorsCount: 0 -> 8") and "nearest" in line for line in lines)
    ending = (
        "No other allowed row turns the decision into high risk and leaves unchanged something that each answer above"
    )
    assert sum(line.startswith(ending) for line in lines) == 2
    assert sum(line.startswith("proven         each is the nearest, given those above") for line in lines) == 2


def test_sets_as_json(run):
    result = run("diverse", "--dataset", "compas", "--first", 3, "-k", 3, "--apart", 0.1, "--margin", 0.001, "--json")
    assert result.exit_code == codes.PROVEN
    sets = json.loads(result.stdout)["sets"]
    schema = datasets.network("compas", rules=False).schema
    assert [one["row"] for one in sets] == [0, 1, 2]
    for one in sets:
        assert one["proven"]
        assert {answer["row"] for answer in one["answers"]} == {one["row"]}
        rows = [schema.read(answer["counterfactual"]) for answer in one["answers"]]
        assert len(rows) == 3
        assert all(Distance().between(schema, a, b) >= 0.1 for i, a in enumerate(rows) for b in rows[:i])
        assert all(abs(answer["score_after"]) >= 0.001 for answer in one["answers"])


def test_limits_and_rows_that_cannot_be_read(run, compas):
    words = compas.words()[1:]
    result = run("diverse", *words, "--method", "enumerate", "--node-limit", 1, "-k", 2)
    assert result.exit_code == codes.LIMIT
    assert "The search for another answer was stopped (node limit of 1)." in result.stdout
    text = compas.few.read_text(encoding="utf-8").splitlines()
    broken = compas.folder / "broken.csv"
    broken.write_text("\n".join([text[0], text[1], text[2].replace(text[2].split(",")[0], "never", 1)]) + "\n")
    result = run("diverse", *compas.words(broken)[1:], "-k", 2)
    assert result.exit_code == codes.ERROR_ROWS
    assert "row 1: Feature" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-k", 0), "k, must be a whole number >= 1; it is 0"),
        (("--apart", 0), "How far answers are apart must be a number > 0"),
        (("--distance", "l2"), "apart_distance='l1'"),
        (("--differ", "features", "--apart-distance", "l1"), "not told apart by a distance"),
        (("--method", "search,enumerate"), "A set is made by one method"),
    ],
)
def test_what_is_refused(run, words, said):
    result = run("diverse", "--dataset", "compas", "--row", 0, *words)
    assert result.exit_code == codes.WRONG_INPUT
    assert said in result.stderr
    assert result.stdout == ""
