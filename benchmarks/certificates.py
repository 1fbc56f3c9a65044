"""Certificates: what they cost to make, to check and to keep, over the reference cases of the tests.

One CSV record a certificate. `search`: seconds of the search alone, with records; `emit`: of writing its proof out;
`check`: of the checker. Median and largest are over rows.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ifonly
from ifonly.problem import Question
from ifonly.search.certify import certificate_of

NORMS = ("l0", "l1", "l2", "linf")
CASES = (
    ("compas", "2x10", "raw"),
    ("compas", "2x10", "norm"),
    ("credit", "2x10", "raw"),
    ("credit", "2x10", "norm"),
    ("adult", "2x10", "raw"),
    ("adult", "2x10", "norm"),
    ("credit", "2x50", "norm"),
    ("adult", "2x50", "norm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One certificate."""

    dataset: str
    arch: str
    variant: str
    norm: str
    row: int
    verdict: str
    lower: float
    upper: float
    nodes: int
    tree: int
    search: float
    emit: float
    check: float
    bytes: int


def measure(dataset: str, arch: str, variant: str, norm: str, rows: int) -> Iterator[Made]:
    """One record a row."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from cases import load

    model, points, _ = load(dataset, arch, variant)
    target, distance = ifonly.ClassTarget(1, margin=0.0), ifonly.Distance(norm)
    question = Question(model=model, target=target, distance=distance)
    solver = ifonly.Search(records=True).prepare(question)
    solver.solve(points[:1], ifonly.Limits())
    for row, point in enumerate(points[:rows]):
        begun = time.perf_counter()
        claim = solver.solve(point[None, :], ifonly.Limits())[0]
        searched = time.perf_counter()
        certificate = certificate_of(question, point, claim, ifonly.Tolerances())
        emitted = time.perf_counter()
        checked = ifonly.check(certificate)
        done = time.perf_counter()
        yield Made(
            dataset=dataset,
            arch=arch,
            variant=variant,
            norm=norm,
            row=row,
            verdict=checked.verdict,
            lower=checked.lower,
            upper=float("inf") if checked.upper is None else checked.upper,
            nodes=claim.nodes,
            tree=checked.nodes,
            search=searched - begun,
            emit=emitted - searched,
            check=done - emitted,
            bytes=len(certificate.content),
        )


def run(archs: tuple[str, ...], norms: tuple[str, ...], rows: int, path: Path, console: Console) -> None:
    """Measure, write the records, print the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = Table("case", "norm", "rows", "valid", "nodes", "search ms", "emit ms", "check ms (largest)", "kB")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Made)])
        writer.writeheader()
        for dataset, arch, variant in CASES:
            for norm in norms if arch in archs else ():
                made = []
                for one in measure(dataset, arch, variant, norm, rows):
                    writer.writerow(asdict(one))
                    file.flush()
                    made.append(one)
                table.add_row(f"{dataset} {arch} {variant}", norm, *_summary(made))
    console.print(table)
    console.print(f"[dim]{path}[/dim]")


def _summary(made: list[Made]) -> list[str]:
    def median(name: str) -> float:
        return statistics.median(getattr(one, name) for one in made)

    return [
        str(len(made)),
        str(sum(one.verdict == "VALID" for one in made)),
        f"{median('nodes'):.0f}",
        f"{1e3 * median('search'):.1f}",
        f"{1e3 * median('emit'):.0f}",
        f"{1e3 * median('check'):.0f} ({1e3 * max(one.check for one in made):.0f})",
        f"{median('bytes') / 1e3:.1f}",
    ]
