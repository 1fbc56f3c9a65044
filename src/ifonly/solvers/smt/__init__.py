"""The paper's satisfiability methods. Light to import: Z3 is loaded when a question is prepared."""

from ifonly.solvers.smt.method import Mace, MipSat

__all__ = ["Mace", "MipSat"]
