"""Compiled kernels of the floating-point check; plain Python until they are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ifonly.compiling import Kernels


def _functions() -> tuple[Mapping[str, Any], int]:
    from ifonly.certifying.float_check import layout, tree

    return {"walk": tree.walk, "answer": tree.answer}, layout.SOURCES


def _try_out(kernel: Any) -> None:
    """No node is walked: the arguments have the types of all calls."""
    from ifonly.certifying.float_check import layout

    one, whole = np.zeros(1), np.zeros(1, dtype=np.int64)
    index = np.zeros((layout.INDEX_ROWS, 2), dtype=np.int64)
    index[layout.SIZES] = 1
    proof_question = layout.ProofQuestion(
        layout.ADDITIVE, 1, index, np.zeros((3, 1)), np.zeros(0), one, np.zeros((1, 1)), one, one, whole, one, one, 0.0
    )
    no_options, no_sides = np.zeros(1, dtype=np.uint8), np.zeros(0, dtype=np.uint8)
    kernel.walk(proof_question, np.zeros(0), 1, one, one, no_options, no_sides, np.zeros((2, 0)), no_options)
    kernel.answer(layout.ADDITIVE, *layout.new_buffers(1), 0, 0.0, np.zeros(0))


FLOAT_CHECK = Kernels("ifonly.certifying.compiled:FLOAT_CHECK", "the writer of proofs", _functions, _try_out)
