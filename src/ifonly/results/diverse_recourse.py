"""Several actions of one person, cheapest first: each leaves out something that every earlier one acts on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ifonly.printing import escaped
from ifonly.results.recourse import Recourse


@dataclass(frozen=True, slots=True, repr=False)
class DiverseRecourse(Sequence[Recourse]):
    """The actions, cheapest first; `ended` says why there are no more of them: that none exists, or what stopped it.

    Each is proven by itself, given the earlier ones: none that also leaves out something of each of them is cheaper.
    """

    actions: tuple[Recourse, ...]
    ended: Recourse | None = None

    def __getitem__(self, index: Any) -> Any:
        return self.actions[index]

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Recourse]:
        return iter(self.actions)

    @property
    def proven(self) -> bool:
        """Is each action a cheapest one, and, where there are fewer than asked for, that there is no other?"""
        last = self.ended is None or self.ended.status == "none exists"
        return last and all(one.status == "nearest" for one in self.actions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        ended = None if self.ended is None else self.ended.to_dict()
        return {"actions": [one.to_dict() for one in self.actions], "ended": ended, "proven": self.proven}

    def __str__(self) -> str:
        """The exact sentences."""
        lines = [f"{k + 1}. {one}" for k, one in enumerate(self.actions)]
        if len(lines) > 1:
            lines.append("From the second on: of actions that leave out something of every earlier one.")
        if self.ended is not None:
            nothing = "No other action does it (proven)." if self.actions else str(self.ended)
            lines.append(nothing if self.ended.status == "none exists" else escaped(self.ended.answer.note))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<DiverseRecourse: {len(self.actions)} actions, {'proven' if self.proven else 'not proven'}>"
