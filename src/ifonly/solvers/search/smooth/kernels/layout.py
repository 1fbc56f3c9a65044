"""Memory layout of the kernels for smooth activations: all of `search.kernels.layout`, and more rows."""

from __future__ import annotations

from typing import NamedTuple

from ifonly.compiling import fingerprint
from ifonly.solvers.search.kernels import layout
from ifonly.solvers.search.kernels.layout import Floats, Ints

SOURCES = fingerprint(__file__, layout.SOURCES)

# ---- Scratch.F, more rows, one entry per hidden neuron
UPPER_SLOPE, UPPER_SHIFT, LOWER_SLOPE, LOWER_SHIFT = (layout.FLOAT_ROWS + k for k in range(4))
"""The lines between which the activation is, over the bounds of the pre-activation."""
TANGENT_SLOPE, TANGENT_SHIFT = layout.FLOAT_ROWS + 4, layout.FLOAT_ROWS + 5
"""The tangent at a point."""
SIZE, MATTERS = layout.FLOAT_ROWS + 6, layout.FLOAT_ROWS + 7
"""The largest absolute value of the activation; 1 if it may be anything but 0."""
MISSED = layout.FLOAT_ROWS + 8
"""By how much lines miss the activation, measured by what this counts."""
SMOOTH_ROWS = layout.FLOAT_ROWS + 9

LINES = 6
"""Of each neuron, in the relaxations that are probed: half of them upper ones."""

RELU, TANH, SIGMOID, SOFTPLUS, GELU, GELU_TANH, SILU, ELU, POWER = range(9)
"""As in `model.smooth.activations.NAMES`."""


class SmoothPack(NamedTuple):
    """A question: the fields of `Pack`, and the activation of each hidden neuron with ELU's alpha or a power's
    exponent.

    Not fields of `Pack` itself: two more arrays in every call made the search of ReLU networks 3 to 5 % slower.
    """

    norm: int
    layers: int
    gap: float
    relative_gap: float
    index: Ints  # hides tuple.index, which is not used
    price: Floats
    weights: Floats
    biases: Floats
    first: Floats
    rules: int
    pairs: int
    groups: int
    code: Ints
    alpha: Floats
