"""What rules cost: the same people with and without them, side by side in one run (Adult 2x10, l1)."""

from __future__ import annotations

import time

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ifonly import ClassTarget, Explainer, datasets

RULES: dict[str, list[str]] = {
    "none": [],
    "Sex and MaritalStatus fixed, Age only up, at most 3 changes": [
        "Sex is fixed", "MaritalStatus is fixed", "Age only goes up", "at most 3 changes"],
    "at most 1 change": ["at most 1 change"],
    "if EducationLevel >= Masters then Age >= 26": ["if EducationLevel >= Masters then Age >= 26"],
    "HoursPerWeek + Age <= 100": ["HoursPerWeek + Age <= 100"],
    "WorkClass only with Occupation": ["WorkClass changes only with Occupation"],
}  # fmt: skip
ROUNDS = 5


@click.command("rules")
@click.option("--rows", type=click.IntRange(1), default=1000, show_default=True, help="People asked about.")
def command(rows: int) -> None:
    """What rules cost the search, beside the same people without them."""
    explainer, data = Explainer(datasets.network("adult", rules=False)), datasets.load("adult", rules=False)
    people = [data.row(i) for i in range(3 * rows)]
    low = [row for row, answer in zip(people, explainer.explain_many(people, target=1), strict=True) if answer.changes]
    taken: dict[str, list[float]] = {name: [] for name in RULES}
    told = {}
    for _ in range(ROUNDS):  # in turn, so that a busy moment hits all of them
        for name, rules in RULES.items():
            begun = time.process_time()
            told[name] = explainer.explain_many(low[:rows], target=ClassTarget(1), constraints=rules)
            taken[name].append((time.process_time() - begun) / len(low[:rows]))
    table = Table("rules", "people", "nearest", "none exists", "median us", "CPU us per row", "times none")
    base = float(np.median(taken["none"]))
    for name, answers in told.items():
        counts, cpu = answers.counts(), float(np.median(taken[name]))
        middle = float(np.median([answer.seconds for answer in answers]))
        table.add_row(name, f"{len(answers):,}", f"{counts['nearest']:,}", f"{counts['none exists']:,}",
                      f"{1e6 * middle:.0f}", f"{1e6 * cpu:.0f}", f"{cpu / base:.2f}")  # fmt: skip
    Console(width=150).print(table)
