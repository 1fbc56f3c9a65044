"""The question from a file: the same as by options, and other options add to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ifonly import ClassTarget, Distance, Fixed, OnlyDown, Query
from ifonly.cli import codes

QUERY = Query(
    target=ClassTarget("low risk", margin=0.01), distance=Distance("linf"), constraints=[Fixed("Sex"), Fixed("Race")]
)


def told(run: Any, *words: Any) -> list[dict[str, Any]]:
    """The answers, without what differs from run to run."""
    answers = json.loads(run(*words, "--json").stdout)["answers"]
    return [{name: value for name, value in answer.items() if name != "seconds"} for answer in answers]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "query.json"
    path.write_text(QUERY.to_json(), encoding="utf-8")
    return path


def test_a_file_asks_what_the_options_ask(run, compas, file):
    by_options = told(run, *compas.words(), "--target", "low risk", "--margin", 0.01, "--distance", "linf", "--fix", "Sex",
                      "--fix", "Race")  # fmt: skip
    assert told(run, *compas.words(), "--query", file) == by_options
    assert {answer["distance_name"] for answer in by_options} == {"linf"}


def test_options_replace_and_add(run, compas, file):
    both = told(
        run, *compas.words(), "--query", file, "--distance", "l1", "--only-down", "PriorsCount", "--target", "high risk"
    )
    alone = told(
        run, *compas.words(), "--target", "high risk", "--fix", "Sex", "--fix", "Race", "--only-down", "PriorsCount"
    )
    assert both == alone


def test_a_margin_alone_is_that_of_the_files_target(run, compas, file):
    strict = told(run, *compas.words(), "--query", file, "--margin", 0.75)
    by_options = told(run, *compas.words(), "--target", "low risk", "--margin", 0.75, "--distance", "linf", "--fix", "Sex",
                      "--fix", "Race")  # fmt: skip
    assert strict == by_options
    assert all(answer["target"] == strict[0]["target"] for answer in strict)  # not the other class of each


def test_the_fewest_changes_of_a_file(run, compas, tmp_path):
    path = tmp_path / "few.json"
    path.write_text(json.dumps({"fewest_first": True, "constraints": ["Sex is fixed"]}), encoding="utf-8")
    answers = told(run, *compas.words(), "--query", path)
    assert answers == told(run, *compas.words(), "--fewest-first", "--fix", "Sex")
    assert answers[0]["distance_name"] == "fewest changes, then l1"
    refused = run("diverse", *compas.words()[1:], "-k", 2, "--query", path)
    assert refused.exit_code == codes.WRONG_INPUT and "fewest changes" in refused.stderr


def test_other_commands_take_it(run, compas, tmp_path):
    path = tmp_path / "down.json"
    path.write_text(Query(target="low risk", constraints=[OnlyDown("PriorsCount")]).to_json(), encoding="utf-8")
    words = ("--target", "low risk", "--only-down", "PriorsCount")
    for command in (("diverse", "-k", 2), ("audit", "--by", "Sex")):
        rest = (*command[1:], *compas.words()[1:], "--json")
        by_file, by_options = (json.loads(run(command[0], *rest, *more).stdout) for more in (("--query", path), words))
        assert without_seconds(by_file) == without_seconds(by_options)


def without_seconds(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: without_seconds(value) for name, value in data.items() if "seconds" not in name}
    return [without_seconds(one) for one in data] if isinstance(data, list) else data


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a JSON file"),
        ("[" * 100_000, "is not a JSON file"),
        ("[]", "A query must be an object with entries such as 'target'"),
        ('{"colour": 1}', "A query has no entry 'colour'"),
        ('{"constraints": ["Sex is mixed"]}', "Sex"),
        ('{"target": "no such class"}', "no class 'no such class'"),
    ],
)
def test_what_is_no_query(run, compas, tmp_path, content, words):
    path = tmp_path / "query.json"
    path.write_text(content, encoding="utf-8")
    result = run(*compas.words(), "--query", path)
    assert result.exit_code == codes.WRONG_INPUT and words in result.stderr


def test_a_file_that_is_not_there(run, compas, tmp_path):
    result = run(*compas.words(), "--query", tmp_path / "none.json")
    assert result.exit_code == codes.WRONG_INPUT and "Cannot read the query" in result.stderr
