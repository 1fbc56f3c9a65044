"""`ifonly-check`, the command of the checker alone: `python -m ifonly.certificate.command` is the same."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..files import write_whole
from ..printing import json_text
from .check import check
from .check.checker import CODES, LONGEST_SECONDS
from .collection import check_collection, is_collection
from .showing import as_html, as_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one certificate; the exit code says what came of it."""
    parser = argparse.ArgumentParser(
        prog="ifonly-check", description="Check a certificate of ifonly, step by step, in exact arithmetic."
    )
    parser.add_argument("file", help="the certificate, or a collection of them (.certs)")
    parser.add_argument("--time-limit", type=float, default=LONGEST_SECONDS, metavar="S", help="seconds it may take")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the result as a page, too")
    given = parser.parse_args(arguments)
    if is_collection(given.file):
        summary = check_collection(given.file, seconds=given.time_limit)
        sys.stdout.write((json_text(summary.to_dict(), indent=2) if given.json else str(summary)) + "\n")
        return summary.code
    checked = check(given.file, seconds=given.time_limit)
    sys.stdout.write((json_text(checked.to_dict(), indent=2) if given.json else as_text(checked)) + "\n")
    if given.html:
        write_whole(given.html, as_html(checked).encode("utf-8"))
    return CODES[checked.verdict]


if __name__ == "__main__":
    sys.exit(main())
