"""Known faults, planted on purpose: the attacker must find each of them, or it is a test that cannot fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def plant(name: str) -> None:
    PLANTS[name]()


def wrong_bound() -> None:
    """A lower bound that is a little too high."""
    import dataclasses

    from ifonly import explain

    made = explain.Explainer._answer

    def higher(self: Any, *args: Any) -> Any:
        return [
            dataclasses.replace(
                answer, lower=answer.lower * 1.5 + 1e-3, upper=max(answer.upper, answer.lower * 1.5 + 1e-3)
            )
            if answer.status in ("within", "unknown")
            else answer
            for answer in made(self, *args)
        ]

    explain.Explainer._answer = higher  # type: ignore[method-assign]


def narrow_range() -> None:
    """A `restrict` that loses the last value of a range."""
    import numpy as np
    from ifonly.problem.constraints import Range

    def restrict(self: Any, feature: Any, before: Any, domains: Any) -> None:
        domains.lower = np.maximum(domains.lower, self.lower)
        domains.upper = np.minimum(domains.upper, self.upper - 1)

    Range.restrict = restrict  # type: ignore[method-assign]


def lost_step() -> None:
    """A `restrict` that loses the last step."""
    from ifonly.problem.constraints import Steps

    whole = Steps.restrict

    def restrict(self: Any, feature: Any, before: Any, domains: Any) -> None:
        whole(self, feature, before, domains)
        import numpy as np

        domains.upper = np.where(domains.upper - self.step >= before, domains.upper - self.step, domains.upper)

    Steps.restrict = restrict  # type: ignore[method-assign]


def believing_checker() -> None:
    """A checker that closes every leaf."""
    from ifonly.proof.check import checker

    checker.most_of_rows = lambda *args, **named: -1


def small_error() -> None:
    """An E that is a thousand times too small."""
    from ifonly import model
    from ifonly.model import rounding

    whole = rounding.rounding_error
    model.rounding_error = rounding.rounding_error = lambda m: whole(m) * 1e-3


def raw_error() -> None:
    """A door that lets a raw error out."""
    from ifonly.schema import Schema

    def load(path: Any) -> Any:
        import json
        from pathlib import Path

        from ifonly.schema.io import schema_from_json

        return schema_from_json(json.loads(Path(path).read_bytes()))

    Schema.load = staticmethod(load)  # type: ignore[assignment]


def endless() -> None:
    """A question that is never answered."""
    import time

    from ifonly import explain

    explain.Explainer._answer = lambda self, *args: time.sleep(1e6)  # type: ignore[assignment,method-assign,return-value]


PLANTS: dict[str, Callable[[], None]] = {
    "wrong bound": wrong_bound,
    "narrow range": narrow_range,
    "lost step": lost_step,
    "believing checker": believing_checker,
    "small error": small_error,
    "raw error": raw_error,
    "endless": endless,
}
