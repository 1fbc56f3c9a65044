"""Agreement of the methods: records are kept, not asked twice, and judged."""

import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

from benchmarks.suites.agreement import command
from benchmarks.suites.agreement.verdicts import Record, read, table


def run(*words):
    result = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_reference_optima_are_compared_and_rows_are_asked_once(tmp_path):
    asked = ("reference", "--datasets", "compas", "--variants", "norm", "--norms", "l1", "--results", tmp_path)
    method = ("--methods", "mip-obj-highs")
    first = run(*asked, *method, "--rows", 1)
    assert first.startswith("mip-obj-highs compas 2x10 norm l1: 1 of 1 agree, median")
    assert run(*asked, *method, "--rows", 2).startswith("mip-obj-highs compas 2x10 norm l1: 1 of 1 agree, median")
    records = read(tmp_path / "agreement_reference.csv")
    assert [(r.row, r.verdict, r.status) for r in records] == [(0, "agree", "nearest"), (1, "agree", "nearest")]
    assert "| mip-obj-highs | compas | 2x10 | 2 | 2 | 0 | 0 |" in run(*asked, *method, "--rows", 2)


def test_what_counts_as_agreement():
    record = Record(method="m", dataset="d", arch="2x10", variant="norm", norm="l1", row=0, optimum=0.5,
                    status="nearest", lower=0.5, upper=0.5, seconds=0.1, limit=1.0, note="")  # fmt: skip
    late = replace(record, status="within", lower=0.1, upper=0.9, note="time limit", stopped_by="seconds")
    assert record.verdict == "agree" and late.verdict == "limit"
    wrong = [
        replace(record, upper=0.5 + 2e-6),
        replace(record, upper=0.5 - 2e-6),
        replace(record, status="none exists", lower=math.inf, upper=math.inf),
        replace(
            record, status="within", lower=0.4, upper=0.5, note="the solver met numerical trouble", stopped_by="trouble"
        ),
        replace(late, lower=0.6),
    ]
    assert [r.verdict for r in wrong] == ["wrong"] * 5
    assert list(table([record, late, *wrong]))[-1].startswith("| m | d | 2x10 | 7 | 1 | 1 | 5 |")


def test_random_questions_and_bounds():
    said = run("random", "--questions", 3, "--methods", "search,mip-obj-highs")
    assert "3 questions, " in said and " 0 with a disagreement" in said
    assert run("bounds", "--datasets", "compas", "--rows", 20, "--random", 2).endswith(" 0 pre-activations outside\n")


@pytest.mark.parametrize("words", [("--methods", "magic"), ("--norms", "l7")])
def test_an_unknown_name_is_named(words):
    result = CliRunner().invoke(command, ["reference", *words])
    assert result.exit_code == 2 and f"'{words[1]}'; choose among" in result.output
