"""Ask ifonly, and tell what it may do (answer, refuse in a sentence) from what it may not (anything else)."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """What came of one case: its status in a word, and everything that was false about it."""

    status: str
    faults: list[str] = field(default_factory=list)


class Refused(Exception):
    """ifonly says in a sentence that it cannot do this."""


class Fault(Exception):
    """ifonly did what it must never do."""


def ask(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of a call, or `Refused`, or `Fault`."""
    from ifonly.errors import Contradiction, IfonlyError

    try:
        return call(*args, **named)
    except Contradiction as error:
        raise Fault(f"Contradiction: {error}") from None
    except IfonlyError as error:
        if len(str(error)) > 5000:
            raise Fault(f"a message of {len(str(error))} characters") from None
        raise Refused(str(error)) from None
    except (KeyboardInterrupt, SystemExit, Fault, Refused):
        raise
    except BaseException as error:  # whatever else comes out is a fault
        raise Fault(f"{type(error).__name__}: {str(error)[:300]} (raised {_place(error)})") from None


def outcome(run: Callable[[], Outcome]) -> Outcome:
    """The outcome of a case, where refusals and faults are outcomes as well."""
    from ifonly.errors import Contradiction, IfonlyError

    try:
        return run()
    except (Refused, IfonlyError) as refused:
        if isinstance(refused, Contradiction):
            return Outcome("fault", [f"Contradiction: {refused}"])
        shown(refused)
        return Outcome("refused")
    except Fault as fault:
        return Outcome("fault", [str(fault)])


def shown(refused: Exception) -> None:
    """Print a refusal, where somebody wants to see them."""
    if os.environ.get("ATTACK_SHOW_REFUSALS"):
        print("refused:", refused)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if "ifonly" in f.filename), frames[-1])
    return f"in {last.filename.rpartition('ifonly/')[2]}:{last.lineno}"
