"""Invariant mining: rules that hold in every row of a table, as constraints on answers."""

from ifonly.mining.derivations import Derivation, derivations, follows_from
from ifonly.mining.invariants import Invariant, Invariants, invariants
from ifonly.mining.usualness import ObservedRows
from ifonly.results import Usualness

__all__ = [
    "Derivation",
    "Invariant",
    "Invariants",
    "ObservedRows",
    "Usualness",
    "derivations",
    "follows_from",
    "invariants",
]
