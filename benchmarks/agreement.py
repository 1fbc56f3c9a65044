"""Do the paper's methods find what they should? Against reference optima, and against one another.

    reference   `tests/data`: networks, people and optimal distances that another solver found
    small       COMPAS, networks of few neurons, against the enumeration of all 936 rows
    random      random mixed questions, every method against every other (the questions of `tests/oracles`)
    rules       the same with random rules between features; in finite spaces the enumerator is asked too
    bounds      sampled rows inside box and budget: no pre-activation may lie outside its bounds

Every answer is a CSV record, time-outs included; a run adds only what is missing. Each line printed is one cell.
"""

from __future__ import annotations

import csv
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from benchmarks import networks
from benchmarks.data import load as load_data
from ifonly import (
    Answer,
    ClassTarget,
    Distance,
    Enumerate,
    Explainer,
    Limits,
    MipInterval,
    MipObjective,
    Search,
    SmtPlain,
    SmtReduced,
    datasets,
)
from ifonly.exact.bounds import BOUNDS, neuron_bounds
from ifonly.exact.distances import cut_to, farthest
from ifonly.exact.inputs import Person
from ifonly.problem import Question, lower
from ifonly.proof import Method
from ifonly.tolerances import DEFAULT

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
CASES = TESTS / "data"

PAPER_GAP = 1e-3
"""The paper's epsilon: how small its intervals become."""

