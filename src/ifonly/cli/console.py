"""Console output: formatted on a terminal, plain text in a pipe, JSON with --json; and types of option values."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ifonly.report import Block

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


class WholeNumber(click.IntRange):
    """An integer, within bounds if any are given; called a whole number in messages."""

    name = "whole number"

    def _describe_range(self) -> str:
        return super()._describe_range() if (self.min, self.max) != (None, None) else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "_" in value:  # int("1_0") would be 10
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return super().convert(value, param, ctx)


class Number(click.types.FloatParamType):
    """A number with a decimal point; one that is ambiguous (1.500 or 1,500) is refused with both readings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ifonly.schema.number_text import two_readings

        if isinstance(value, str) and (readings := two_readings(value)):
            self.fail(f"{value!r} may be {readings}: write it as one of these.", param, ctx)
        if isinstance(value, str) and "_" in value:
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return super().convert(value, param, ctx)


NUMBER = Number()


def on_terminal() -> bool:
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def show(page: Sequence[Block]) -> None:
    """Print a page on stdout."""
    if on_terminal():
        from rich.console import Console

        from ifonly.report.terminal import draw

        draw(page, Console())
    else:
        from ifonly.report.page import plain

        click.echo(plain(page))


def show_json(data: Any) -> None:
    """Print plain data as JSON on stdout."""
    from ifonly.printing import json_text

    click.echo(json_text(data, indent=2))


def note(message: str) -> None:
    """A remark for the person, on stderr, so that pipes stay clean."""
    from ifonly.printing import lines

    click.echo(lines(message), err=True)
