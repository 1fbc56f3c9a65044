"""Invariant mining: rules that hold in every row of a table, as constraints on answers."""

from ifonly.mining.invariants import Invariant, Invariants, invariants

__all__ = ["Invariant", "Invariants", "invariants"]
