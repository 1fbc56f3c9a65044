"""The methods of this suite by the names of its command line: every kind with every solver."""

from __future__ import annotations

from collections.abc import Callable

from ifonly import Enumerate, MipInterval, MipObjective, Search, SmtPlain, SmtReduced
from ifonly.proof import Method

PAPER_GAP = 1e-3
"""The paper's epsilon: how small its intervals become."""

METHODS: dict[str, Callable[[], Method]] = {
    "search": Search,
    **{f"mip-objective-{b}": lambda b=b: MipObjective(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-interval-{b}": lambda b=b: MipInterval(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-unbounded-{b}": lambda b=b: MipObjective(backend=b, bounds="none") for b in ("gurobi", "scip")},
    **{f"mip-ball-{b}": lambda b=b: MipObjective(backend=b, ball=True) for b in ("highs", "gurobi", "scip")},
    "smt-reduced": SmtReduced,
    "smt-reduced-paper": lambda: SmtReduced(gap=PAPER_GAP),
    "smt-plain": SmtPlain,
    "enumerate": Enumerate,
}
