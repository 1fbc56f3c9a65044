"""The methods of this suite by the names of its command line: every kind with every solver."""

from __future__ import annotations

from collections.abc import Callable

from ifonly.methods import Enumerate, Mace, MipExp, MipObj, MipSat, Search
from ifonly.results import Method

PAPER_GAP = 1e-3
"""The paper's epsilon: how small its intervals become."""

METHODS: dict[str, Callable[[], Method]] = {
    "search": Search,
    **{f"mip-obj-{b}": lambda b=b: MipObj(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-exp-{b}": lambda b=b: MipExp(backend=b) for b in ("highs", "gurobi", "scip")},
    **{f"mip-unbounded-{b}": lambda b=b: MipObj(backend=b, bounds="none") for b in ("gurobi", "scip")},
    **{f"mip-ball-{b}": lambda b=b: MipObj(backend=b, ball=True) for b in ("highs", "gurobi", "scip")},
    "mip-sat": MipSat,
    "mip-sat-paper": lambda: MipSat(gap=PAPER_GAP),
    "mace": Mace,
    "enumerate": Enumerate,
}
