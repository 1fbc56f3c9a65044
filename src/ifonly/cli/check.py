"""`ifonly check`: verify a certificate in exact arithmetic."""

from __future__ import annotations

import click

from ifonly.cli.console import json_option, show_json

VALID, INVALID = 0, 1

EPILOG = """\b
Exit codes:
  0    VALID: the statement that is printed is proven
  1    INVALID: the step that is printed fails
  2    wrong usage, or no such file
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@json_option
def check(file: str, as_json: bool) -> int:
    """Check a certificate: every step again, in exact arithmetic, without the search."""
    from ifonly.proof.check import check as verify
    from ifonly.report.page import clean

    checked = verify(file)
    if as_json:
        show_json(checked.to_dict())
    else:
        click.echo(clean(str(checked)))
    return VALID if checked.valid else INVALID
