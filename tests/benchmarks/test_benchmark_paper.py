"""The paper's figures: what is not run is a record, exact methods are compared, the page has everything in it."""

import math
import os
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.asking import records, rows
from benchmarks.asking.case import Case, QueryRequest, distance_of
from benchmarks.asking.pace import Pace
from benchmarks.asking.records import NOT_RUN, Record
from benchmarks.asking.rows import ask
from benchmarks.paper import figures, page
from benchmarks.paper.cross_check import agreement
from benchmarks.publishing import archive, paper_page, performance_page, publish
from benchmarks.showing.growth import fit
from benchmarks.subjects.networks import Spec, arch
from benchmarks.terminal import ROOT
from ifonly import datasets
from ifonly.model import save_network


@pytest.fixture
def folders(tmp_path):
    cache, results = tmp_path / "cache", tmp_path / "results"
    cache.mkdir()
    for name in ("compas", "credit", "adult"):
        for variant in ("raw", "norm"):
            save_network(
                datasets.network(name, rules=False).network, cache / f"{name}_2x10_{variant}.npz", classes=(0, 1)
            )
    return cache, results


def record(method="ifonly", row=0, upper=0.5, **others):
    facts = {"suite": "paper_full", "dataset": "compas", "arch": "2x10", "variant": "raw", "norm": "l1", "way": "one",
             "status": "nearest", "lower": upper, "valid": True, "seconds": 0.01, "cpu_seconds": 0.01, "nodes": 1}  # fmt: skip
    return Record(method=method, row=row, upper=upper, **(facts | others))


def test_after_two_rows_at_their_limit_the_rest_are_recorded_as_not_run(folders, monkeypatch):
    case = Case.make("paper_full", Spec("compas", arch("2x10"), "raw"), folders[0], 5)
    how = QueryRequest(norm="l1", method="enumerate", way="one", give_up=2)
    slow = replace(record("enumerate"), status="unknown", note="time limit of 1 s", stopped_by="seconds")
    monkeypatch.setattr(rows, "_ask", lambda explainer, case, how, rows: [replace(slow, row=r) for r in rows])
    made = [r for batch in ask(case, how, []) for r in batch]
    assert [r.status for r in made] == ["unknown", "unknown", NOT_RUN, NOT_RUN, NOT_RUN]
    assert "rows before" in made[2].note and math.isinf(made[2].seconds)
    resumed = [r for batch in ask(case, how, made[:3]) for r in batch]
    assert [r.row for r in resumed] == [3, 4] and all(r.status == NOT_RUN for r in resumed)
    wrong = replace(slow, status="error", note="ValueError", stopped_by="")
    monkeypatch.setattr(rows, "_ask", lambda explainer, case, how, rows: [replace(wrong, row=r) for r in rows])
    assert all(r.status == "error" for batch in ask(case, how, []) for r in batch)


def test_exact_methods_that_differ_are_listed():
    fine = [record(), record("mip-obj", upper=0.5 + 1e-9), record("mace", status="unknown", valid=False)]
    assert agreement(fine).holds and agreement(fine).rows == 1
    far = [record(), record("mip-exp", upper=0.6)]
    texts = agreement(far).differences
    assert len(texts) == 2 and "our search 0.5, MIP-EXP 0.6" in texts[0] and "MIP-EXP bounds at 0.6" in texts[1]
    none = [record(), record("mip-obj", upper=math.inf, status="none exists", valid=False)]
    assert not agreement(none).holds


def test_what_became_of_a_row():
    assert page.kind(record()) == "nearest"
    assert page.kind(record(status="within", note="time limit", stopped_by="seconds")) == "found"
    assert page.kind(record(status="unknown", valid=False, note="time limit", stopped_by="seconds")) == "limit"
    assert page.kind(record(status="error", valid=False)) == "failed"
    assert page.kind(record(status=NOT_RUN, valid=False)) == "not run"


