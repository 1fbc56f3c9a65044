"""Random questions, with or without rules: every method against every other."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from benchmarks.suites.agreement.methods import METHODS
from benchmarks.terminal import TESTS
from ifonly import Limits


def random_questions(
    first: int, count: int, chosen: Sequence[str], seconds: float, *, rules: bool = False, finite: bool = False
) -> None:
    """Every method against every other; a line for each disagreement and each answer that is not a proof."""
    sys.path[:0] = [str(TESTS / "mip"), str(TESTS / "oracles"), str(TESTS)]
    from agreement import disagreements  # type: ignore[import-not-found]
    from random_problems import random_problem  # type: ignore[import-not-found]
    from random_rules import random_ruled_problem  # type: ignore[import-not-found]

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
