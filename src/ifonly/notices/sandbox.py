"""The sandbox of templates, which are files that people pass around: text with gaps, and no programs.

On top of Jinja's own sandbox (no Python, no attributes that lead there): no files and no other templates, no calls but
those of the page and of the template's own macros, few filters, and no text longer than a page, so that a short
template cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.printing import lines

MOST_PAGE = 2**21
"""Characters of the page of one person, and of anything that a template makes on the way to it."""
OF_TEXTS = ("capitalize", "e", "escape", "lower", "title", "trim", "upper")
OF_ANYTHING = ("default", "first", "last", "length")


def compiled_template(source: str) -> Any:
    """A template, ready to be filled."""
    try:
        sandbox, runtime = import_module("jinja2.sandbox"), import_module("jinja2.runtime")
        jinja = import_module("jinja2")
    except ImportError:
        raise MissingExtra("Jinja2", extra="notice", needed_for="The page of a notice") from None

    class NoticeSandbox(sandbox.ImmutableSandboxedEnvironment):  # type: ignore[misc, name-defined]
        """Calls those of the page only, and calculates with numbers only."""

        intercepted_binops = frozenset({"+", "*", "**", "%"})

        def is_safe_callable(self, what: Any) -> bool:
            return isinstance(what, runtime.Macro) or getattr(what, "of_the_page", False) is True

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = all(type(one) in (int, float) and abs(one) < 1e9 for one in (left, right))
            if operator == "**" or not numbers:
                raise sandbox.SecurityError(f"a template may not use {operator} here")
            return super().call_binop(context, operator, left, right)

    made = NoticeSandbox(autoescape=True, undefined=jinja.StrictUndefined, finalize=printed, trim_blocks=True,
                         lstrip_blocks=True)  # fmt: skip
    known = made.filters
    made.globals.clear()
    made.filters = {name: of_text(known[name]) for name in OF_TEXTS} | {name: known[name] for name in OF_ANYTHING}
    made.filters["join"] = joined
    for node in made.parse(source).find_all(jinja.nodes.Concat):
        raise QuestionError(f"line {node.lineno}: write texts one after the other instead of joining them by ~")
    return made.from_string(source)


def printed(value: Any) -> Any:
    """What a gap prints: HTML that is escaped already as it is, any other text without control characters."""
    if not isinstance(value, str | int | float) and not hasattr(value, "_undefined_message"):
        raise QuestionError("a gap prints a text or a number, and no list: name an entry of it, or use a loop")
    if isinstance(value, str) and len(value) > MOST_PAGE:
        raise QuestionError(f"it makes a page of more than {MOST_PAGE:,} characters")
    return value if not isinstance(value, str) or hasattr(value, "__html__") else lines(value, MOST_PAGE)


def of_text(apply: Callable[..., Any]) -> Callable[[Any], Any]:
    """A filter of one text, for nothing but texts and numbers."""
    return lambda value: apply(printed(value))


def joined(values: Any, between: str = "") -> Any:
    """The filter `join`, of texts that fit on a page together."""
    texts = [printed(value) for value in values] if isinstance(values, list | tuple) else []
    if sum(len(str(text)) + len(str(printed(between))) for text in texts) > MOST_PAGE:
        raise QuestionError(f"it makes a page of more than {MOST_PAGE:,} characters")
    escape = import_module("markupsafe").escape
    return escape(between).join(texts)
