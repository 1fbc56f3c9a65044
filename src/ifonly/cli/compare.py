"""Comparison of methods: the proven bounds of one must not exclude the answers of another.

Method a proves that nothing is nearer than lower_a (infinity: that none exists); method b shows a row at upper_b. They
contradict each other when  lower_a - upper_b  is more than the gap that counts as proven. The problem is then saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ifonly.explainer import Explainer
from ifonly.problem import Query
from ifonly.report import Page, Paragraph, TextTable
from ifonly.results import Answer, Answers, Failed
from ifonly.solvers.common.contradiction import saved
from ifonly.tolerances import DEFAULT, Tolerances

MOST_ROWS = 100


def contradictions(
    results: Mapping[str, Sequence[Answer]], *, tolerances: Tolerances = DEFAULT
) -> list[dict[str, Any]]:
    """One entry per row that is answered in two ways that cannot both be right."""
    found = []
    for row, answers in _by_row(results).items():
        low = max(answers, key=lambda name: answers[name].lower)
        high = min(answers, key=lambda name: answers[name].upper)
        lower, upper = answers[low].lower, answers[high].upper
        if math.isfinite(upper) and lower - upper > tolerances.allowed(upper):
            bound = lower if math.isfinite(lower) else None
            found.append({"row": row, "bound_by": low, "lower_bound": bound, "found_by": high, "distance": upper})
    return found


def describe(contradiction: Mapping[str, Any]) -> str:
    """The contradiction as a sentence."""
    bound = contradiction["lower_bound"]
    claim = "claims that none exists" if bound is None else f"claims that nothing is nearer than {bound:.9g}"
    return (
        f"Row {contradiction['row']}: method '{contradiction['bound_by']}' {claim}, but method "
        f"'{contradiction['found_by']}' found one at {contradiction['distance']:.9g}."
    )


def reproducible(contradiction: Mapping[str, Any], explainer: Explainer, query: Query, row: Mapping[str, Any]) -> str:
    """The sentence, and where the problem was saved."""
    question, point = explainer.question(row, query)
    return f"{describe(contradiction)} {saved(question, point, **contradiction)}"


def comparison_page(results: Mapping[str, Answers]) -> Page:
    """A line per row: each method's distance, or the status where there is none."""
    by_row = _by_row(results)
    wrong = {entry["row"] for entry in contradictions(results)}
    lines = [
        (str(row), *(_cell(answers.get(name)) for name in results), "contradiction" if row in wrong else "agree")
        for row, answers in list(by_row.items())[:MOST_ROWS]
    ]
    sheet = TextTable(
        header=("row", *results, "verdict"), rows=lines, right=frozenset(range(len(results) + 1)),
        marked=frozenset(i for i, line in enumerate(lines) if line[-1] == "contradiction"),
    )  # fmt: skip
    verdict = f"{len(wrong)} of {len(by_row)} rows are contradictions." if wrong else (
        f"No contradiction in {len(by_row)} rows."
    )  # fmt: skip
    return (sheet, Paragraph(verdict))


def _by_row(results: Mapping[str, Sequence[Answer]]) -> dict[int, dict[str, Answer]]:
    rows: dict[int, dict[str, Answer]] = {}
    for name, answers in results.items():
        for answer in answers:
            if not isinstance(answer, Failed):
                rows.setdefault(answer.row, {})[name] = answer
    return rows


def _cell(answer: Answer | None) -> str:
    if answer is None:
        return "-"
    shown = f"{answer.upper:.6g}" if math.isfinite(answer.upper) else answer.status
    return shown if answer.status != "within" else f"<= {shown}"