METHODS: dict[str, Callable[[], Method]] = {
    "search": Search,
    **{f"mip-objective-{b}": lambda b=b: MipObjective(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-interval-{b}": lambda b=b: MipInterval(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-unbounded-{b}": lambda b=b: MipObjective(backend=b, bounds="none") for b in ("gurobi", "scip")},
    **{f"mip-ball-{b}": lambda b=b: MipObjective(backend=b, ball=True) for b in ("highs", "gurobi", "scip")},
    "smt-reduced": SmtReduced,
    "smt-reduced-paper": lambda: SmtReduced(gap=PAPER_GAP),
    "smt-plain": SmtPlain,
    "enumerate": Enumerate,
}

DATASETS = ("compas", "credit", "adult")
VARIANTS = ("norm", "raw")
NORMS = ("l0", "l1", "l2", "linf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One answer beside the optimum that is known."""

    method: str
    dataset: str
    arch: str
    variant: str
    norm: str
    row: int
    optimum: float
    status: str
    lower: float
    upper: float
    seconds: float
    limit: float
    """Seconds that the row was given."""
    note: str

    @property
    def cell(self) -> tuple[str, ...]:
        return self.method, self.dataset, self.arch, self.variant, self.norm

    @property
    def verdict(self) -> str:
        """`agree`: proven nearest, and as far as the optimum within the gap that counts as proven (or the method's own:
        then the optimum lies between its bounds, and these within the gap).
        """
        if self.method.endswith("-paper") and self.upper < math.inf and "limit" not in self.note:
            inside = self.lower <= self.optimum + DEFAULT.gap and self.optimum <= self.upper + DEFAULT.gap
            return "agree" if inside and self.upper - self.lower <= PAPER_GAP * (1.0 + 1e-9) else "wrong"
        if self.status != "nearest":
            return "limit" if "limit" in self.note and self.lower <= self.optimum + DEFAULT.gap else "wrong"
        return "agree" if abs(self.upper - self.optimum) <= DEFAULT.allowed(max(self.upper, self.optimum)) else "wrong"


def read(path: Path) -> list[Record]:
    """The records that are there."""
    if not path.exists():
        return []
    number = {"row": int, "optimum": float, "lower": float, "upper": float, "seconds": float, "limit": float}
    with path.open(newline="", encoding="utf-8") as file:
        return [Record(**{k: number.get(k, str)(v) for k, v in line.items()}) for line in csv.DictReader(file)]


def _added(path: Path, records: Iterable[Record]) -> Iterator[Record]:
    """Pass records on, each once it is in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Record)])
        if new:
            writer.writeheader()
        for record in records:
            writer.writerow(asdict(record))
            file.flush()
            yield record


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
            answer = self.explainer.explain(
                self.explainer.schema.row(self.points[i]),
                target=ClassTarget(self.explainer.model.classes[1], 0.0),
                distance=self.norm,
                method=method,
                limits=Limits(seconds=seconds),
            )
            yield self._record(name, i, answer, time.process_time() - begun, seconds)

    def _record(self, name: str, row: int, answer: Answer, spent: float, limit: float) -> Record:
        return Record(
            method=name, dataset=self.dataset, arch=self.arch, variant=self.variant, norm=self.norm, row=row,
            optimum=float(self.optima[row]), status=answer.status, lower=answer.lower, upper=answer.upper,
            seconds=spent, limit=limit, note=answer.note,
        )  # fmt: skip


def reference_cells(folder: Path, names: Sequence[str], variants: Sequence[str], norms: Sequence[str]) -> list[Cell]:
    """The reference networks of two hidden layers of ten."""
    sys.path[:0] = [str(TESTS)]
    from cases import load  # type: ignore[import-not-found]

    made = []
    for dataset in names:
        for variant in variants:
            model, points, optima = load(dataset, "2x10", variant, folder=folder)
            made += [
                Cell(dataset=dataset, arch="2x10", variant=variant, norm=norm, explainer=Explainer(model),
                     points=points, optima=optima[norm])
                for norm in norms
            ]  # fmt: skip
    return made


def small_cells(cache: Path, archs: Sequence[str], norms: Sequence[str], rows: int) -> Iterator[Cell]:
    """COMPAS and networks of few neurons; the optimum is the enumerator's."""
    data = load_data("compas")
    for arch in archs:
        model = networks.model(networks.Spec("compas", networks.arch(arch)), cache)
        points = data.points[networks.denied(model, data, rows)]
        explainer = Explainer(model)
        for norm in norms:
            answers = explainer.explain_many(
                [model.schema.row(point) for point in points],
                target=ClassTarget(model.classes[1], 0.0),
                distance=norm,
                method=Enumerate(),
            )
            optima = np.array([answer.upper for answer in answers])
            yield Cell(
                dataset="compas", arch=arch, variant="norm", norm=norm, explainer=explainer, points=points,
                optima=optima,
            )  # fmt: skip


def run(cells: Iterable[Cell], chosen: Sequence[str], rows: int, seconds: float, path: Path) -> None:
    """Every method on every cell; then the table of all records."""
    there = {(*record.cell, record.row) for record in read(path)}
    for cell in cells:
        known = np.flatnonzero(np.isfinite(cell.optima))[:rows].tolist()
        for name in chosen:
            key = (name, cell.dataset, cell.arch, cell.variant, cell.norm)
            missing = [i for i in known if (*key, i) not in there]
            if missing:
                made = list(_added(path, cell.records(name, missing, seconds)))
                click.echo(f"{' '.join(key)}: {_said(made)}")
    for line in itertools.chain(table(read(path)), times(read(path))):
        click.echo(line)


def _said(records: Sequence[Record]) -> str:
    verdicts = [record.verdict for record in records]
    agree = f"{verdicts.count('agree')} of {len(records)} agree"
    late = f", {verdicts.count('limit')} at the limit of {records[0].limit:g} s" if "limit" in verdicts else ""
    wrong = f", {verdicts.count('wrong')} WRONG" if "wrong" in verdicts else ""
    return f"{agree}{late}{wrong}, median {np.median([record.seconds for record in records]):.2g} s"


def table(records: Sequence[Record]) -> Iterator[str]:
    """A line a method and data set; a cell counts agree / asked over all norms and variants."""
    yield ""
    yield "| method | data set | network | rows | agree | at the limit | wrong | largest difference | median CPU s |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for key in dict.fromkeys((r.method, r.dataset, r.arch) for r in records):
        mine = [r for r in records if (r.method, r.dataset, r.arch) == key]
        verdicts = [r.verdict for r in mine]
        worst = max((abs(r.upper - r.optimum) for r in mine if r.verdict == "agree"), default=math.nan)
        yield (
            f"| {key[0]} | {key[1]} | {key[2]} | {len(mine)} | {verdicts.count('agree')} | {verdicts.count('limit')} "
            f"| {verdicts.count('wrong')} | {worst:.1e} | {np.median([r.seconds for r in mine]):.2g} |"
        )


def times(records: Sequence[Record]) -> Iterator[str]:
    """A line a method, a column a data set and norm: median CPU seconds; in brackets agree / asked."""
    columns = sorted({(r.dataset, r.arch, r.norm) for r in records})
    for variant in dict.fromkeys(r.variant for r in records):
        yield ""
        yield f"| inputs: {variant} | " + " | ".join(" ".join(column) for column in columns) + " |"
        yield "|---|" + "--:|" * len(columns)
        for method in dict.fromkeys(r.method for r in records if r.variant == variant):
            mine = [r for r in records if (r.method, r.variant) == (method, variant)]
            cells = [[r for r in mine if (r.dataset, r.arch, r.norm) == column] for column in columns]
            yield f"| {method} | " + " | ".join(map(_time, cells)) + " |"


def _time(cell: Sequence[Record]) -> str:
    if not cell:
        return ""
    agree = sum(r.verdict == "agree" for r in cell)
    return f"{np.median([r.seconds for r in cell]):.2g} ({agree}/{len(cell)})"


def random_questions(
    first: int, count: int, chosen: Sequence[str], seconds: float, *, rules: bool = False, finite: bool = False
) -> None:
    """Every method against every other; a line for each disagreement and each answer that is not a proof."""
    sys.path[:0] = [str(TESTS / "mip"), str(TESTS / "oracles"), str(TESTS)]
    from random_problems import random_problem  # type: ignore[import-not-found]
    from random_rules import random_ruled_problem  # type: ignore[import-not-found]

    from agreement import disagreements  # type: ignore[import-not-found]

    begun, people, wrong, counts = time.perf_counter(), 0, 0, dict[str, dict[str, int]]()
    methods = [METHODS[name]() for name in chosen]
    for seed in range(first, first + count):
        question, points = (random_ruled_problem if rules else random_problem)(seed, finite=finite)
        try:
            sentences, told = disagreements(question, points, methods, Limits(seconds=seconds))
        except Exception as error:  # whatever it is, it is a finding about this seed
            sentences, told = [f"{type(error).__name__}: {error}"], {}
        people += len(points)
        wrong += bool(sentences)
        for sentence in sentences:
            click.echo(f"question {seed} ({question.distance.name}): {sentence}")
        for name, answers in told.items():
            for answer in answers:
                counts.setdefault(name, {}).setdefault(answer.status, 0)
                counts[name][answer.status] += 1
                if answer.status not in ("nearest", "none exists"):
                    click.echo(
                        f"question {seed} ({question.distance.name}): {name} {answer.status} "
                        f"[{answer.lower!r}, {answer.upper!r}] {answer.note}"
                    )
        if (seed + 1 - first) % 50 == 0:
            click.echo(f"{seed + 1 - first} questions, {people} people, {wrong} with a disagreement")
    click.echo(f"{count} questions, {people} people, {wrong} with a disagreement, {time.perf_counter() - begun:.0f} s")
    for name, statuses in counts.items():
        click.echo(f"  {name}: " + ", ".join(f"{number} {status}" for status, number in sorted(statuses.items())))


BUDGETS = (0.01, 0.1, 1.0)
"""Shares of the farthest row's distance."""


def check_bounds(names: Sequence[str], rows: int, random: int, folder: Path) -> None:
    """Sampled rows of box and budget, by every bound method: shipped and reference networks, then random ones."""
    sys.path[:0] = [str(TESTS / "mip"), str(TESTS / "oracles"), str(TESTS)]
    from inside import outside, rows_within  # type: ignore[import-not-found]
    from random_problems import random_problem

    from cases import CASES as LISTED
    from cases import load

    questions: list[tuple[str, Question, Any]] = []
    for name in names:
        model = datasets.network(name)
        point = datasets.load(name).points()[:1]
        questions += [(f"{name} (shipped) {norm}", _asked(model, norm), point) for norm in NORMS]
    for dataset, arch, variant in (case for case in LISTED if case[0] in names):
        model, points, _ = load(dataset, arch, variant, folder=folder)
        questions += [(f"{dataset} {arch} {variant} {norm}", _asked(model, norm), points[:1]) for norm in NORMS]
    for seed in range(random):
        question, points = random_problem(seed)
        questions.append((f"random question {seed} {question.distance.name}", question, points[:1]))
    total, wrong = 0, 0
    for name, question, point in questions:
        lowered, asked, out = lower(question), 0, 0
        someone = Person.of(lowered.domains(point), 0)
        if someone.empty(lowered):
            continue
        for share in BUDGETS:
            budget = share * farthest(lowered, someone)
            cut = cut_to(lowered, someone, budget)
            if cut is None:
                continue
            sampled = rows_within(lowered, someone, cut, budget, rows, np.random.default_rng(0))
            for how in BOUNDS:
                asked += len(sampled)
                out += outside(lowered, neuron_bounds(lowered, cut, budget, how), sampled)
        total, wrong = total + asked, wrong + out
        click.echo(f"{name}: {asked:,} rows and bounds, {out} pre-activations outside")
    click.echo(f"{len(questions)} questions, {total:,} rows and bounds, {wrong} pre-activations outside")


def _asked(model: Any, norm: str) -> Question:
    return Question(model=model, target=ClassTarget(model.classes[1], 0.0), distance=Distance(norm))


# ---------------------------------------------------------------------- the command line

Command = TypeVar("Command", bound=Callable[..., Any])


def _listed(text: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"there is no {what} '{name}'; choose among {', '.join(known)}")
    return names


@click.group("agreement")
def commands() -> None:
    """Do the paper's methods find what they should?"""


def _chosen(default: str) -> Callable[[Command], Command]:
    help_text = f"Comma-separated, of: {', '.join(METHODS)}."
    return click.option("--methods", "chosen", default=default, show_default=True, help=help_text)


def _given_seconds(default: float) -> Callable[[Command], Command]:
    return click.option("--budget", "seconds", type=float, default=default, show_default=True, help="Seconds a row.")


_CASES = click.option("--cases", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Folder of the "
                      "reference networks, rows and optima.", default=CASES)  # fmt: skip
_RESULTS = click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=HERE.parent / "results",
                        help="Folder of records.")  # fmt: skip
_CACHE = click.option("--cache", type=click.Path(path_type=Path, file_okay=False), default=HERE / "cache",
                      help="Folder of trained networks.")  # fmt: skip
_DATASETS = click.option("--datasets", default=",".join(DATASETS), show_default=True, help="These data sets only.")
_NORMS = click.option("--norms", default=",".join(NORMS), show_default=True, help="These norms only.")


@commands.command("reference")
@_chosen("mip-objective-highs,mip-interval-highs")
@_DATASETS
@click.option("--variants", default=",".join(VARIANTS), show_default=True, help="These inputs only.")
@_NORMS
@click.option("--rows", type=click.IntRange(1), default=30, show_default=True, help="Rows a network and norm.")
@_given_seconds(60.0)
@_CASES
@_RESULTS
def _reference(
    chosen: str, datasets: str, variants: str, norms: str, rows: int, seconds: float, cases: Path, results: Path,
) -> None:  # fmt: skip
    """Against optima that another solver found, on networks of two hidden layers of ten."""
    cells = reference_cells(
        cases,
        _listed(datasets, DATASETS, "data set"),
        _listed(variants, VARIANTS, "variant"),
        _listed(norms, NORMS, "norm"),
    )
    methods_asked = _listed(chosen, METHODS, "method")
    run(cells, methods_asked, rows, seconds, results / "agreement_reference.csv")


@commands.command("small")
@_chosen("smt-plain,smt-reduced")
@click.option("--archs", default="1x4,1x10,2x4", show_default=True, help="Comma-separated architectures.")
@_NORMS
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="Rows a network and norm.")
@_given_seconds(10.0)
@_CACHE
@_RESULTS
def _small(chosen: str, archs: str, norms: str, rows: int, seconds: float, cache: Path, results: Path) -> None:
    """Against the enumeration of COMPAS, on networks of few neurons."""
    cells = small_cells(cache, archs.split(","), _listed(norms, NORMS, "norm"), rows)
    methods_asked = _listed(chosen, METHODS, "method")
    run(cells, methods_asked, rows, seconds, results / "agreement_small.csv")


