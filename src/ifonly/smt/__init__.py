"""The paper's satisfiability methods. Light to import: Z3 is loaded when a question is prepared."""

from ifonly.smt.method import SmtPlain, SmtReduced

__all__ = ["SmtPlain", "SmtReduced"]
