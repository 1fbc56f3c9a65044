"""Errors: one tree, builtins that people would catch, and the way back from a worker process."""

from __future__ import annotations

import pickle

import pytest

from ifonly import errors

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