@commands.command("random")
@_chosen("search,mip-objective-highs,mip-objective-scip,mip-interval-highs")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first question's seed.")
@click.option("--questions", type=click.IntRange(1), default=500, show_default=True, help="How many.")
@_given_seconds(60.0)
def _random(chosen: str, first: int, questions: int, seconds: float) -> None:
    """Against one another, on random mixed questions."""
    names = _listed(chosen, METHODS, "method")
    random_questions(first, questions, names, seconds)


@commands.command("rules")
@_chosen("search,mip-objective-highs,enumerate")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first question's seed.")
@click.option("--questions", type=click.IntRange(1), default=1000, show_default=True, help="How many.")
@click.option("--mixed", is_flag=True, help="Real numbers too: then leave out the enumerator.")
@_given_seconds(60.0)
def _rules(chosen: str, first: int, questions: int, mixed: bool, seconds: float) -> None:
    """Against one another, on random questions with random rules between features."""
    names = [name for name in _listed(chosen, METHODS, "method") if not (mixed and name == "enumerate")]
    random_questions(first, questions, names, seconds, rules=True, finite=not mixed)


@commands.command("bounds")
@_DATASETS
@click.option("--rows", type=click.IntRange(1), default=10_000, show_default=True, help="Rows a network and budget.")
@click.option("--random", type=click.IntRange(0), default=50, show_default=True, help="Random networks.")
@_CASES
def _bounds(datasets: str, rows: int, random: int, cases: Path) -> None:
    """Sampled rows inside box and budget against the bounds of every neuron."""
    check_bounds(_listed(datasets, DATASETS, "data set"), rows, random, cases)
