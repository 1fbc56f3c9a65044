"""One HTML page with everything: figures, tables, coverage, agreement, and where the paper's figure looks different."""

from __future__ import annotations

import html
import json
import math
import os
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.asking import records
from benchmarks.asking.records import NOT_RUN, Record, spent
from benchmarks.paper import claims, draw
from benchmarks.paper.cross_check import AGREE, Agreement, agreement
from benchmarks.paper.figures import FIGURES, suite
from benchmarks.paper.style import DATASETS, LOOKS
from benchmarks.showing.sheet import TextTable, time_text

STYLE = (Path(__file__).resolve().parent / "page.css").read_text(encoding="utf-8")
MACHINE = "machine.json"
MOST_DIFFERENCES = 200
KINDS = ("nearest", "none exists", "found", "limit", "not run", "failed")
CAPTIONS = {
    "full": "Networks of 2x10 neurons on raw inputs. A dot is a row, a box goes from the first to the third "
    "quartile, the line is the median; hollow dots ran into the limit. Above each column: rows proven "
    "of rows given. Distances are shown for the rows that every method was given.",
    "dice": "Networks of 2x10 neurons on normalised inputs, l1, the rows that every method was given. Above "
    "each column: rows that flip the network and obey the schema, of rows given. DiCE 0.12, gradient "
    "method, defaults (but its last step bisects where ranges are wide, as its documentation advises), no "
    "weight on diversity.",
    "depth": "l1, normalised inputs, layers of ten neurons. Medians, with bands between the quartiles; distances "
    "on the rows that every method was given at that size, where exact methods coincide. A line "
    "ends where a method gave up.",
    "width": "l1, normalised inputs. Medians, with bands between the quartiles; distances on the rows that every "
    "method was given at that size, where exact methods coincide. A line ends where a method gave "
    "up.",
    "diversity": "COMPAS, 2x10, normalised inputs, l1: sets of k rows, each at least 0.01 from the others (DiCE: its "
    "defaults). Medians, with bands between the quartiles.",
    "sparsity": "2x10 on raw inputs, our search: from l0 only over mixtures to l1 only. All answers are proven "
    "nearest in their own distance; with a small share of l1, as few features change, and by much less.",
}


def write(results: Path) -> list[Path]:
    """Write report and tables beside the records."""
    found = {figure: records.read(records.path_of(results, suite(figure))) for figure in FIGURES}
    everything = [r for figure in found.values() for r in figure]
    if not everything:
        return []
    (results / "paper.html").write_text(page(found, machine(results)), encoding="utf-8")
    sheets = [coverage(figure, found[figure]) for figure in FIGURES if found[figure]]
    (results / "paper.md").write_text("\n".join(sheet.markdown() for sheet in sheets), encoding="utf-8")
    return [results / "paper.html", results / "paper.md"]


def page(found: dict[str, list[Record]], where: dict[str, str]) -> str:
    """The whole page."""
    everything = [r for figure in found.values() for r in figure]
    shown = [figure for figure in FIGURES if found[figure]]
    result = agreement(everything)
    parts = [
        "<h1>Nearest counterfactuals: the paper's experiments, run with ifonly</h1>",
        f"<p class=lead>{_summary(everything, result)}</p>",
        "<nav>" + " ".join(f"<a href=#{f}>{FIGURES[f]}</a>" for f in shown),
        "<a href=#agree>Do the methods agree?</a> <a href=#paper>The paper beside it</a> <a href=#how>How it was "
        "run</a></nav>",
        *(_section(figure, found[figure]) for figure in shown),
        _agreement_section(result),
        _claims_section(found),
        _how(everything, where),
    ]
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>ifonly: the paper's "
        f"experiments</title><style>{STYLE}</style></head>\n<body><main>{body}</main></body></html>\n"
    )


def _summary(everything: Sequence[Record], result: Agreement) -> str:
    ours = [r for r in everything if r.method == next(iter(LOOKS))]
    proven = sum(r.proven for r in ours)
    agree = "they agree on every one" if result.holds else f"they differ on {len(result.differences)}"
    return (
        f"{len(everything):,} rows given, each of them a record. Our search: {proven:,} of {len(ours):,} proven. "
        f"{result.rows:,} rows were finished by two or more exact methods, and {agree}."
    )


def _section(figure: str, found: list[Record]) -> str:
    drawings: dict[str, Callable[[], list[str]]] = {
        "full": lambda: [draw.full_time(found), draw.full_distance(found)],
        "dice": lambda: [draw.against_dice(found)],
        "depth": lambda: [draw.growing(found, lambda r: r.depth, "hidden layers of ten neurons")],
        "width": lambda: [
            draw.growing(part, lambda r: r.width, label)
            for depth, label in ((1, "neurons in one hidden layer"), (2, "neurons in each of two hidden layers"))
            if (part := [r for r in found if r.depth == depth])
        ],
        "diversity": lambda: [draw.diversity(found)],
        "sparsity": lambda: [draw.sparsity(found)],
    }
    plots = "".join(f"<div class=plot>{svg}</div>" for svg in drawings[figure]())
    sheet = coverage(figure, found)
    return (
        f"<section id={figure}><h2>{FIGURES[figure]}</h2><figure>{plots}<figcaption>{html.escape(CAPTIONS[figure])}"
        f"</figcaption></figure><details><summary>Coverage and times, cell by "
        f"cell</summary>{_table(sheet)}</details></section>"
    )


COVERAGE = (
    "network", "norm", "method", "rows", *KINDS, "coverage", "CPU (median)", "wall (median)", "slowest",
    "distance (mean)",
)  # fmt: skip
COVERAGE_NOTES = [
    "nearest: proven; none exists: proven; found: a valid row without proof that it is nearest; limit: no valid row "
    "when the time was up, or a network too large for the licence; not run: two rows before hit the limit",
    "coverage: valid rows of the schema and proofs that none exists, of all rows given",
]


