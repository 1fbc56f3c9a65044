"""The question."""

from ifonly.problem.constraints import Allowed, Constraint, Fixed, OnlyDown, OnlyUp, Range
from ifonly.problem.distance import Distance, Norm, scales_from_data
from ifonly.problem.lowering import Lowered, People, lower
from ifonly.problem.question import Question
from ifonly.problem.target import ClassTarget, ScoreTarget, Target

__all__ = [
    "Allowed",
    "ClassTarget",
    "Constraint",
    "Distance",
    "Fixed",
    "Lowered",
    "Norm",
    "OnlyDown",
    "OnlyUp",
    "People",
    "Question",
    "Range",
    "ScoreTarget",
    "Target",
    "lower",
    "scales_from_data",
]
