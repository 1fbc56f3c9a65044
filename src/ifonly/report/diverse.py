"""A diverse set as a page of text: one line per answer, why there are no more, how spread out they are."""

from __future__ import annotations

import math

from ifonly.report.page import Facts, Heading, Page, Paragraph, TextTable
from ifonly.report.text import duration, number
from ifonly.results import DiverseAnswers, show


def diverse_page(answers: DiverseAnswers, row: int) -> Page:
    """The set of one person."""
    every = (*answers, *([answers.ended] if answers.ended is not None else []))
    before = every[0].decision_before
    title = f"Row {row}: {'' if before is None else f'decided {show(before)}, '}wanted {every[0].target}"
    if not len(answers):
        return (Heading(title), Paragraph(answers.ending))
    sheet = TextTable(
        header=("", "status", "distance", "lower", "time", "changes"),
        rows=[
            (str(i), answer.status, number(answer.upper), number(answer.lower), duration(answer.seconds),
             "; ".join(map(str, answer.changes)) or "none needed")
            for i, answer in enumerate(answers, 1)
        ],
        right=frozenset({0, 2, 3, 4}),
    )  # fmt: skip
    facts = [("mean distance", f"{number(answers.k_distance)} ({answers[0].distance_name})")]
    if not math.isnan(answers.k_diversity):
        facts.append(("mean apart", number(answers.k_diversity)))
    facts.append(("proven", "each is the nearest, given those above" if answers.proven else "not all of it"))
    facts.append(("time", duration(answers.seconds)))
    ending = (Paragraph(answers.ending),) if answers.ending else ()
    return (Heading(title), sheet, *ending, Facts(facts))
