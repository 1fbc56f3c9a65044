"""The optimisation problem: targets, distances, constraints and rules, and their numeric form (`lowering`)."""

from ifonly.problem.accepted import Accepted
from ifonly.problem.chains import AcceptedBySome
from ifonly.problem.constraints import (
    Allowed,
    Constraint,
    Fixed,
    Imputable,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    Range,
    Steps,
    Unconstrained,
)
from ifonly.problem.costs import People
from ifonly.problem.distance import Distance, Norm, scales_from_data
from ifonly.problem.lowering import Lowered, lower
from ifonly.problem.open_target import OneOfTarget, OpenTarget, OtherTarget, TopTarget
from ifonly.problem.query import Query
from ifonly.problem.question import Question
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.robust_trees import RobustToTrees
from ifonly.problem.rule import RowRule
from ifonly.problem.rules import AnyConstraint, Derived, Rule, merged, read_constraint
from ifonly.problem.support import Actionable, MaxChanges, OnlyWith
from ifonly.problem.target import ClassTarget, ProbabilityTarget, ScoreTarget, Target

__all__ = [
    "Accepted",
    "AcceptedBySome",
    "Actionable",
    "Allowed",
    "AnyConstraint",
    "ClassTarget",
    "Constraint",
    "Derived",
    "Distance",
    "Fixed",
    "Imputable",
    "Lowered",
    "MaxChanges",
    "MaxDelta",
    "Norm",
    "OneOfTarget",
    "OnlyDown",
    "OnlyUp",
    "OnlyWith",
    "OpenTarget",
    "OtherTarget",
    "People",
    "ProbabilityTarget",
    "Query",
    "Question",
    "Range",
    "RobustToTrees",
    "RobustToWeights",
    "RowRule",
    "Rule",
    "ScoreTarget",
    "Steps",
    "Target",
    "TopTarget",
    "Unconstrained",
    "lower",
    "merged",
    "read_constraint",
    "scales_from_data",
]
