"""Compiled kernels of the branch and bound; plain Python until they are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.compiling import Kernels

if TYPE_CHECKING:
    from ifonly.solvers.search.kernels.layout import Floats, Ints, Pack, PackedPeople


def load_kernels() -> None:
    """Make the compiled kernels ready, so that no person's search pays for it. Nothing happens the second time."""
    KERNELS.load()


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.solvers.search.kernels import search as kernel
    from ifonly.solvers.search.kernels.layout import SOURCES

    return {"search_people": kernel.search_people, "scan_table": kernel.scan_table, **in_and_out()}, SOURCES


def in_and_out() -> Mapping[str, Any]:
    """What brings people into the arrays of any search, and back."""
    from ifonly.solvers.search.kernels import people as kernel

    return {"pack_rows": kernel.pack_rows, "rows_found": kernel.rows_found}


def try_in_and_out(kernel: Any) -> None:
    """Nobody is brought in or out."""
    pack, people, flat, nobody, _ = no_people()
    wide, found, unit = np.zeros((0, 3, 1)), np.zeros(0, dtype=np.bool_), np.zeros(1)
    kernel.pack_rows(pack.index, unit, flat, nobody, flat, people.option, flat, flat, flat, wide, flat)
    kernel.rows_found(pack.index, unit, flat, flat, flat, wide, flat, flat, found)


def no_people() -> tuple[Pack, PackedPeople, Floats, Floats, Ints]:
    """A question, no people, and what is known of each of them: rows, numbers, counts."""
    from ifonly.solvers.search.kernels.layout import ADDITIVE, SIZES, TOUCHES, Pack, PackedPeople

    index = np.zeros((TOUCHES, 3), dtype=np.int64)
    index[SIZES, :2] = 1
    number, nobody, nodes = np.zeros(1), np.zeros(0), np.zeros(0, dtype=np.int64)
    pack = Pack(ADDITIVE, 1, 0.0, 0.0, index, np.zeros((3, 1)), number, number, np.zeros((1, 1)), 0, 0, 1)
    flat, cube, marks = np.zeros((0, 1)), np.zeros((0, 2, 1)), np.zeros((0, 1), dtype=np.uint8)
    people = PackedPeople(flat, cube, marks, flat, np.zeros((0, 1), dtype=np.int64), flat, cube, cube, nodes, nobody)
    return pack, people, flat, nobody, nodes


def _try_out(kernel: Any) -> None:
    """Nobody is searched for: the arguments have the types of all calls, and no people."""
    from ifonly.solvers.search.kernels.layout import NEVER
    from ifonly.solvers.search.pack import new_relaxation, new_scratch, new_tree

    pack, people, flat, nobody, nodes = no_people()
    kernel.search_people(
        pack, people, nobody, 0, 0, 1, False, new_scratch(pack), new_relaxation(pack, NEVER), new_tree(pack, 1),
        nobody, flat, nodes,
    )  # fmt: skip
    try_in_and_out(kernel)
    robust = np.zeros(1, dtype=np.bool_)
    kernel.scan_table(pack, people, np.zeros((1, 1)), np.zeros(1), robust, flat, nobody, flat, nodes)


KERNELS = Kernels("ifonly.solvers.search.compiled:KERNELS", "the search", _functions, _try_out)
