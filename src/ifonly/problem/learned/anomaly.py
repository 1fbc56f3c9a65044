"""Anomaly models as constraints: an isolation forest or a Gaussian mixture that is fitted here, and the error of an
autoencoder."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

from ifonly.errors import QuestionError
from ifonly.model import Model
from ifonly.model.importers import import_model
from ifonly.model.importers.gaussian_models import fitted_mixture, import_density
from ifonly.model.importers.trees.isolation import fitted_forest
from ifonly.model.reconstruction import ReconstructionNorm, reconstruction_model
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.learned.data import points_of
from ifonly.schema import Schema
from ifonly.schema.arguments import real_number, whole_number

MOST_TREES = 1000
MOST_COMPONENTS = 100
Covariance: TypeAlias = Literal["full", "tied", "diag", "spherical"]
COVARIANCES = ("full", "tied", "diag", "spherical")


def inliers(schema: Schema, table: Any, *, outliers: float = 0.05, trees: int = 100) -> Accepted:
    """Rows that look like those of the table, for people who do not want to choose.

    An isolation forest of scikit-learn, fitted on the encoded rows with its own defaults, must take the row for an
    inlier; the threshold is such that the share `outliers` of the table itself is none.
    """
    share = real_number(outliers, "The share of outliers lies between 0 and 0.5; it is", lambda p: 0.0 < p <= 0.5)
    count = whole_number(trees, f"A forest has a whole number of trees, from 1 to {MOST_TREES}; it is", 1)
    if count > MOST_TREES:
        raise QuestionError(f"A forest has a whole number of trees, from 1 to {MOST_TREES}; it is {count}.")
    rows = schema.encode(points_of(schema, table, whole=True))
    return Accepted(by=import_model(fitted_forest(rows, share, count), schema), name="isolation forest")


def dense(
    schema: Schema, table: Any, *, components: int = 1, outliers: float = 0.05, covariance: Covariance = "full"
) -> Accepted:
    """Rows where the data is dense: a Gaussian mixture of scikit-learn, fitted on the table's standardised columns,
    must give the row a density (`score_samples`) that only the share `outliers` of the table itself is below.
    """
    share = real_number(outliers, "The share of outliers lies between 0 and 0.5; it is", lambda p: 0.0 < p <= 0.5)
    words = f"A mixture has a whole number of components, from 1 to {MOST_COMPONENTS}; it is"
    count = whole_number(components, words, 1)
    if count > MOST_COMPONENTS:
        raise QuestionError(f"{words} {count}.")
    if not isinstance(covariance, str) or covariance not in COVARIANCES:
        raise QuestionError(f"A covariance is one of {', '.join(COVARIANCES)}; got {shown(covariance)}.")
    rows = schema.encode(points_of(schema, table, whole=True))
    if len(rows) <= count:
        raise QuestionError(
            f"A mixture of {count} components is fitted on more rows than that; the table has {len(rows)}."
        )
    mixture, threshold = fitted_mixture(rows, count, covariance, share)
    return Accepted(by=import_density(mixture, schema, threshold), name="gaussian mixture")


def reconstructed(autoencoder: Any, schema: Schema, at_most: float, *, norm: ReconstructionNorm = "l1") -> Accepted:
    """Rows that an autoencoder returns nearly as they were, in the schema's columns: with an error of at most this.

    `autoencoder` maps encoded rows to encoded rows: a Model (a regression), or anything that is imported as one.
    """
    words = "The largest error of an autoencoder is a number >= 0; it is"
    least = real_number(at_most, words, lambda number: 0.0 <= number < math.inf)
    if not isinstance(norm, str) or norm not in ("l1", "linf"):
        raise QuestionError(f"The error of an autoencoder is measured in 'l1' or 'linf'; got {shown(norm)}.")
    model = autoencoder if isinstance(autoencoder, Model) else import_model(autoencoder, schema, regression=True)
    return Accepted(by=reconstruction_model(model, least, norm), name="autoencoder")
