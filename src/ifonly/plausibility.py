"""Plausible counterfactuals: constraints, conditions and a cost that are learned from data.

    support       by feature: the options that occur and the range of the numbers        ordinary constraints
    pairs         options that occur together, and the range of a number given an option  rules (linear, whole)
    Near          within a distance of some row of the data                              a condition, by branching
    LocalOutlierFactor  bounded from above, with one neighbour (DACE)                   a condition, by branching
    inliers       what an isolation forest, fitted on the data, takes for no outlier     another model that accepts
    dense         where a Gaussian mixture, fitted on the data, has some density         another model that accepts
    reconstructed what an autoencoder returns nearly as it was                           another model that accepts
    Mahalanobis   || L (x - x0) ||_1, where L^T L is the inverse covariance              a condition, or the cost itself

All of them are exact: an answer under them is the nearest plausible row, with the same proof as any other. What is
learned is only which rows count as plausible.
"""

from __future__ import annotations

from ifonly.problem.learned import (
    CorrelatedWithin,
    LocalOutlierFactor,
    Mahalanobis,
    Near,
    NumberGivenOption,
    OptionsTogether,
    dense,
    inliers,
    pairs,
    reconstructed,
    support,
)

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
