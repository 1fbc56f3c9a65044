"""`ifonly certify`: the answer to one row as a file that anyone can check."""

from __future__ import annotations

from typing import Any

import click

from ifonly.cli import codes
from ifonly.cli.console import json_option, load_search, note, show_json
from ifonly.cli.options import EFFORT, QUESTION, SOURCE, with_options

EPILOG = f"""\b
Examples:
  ifonly certify --dataset credit --row 0 --output answer.cert
  ifonly check answer.cert

{codes.EPILOG}"""


@click.command(epilog=EPILOG)
@with_options(SOURCE, QUESTION, EFFORT[1:3])
@click.option("--output", metavar="FILE", required=True, help="Where the certificate goes.")
@json_option
def certify(output: str, as_json: bool, **options: Any) -> int:
    """Prove the nearest counterfactual of one row, and write the proof as a certificate."""
    from ifonly.cli.question import read_constraints, read_distance, read_target
    from ifonly.cli.source import read_source
    from ifonly.errors import QuestionError
    from ifonly.explain import Explainer
    from ifonly.proof import Limits
    from ifonly.proof.check import check
    from ifonly.search.certify import certify as make
    from ifonly.search.certify import other_class

    source = read_source(options)
    if len(source.rows) != 1:
        raise QuestionError(f"A certificate is about one row; choose one of the {len(source.rows):,} with --row I.")
    explainer = Explainer(source.model)
    row, target = next(iter(source.rows.values())), read_target(options)
    if target is None and options["margin"] is not None:
        target = other_class(explainer.model, explainer.schema.read(row), options["margin"])
    load_search()
    certificate = make(
        explainer,
        row,
        target=target,
        distance=read_distance(options, explainer.schema, source.data),
        constraints=read_constraints(options, explainer.schema),
        limits=Limits(seconds=options["time_limit"], nodes=options["node_limit"]),
    )
    checked = check(certificate)
    certificate.save(output)
    if as_json:
        show_json({"output": output, "bytes": len(certificate.content), **checked.to_dict()})
    else:
        click.echo(str(checked))
    note(f"Written to {output} ({len(certificate.content):,} bytes).")
    return codes.PROVEN if checked.valid else codes.CONTRADICTION
