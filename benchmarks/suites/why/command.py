"""The command line of `why`: measures what is not in the records yet, and shows a table of them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from benchmarks.asking.pace import PACE
from benchmarks.suites.why import attributions
from benchmarks.suites.why.anchors import anchors
from benchmarks.suites.why.records import Records
from benchmarks.suites.why.subjects import SUBJECTS, Subject, make, suffices
from benchmarks.terminal import ROOT, cache_option, console
from ifonly import Explainer, Limits

WAYS = ("reason", "shap", "anchors")
FOUR = 4


@click.command("why")
@click.option("--rows", type=click.IntRange(1), default=200, show_default=True, help="People per model.")
@click.option("--only", type=click.Choice(SUBJECTS), multiple=True, default=SUBJECTS, help="Only these models.")
@click.option("--way", "ways", type=click.Choice(WAYS), multiple=True, default=WAYS[:2], show_default=True,
              help="What is asked; anchors are alibi's.")  # fmt: skip
@click.option("--seconds", type=float, default=60.0, show_default=True, help="CPU time of one person and way.")
@click.option("--records", type=click.Path(dir_okay=False, path_type=Path), default=ROOT / "results" / "why.jsonl",
              help="What was measured before and is added to.")  # fmt: skip
@cache_option
def command(
    rows: int, only: tuple[str, ...], ways: tuple[str, ...], seconds: float, records: Path, cache: Path
) -> None:
    """Smallest sufficient reasons: time and size; and how often the features of SHAP and of anchors suffice."""
    kept = Records(records)
    for name in only:
        measured = _Measured(name, kept, rows, seconds)
        if "reason" in ways:
            measured.reasons()
        if "shap" in ways:
            measured.attributions()
        if "anchors" in ways:
            measured.anchors(cache)
    table = Table("", *only)
    columns = [_column(kept, name, rows) for name in only]
    for line in dict.fromkeys(line for column in columns for line in column):
        table.add_row(line, *(column.get(line, "") for column in columns))
    console().print(table)


@dataclass
class _Measured:
    """The people of one model, of whom something may be missing."""

    name: str
    kept: Records
    rows: int
    seconds: float

    def _missing(self, way: str) -> list[int]:
        return list(self.kept.missing(self.name, way, self.rows, self.seconds))

    def _begin(self) -> tuple[Subject, Explainer]:
        """The model, with kernels loaded and the question prepared."""
        subject = make(self.name)
        explainer = subject.explainer.using(limits=Limits(seconds=self.seconds))
        explainer.why(subject.data.row(0))
        return subject, explainer

    def _add(self, way: str, row: int, is_open: bool, **what: Any) -> None:
        self.kept.add(self.name, way, row, open=is_open, limit=self.seconds, **what)

    def reasons(self) -> None:
        """Our reasons."""
        if not (missing := self._missing("reason")):
            return
        subject, explainer = self._begin()
        for row in missing:
            explainer = explainer.using(limits=Limits(seconds=PACE.wall(self.seconds)))
            begun, now = time.process_time(), time.perf_counter()
            told = explainer.why(subject.data.row(row))
            taken = time.process_time() - begun
            PACE.see(time.perf_counter() - now, taken)
            self._add(
                "reason", row, told.status != "smallest", status=told.status, features=told.features,
                milliseconds=1e3 * taken, searches=told.searches, nodes=told.nodes,
            )  # fmt: skip

    def attributions(self) -> None:
        """The features with the largest attributions: four, and as many as our reason has."""
        sizes = {one["row"]: len(one["features"]) for one in self.kept.of(self.name, "reason", self.rows)}
        if not (missing := [row for row in self._missing("shap") if row in sizes]):
            return
        subject, explainer = self._begin()
        values = attributions.attributions(subject, subject.data.points()[missing])
        for row, own in zip(missing, values, strict=True):
            order = [subject.data.schema.names[g] for g in np.argsort(-np.abs(own), kind="stable")]
            four, many = (suffices(explainer, subject.data.row(row), order[:n]) for n in (FOUR, sizes[row]))
            self._add(
                "shap", row, four is None or many is None, by=attributions.named(), features=order, four=four, many=many
            )

    def anchors(self, cache: Path) -> None:
        """The features of anchors."""
        if not (missing := self._missing("anchors")):
            return
        subject, explainer = self._begin()
        points, names = subject.data.points(), subject.data.schema.names
        with anchors(subject, cache) as peer:
            for row in missing:
                said = peer.ask(points[row], 1, self.seconds)
                taken = {"by": peer.versions, "milliseconds": 1e3 * said.cpu_seconds, "error": said.error}
                if said.error:
                    self._add("anchors", row, True, features=[], enough=None, **taken)
                    continue
                named = [names[g] for g in np.flatnonzero(said.points[0])]
                enough = suffices(explainer, subject.data.row(row), named)
                self._add("anchors", row, enough is None, features=named, enough=enough, **taken)


def _column(kept: Records, name: str, rows: int) -> dict[str, str]:
    """What the records say of one model."""
    column: dict[str, str] = {}
    if ours := kept.of(name, "reason", rows):
        sizes = [len(one["features"]) for one in ours if one["features"]]
        column |= {
            "people": str(len(ours)), "CPU ms, median and worst": _times(ours),
            "searches, mean": f"{np.mean([one['searches'] for one in ours]):.0f}",
            "features, median and most": f"{np.median(sizes):.0f}, {max(sizes)}" if sizes else "",
            "with at most four": str(sum(size <= FOUR for size in sizes)),
            "status": ", ".join(f"{count} {kind}" for kind, count in Counter(one["status"] for one in ours).items()),
        }  # fmt: skip
    if shap := kept.of(name, "shap", rows):
        column |= {
            "attributions": shap[0]["by"], "the four largest suffice": _counted(shap, "four"),
            "as many as our reason has suffice": _counted(shap, "many"),
        }  # fmt: skip
    if theirs := kept.of(name, "anchors", rows):
        sizes = [len(one["features"]) for one in theirs if not one["error"]]
        column |= {
            "anchors": theirs[0]["by"], "anchors, CPU ms, median and worst": _times(theirs),
            "anchors with features": f"{sum(size > 0 for size in sizes)} of {len(theirs)}",
            "anchors, features, median and most": f"{np.median(sizes):.0f}, {max(sizes)}" if sizes else "",
            "features of the anchor suffice": _counted([one for one in theirs if not one["error"]], "enough"),
        }  # fmt: skip
    return column


def _times(found: list[dict[str, Any]]) -> str:
    taken = [one["milliseconds"] for one in found]
    return f"{np.median(taken):,.0f}, {max(taken):,.0f}"


def _counted(found: list[dict[str, Any]], entry: str) -> str:
    """Proven, denied by a row that is decided otherwise, left open."""
    verdicts = Counter(one[entry] for one in found)
    return f"{verdicts[True]} do, {verdicts[False]} do not, {verdicts[None]} open"
