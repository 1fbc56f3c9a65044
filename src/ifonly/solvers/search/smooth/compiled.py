"""Compiled kernels of the branch and bound for smooth activations; plain Python until they are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ifonly.compiling import Kernels
from ifonly.solvers.search.compiled import in_and_out, no_people, try_in_and_out


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.solvers.search.smooth.kernels import search as kernel
    from ifonly.solvers.search.smooth.kernels.layout import SOURCES

    return {"search_people": kernel.search_people, **in_and_out()}, SOURCES


def _try_out(kernel: Any) -> None:
    """Nobody is searched for: the arguments have the types of all calls, and no people."""
    from ifonly.solvers.search.kernels.layout import NEVER
    from ifonly.solvers.search.pack import new_relaxation, new_scratch, new_tree
    from ifonly.solvers.search.smooth.kernels.layout import SMOOTH_ROWS, SmoothPack

    pack, people, flat, nobody, nodes = no_people()
    smooth = SmoothPack(*pack, np.zeros(1, dtype=np.int64), np.zeros(1))
    kernel.search_people(
        smooth, people, nobody, 0, 0, 1, False, new_scratch(pack, rows=SMOOTH_ROWS), new_relaxation(pack, NEVER),
        new_tree(pack, 1), nobody, flat, nodes,
    )  # fmt: skip
    try_in_and_out(kernel)


SMOOTH_KERNELS = Kernels("ifonly.solvers.search.smooth.compiled:SMOOTH_KERNELS", "the search", _functions, _try_out)
