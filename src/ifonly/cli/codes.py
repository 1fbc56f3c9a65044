"""Exit codes: what a script may rely on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ifonly.results import Answer

PROVEN = 0
LIMIT = 1
WRONG_INPUT = 2
ERROR_ROWS = 3
CONTRADICTION = 4
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

EPILOG = """\b
Exit codes:
  0    every row is answered with proof (nearest, or none exists)
  1    some rows hit a limit (within, unknown)
  2    wrong usage or wrong input
  3    some rows could not be read (error rows)
  4    two things that must agree do not (please report it)
  70   a bug in ifonly (please report it)
  130  interrupted; what was answered is kept
"""


def of_answers(answers: Sequence[Answer]) -> int:
    """The exit code of many answers: the most serious of theirs."""
    from ifonly.results import Failed

    if any(isinstance(answer, Failed) and answer.contradiction for answer in answers):
        return CONTRADICTION
    return of_counts(Counter(answer.status for answer in answers))


def of_counts(counts: Mapping[str, int]) -> int:
    """The same, of how many answers have which status."""
    if counts.get("error"):
        return ERROR_ROWS
    return LIMIT if counts.get("within") or counts.get("unknown") else PROVEN
