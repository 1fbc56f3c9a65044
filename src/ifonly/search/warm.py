"""Loading the kernels: from numba's cache in under a second, or compiled once per machine in about forty seconds."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import numpy as np


@functools.cache
def load_kernels() -> None:
    """Make the kernels ready, so that no person's search pays for it. Nothing happens the second time."""
    from ifonly.search.kernels import search as kernel
    from ifonly.search.kernels.layout import ADDITIVE, SIZES, TOUCHES, Pack, PackedPeople
    from ifonly.search.pack import new_scratch, new_tree

    index = np.zeros((TOUCHES, 3), dtype=np.int64)
    index[SIZES, :2] = 1
    number, matrix = np.zeros(1), np.zeros((1, 1))
    pack = Pack(ADDITIVE, 1, 0.0, 0.0, index, np.zeros((3, 1)), number, number, matrix, 0, 0)
    flat, cube, marks = np.zeros((0, 1)), np.zeros((0, 2, 1)), np.zeros((0, 1), dtype=np.uint8)
    nobody, nodes = np.zeros(0), np.zeros(0, dtype=np.int64)
    people = PackedPeople(flat, cube, marks, flat, np.zeros((0, 1), dtype=np.int64), flat, cube, cube, nodes, nobody)
    kernel.search_people(
        pack, people, nobody, 0, 0, 1, False, new_scratch(pack), new_tree(pack, 1), nobody, flat, nodes
    )
    kernel.scan_table(pack, people, matrix, number, np.zeros(1, dtype=np.bool_), flat, nobody, flat, nodes)
    with contextlib.suppress(OSError):  # a read-only place: then it is compiled, and said, each time
        _ready().touch()


def kernels_are_cached() -> bool:
    """Does numba's cache hold the compiled kernels of these sources? (If not, the first answer waits for them.)"""
    ready = _ready()
    return ready.exists() and any(ready.parent.glob("search.*search_people*.nbc"))


def _ready() -> Path:
    """A mark beside numba's files: these very sources have been compiled, by this numba."""
    import numba

    from ifonly.search.kernels import search as kernel
    from ifonly.search.kernels.layout import SOURCES

    return Path(kernel.search_people.stats.cache_path) / f"ifonly-{SOURCES:08x}-{numba.__version__}.ready"
