"""The kernels of the search for smooth activations, as they are at hand: compiled, or in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ifonly.compiling import Kernels


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.search.smooth.kernels import search as kernel
    from ifonly.search.smooth.kernels.layout import SOURCES

    return {"search_people": kernel.search_people}, SOURCES


def _try_out(kernel: Any) -> None:
    """Nobody is searched for: the arguments have the types of all calls, and no people."""
    from ifonly.search.kernels.layout import ADDITIVE, SIZES, TOUCHES, Pack, PackedPeople
    from ifonly.search.pack import new_scratch, new_tree
    from ifonly.search.smooth.kernels.layout import SMOOTH_ROWS, SmoothPack

    index = np.zeros((TOUCHES, 3), dtype=np.int64)
    index[SIZES, :2] = 1
    number, matrix = np.zeros(1), np.zeros((1, 1))
    pack = Pack(ADDITIVE, 1, 0.0, 0.0, index, np.zeros((3, 1)), number, number, matrix, 0, 0)
    smooth = SmoothPack(*pack, np.zeros(1, dtype=np.int64), number)
    flat, cube, marks = np.zeros((0, 1)), np.zeros((0, 2, 1)), np.zeros((0, 1), dtype=np.uint8)
    nobody, nodes = np.zeros(0), np.zeros(0, dtype=np.int64)
    people = PackedPeople(flat, cube, marks, flat, np.zeros((0, 1), dtype=np.int64), flat, cube, cube, nodes, nobody)
    kernel.search_people(
        smooth, people, nobody, 0, 0, 1, False, new_scratch(pack, rows=SMOOTH_ROWS), new_tree(pack, 1), nobody, flat,
        nodes,
    )  # fmt: skip


SMOOTH_KERNELS = Kernels("ifonly.search.smooth.warm:SMOOTH_KERNELS", "the search", _functions, _try_out)
