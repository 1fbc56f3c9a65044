"""`ifonly check`: verify a certificate in exact arithmetic."""

from __future__ import annotations

import click

from ifonly.cli.console import json_option, show_json

CODES = {"VALID": 0, "INVALID": 1, "VALID EXCEPT FOR THE SOLVER'S WORD": 3, "UNDECIDED": 4}

EPILOG = """\b
Exit codes:
  0    VALID: the statement that is printed is proven
  1    INVALID: the step that is printed fails
  2    wrong usage, or no such file
  3    VALID EXCEPT FOR THE SOLVER'S WORD: the row is verified, the lower bound is not proven
  4    UNDECIDED: the check was not over in time
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@click.option("--time-limit", type=click.FloatRange(min=0.0, min_open=True), default=3600.0, show_default=True,
              metavar="S", help="Seconds that the check may take.")  # fmt: skip
@json_option
def check(file: str, time_limit: float, as_json: bool) -> int:
    """Check a certificate: every step again, in exact arithmetic, without the search."""
    from ifonly.certificate.check import check as verify

    checked = verify(file, seconds=time_limit)
    if as_json:
        show_json(checked.to_dict())
    else:
        click.echo(str(checked))
    return CODES[checked.verdict]
