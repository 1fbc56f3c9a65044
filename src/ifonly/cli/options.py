"""The options of a query, declared once for all commands that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ifonly.cli.console import NUMBER, WholeNumber
from ifonly.cli.outputs import force_option

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL_FILES = (
    "The model: .npz or .json of ifonly, .onnx, a scorecard (.json, .csv), XGBoost (.json, .ubj), LightGBM (.txt), "
    "CatBoost (.cbm, .json), and with --unsafe-pickle .pkl, .pickle, .joblib, .pt, .pth."
)

CSV = (
    click.option("--sep", metavar="C", help="What separates the cells of a csv file: ; or tab (default: detected)."),
    click.option("--encoding", metavar="NAME", help="Of a csv file, such as cp1252 (default: detected)."),
    click.option("--decimal", type=click.Choice([".", ","]), help="The decimal mark of csv (default: detected)."),
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help="A cell of csv that stands for no value, such as N/A or -999; may be repeated.",
    ),
)

SOURCE = (
    click.option("--model", "model_file", metavar="FILE", help=MODEL_FILES),
    click.option("--schema", "schema_file", metavar="FILE", help="What a row is (see: ifonly schema infer)."),
    click.option("--rows", "rows_file", metavar="FILE",
                 help="The people to explain: .csv, .jsonl, .parquet or .xlsx; - for csv that comes in."),
    *CSV,
    click.option("--dataset", metavar="NAME", help="Take what is not given from a shipped data set (its test rows)."),
    click.option("--without-rules", is_flag=True, help="Leave out the rules of the schema (or the data set)."),
    click.option("--first", type=WholeNumber(min=1), metavar="N", help="Only the first N rows."),
    click.option("--row", "chosen", type=WholeNumber(min=0), multiple=True, metavar="I",
                 help="Only row I, counted from 0; may be repeated."),
    click.option("--input", "inputs", multiple=True, metavar="NAME=F,F",
                 help="The features of an input of an .onnx file with several, in order; may be repeated."),
    click.option("--classes", metavar="A,B", help="Names for the classes, in the model's order."),
    click.option("--outcomes", metavar="FILE",
                 help="JSON: how an answer says what a class would have meant, a clause by class and language."),
    click.option("--regression", is_flag=True, help="The model's outputs are predictions, not classes."),
    click.option("--log-odds", is_flag=True, help="The model's score is a log-odds (for --probability)."),
    click.option("--unsafe-pickle", is_flag=True,
                 help="Load a pickled model. A pickle runs any code it contains: only for files you trust."),
)  # fmt: skip

TARGET = (
    click.option("--target", metavar="CLASS", help="The wanted class; of two classes, by default the other one."),
    click.option("--probability", type=NUMBER, metavar="P",
                 help="The wanted class must have a probability of at least P, such as 0.7."),
    click.option("--one-of", metavar="A,B", help="Instead of one class: any of these."),
    click.option("--not", "other", is_flag=True, help="Instead of one class: any but the present one."),
    click.option("--top", type=WholeNumber(), metavar="K", help="The wanted class must be among the K highest."),
    click.option("--at-least", type=NUMBER, metavar="S", help="Instead of a class: a score of at least S."),
    click.option("--at-most", type=NUMBER, metavar="S", help="Instead of a class: a score of at most S."),
    click.option("--margin", type=NUMBER, metavar="M", help="By how much, in units of the score (default 1e-6)."),
)  # fmt: skip

ALSO = (
    click.option("--also", multiple=True, metavar="NAME=FILE", help="Another model that must accept the row, too."),
    click.option("--also-target", multiple=True, metavar="NAME=CLASS",
                 help="What the model of that name must decide; a score: NAME>=S or NAME<=S."),
    click.option("--also-least", type=WholeNumber(min=1), metavar="M", help="Of those models, at least M must accept."),
)  # fmt: skip

QUESTION = (
    click.option("--query", "query_file", metavar="FILE",
                 help="The question as JSON (written by Query.to_json); other options add to it."),
    *TARGET,
    click.option("--distance", metavar="D", help="l0, l1 (the default), l2, linf, or a mixture such as 0.2*l0+0.8*l1."),
    click.option("--scale", type=click.Choice(["range", "mad", "std", "iqr"]),
                 help="What changes of numbers are divided by: their range (the default), or computed from --data."),
    click.option("--data", "data_file", metavar="FILE", help="The table that --scale is computed from."),
    click.option("--weight", "weights", type=(str, NUMBER), multiple=True, metavar="F W",
                 help="Changes of feature F count W times."),
    click.option("--cost-up", "up", type=(str, NUMBER), multiple=True, metavar="F W",
                 help="Going up in feature F counts W times."),
    click.option("--cost-down", "down", type=(str, NUMBER), multiple=True, metavar="F W",
                 help="Going down in feature F counts W times."),
    click.option("--fix", "fixed", multiple=True, metavar="F,F", help="These features keep their values."),
    click.option("--only-up", multiple=True, metavar="F,F", help="These features may only grow."),
    click.option("--only-down", multiple=True, metavar="F,F", help="These features may only shrink."),
    click.option("--range", "ranges", type=(str, NUMBER, NUMBER), multiple=True, metavar="F LO HI",
                 help="Feature F must end in [LO, HI]."),
    click.option("--allow", "allowed", type=(str, str), multiple=True, metavar="F V,V",
                 help="Feature F must end at one of these values."),
    click.option("--rule", "rules", multiple=True, metavar="TEXT",
                 help="A constraint in words, such as 'Age >= 18 + YearsEmployed' or 'at most 2 changes'."),
    *ALSO,
)  # fmt: skip

PAGE = (
    click.option("--html", "html", metavar="FILE", help="Write a page to print and hand over."),
    click.option("--language", type=click.Choice(["en", "de"]), default="en", show_default=True,
                 help="Of the page, and of the sentence for a person."),
    click.option("--subject", default="", metavar="WORDS", help="What is decided, such as 'the application'."),
    force_option,
)  # fmt: skip

FEWEST = (
    click.option("--fewest-first", is_flag=True, help="As few changes as possible, then the nearest row among those."),
)

EFFORT = (
    click.option("--method", "methods", metavar="NAME[,NAME]", help="How to search; several are compared row by row."),
    click.option("--time-limit", type=NUMBER, metavar="S", help="Seconds for each row (default: no limit)."),
    click.option("--node-limit", type=WholeNumber(), metavar="N",
                 help="Search nodes for each row (default: no limit)."),
    click.option("--threads", type=WholeNumber(), default=1, show_default=True, metavar="N",
                 help="Rows answered at a time."),
)  # fmt: skip


def with_options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[Command], Command]:
    """One decorator for several groups of options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
