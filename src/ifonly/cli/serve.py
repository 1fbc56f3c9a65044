"""`ifonly serve`: the recourse desk, for models from files or for the demonstration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ifonly.cli.console import NUMBER, json_option, note, show_json
from ifonly.cli.options import ALSO, with_options

if TYPE_CHECKING:
    from ifonly.model import Model
    from ifonly.service import ModelRegistry, RegisteredModel

KEY_VARIABLE = "IFONLY_SERVICE_KEY"
MODELS = (
    click.option("--demo", is_flag=True, help="Three people of the shipped data set Credit, and its network."),
    click.option("--model", "models", multiple=True, metavar="[NAME=]FILE",
                 help="A model file, as for `ifonly explain`; may be repeated, with names."),
    click.option("--schema", "schemas", multiple=True, metavar="[NAME=]FILE", help="What a row is, for each model."),
    click.option("--classes", multiple=True, metavar="[NAME=]A,B", help="Names for the classes, in the model's order."),
    click.option("--outcomes", multiple=True, metavar="[NAME=]FILE",
                 help="JSON: how an answer says what a class would have meant, a clause by class and language."),
    click.option("--title", "titles", multiple=True, metavar="[NAME=]WORDS", help="What the page calls the model."),
    click.option("--subject", "subjects", multiple=True, metavar="[NAME=]WORDS",
                 help="What is decided, such as 'the application'."),
    click.option("--people", multiple=True, metavar="[NAME=]FILE",
                 help="A table whose first rows are examples to begin with."),
    click.option("--keep", multiple=True, metavar="[NAME=]COLUMN",
                 help="The column of --people that names a person on the page, such as the customer's number."),
    click.option("--groups", multiple=True, metavar="[NAME=]FILE",
                 help="JSON: lists of features by a title, as the page groups them."),
    click.option("--translations", multiple=True, metavar="[NAME=]FILE",
                 help="JSON: titles and classes by language, as the page calls them there."),
    click.option("--codes", multiple=True, metavar="[NAME=]FILE",
                 help="The words of reasons in a notice: groups of features (JSON)."),
    click.option("--causes", multiple=True, metavar="[NAME=]FILE",
                 help="What follows from what (written by CausalModel.save), for the cheapest action."),
    click.option("--rule", "rules", multiple=True, metavar="[NAME=]TEXT",
                 help="A constraint in words that holds for everybody; may be repeated."),
    *ALSO,
    click.option("--regression", is_flag=True, help="The models' outputs are predictions, not classes."),
    click.option("--log-odds", is_flag=True, help="The models' scores are log-odds."),
    click.option("--unsafe-pickle", is_flag=True,
                 help="Load pickled models. A pickle runs any code it contains: only for files you trust."),
)  # fmt: skip

SERVER = (
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one."),
    click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
                 help="A host name of this service, besides localhost and addresses; * for any."),
    click.option("--root-path", default="", metavar="PATH",
                 help="The path at which a reverse proxy serves it, such as /tools/desk."),
    click.option("--frame-ancestors", multiple=True, metavar="ORIGIN",
                 help="An origin whose pages may show the page in a frame, or self; may be repeated."),
    click.option("--key", default="", envvar=KEY_VARIABLE, metavar="KEY",
                 help=f"Requests must have it. Better given in the environment: {KEY_VARIABLE}."),
    click.option("--workers", type=click.IntRange(1, 256), metavar="N",
                 help="Processes that answer (default: one per core)."),
    click.option("--slow-workers", type=click.IntRange(1, 256), metavar="N",
                 help="Processes for questions that take long, besides those (default: one per two cores)."),
    click.option("--seconds", type=NUMBER, default=10.0, show_default=True, metavar="S",
                 help="Time limit of a request's search."),
    click.option("--memory", type=click.IntRange(1, 2**20), default=256, show_default=True, metavar="MIB",
                 help="Memory limit of a search."),
)  # fmt: skip

EPILOG = """\b
Examples:
  ifonly serve --demo
  ifonly serve --model net.onnx --schema schema.json --people people.csv --title 'Loans'
  ifonly serve --model a=a.npz --schema a=a.json --model b=b.npz --schema b=b.json
