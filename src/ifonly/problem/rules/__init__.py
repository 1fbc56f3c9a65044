"""The rule language: constraints and rules between features, as text."""

from ifonly.problem.rules.derived import Derived
from ifonly.problem.rules.reading import AnyConstraint, bytes_beside, facts_of, merged, read_constraint
from ifonly.problem.rules.rule import Rule

__all__ = ["AnyConstraint", "Derived", "Rule", "bytes_beside", "facts_of", "merged", "read_constraint"]
