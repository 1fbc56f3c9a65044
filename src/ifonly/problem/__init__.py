"""The question."""

from ifonly.problem.constraints import Allowed, Constraint, Fixed, OnlyDown, OnlyUp, Range
from ifonly.problem.distance import Distance, Norm, scales_from_data
from ifonly.problem.lowering import Lowered, People, lower
from ifonly.problem.question import Question
from ifonly.problem.rule import RowRule
from ifonly.problem.support import AtMostChanges, OnlyWith
from ifonly.problem.target import (
    ClassTarget,
    OneOfTarget,
    OpenTarget,
    OtherTarget,
    ProbabilityTarget,
    ScoreTarget,
    Target,
    TopTarget,
)

__all__ = [
    "Allowed",
    "AtMostChanges",
    "ClassTarget",
    "Constraint",
    "Distance",
    "Fixed",
    "Lowered",
    "Norm",
    "OneOfTarget",
    "OnlyDown",
    "OnlyUp",
    "OnlyWith",
    "OpenTarget",
    "OtherTarget",
    "People",
    "ProbabilityTarget",
    "Question",
    "Range",
    "RowRule",
    "ScoreTarget",
    "Target",
    "TopTarget",
    "lower",
    "scales_from_data",
]
