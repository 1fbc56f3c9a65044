"""The group of all commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ifonly import __version__
from ifonly.cli import codes
from ifonly.cli.audit import audit
from ifonly.cli.certify import certify
from ifonly.cli.check import check
from ifonly.cli.datasets import datasets
from ifonly.cli.demo import demo
from ifonly.cli.diverse import diverse
from ifonly.cli.doctor import doctor
from ifonly.cli.explain import explain
from ifonly.cli.invariants import invariants as _  # noqa: F401  a command of `schema`
from ifonly.cli.models import model
from ifonly.cli.notice import notice
from ifonly.cli.recourse import recourse
from ifonly.cli.schemas import schema
from ifonly.cli.serve import serve
from ifonly.cli.why import why


class App(click.Group):
    """Commands in the order of use; errors in one line on stderr."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has ended, as `head` does
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            return codes.BROKEN_PIPE

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> Any:
        """Run and exit. (A click group's own main prints usage, aborts and tracebacks in its own way.)"""
        extra.pop("standalone_mode", None)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            sys.exit(self._code(lambda: super(App, self).main(args, "ifonly", standalone_mode=False, **extra)))

    def _code(self, run: Any) -> int:
        from ifonly.errors import Contradiction, IfonlyError, RuleError

        try:
            return int(run() or 0)
        except click.BadOptionUsage as error:
            return _print_error(
                f"{error.format_message().rstrip('.')}{self._takes(error.option_name)}.", codes.WRONG_INPUT
            )
        except click.UsageError as error:
            where = f" (see: {error.ctx.command_path} --help)" if error.ctx else ""
            return _print_error(error.format_message() + where, codes.WRONG_INPUT)
        except click.Abort:
            return _print_error("interrupted", codes.INTERRUPTED)
        except click.ClickException as error:
            return _print_error(error.format_message(), codes.WRONG_INPUT)
        except Contradiction as error:
            return _print_error(str(error), codes.CONTRADICTION)
        except RuleError as error:
            message, _, place = str(error).partition("\n")
            code = _print_error(message, codes.WRONG_INPUT)
            if place:
                click.echo(place, err=True)
            return code
        except IfonlyError as error:
            return _print_error(str(error), codes.WRONG_INPUT)
        except Exception as error:
            if os.environ.get("IFONLY_TRACEBACK"):
                raise
            return _print_error(
                f"{type(error).__name__}: {error} (this is a bug in ifonly: please report it, with what "
                f"IFONLY_TRACEBACK=1 prints)",
                codes.BUG,
            )

    def _takes(self, option: str) -> str:
        """The values of an option that takes several."""
        every = (parameter for command in self.commands.values() for parameter in command.params)
        return next((f": {one.metavar}" for one in every if option in one.opts and one.nargs > 1), "")


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning as one line on stderr, without the place in the code that it comes from."""
    from ifonly.printing import lines

    click.echo(f"warning: {lines(' '.join(str(message).split()))}", err=True)


def _print_error(message: str, code: int) -> int:
    from ifonly.printing import lines

    click.echo(f"error: {lines(' '.join(message.split()))}", err=True)
    return code


@click.group(cls=App, invoke_without_command=True, epilog=codes.EPILOG,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})  # fmt: skip
@click.version_option(__version__, message="ifonly %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """The nearest counterfactual, proven: the smallest change that would have made a model say yes.

    Start with: ifonly demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


commands = (
    demo, explain, recourse, diverse, why, notice, audit, certify, check, serve, schema, model, datasets, doctor,
)  # fmt: skip
for command in commands:
    app.add_command(command)
