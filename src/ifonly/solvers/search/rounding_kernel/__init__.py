"""Rounding error bounds of plain networks, compiled: the analysis of `model.rounding` for a chain of operations."""
