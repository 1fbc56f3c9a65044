"""Errors: one tree, builtins that people would catch, and the way back from a worker process."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from ifonly import Distance, Explainer, Fixed, Query, datasets, errors

EXAMPLES = [
    errors.SchemaError("a"),
    errors.RowError("b", feature="x", row=3, value=7),
    errors.ModelError("c"),
    errors.UnsupportedModel("d", operation="Softplus"),
    errors.QuestionError("e"),
    errors.RuleError("r\n  Age is\n  ^^^"),
    errors.UnsupportedQuestion("f"),
    errors.FileError("g"),
    errors.ChangedFile("people.csv"),
    errors.MissingExtra("torch", extra="torch", needed_for="A torch model"),
    errors.Contradiction("h"),
]


def test_every_kind_has_an_example() -> None:
    kinds = {k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.IfonlyError)}
    assert kinds - {errors.IfonlyError} == {type(error) for error in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: errors.IfonlyError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_people_can_catch_what_they_know() -> None:
    assert issubclass(errors.RowError, ValueError)
    assert issubclass(errors.MissingExtra, ImportError)
    assert issubclass(errors.UnsupportedQuestion, NotImplementedError)
    assert "pip install 'ifonly[torch]'" in str(EXAMPLES[-2])


@pytest.mark.parametrize(("query", "where"), [
    ({"target": {"class": 1, "at_leats": 2}}, ("target",)),
    ({"distance": "l7"}, ("distance",)),
    ({"constraints": "Age is fixed"}, ("constraints",)),
    ({"constraints": ["Age is fixed", {"kind": "fixd"}]}, ("constraints", 1)),
    ({"fewest_first": 1}, ()),
])  # fmt: skip
def test_an_error_says_which_part_of_a_query_is_wrong(query: Any, where: tuple[str | int, ...]) -> None:
    with pytest.raises(errors.QuestionError) as refused:
        Query.from_dict(query)
    assert refused.value.where == where


@pytest.mark.parametrize(("query", "where"), [
    (Query(constraints=["PriorsCount only goes down", "PriorsCount gos down"]), ("constraints", 1)),
    (Query(constraints=[Fixed("Race"), Fixed("Rase")]), ("constraints", 1)),
    (Query(distance=Distance("l1", weights={"Rase": 2.0})), ("distance",)),
    (Query(target="none"), ("target",)),
])  # fmt: skip
def test_also_of_a_query_that_does_not_fit_the_model(query: Query, where: tuple[str | int, ...]) -> None:
    with pytest.raises(errors.IfonlyError) as refused:
        Explainer(datasets.network("compas", rules=False)).check(query)
    assert refused.value.where == where


def test_messages_name_nothing_that_is_only_in_the_repository() -> None:
    """A user has no docs/ folder: texts that are no docstrings name addresses or commands."""
    root = Path(errors.__file__).parent
    in_the_repository = re.compile(r"\bdocs/|\w\.md\b|\btests/|\bbenchmarks/")
    for path in root.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not in_the_repository.search(source):
            continue
        tree = ast.parse(source)
        documented = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented:
                assert not in_the_repository.search(node.value), f"{path.name}: {node.value}"
