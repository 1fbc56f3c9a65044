"""The model of an explainer, from what the user gives: a model, a network, a file, or a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ifonly.caching import PREPARING
from ifonly.errors import ModelError
from ifonly.model import Model
from ifonly.model.given import as_model
from ifonly.model.model import class_list
from ifonly.printing import shown
from ifonly.schema.values import plain
from ifonly.solvers.search.search import begin_to_compile


def given_model(model: Any, schema: Any, classes: Sequence[Any] | Mapping[Any, Any]) -> Model:
    """The model, imported if need be, with its classes named. Kernels that its search needs begin to be compiled."""
    names, outcomes = named_classes(classes)
    with PREPARING:
        made = as_model(model, schema, names)
    made = replace(made, outcomes=outcomes) if outcomes else made
    begin_to_compile(made.function)
    return made


def named_classes(classes: Any) -> tuple[tuple[Any, ...], dict[Any, dict[str, str]]]:
    """The names of the classes, and the clauses of those that have one, by language; a text alone is English."""
    if not isinstance(classes, Mapping):
        return class_list(classes), {}
    outcomes = {}
    for name, clause in classes.items():
        by_language = {"en": clause} if isinstance(clause, str) else clause
        if not isinstance(by_language, Mapping) or not all(isinstance(one, str) for one in by_language.values()):
            raise ModelError(
                f"The outcome of a class is a clause such as 'the application would have been approved', or a dict of "
                f"clauses by language; that of {shown(name)} is {shown(clause)}."
            )
        outcomes[plain(name)] = dict(by_language)
    return class_list(list(classes)), outcomes
