"""Diverse sets: is every set as asked for, is every answer the nearest given the earlier ones, and what do sets cost?

A set of k is the beginning of the set of ten, so each person is asked once, for ten. One CSV record per answer; the
table has a line per data set and k. `--check N`: each answer of the first N people is asked for again, given the
earlier ones, with a MIP, which knows nothing of how the set was made: the rule "at least so far from each" as one
program.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks.subjects import data, networks
from benchmarks.terminal import cache_option, console, results_option
from ifonly import Distance, Explainer, Limits, Nearest, NoneExists
from ifonly.methods import MipObj
from ifonly.problem.distance_rules import AtLeastFar
from ifonly.problem.diversity import Diversity
from ifonly.results import DiverseAnswers
from ifonly.solvers.common.backends import available
from ifonly.tolerances import EDGE

APART = 0.01
MOST = 10
AGREE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One answer, or (without a distance) what ended a set."""

    dataset: str
    network: str
    row: int
    number: int
    status: str
    lower: float
    distance: float
    apart: float
    """The least distance from an earlier answer."""
    diversity: float
    """The mean distance between two of the answers so far."""
    seconds: float
    """Processor time: that of the set, shared out by the time of each answer."""
    nodes: int
    changes: int
    check: str = ""
    """What the MIP said: the same row, another as near, undecided by then, or WRONG with its bounds."""
    check_seconds: float = 0.0


def ask(name: str, rows: int, checked: int, budget: float, cache: Path, console: Console) -> Iterator[Record]:
    """The records of one data set."""
    model = networks.model(networks.Spec(name, (10, 10)), cache)
    table = data.load(name)
    explainer = Explainer(model)
    people = networks.denied(model, table, rows)
    explainer.explain(table.schema.row(table.points[people[0]]))  # kernels are loaded
    with console.status("") as status:
        for done, number in enumerate(people.tolist()):
            status.update(f"{name}: {done} of {len(people)} people")
            person = table.schema.row(table.points[number])
            begun = time.process_time()
            answers = explainer.using(limits=Limits(seconds=budget)).explain_diverse(
                person, Diversity(MOST, apart=APART)
            )
            spent = time.process_time() - begun
            for record in _records(name, model.network.fingerprint[:12], number, answers, spent):
                if done < checked and record.status in ("nearest", "within"):
                    status.update(f"{name}: {done} of {len(people)} people, checking answer {record.number} by MIP")
                    record = _checked(explainer, person, answers, record, budget)
                yield record


def _records(name: str, network: str, row: int, answers: DiverseAnswers, spent: float) -> Iterator[Record]:
    """`spent`: processor seconds of the whole set."""
    share = spent / answers.seconds
    for i, answer in enumerate((*answers, *([answers.ended] if answers.ended else []))):
        found = answer.counterfactual is not None
        pairs = [answers.apart[a][b] for b in range(i + 1) for a in range(b)] if found else []
        yield Record(
            dataset=name, network=network, row=row, number=i + 1, status=answer.status, lower=answer.lower,
            distance=answer.upper, apart=min(answers.apart[i][:i], default=float("inf")) if found else float("nan"),
            diversity=statistics.fmean(pairs) if pairs else float("nan"), seconds=share * answer.seconds,
            nodes=answer.nodes, changes=len(answer.changes),
        )  # fmt: skip


def _checked(explainer: Explainer, person: Any, answers: DiverseAnswers, record: Record, budget: float) -> Record:
    """The record with the MIP's opinion on its answer, given the earlier ones."""
    schema = explainer.schema
    earlier = [schema.read(answer.counterfactual) for answer in answers[: record.number - 1]]
    rules = [AtLeastFar(point=point, at_least=APART + EDGE, distance=Distance("l1")) for point in earlier]
    method = MipObj(backend="gurobi" if available("gurobi") else "highs")
    begun = time.perf_counter()
    told = explainer.using(method, reasons=False).explain(person, constraints=rules, limits=Limits(seconds=budget))
    spent = time.perf_counter() - begun
    if told.lower > record.distance + AGREE or record.lower > told.upper + AGREE:
        verdict = f"WRONG {told.lower!r} {told.upper!r}"
    elif isinstance(told, Nearest) or record.distance <= told.lower + AGREE:
        same = answers[record.number - 1].counterfactual == told.counterfactual
        verdict = "the same row" if same else "another as near"
    else:
        verdict = "undecided by then"
    return replace(record, check=verdict, check_seconds=spent)


