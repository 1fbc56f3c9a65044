"""How methods look, wherever they appear: the paper's names, Okabe and Ito's colours, a marker each."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.asking.contestants import OURS
from benchmarks.subjects.data import NAMES, PAPER


@dataclass(frozen=True)
class Look:
    """A method's name, colour and marker."""

    name: str
    colour: str
    marker: str


LOOKS = {
    OURS: Look("our search", "#0072B2", "o"),
    "mip-obj": Look("MIP-OBJ", "#E69F00", "s"),
    "mip-exp": Look("MIP-EXP", "#009E73", "D"),
    "mip-sat": Look("MIP-SAT", "#CC79A7", "^"),
    "mace": Look("SAT", "#D55E00", "v"),
    "dice-gradient": Look("DiCE", "#808080", "X"),
}
EXACT = tuple(name for name in LOOKS if name != "dice-gradient")
DATASETS = {name: NAMES[name] for name in PAPER}
INK = "#010203"
"""Stands for the page's own text colour in a drawing."""
