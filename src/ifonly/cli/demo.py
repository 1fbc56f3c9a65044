"""`ifonly demo`: one person, one question, one proven answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ifonly.cli import codes
from ifonly.cli.console import WholeNumber, json_option, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ifonly.datasets import Dataset
    from ifonly.explainer import Explainer
    from ifonly.report import Page
    from ifonly.results import Answers


@click.command(epilog=codes.EPILOG)
@click.option("--dataset", "name", type=click.Choice(["credit", "adult", "compas"]), default="credit",
              show_default=True, help="Which shipped data set.")  # fmt: skip
@click.option("--rows", "count", type=WholeNumber(min=1), default=1, show_default=True, metavar="N",
              help="How many people to explain.")  # fmt: skip
@click.option("--distance", default="l1", show_default=True, metavar="D", help="l0, l1, l2, linf or 0.2*l0+0.8*l1.")
@json_option
def demo(name: str, count: int, distance: str, as_json: bool) -> int:
    """Explain someone: a denied applicant of a shipped data set."""
    from ifonly import datasets
    from ifonly.cli.query_arguments import read_norm
    from ifonly.cli.shipped import WORDS, network, test_table
    from ifonly.errors import QuestionError
    from ifonly.explainer import Explainer
    from ifonly.problem import Distance

    dataset, words = datasets.load(name), WORDS[name]
    explainer, people = Explainer(network(name)), test_table(dataset).rows
    refused = unfavourable_rows(explainer, people, words.unfavourable)
    if count > len(refused):
        raise QuestionError(f"Only {len(refused):,} of the {len(people):,} people are decided that way.")
    numbers = refused[:count]
    rows, measure = [people[i] for i in numbers], Distance(read_norm(distance))
    target = words.classes[1 - words.unfavourable]
    answers = _renumbered(explainer.explain_many(rows, target=target, distance=measure), numbers)
    if as_json:
        show_json({"dataset": name, "answers": answers.to_dicts(), "next": _next(name, numbers[0])})
    else:
        show(_page(dataset, explainer, answers, len(people)))
    return codes.of_answers(answers)


def unfavourable_rows(explainer: Explainer, people: Sequence[Any], unfavourable: int) -> list[int]:
    """The numbers of the rows with the unfavourable decision."""
    from ifonly.schema import read_points

    decided = explainer.model.decide(explainer.model.scores(read_points(explainer.schema, people))).tolist()
    return [number for number, index in enumerate(decided) if index == unfavourable]


def _renumbered(answers: Answers, numbers: list[int]) -> Answers:
    """The answers with the numbers that the people have in the test split."""
    from dataclasses import replace

    from ifonly.results import Answers

    named = [replace(answer, row=number) for answer, number in zip(answers, numbers, strict=True)]
    return Answers(named, seconds=answers.seconds)


def _page(dataset: Dataset, explainer: Explainer, answers: Answers, rows: int) -> Page:
    from ifonly.cli.shipped import WORDS
    from ifonly.report import Commands, Heading, Paragraph, answer_page, answers_page, summary_page

    words, hidden = WORDS[dataset.name], explainer.model.network.hidden
    no, yes = words.classes[words.unfavourable], words.classes[1 - words.unfavourable]
    first = answers[0]
    many = (*answers_page(answers), *summary_page(answers)) if len(answers) > 1 else ()
    return (
        Heading(dataset.title),
        Paragraph(
            f"A network of {' + '.join(map(str, hidden))} neurons decides \"{no}\" for person {first.row} of the "
            f"{rows:,} that it was not trained on. What is the smallest change that would have made it \"{yes}\"?"
        ),
        *answer_page(first)[1:],
        *many,
        Heading("Try next"),
        Commands(_next(dataset.name, first.row)),
    )  # fmt: skip


def _next(name: str, row: int) -> list[str]:
    from ifonly.cli.shipped import WORDS

    fixed = " ".join(f"--fix {feature}" for feature in WORDS[name].fixed)
    return [
        f"ifonly explain --dataset {name} --row {row} {fixed}",
        f"ifonly explain --dataset {name} --first 100 --distance l0 --output answers.csv",
    ]
