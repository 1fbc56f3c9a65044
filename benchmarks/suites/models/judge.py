"""Each model is trained, imported, and asked about people that it refuses; every answer goes to its own `predict`."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import click
from rich.table import Table

from benchmarks.suites.models.people import applications
from benchmarks.suites.models.subjects import Subject, Trained
from benchmarks.terminal import console
from ifonly import Explainer, Limits, OtherTarget, import_model
from ifonly.errors import IfonlyError


@dataclass(frozen=True)
class Verdict:
    """What became of a model."""

    kind: str = ""
    refused: str = ""
    statuses: str = ""
    verified: int = 0
    asked: int = 0
    seconds: float = 0.0
    found: int = 0

    @property
    def told(self) -> str:
        return self.refused or f"{self.verified} of {self.found} answers verified ({self.statuses})"


def judged(trained: Trained, people: int, seconds: float) -> Verdict:
    """The model, asked about so many people that it decides against (or, of several classes, about anybody)."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = import_model(trained.model, trained.schema, **trained.options)
    except IfonlyError as error:
        return Verdict(refused=f"{type(error).__name__}: {error}")
    rows = [{name: row[name] for name in trained.schema.names} for row in applications().table.to_dict("records")]
    before = trained.predict(rows)
    chosen = [i for i, said in enumerate(before) if len(model.classes) > 2 or said == model.classes[0]][:people]
    explainer = Explainer(model).using(limits=Limits(seconds=seconds), reasons=False)
    target: Any = OtherTarget() if len(model.classes) > 2 else model.classes[1]
    answers = list(explainer.explain_many([rows[i] for i in chosen], target=target))
    found = [(i, answer) for i, answer in zip(chosen, answers, strict=True) if answer.counterfactual]
    after = trained.predict([dict(answer.counterfactual) for _, answer in found]) if found else []
    verified = sum(said != before[i] for (i, _), said in zip(found, after, strict=True))
    counts = Counter(answer.status for answer in answers)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    return Verdict(model.function.name, "", statuses, verified, len(chosen), time.process_time() - begun, len(found))


def subjects() -> list[Subject]:
    from benchmarks.suites.models.keras_models import KERAS
    from benchmarks.suites.models.networks import ONNX, TORCH
    from benchmarks.suites.models.tables import BOOSTING, COMPOSED, SKLEARN

    return [*SKLEARN, *BOOSTING, *TORCH, *KERAS, *ONNX, *COMPOSED]


@click.command("models")
@click.option("--people", type=click.IntRange(1), default=200, show_default=True, help="People per model.")
@click.option("--seconds", type=float, default=2.0, show_default=True, help="Time limit of one answer.")
@click.option("--only", default="", help="Models whose family or name holds this text.")
def command(people: int, seconds: float, only: str) -> None:
    """The models that people bring: supported and verified by their own predict, or refused and what to do."""
    table = Table("family", "model", "read as", "outcome", "remedy", "CPU s")
    supported = refused = 0
    for one in subjects():
        if only.lower() not in f"{one.family} {one.name}".lower():
            continue
        verdict, remedy = judged(one.train(), people, seconds), ""
        if verdict.refused and one.remedy is not None:
            tried = judged(one.remedy(), people, seconds)
            remedy = f"{one.advice}: {tried.told}"
        supported, refused = supported + (not verdict.refused), refused + bool(verdict.refused)
        table.add_row(one.family, one.name, verdict.kind, verdict.told, remedy, f"{verdict.seconds:.1f}")
        console().print(f"{one.family}: {one.name}: {verdict.kind}: {verdict.told} {remedy}", soft_wrap=True)
    console().print(table)
    console().print(f"{supported} supported, {refused} refused")