HEADER = (
    "data set", "k", "sets of k", "proven fewer", "limit", "least apart", "in order", "proven nearest",
    "k-diversity", "k-distance", "seconds per set: median", "largest",
)  # fmt: skip


def lines(records: Sequence[Record]) -> Iterator[tuple[str, ...]]:
    """The table."""
    for name in dict.fromkeys(record.dataset for record in records):
        people: dict[int, list[Record]] = {}
        for record in records:
            if record.dataset == name:
                people.setdefault(record.row, []).append(record)
        for k in range(2, MOST + 1):
            yield name, str(k), *_line([mine[:k] for mine in people.values()], k)


def _line(sets: list[list[Record]], k: int) -> tuple[str, ...]:
    found = [[r for r in mine if r.status in ("nearest", "within")] for mine in sets]
    whole = [mine for mine in found if len(mine) == k]
    ended = [mine[-1].status for mine, rows in zip(sets, found, strict=True) if len(rows) < k]
    answers = [r for mine in found for r in mine]
    ordered = sum(all(b.distance >= a.distance * (1.0 - 1e-6) for a, b in pairwise(m)) for m in found)
    spent = [sum(r.seconds for r in mine) for mine in sets]
    return (
        f"{len(whole)} of {len(sets)}",
        str(ended.count(NoneExists.status)),
        str(len(ended) - ended.count(NoneExists.status)),
        f"{min((r.apart for r in answers if r.number > 1), default=float('nan')):.6f}",
        f"{ordered} of {len(sets)}",
        f"{sum(r.status == 'nearest' for r in answers)} of {len(answers)}",
        f"{statistics.fmean([m[-1].diversity for m in whole]):.4f}" if whole else "-",
        f"{statistics.fmean([statistics.fmean(r.distance for r in m) for m in whole]):.4f}" if whole else "-",
        f"{statistics.median(spent):.3f}",
        f"{max(spent):.3f}",
    )


def checks(records: Sequence[Record]) -> Iterator[str]:
    """A sentence per data set on what the MIP said."""
    for name in dict.fromkeys(record.dataset for record in records):
        mine = [r for r in records if r.dataset == name and r.check]
        if mine:
            said = Counter("WRONG" if r.check.startswith("WRONG") else r.check for r in mine)
            counted = ", ".join(f"{count} {word}" for word, count in said.items())
            people, seconds = len({r.row for r in mine}), statistics.median(r.check_seconds for r in mine)
            yield (
                f"- {name}: {len(mine)} answers of {people} people asked for again by MIP: {counted} "
                f"(median {seconds:.2f} s per answer)."
            )


@click.command("diversity")
@click.option("--rows", type=click.IntRange(1), default=50, show_default=True, help="People per data set.")
@click.option("--check", "checked", type=click.IntRange(0), default=3, show_default=True, help="People checked by MIP.")
@click.option("--budget", type=float, default=60.0, show_default=True, help="Seconds per answer.")
@click.option("--datasets", default=",".join(data.PAPER), show_default=True, help="Comma-separated.")
@results_option
@cache_option
def command(rows: int, checked: int, budget: float, datasets: str, results: Path, cache: Path) -> None:
    """Diverse sets of two to ten: apart, in order, each the nearest given the earlier ones, and what they cost."""
    out = console(width=170)
    results.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    with (results / "diversity.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Record)])
        writer.writeheader()
        for name in datasets.split(","):
            for record in ask(name, rows, checked, budget, cache, out):
                writer.writerow(asdict(record))
                file.flush()
                records.append(record)
    text = "\n".join(
        ["| " + " | ".join(HEADER) + " |", "|---" + "|--:" * (len(HEADER) - 1) + "|"]
        + ["| " + " | ".join(line) + " |" for line in lines(records)]
        + ["", *checks(records), ""]
    )
    (results / "diversity.md").write_text(text, encoding="utf-8")
    out.print(text)
    wrong = [r for r in records if r.check.startswith("WRONG") or r.apart < APART]
    if wrong:
        raise click.ClickException(f"{len(wrong)} answers are wrong, the first of them: {wrong[0]}")