@pytest.mark.long
def test_the_quick_report_of_a_figure(folders):
    pytest.importorskip("matplotlib", reason="plots are drawn with matplotlib")
    cache, results = folders
    where = ["--cache", str(cache), "--results", str(results)]
    asked = ["paper", "--quick", "--only", "sparsity", "--rows", "2", *where]
    result = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = records.read(results / "quick" / "paper_sparsity.csv")
    assert len(found) == 3 * len(figures.MIXTURES) * 2 and all(
        r.proven and r.valid and r.cpu_seconds > 0 for r in found
    )
    text = (results / "quick" / "paper.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 1 and "No difference." in text and "36 of 36 proven" in text
    assert "/tmp" not in text and str(cache) not in text


@pytest.mark.long
def test_all_figures_are_drawn_from_records(tmp_path):
    pytest.importorskip("matplotlib", reason="plots are drawn with matplotlib")
    for figure in figures.FIGURES:
        for plan in figures.plans(figure, quick=True):
            records.append(records.path_of(tmp_path, plan.suite), list(invented(plan)))
    written = publish.everything(tmp_path, tmp_path / "root")
    text = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 7  # "full" has two drawings
    for figure in figures.FIGURES:
        assert f"<section id={figure}>" in text
    for name in ("our search", "MIP-OBJ", "MIP-EXP", "MIP-SAT", "SAT", "DiCE"):
        assert name in text
    claims = (tmp_path / "root" / "docs" / "performance.md").read_text(encoding="utf-8")
    assert claims.count("| `python -m benchmarks paper") >= 8 and "no difference" in claims
    assert {path.name for path in written} >= {"paper.html", "tables.md", "records.zip", "paper.md", "performance.md"}
    short = (tmp_path / "root" / "docs" / "paper.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\]\((images/[^)]*)\)", short):
        ElementTree.parse(tmp_path / "root" / "docs" / picture)
    assert all(f"| {title} | our search |" in short for title in figures.FIGURES.values())


def test_published_records_are_one_file_that_only_the_records_decide(tmp_path):
    found, again = tmp_path / "found", tmp_path / "again"
    records.append(records.path_of(found, "speed"), [record(row=i) for i in range(3)])
    records.append(records.path_of(found, "cold"), [record()])
    files = [records.path_of(found, name) for name in ("speed", "cold")]
    first = archive.write(tmp_path / "first.zip", files).read_bytes()
    for path in files:
        os.utime(path, (0, 0))
    assert archive.write(tmp_path / "second.zip", reversed(files)).read_bytes() == first
    archive.unpack(tmp_path / "first.zip", again)
    assert [records.read(again / path.name) for path in files] == [records.read(path) for path in files]


def test_claims_are_written_between_the_marks_and_nowhere_else(tmp_path):
    page_path = tmp_path / "performance.md"
    page_path.write_text(f"# By hand\n\n{performance_page.BEGIN}\n{STALE}\n{performance_page.END}\n\nBy hand, too.\n")
    records.append(records.path_of(tmp_path, "cold"), [record(way=way) for way in ("cold", "warm")])
    text = performance_page.write(tmp_path, page_path).read_text(encoding="utf-8")
    assert text.startswith("# By hand\n") and text.endswith("\n\nBy hand, too.\n") and "stale" not in text
    assert text.count("`python -m benchmarks search --only cold` | not recorded |") == 1
    assert KEPT in text, "what has no records here stays as it was measured"


KEPT = "| depth | 540 of 540 | `python -m benchmarks paper --only depth` | `c0ffee` |"
STALE = f"{KEPT}\n| first answer | stale | `python -m benchmarks search --only cold` | `c0ffee` |"


def test_a_claim_names_the_commit_that_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "commit", lambda: "beef")
    records.versions.cache_clear()
    measured = {"versions": records.versions("ours")}
    records.versions.cache_clear()
    records.append(records.path_of(tmp_path, "cold"), [record(way=way, **measured) for way in ("cold", "warm")])
    text = performance_page.write(tmp_path, tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "`python -m benchmarks search --only cold` | `beef` |" in text


def test_figures_keep_their_labels():
    svg = '<svg><path d="M 1.23456 2"/><text fill="currentColor">0.00123</text></svg>'
    assert paper_page._file(svg) == f'<svg><path d="M 1.23 2"/><text fill="{paper_page.INK}">0.00123</text></svg>\n'


def test_every_command_of_the_page_exists():
    """The records are not in the repository: what the page has is how to make them."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert performance_page.BEGIN in text and performance_page.END in text
    commands = set(re.findall(r"python -m benchmarks ([a-z-]+)", text))
    assert commands and commands <= set(main.commands), commands - set(main.commands)


def invented(plan):
    """Records such as the plan could have left."""
    for spec in plan.specs:
        for norm in plan.norms:
            for method in plan.methods:
                for row in range(plan.rows):
                    for k in plan.sizes:
                        yield record(method, row, 0.1 + 0.1 * row, suite=plan.suite, dataset=spec.dataset, arch=spec.arch,
                                     variant=spec.variant, norm=norm, changed=1, l1=0.1, diversity=0.2 if k > 1 else math.nan,
                                     way="one" if k == 1 else f"k={k}", note="time limit" * (method == "mace"),
                                     stopped_by="seconds" * (method == "mace"))  # fmt: skip


def test_every_plan_asks_something_and_quick_asks_less():
    for figure in figures.FIGURES:
        whole, quick = figures.plans(figure), figures.plans(figure, quick=True)
        assert sum(_questions(p) for p in quick) < sum(_questions(p) for p in whole)
        assert all(p.rows == 7 for p in figures.plans(figure, rows=7))


def _questions(plan):
    return len(plan.specs) * len(plan.norms) * len(plan.methods) * plan.rows * len(plan.sizes)


def test_mixtures_by_name():
    assert distance_of("l2").norm == "l2"
    assert distance_of("0.2*l0 + 0.8*l1").norm == {"l0": 0.2, "l1": 0.8}


def test_growth_is_fitted():
    power = fit({n: [3e-4 * n**2] * 3 for n in (10, 20, 40, 80)})
    assert power.law == "power" and power.slope == pytest.approx(2.0) and power(30) == pytest.approx(0.27)
    doubling = fit({n: [1e-3 * 2.0 ** (n / 3)] for n in range(1, 10)})
    assert doubling.law == "exponential" and str(doubling).startswith("doubles every 3 ")
    assert fit({1: [1.0], 2: [2.0]}) is None
    assert fit({n: [1e-3 * 2.0 ** (n / 3)] for n in range(1, 10)}, only="power").law == "power"
    assert str(fit({1: [1.0], 2: [0.5], 3: [0.4]})) == "no clear growth"


def test_a_busy_machine_gives_more_wall_time():
    pace = Pace()
    assert pace.wall(10.0) == 10.0 and pace.wall(None) is None
    for _ in range(20):
        pace.see(4.0, 1.0)
    assert pace.wall(10.0) == pytest.approx(40.0, rel=0.01)
    pace.see(1.0, 0.001)  # too short to say anything
    assert pace.wall(10.0) == pytest.approx(40.0, rel=0.01)
