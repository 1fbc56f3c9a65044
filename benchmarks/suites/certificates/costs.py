"""Certificates: what they cost to make, to check and to keep, and whether all of them are valid.

Two suites: the reference cases (those of the tests, or all rows of a folder of cases), and random small problems in
which everything is random, half of them finite, both claims. One CSV record per certificate, in processor seconds:
`plain` of the search without records; `made` of the search with records, the proof and the file; `checked` of the
checker.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import importlib
import math
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import ifonly
from benchmarks.terminal import TESTS
from ifonly import CheckResult
from ifonly.certificate.format import stamp
from ifonly.certifying.certifier import Certifier
from ifonly.model import network_model
from ifonly.problem import Question

NORMS = ("l0", "l1", "l2", "linf")
DATASETS, ARCHS, VARIANTS = ("compas", "credit", "adult"), ("2x10", "2x50"), ("raw", "norm")
WITHIN = 1e-6
"""How near the proven lower bound has to be to the distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One certificate."""

    case: str
    norm: str
    row: int
    verdict: str
    kind: str
    lower: float
    upper: float
    nodes: int
    tree: int
    plain: float
    made: float
    checked: float
    bytes: int

    @property
    def near(self) -> bool:
        return self.kind == "none" or self.upper - self.lower <= WITHIN


def certified(
    case: str, norm: str, row: int, point: Any, parts: tuple[Any, Any, Certifier], seconds: float | None = None
) -> Measurement:
    """Search, search with records, prove, check. A search that hits its limit has nothing to prove."""
    plain, recorded, certifier = parts
    begun = time.process_time()
    plain.solve(point[None, :], ifonly.Limits(seconds=seconds))
    searched = time.process_time()
    claim = recorded.solve(point[None, :], ifonly.Limits(seconds=seconds))[0]
    checked, size = CheckResult(verdict="LIMIT" if claim.stop is not None else "NOT EMITTED"), 0
    try:
        certificate = certifier.certificate(point, claim)
        size = len(certificate.content)
    except ifonly.IfonlyError:
        certificate = None
    emitted = time.process_time()
    if certificate is not None:
        checked = ifonly.check(certificate)
    done = time.process_time()
    kind = "none" if math.isinf(checked.lower) else "bound" if checked.upper is None else "nearest"
    return Measurement(
        case=case, norm=norm, row=row, verdict=checked.verdict, kind=kind, lower=checked.lower,
        upper=math.inf if checked.upper is None else checked.upper, nodes=claim.nodes, tree=checked.nodes,
        plain=searched - begun, made=emitted - searched, checked=done - emitted, bytes=size,
    )  # fmt: skip


def parts_of(question: Question) -> tuple[Any, Any, Certifier]:
    plain = ifonly.methods.Search(table_rows=0).prepare(question)
    return (
        plain,
        ifonly.methods.Search(records=True).prepare(question),
        Certifier(question, ifonly.methods.Tolerances()),
    )


# ---------------------------------------------------------------------- the reference cases


def load_case(folder: Path | None, dataset: str, arch: str, variant: str) -> tuple[ifonly.Model, Any] | None:
    """A network and its rows: those of the tests, or of a folder with net_*.npz and factuals_*.npz by data set."""
    if folder is None:
        sys.path.insert(0, str(TESTS))
        from cases import DATA, load

        if not (DATA / f"{dataset}_{arch}_{variant}.npz").exists():
            return None
        model, points, _ = load(dataset, arch, variant)
        return model, points
    schema = ifonly.Schema.load(TESTS / "data" / f"{dataset}.schema.json")
    net, rows = (folder / dataset / f"{kind}_{arch}_{variant}.npz" for kind in ("net", "factuals"))
    if not net.exists():
        return None
    with np.load(net, allow_pickle=False) as case, np.load(rows, allow_pickle=False) as people:
        layers = [(case[f"W{i}"].T, case[f"b{i}"]) for i in range(sum(name.startswith("W") for name in case.files))]
        network = ifonly.Network.of(layers).after(np.diag(case["pre_scale"]), case["pre_shift"])
        return network_model(network, schema), schema.decode(people["X"])


def reference(
    folder: Path | None, archs: tuple[str, ...], norms: tuple[str, ...], rows: int, seconds: float | None
) -> Iterator[Measurement]:
    for dataset, arch, variant in ((d, a, v) for a in archs for d in DATASETS for v in VARIANTS):
        found = load_case(folder, dataset, arch, variant)
        for norm in norms if found is not None else ():
            model, points = found  # type: ignore[misc]
            target, distance = ifonly.ClassTarget(1, margin=0.0), ifonly.Distance(norm)
            question = Question(model=model, target=target, distance=distance)
            parts = parts_of(question)
            certified("", norm, 0, points[0], parts, seconds)
            for row, point in enumerate(points[:rows]):
                yield certified(f"{dataset} {arch} {variant}", norm, row, point, parts, seconds)


def random_problems(count: int) -> Iterator[Measurement]:
    """Half of them with every kind of feature, half finite."""
    sys.path.insert(0, str(TESTS))
    from oracles.random_problems import random_problem

    for seed in range(count):
        question, points = random_problem(seed // 2, finite=bool(seed % 2))
        name = question.distance.name if question.distance.name in NORMS else "l0+l1"
        yield certified("random", name, seed, points[0], parts_of(question))


# ---------------------------------------------------------------------- the run


def run(made: Iterable[Measurement], total: int | None, path: Path, console: Console) -> None:
    """Measure, write the records, print the table and put it beside the records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, str], list[Measurement]] = {}
    with path.open("w", newline="", encoding="utf-8") as file, Progress(console=console) as bar:
        writer = csv.DictWriter(file, [field.name for field in fields(Measurement)])
        writer.writeheader()
        task = bar.add_task("certificates", total=total)
        for one in made:
            writer.writerow(asdict(one))
            file.flush()
            groups.setdefault((one.case, one.norm), []).append(one)
            bar.update(task, advance=1, description=f"{one.case} {one.norm}")
    lines = [[case, norm, *summary(members)] for (case, norm), members in groups.items()]
    lines.append(["all", "", *summary([one for members in groups.values() for one in members])])
    table = Table(*HEAD)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    path.with_suffix(".md").write_text(markdown(lines), encoding="utf-8")
    console.print(f"[dim]{path}[/dim]")