"""
EXAMPLES = 5
"""Rows of `--people` that are shown."""
ONLY = "model"
"""The name of a model that has none."""


@click.command(epilog=EPILOG)
@with_options(MODELS, SERVER)
@json_option
def serve(as_json: bool, **options: Any) -> int:
    """Serve the recourse desk: a page and a JSON service that answer what would have to be different."""
    from ifonly.service import ModelRegistry, ServiceLimits
    from ifonly.service.access import AccessPolicy
    from ifonly.service.server import ServerConfig, needed_uvicorn
    from ifonly.service.server import serve as run
    from ifonly.worker_processes import cores

    os.environ.pop(KEY_VARIABLE, None)  # so that no worker process inherits the key
    needed_uvicorn()
    if options["demo"]:
        _check_demo(options)
    registry = ModelRegistry(demonstration() if options["demo"] else _registered_models(options))
    limits = ServiceLimits(seconds=options["seconds"], memory_bytes=options["memory"] << 20)
    hosts = tuple(name.lower() for name in (options["host"], *options["hosts"]))
    quick, slow = options["workers"] or cores(), options["slow_workers"] or max(1, cores() // 2)
    config = ServerConfig(
        host=options["host"], port=options["port"], quick=quick, slow=slow,
        access=AccessPolicy(key=options["key"], hosts=hosts, frame_ancestors=tuple(options["frame_ancestors"]),
                            root_path=options["root_path"]),
    )  # fmt: skip
    run(registry, limits, config, lambda address: _announce(address, registry, config.access.key, as_json=as_json))
    return 0


def _announce(address: str, registry: ModelRegistry, key: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"address": address, "models": list(registry.names)})
        sys.stdout.flush()
    else:
        note(f"The desk is at {address} (Ctrl-C ends it).")
    if not key and not address.startswith(("http://127.", "http://[::1]")):
        note(f"Other machines can ask it without a key: set {KEY_VARIABLE}, unless a proxy asks for one.")


def demonstration(*, rules: bool = True) -> list[RegisteredModel]:
    """Three people of Credit whom its network denies."""
    from ifonly.cli.demo import unfavourable_rows
    from ifonly.cli.shipped import CREDIT_GERMAN, CREDIT_GROUPS, WORDS, friendly_credit
    from ifonly.explainer import Explainer
    from ifonly.service import RegisteredModel

    model, rows = friendly_credit(rules=rules)
    explainer = Explainer(model)
    denied = unfavourable_rows(explainer, rows[:200], WORDS["credit"].unfavourable)[:3]
    titles = ("First applicant", "Second applicant", "Third applicant")
    people = {title: rows[i] for title, i in zip(titles, denied, strict=True)}
    return [
        RegisteredModel(
            name="credit",
            title="Credit applications",
            explainer=explainer,
            people=people,
            groups=CREDIT_GROUPS,
            translations={"de": CREDIT_GERMAN},
        )
    ]


def _check_demo(options: dict[str, Any]) -> None:
    """The demonstration has a model of its own: options about others would be without effect."""
    from ifonly.errors import QuestionError

    for parameter in click.get_current_context().command.params:
        if parameter.name in OF_MODELS and options[parameter.name]:
            raise QuestionError(f"--demo has a model of its own; leave out {parameter.opts[0]}, or --demo.")


EACH = ("schemas", "classes", "titles", "subjects", "people", "keep", "groups", "translations", "codes", "outcomes",
        "causes")  # fmt: skip
"""Options with one value per model."""
OF_MODELS = (*EACH, "models", "rules", "also", "also_target", "also_least", "regression", "log_odds", "unsafe_pickle")
"""All options about models."""


def _registered_models(options: dict[str, Any]) -> list[RegisteredModel]:
    """The models of the options, in their order."""
    from ifonly.errors import QuestionError

    models = _named(options["models"], ())
    names = tuple(models)
    each = {part: _named(options[part], names) for part in EACH}
    rules = {name: [_split(text, names)[1] for text in options["rules"] if _split(text, names)[0] in (name, None)]
             for name in names}  # fmt: skip
    for part, given in each.items():
        for name in given:
            if name not in models:
                raise QuestionError(f"--{part.rstrip('s')} names the model '{name}', which no --model has.")
    return [_registered(name, file, {part: given.get(name) for part, given in each.items()}, rules[name], options)
            for name, file in models.items()]  # fmt: skip


def _registered(
    name: str, file: str, given: dict[str, Any], rules: Sequence[str], options: dict[str, Any]
) -> RegisteredModel:
    from ifonly.causes import CausalModel
    from ifonly.cli.also import named_rules, read_also
    from ifonly.errors import QuestionError
    from ifonly.explainer import Explainer
    from ifonly.notices import ReasonCodes
    from ifonly.problem import Accepted
    from ifonly.schema.io import read_json
    from ifonly.service import RegisteredModel

    if given["schemas"] is None:
        raise QuestionError(f"Say what a row of the model '{name}' is with --schema {name}=FILE.")
    model = _model(file, given, options)
    also = read_also(options, model.schema)
    constraints, others = named_rules(rules, also)
    known = (one for one in also if isinstance(one, Accepted))
    explainer = Explainer(model, constraints=(*constraints, *others)).knowing(*known)
    people = {} if given["people"] is None else _people(given["people"], given["keep"])
    groups = {} if given["groups"] is None else read_json(given["groups"], "table of groups")
    translations = {} if given["translations"] is None else read_json(given["translations"], "table of translations")
    codes = None if given["codes"] is None else ReasonCodes.load(given["codes"])
    causes = None if given["causes"] is None else CausalModel.load(given["causes"], model.schema)
    return RegisteredModel(
        name=name, title=given["titles"] or "", subject=given["subjects"] or "", explainer=explainer, people=people,
        groups=groups, translations=translations, codes=codes, causes=causes,
    )  # fmt: skip


def _model(file: str, given: dict[str, Any], options: dict[str, Any]) -> Model:
    from ifonly.cli.query_arguments import listed
    from ifonly.cli.source import load_any, with_outcomes
    from ifonly.schema import load_schema

    classes = tuple(listed(given["classes"])) if given["classes"] else ()
    model = load_any(file, load_schema(given["schemas"]), classes=classes, regression=options["regression"],
                     unsafe_pickle=options["unsafe_pickle"])  # fmt: skip
    return with_outcomes(model.as_log_odds() if options["log_odds"] else model, given["outcomes"])


def _people(file: str, keep: str | None) -> dict[str, dict[str, Any]]:
    """The first rows of a table, by what names them: a column, or their number."""
    from ifonly.cli.tables import read_table
    from ifonly.errors import FileError

    table = read_table(file)
    rows = table.rows[:EXAMPLES]
    if keep is None:
        return {f"Row {i}": row for i, row in enumerate(rows)}
    if any(row.get(keep) in (None, "") for row in rows):
        raise FileError(f"'{file}' has no column '{keep}', or nothing in it, so it cannot name a person (--keep).")
    named = {str(row[keep]): row for row in rows}
    if len(named) < len(rows):
        raise FileError(f"Two of the first rows of '{file}' have the same '{keep}'; name people by another column.")
    return named


def _split(text: str, names: Iterable[str]) -> tuple[str | None, str]:
    """NAME=VALUE, where the name is one of these; else only a value."""
    name, sign, value = text.partition("=")
    return (name.strip(), value) if sign and name.strip() in names else (None, text)


def _named(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Values by the name before the sign; one without a name belongs to the only model, or to the first."""
    from ifonly.errors import QuestionError

    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not names and sign and not Path(text).exists():
            key, kept = name.strip(), value
        elif names:
            own, kept = _split(text, names)
            key = own or names[0]
        else:
            key, kept = ONLY, text
        if key in values:
            raise QuestionError(f"'{key}' is given twice; name each: --model NAME=FILE --schema NAME=FILE.")
        values[key] = kept
    return values
