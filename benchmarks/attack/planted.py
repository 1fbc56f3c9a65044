"""Known faults, planted on purpose: the attacker must find each of them, or it is a test that cannot fail."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Patch = Callable[[Any, str, Any], None]


def plant(name: str, patch: Patch = setattr) -> None:
    """Put the fault in place; `patch` sets an attribute, and may know how to set it back."""
    PLANTS[name](patch)


def wrong_bound(patch: Patch) -> None:
    """What a search that was stopped calls proven is too much."""
    from ifonly.answering.build_answers import AnswerBuilder

    made = AnswerBuilder.answers

    def higher(self: Any, *args: Any) -> Any:
        for answer in made(self, *args):
            low = answer.lower * 1.5 + 1e-3
            unknown = answer.status == "unknown"
            yield dataclasses.replace(answer, lower=low, upper=max(answer.upper, low)) if unknown else answer

    patch(AnswerBuilder, "answers", higher)


def narrow_range(patch: Patch) -> None:
    """The last value of a range is lost in what is searched."""
    import numpy as np

    from ifonly.problem.constraints import Range

    def restrict(self: Any, feature: Any, before: Any, domains: Any) -> None:
        domains.lower = np.maximum(domains.lower, self.lower)
        domains.upper = np.minimum(domains.upper, self.upper - 1)

    patch(Range, "restrict", restrict)


def lost_step(patch: Patch) -> None:
    """The last step is lost in what is searched."""
    import numpy as np

    from ifonly.problem.constraints import Steps

    whole = Steps.restrict

    def restrict(self: Any, feature: Any, before: Any, domains: Any) -> None:
        whole(self, feature, before, domains)
        step = float(self.step)
        domains.upper = np.where(domains.upper - step >= before, domains.upper - step, domains.upper)

    patch(Steps, "restrict", restrict)


def believing_checker(patch: Patch) -> None:
    """The checker takes every leaf that names a row for closed."""
    from ifonly.certificate.check import tree_walk

    patch(tree_walk, "most_of_rows", lambda *args, **named: -1)


def small_error(patch: Patch) -> None:
    """E is a thousand times too small."""
    from ifonly import Model

    whole = Model.error_in
    patch(Model, "error_in", lambda self, precision: whole(self, precision) * 1e-3)


def raw_error(patch: Patch) -> None:
    """A raw error leaves a call."""
    from ifonly.schema import Schema
    from ifonly.schema.io import schema_from_json

    patch(Schema, "load", staticmethod(lambda path: schema_from_json(json.loads(Path(path).read_bytes()))))


def endless(patch: Patch) -> None:
    """A question is never answered."""
    from ifonly.answering.runner import QueryRunner

    patch(QueryRunner, "find", lambda self, *args: time.sleep(1e6))


PLANTS: dict[str, Callable[[Patch], None]] = {
    "wrong bound": wrong_bound,
    "narrow range": narrow_range,
    "lost step": lost_step,
    "believing checker": believing_checker,
    "small error": small_error,
    "raw error": raw_error,
    "endless": endless,
}