HEAD = ("case", "norm", "certificates", "VALID", "within 1e-6", "none exists", "nodes", "answer ms", "certified ms",
        "times", "check ms (largest)", "kB (largest)")  # fmt: skip


def summary(made: list[Measurement]) -> list[str]:
    """Medians; `times` is the ratio of the sums."""

    def median(name: str) -> float:
        return statistics.median(getattr(one, name) for one in made)

    return [
        str(len(made)),
        str(sum(one.verdict == "VALID" for one in made)),
        str(sum(one.near for one in made)),
        str(sum(one.kind == "none" for one in made)),
        f"{median('nodes'):.0f}",
        f"{1e3 * median('plain'):.2f}",
        f"{1e3 * median('made'):.2f}",
        f"{sum(one.made for one in made) / sum(one.plain for one in made):.1f}",
        f"{1e3 * median('checked'):.0f} ({1e3 * max(one.checked for one in made):.0f})",
        f"{median('bytes') / 1e3:.1f} ({max(one.bytes for one in made) / 1e3:.1f})",
    ]


def markdown(lines: list[list[str]]) -> str:
    rows = [HEAD, ["---"] * 2 + ["---:"] * (len(HEAD) - 2), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


# ---------------------------------------------------------------------- which arithmetic


def arithmetic(archs: tuple[str, ...], console: Console) -> None:
    """Processor time of the checker's inner loop, a plane by backward substitution, in each arithmetic at hand."""
    from fractions import Fraction

    from ifonly.certificate.check.statement import read_statement

    kinds: dict[str, Any] = {"int": int, "Fraction": Fraction}
    for module, name in (("gmpy2", "mpz"), ("flint", "fmpz")):
        with contextlib.suppress(ImportError):
            kinds[f"{module}.{name}"] = getattr(importlib.import_module(module), name)
    table = Table("network", *(f"{name}, us a plane" for name in kinds))
    for arch in archs:
        model, points = load_case(None, "adult", arch, "norm")  # type: ignore[misc]
        question = Question(model=model, target=ifonly.ClassTarget(1, margin=0.0), distance=ifonly.Distance("l1"))
        data = Certifier(question, ifonly.methods.Tolerances()).proven(points[0], ifonly.Limits()).data
        statement = read_statement(data["question"], data["proof"]["grid"], data["proof"]["cost_grid"])
        table.add_row(f"adult {arch}", *(f"{1e6 * _plane_seconds(statement, kind):.0f}" for kind in kinds.values()))
    console.print(table)


def _plane_seconds(statement: Any, kind: Any) -> float:
    """The plane of a condition, each ReLU replaced by a chord of half slope; the best of several runs."""
    half, one = kind(1 << 43), kind(1 << 44)
    layers = [[[kind(w) for w in column] for column in columns] for columns in statement.weight_columns[1:]]
    first = [[kind(w) for w in column] for part in statement.columns for column in part]
    start = [kind(w) for w in statement.weight_rows[-1][0]]
    best = math.inf
    for _ in range(30):
        begun = time.process_time()
        v = start
        for columns in [*reversed(layers[:-1]), first]:
            v = [c * half if c > 0 else c * one for c in v]
            v = [sum(map(mul, v, column)) for column in columns]
        best = min(best, time.process_time() - begun)
    return best


# ---------------------------------------------------------------------- alterations


def mutations(count: int, console: Console) -> None:
    """Alter fields of certificates of random problems, renew the stamp, count what passes: all of it must be true."""
    sys.path.insert(0, str(TESTS))
    from oracles.random_problems import random_problem

    rng = random.Random(0)
    tried = passed = false = seed = 0
    with Progress(console=console) as bar:
        task = bar.add_task("alterations", total=count)
        while tried < count:
            question, points = random_problem(seed // 2, finite=bool(seed % 2))
            seed += 1
            data = parts_of(question)[2].proven(points[0], ifonly.Limits()).data
            upper = math.inf if data["claim"]["upper"] is None else float.fromhex(data["claim"]["upper"])
            lower = math.inf if data["claim"]["lower"] is None else float.fromhex(data["claim"]["lower"])
            for _ in range(min(25, count - tried)):
                checked = ifonly.check(altered(data, rng))
                tried += 1
                if checked.valid:
                    passed += 1
                    false += checked.lower > upper or (checked.upper is not None and checked.upper < lower)
            bar.update(task, completed=tried)
    console.print(
        f"{tried} alterations of {seed} certificates: {tried - passed} refused, {passed} true, {false} false."
    )


def altered(data: dict[str, Any], rng: random.Random) -> ifonly.Certificate:
    """The same question; somewhere in claim, witness or proof another value, with a good stamp."""
    data = copy.deepcopy({key: value for key, value in data.items() if key != "sha256"})
    place, key = data, rng.choice(["claim", "witness", "proof", "proof"])
    while isinstance(place[key], dict | list) and place[key]:
        place = place[key]
        key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
    value = place[key]
    if isinstance(value, int):
        place[key] = value + rng.choice([-2, -1, 1, 2])
    elif isinstance(value, str):
        with contextlib.suppress(ValueError):
            number = float.fromhex(value)
            value = rng.choice([number * 1.01 + 1e-3, -number, number * 0.999, number + 1.0, 0.0]).hex()
        place[key] = rng.choice([value, value, value, "relu", "f", "0"])
    else:
        place[key] = rng.choice([None, [], {}, (0.5).hex()])
    return ifonly.Certificate({**data, "sha256": stamp(data)})
