"""Plausibility learned from data: constraints, rules, conditions and a cost."""

from ifonly.problem.learned.anomaly import dense, inliers, reconstructed
from ifonly.problem.learned.correlated import CorrelatedWithin, Mahalanobis
from ifonly.problem.learned.near import Near
from ifonly.problem.learned.outliers import LocalOutlierFactor
from ifonly.problem.learned.support import NumberGivenOption, OptionsTogether, pairs, support

__all__ = [
    "CorrelatedWithin",
    "LocalOutlierFactor",
    "Mahalanobis",
    "Near",
    "NumberGivenOption",
    "OptionsTogether",
    "dense",
    "inliers",
    "pairs",
    "reconstructed",
    "support",
]