def coverage(figure: str, found: Sequence[Record]) -> TextTable:
    """All rows of every cell: nearest, proven none, found but not proven, limit, not run, failed."""
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for r in found:
        norm = f"{r.norm}, {r.way}" if r.way.startswith("k=") else r.norm
        groups[f"{DATASETS[r.dataset]} {r.arch} {r.variant}", norm, LOOKS[r.method].name].append(r)
    rows = [[*place, *_covered(group)] for place, group in groups.items()]
    return TextTable(FIGURES[figure], COVERAGE, rows, [*COVERAGE_NOTES])


def _covered(group: Sequence[Record]) -> list[str]:
    """What a line of the table says of the rows of a cell."""
    kinds = [kind(r) for r in group]
    ran = [r for r in group if math.isfinite(r.seconds)]
    good = [r for r in group if r.valid and r.plausible]
    return [
        str(len(group)),
        *(str(kinds.count(k)) for k in KINDS),
        f"{100 * (len(good) + kinds.count('none exists')) / len(group):.0f} %",
        _time(np.median([spent(r) for r in ran])) if ran else "-",
        _time(np.median([r.seconds for r in ran])) if ran else "-",
        _time(max(r.seconds for r in ran)) if ran else "-",
        f"{np.mean([r.upper for r in good]):.5f}" if good else "-",
    ]


def kind(record: Record) -> str:
    """What became of a row, in one word or two."""
    if record.status == NOT_RUN:
        return "not run"
    if record.proven:
        return record.status
    if record.valid:
        return "found"
    return "failed" if record.status in ("error", "not found", "found") else "limit"


def _time(seconds: float) -> str:
    return time_text(float(seconds))


def _table(sheet: TextTable) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in sheet.columns)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in sheet.rows)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in sheet.notes)
    return (
        f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div><ul>{notes}</ul>"
    )


def _agreement_section(result: Agreement) -> str:
    first = result.differences[:MOST_DIFFERENCES]
    listed = "".join(f"<li>{html.escape(text)}</li>" for text in first)
    verdict = "No difference." if result.holds else f"{len(result.differences)} differences:"
    return (
        "<section id=agree><h2>Do the methods agree?</h2><p>Our search, MIP-OBJ, MIP-EXP, MIP-SAT and SAT are "
        "exact: on a "
        f"row that two of them finish, their distances must be within {AGREE:g}, and no lower bound may be above "
        "a valid "
        f"row that another method found. {result.rows:,} rows, {result.pairs:,} pairs of answers; the largest "
        "difference "
        f"is {result.largest:.2g}. <strong>{verdict}</strong></p><ul>{listed}</ul></section>"
    )


def _claims_section(found: dict[str, list[Record]]) -> str:
    cells = "".join(
        f"<tr><td>{html.escape(c.paper)}</td><td>{html.escape(c.here)}</td><td>{html.escape(c.why)}</td></tr>"
        for c in claims.claims(found)
    )
    return (
        "<section id=paper><h2>The paper beside it</h2><div class=scroll><table class=text><thead><tr><th>The "
        "paper says</th>"
        f"<th>This run</th><th>Where they differ, why</th></tr></thead><tbody>{cells}</tbody></table></div><ul>"
        + "".join(f"<li><strong>{name}</strong>: {html.escape(why)}</li>" for name, why in claims.REASONS.items())
        + "</ul></section>"
    )


def _how(everything: Sequence[Record], where: dict[str, str]) -> str:
    loads = [r.load for r in everything if r.load > 0.0]
    facts = {
        **where,
        "load while it ran": f"{min(loads):.1f} to {max(loads):.1f} (median {np.median(loads):.1f}; 1 is one busy core)"
        if loads
        else "unknown",
        "seed": ", ".join(sorted({str(r.seed) for r in everything})),
        "threads": "1, every method",
        **{LOOKS[m].name: v for m, v in _versions(everything).items()},
    }
    rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items())
    return (
        "<section id=how><h2>How it was run</h2><p>Paper: Mohammadi, Karimi, Barthe, Valera, <em>Scaling "
        "Guarantees for "
        "Nearest Counterfactual Explanations</em> (2021). Every method gets one row at a time, in the "
        "order of "
        "the test split; the rows are the first distinct ones that a network decides against. Networks are "
        "scikit-learn's, "
        "trained as in the paper. Times are of processors (CPU), which others on the machine disturb least; the tables "
        "have the wall clock beside them. Fewer rows than in the paper are given to slow methods, and COMPAS has only "
        "about 45 distinct ones; the tables say how many.</p>"
        f"<table class=facts>{rows}</table><pre>python -m benchmarks paper          # this report, resumed where "
        "it stopped\n"
        "python -m benchmarks paper --quick  # a look, in minutes\npython -m benchmarks paper --only dice --rows "
        "500</pre></section>"
    )


def _versions(everything: Iterable[Record]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for method in LOOKS:
        listed = sorted({r.versions for r in everything if r.method == method and r.versions})
        if listed:
            seen[method] = max(listed, key=len)
    return seen


def describe_machine(results: Path) -> None:
    """Keep what this machine is beside the records, for a report that is drawn later."""
    results.mkdir(parents=True, exist_ok=True)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0.0
    said = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    (results / MACHINE).write_text(json.dumps(said, indent=1), encoding="utf-8")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def machine(results: Path) -> dict[str, str]:
    """What the machine was that the records were made on."""
    path = results / MACHINE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
