"""Every method on people whose nearest distance is known: another solver found it, or the enumeration of all rows."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.asking.records import stopped_by
from benchmarks.subjects import networks
from benchmarks.subjects.data import load as load_data
from benchmarks.suites.agreement.methods import METHODS
from benchmarks.suites.agreement.verdicts import Record, added, read, table, times
from benchmarks.terminal import TESTS
from ifonly import Answer, ClassTarget, Explainer, Limits
from ifonly.methods import Enumerate


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """People of one network, whose optima by one norm are known."""

    dataset: str
    arch: str
    variant: str
    norm: str
    explainer: Explainer
    points: Any
    optima: Any

    def records(self, name: str, rows: Sequence[int], seconds: float) -> Iterator[Record]:
        method = METHODS[name]()
        for i in rows:
            begun = time.process_time()
            answer = self.explainer.using(method).explain(
                self.explainer.schema.row(self.points[i]),
                target=ClassTarget(self.explainer.model.classes[1], 0.0),
                distance=self.norm,
                limits=Limits(seconds=seconds),
            )
            yield self._record(name, i, answer, time.process_time() - begun, seconds)

    def _record(self, name: str, row: int, answer: Answer, spent: float, limit: float) -> Record:
        return Record(
            method=name,
            dataset=self.dataset,
            arch=self.arch,
            variant=self.variant,
            norm=self.norm,
            row=row,
            optimum=float(self.optima[row]),
            status=answer.status,
            lower=answer.lower,
            upper=answer.upper,
            seconds=spent,
            limit=limit,
            note=answer.note,
            stopped_by=stopped_by(answer.stop),
        )


def reference_cells(folder: Path, names: Sequence[str], variants: Sequence[str], norms: Sequence[str]) -> list[Cell]:
    """The reference networks of two hidden layers of ten."""
    sys.path[:0] = [str(TESTS)]
    from cases import load  # type: ignore[import-not-found]

    made = []
    for dataset in names:
        for variant in variants:
            model, points, optima = load(dataset, "2x10", variant, folder=folder)
            made += [
                Cell(
                    dataset=dataset,
                    arch="2x10",
                    variant=variant,
                    norm=norm,
                    explainer=Explainer(model),
                    points=points,
                    optima=optima[norm],
                )
                for norm in norms
            ]
    return made


def small_cells(cache: Path, archs: Sequence[str], norms: Sequence[str], rows: int) -> Iterator[Cell]:
    """COMPAS and networks of few neurons; the optimum is the enumerator's."""
    data = load_data("compas")
    for arch in archs:
        model = networks.model(networks.Spec("compas", networks.arch(arch)), cache)
        points = data.points[networks.denied(model, data, rows)]
        explainer = Explainer(model)
        for norm in norms:
            answers = explainer.using(Enumerate()).explain_many(
                [model.schema.row(point) for point in points], target=ClassTarget(model.classes[1], 0.0), distance=norm
            )
            optima = np.array([answer.upper for answer in answers])
            yield Cell(
                dataset="compas",
                arch=arch,
                variant="norm",
                norm=norm,
                explainer=explainer,
                points=points,
                optima=optima,
            )


def run(cells: Iterable[Cell], chosen: Sequence[str], rows: int, seconds: float, path: Path) -> None:
    """Every method on every cell; then the table of all records."""
    there = {(*record.cell, record.row) for record in read(path)}
    for cell in cells:
        known = np.flatnonzero(np.isfinite(cell.optima))[:rows].tolist()
        for name in chosen:
            key = (name, cell.dataset, cell.arch, cell.variant, cell.norm)
            missing = [i for i in known if (*key, i) not in there]
            if missing:
                made = list(added(path, cell.records(name, missing, seconds)))
                click.echo(f"{' '.join(key)}: {_said(made)}")
    for line in itertools.chain(table(read(path)), times(read(path))):
        click.echo(line)


def _said(records: Sequence[Record]) -> str:
    verdicts = [record.verdict for record in records]
    agree = f"{verdicts.count('agree')} of {len(records)} agree"
    late = f", {verdicts.count('limit')} at the limit of {records[0].limit:g} s" if "limit" in verdicts else ""
    wrong = f", {verdicts.count('wrong')} WRONG" if "wrong" in verdicts else ""
    return f"{agree}{late}{wrong}, median {np.median([record.seconds for record in records]):.2g} s"
