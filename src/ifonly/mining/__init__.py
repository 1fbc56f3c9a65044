"""Invariants of a table: what holds in every row, as rules that an answer can be held to."""

from ifonly.mining.invariants import Invariant, Invariants, invariants

__all__ = ["Invariant", "Invariants", "invariants"]
