"""Models of squares and exponentials, as networks: Gaussian classifiers, Gaussian mixtures, machines with RBF kernels.

    log N(x; mu, S) = c - |P^T (x - mu)|^2 / 2         squares of numbers: `power` units, for either sign
    sum_k w_k N_k(x) >= t   iff   sum_k E(e_k) >= 1     e_k = log w_k + log N_k(x) - log t
    exp(-g |x - x_i|^2) = E(-g |x - x_i|^2)

    E(z) = exp(z) for z <= 0, and 1 + z above, which is ELU(z) + 1

A density is compared with its threshold before it is taken out of its logarithm. Where all e_k are at most 0, the two
sums are one; where some e_k is above 0, both are above 1. So nothing overflows, and no slope is beyond 1.

The square of a column of options is such a column, so it is linear. Squares of columns are shared by all components
where a model adds up (x - mu)^2 column by column; the bounds of what its own arithmetic loses (`Majorant`) are those of
the squares (|x| + |mu|)^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import flow_of
from ifonly.model.importers.column_kinds import Column, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.operations import Majorant, underflow_counts
from ifonly.model.rounding import UNIT, column_box
from ifonly.model.smooth import Activation
from ifonly.schema import Choice

Floats = NDArray[np.float64]
MOST_VECTORS = 5_000
"""Of a machine with an RBF kernel: each is an exponential, bounded in every node of the search."""
ROUNDINGS = 40
"""Of a few operations beside those of a sum: with one per term, a safety factor of more than 4."""


@dataclass(frozen=True)
class InputColumns:
    """The columns that an estimator reads, as values of a network."""

    columns: Sequence[Column]
    arithmetic: Columns
    encoded: Flow
    flow: Flow
    name: str

    @classmethod
    def of(cls, columns: Sequence[Column], arithmetic: Columns, name: str) -> InputColumns:
        schema = arithmetic.schema
        encoded = Flow.of(len(schema.columns), *column_box(schema))
        return cls(columns, arithmetic, encoded, flow_of(columns, arithmetic, encoded, name), name)

    def linear(self, weight: Floats, bias: Floats, size: Floats, size_bias: Floats) -> Flow:
        """weight @ columns + bias, of which the model adds up terms of these sizes."""
        return self.flow.linear(weight, bias, name=self.name, sizes=_majorant(size, size_bias))

    def squares(self) -> list[tuple[list[int], Flow]]:
        """The squares of the columns in parts, each with its columns: of a choice's column it is another one, with the
        squares of its values."""
        chosen = self._of_choices()
        numbers = [j for j in range(self.flow.width) if j not in chosen]
        parts = []
        if chosen:
            options = flow_of(list(chosen.values()), self.arithmetic, self.encoded, self.name)
            parts.append((list(chosen), options))
        if numbers:
            parts.append((numbers, squared(self.flow.select(numbers, name=self.name), self.name)))
        return parts

    def _of_choices(self) -> dict[int, Options]:
        """The squares of the columns that are functions of one choice. The model squares what it has computed, which
        may be off by the column's error."""
        schema = self.arithmetic.schema
        low, high = column_box(schema)
        every = np.ones(len(low), dtype=np.bool_)
        errors = self.flow.to_network().error(low[None, :], high[None, :], "float64", every)[0]
        found = {}
        for j, (column, error) in enumerate(zip(self.columns, errors.tolist(), strict=True)):
            own = self.arithmetic.of_choice(column) if isinstance(column, Line) else column
            if not isinstance(own, Options) or not isinstance(schema.features[own.feature], Choice):
                continue
            values = np.asarray(self.arithmetic.numbers(own, self.name), dtype=np.float64)
            if np.isnan(values).any():
                continue
            most = float(np.abs(values).max())
            exact = error == 0.0 and bool(np.isin(values, (0.0, 1.0)).all())
            lost = 0.0 if exact else 2.0 * most * most + (2.0 * most * error + error * error) / UNIT["float64"]
            found[j] = Options(own.feature, values**2, lost, 0 if exact else ROUNDINGS)
        return found


def squared(flow: Flow, name: str) -> Flow:
    """The square of each value, by powers of its positive and of its negative part."""
    low, high = flow.expression.interval()
    size = np.maximum(np.abs(low), np.abs(high))
    if not np.isfinite(size).all() or (size > 1e140).any():
        raise ModelError(f"{name} takes squares of numbers of up to {size.max():g}; narrow the schema's bounds.")
    unit = np.ldexp(1.0, np.frexp(np.maximum(size, 1e-140))[1])
    scaled = flow.scale(1.0 / unit, name=name)
    above, below = np.flatnonzero(high > 0.0), np.flatnonzero(low < 0.0)
    sides = [(above, 1.0), (below, -1.0)]
    parts = [scaled.select(at.tolist(), name=name).scale(sign, name=name) for at, sign in sides if len(at)]
    if not parts:  # all are 0
        return flow.scale(0.0, name=name)
    joined = parts[0].joined(parts[1:], name=name) if len(parts) > 1 else parts[0]
    halves = joined.smooth(Activation("power", 2.0))
    owners = np.concatenate([above, below])
    weight = np.zeros((flow.width, len(owners)))
    weight[owners, np.arange(len(owners))] = 2.0 * unit[owners] ** 2
    return halves.linear(weight, name=name)


def _majorant(size: Floats, size_bias: Floats) -> Majorant:
    """Of sums of as many terms as columns, each of a few roundings."""
    terms = 4 * size.shape[1] + ROUNDINGS
    peak = max(float(size.max()), float(np.abs(size_bias).max()))
    return Majorant(size, np.abs(size_bias), terms, underflow_counts(size), peak)


def _sum_of_squares(
    inputs: InputColumns, factors: Floats, centres: Floats, constants: Floats, sizes: Floats, signs: Floats
) -> Flow:
    """signs @ (constants_k - sum_j factors_kj (x_j - centres_kj)^2), of components k; `sizes` bounds what the
    constants are sums of."""
    size = np.abs(signs)
    shift = constants - (factors * centres**2).sum(axis=1)
    size_shift = sizes + (factors * centres**2).sum(axis=1)
    total = inputs.linear(
        2.0 * signs @ (factors * centres), signs @ shift, 2.0 * size @ (factors * np.abs(centres)), size @ size_shift
    )
    for columns, squares in inputs.squares():
        weight, most = -signs @ factors[:, columns], size @ factors[:, columns]
        part = squares.linear(weight, name=inputs.name, sizes=_majorant(most, np.zeros(len(signs))))
        total = total.plus(part, name=inputs.name)
    return total


def _whitened(inputs: InputColumns, maps: Sequence[Floats], means: Floats, constants: Floats, sizes: Floats) -> Flow:
    """constants_k - |(x - means_k) @ maps_k|^2 / 2 of each component."""
    weight = np.concatenate([matrix.T for matrix in maps])
    shift = np.concatenate([-(mean @ matrix) for mean, matrix in zip(means, maps, strict=True)])
    size_shift = np.concatenate([np.abs(mean) @ np.abs(matrix) for mean, matrix in zip(means, maps, strict=True)])
    found = squared(inputs.linear(weight, shift, np.abs(weight), size_shift), inputs.name)
    owner = np.repeat(np.arange(len(maps)), [matrix.shape[1] for matrix in maps])
    halves = -0.5 * (owner[None, :] == np.arange(len(maps))[:, None])
    return found.linear(halves, constants, name=inputs.name, sizes=_majorant(np.abs(halves), sizes))


# ---------------------------------------------------------------------- classifiers


def quadratic_discriminant(estimator: Any, inputs: InputColumns) -> Flow:
    """-(|(x - mean_c) @ R_c S_c^(-1/2)|^2 + sum log S_c) / 2 + log prior_c of each class."""
    scalings = [np.asarray(one, dtype=np.float64) for one in estimator.scalings_]
    if any((one <= 0.0).any() for one in scalings):
        raise UnsupportedModel(
            f"The {inputs.name} has a class without any variance in some direction; fit it with reg_param above 0.",
            operation=f"{inputs.name} without variance",
        )
    maps = [np.asarray(r) * s**-0.5 for r, s in zip(estimator.rotations_, scalings, strict=True)]
    logs = np.array([np.sum(np.log(s)) for s in scalings])
    sizes = np.array([np.sum(np.abs(np.log(s))) for s in scalings])
    priors = np.log(estimator.priors_)
    return _whitened(inputs, maps, np.asarray(estimator.means_), -0.5 * logs + priors, sizes + np.abs(priors))


def naive_bayes(estimator: Any, inputs: InputColumns) -> Flow:
    """log prior_c - sum_j (log(2 pi var_cj) + (x_j - theta_cj)^2 / var_cj) / 2 of each class, less that of the first
    class; of two classes, the difference."""
    variances = np.asarray(estimator.var_, dtype=np.float64)
    if (variances <= 0.0).any():
        raise UnsupportedModel(
            f"The {inputs.name} has a column without any variance; fit it with var_smoothing above 0.",
            operation=f"{inputs.name} without variance",
        )
    logs, priors = np.log(2.0 * np.pi * variances), np.log(estimator.class_prior_)
    constants = priors - 0.5 * logs.sum(axis=1)
    count = len(constants)
    signs = np.array([[-1.0, 1.0]]) if count == 2 else np.eye(count) - np.eye(count)[:1]
    sizes = np.abs(priors) + 0.5 * np.abs(logs).sum(axis=1)
    centres = np.asarray(estimator.theta_, dtype=np.float64)
    least, most = inputs.flow.expression.interval()
    one_value = least == most  # as an ordinal's first column, whose variance is next to nothing: its square is known
    known = np.where(one_value, 0.5 / variances * (least - centres) ** 2, 0.0).sum(axis=1)
    factors = np.where(one_value, 0.0, 0.5 / variances)
    return _sum_of_squares(inputs, factors, centres, constants - known, sizes + known, signs)


# ---------------------------------------------------------------------- densities


def mixture(estimator: Any, inputs: InputColumns, threshold: float) -> Flow:
    """log p(x) - threshold of one component; of several a number that has its sign."""
    means, weights = np.asarray(estimator.means_, dtype=np.float64), np.asarray(estimator.weights_, dtype=np.float64)
    count, width = means.shape
    if (weights <= 0.0).any():
        raise UnsupportedModel(
            f"The {inputs.name} has a component of weight 0; fit it with fewer components.",
            operation=f"{inputs.name} with an empty component",
        )
    roots = np.asarray(estimator.precisions_cholesky_, dtype=np.float64)
    shapes = {"full": (count, width, width), "tied": (width, width), "diag": (count, width), "spherical": (count,)}
    if roots.shape != shapes.get(estimator.covariance_type):
        raise UnsupportedModel(
            f"The covariances of the {inputs.name} are not of its covariance_type; fit it again.",
            operation=f"{inputs.name} with other covariances",
        )
    diagonals = _diagonals(roots, estimator.covariance_type, count, width)
    gauss = 0.5 * width * math.log(2.0 * math.pi)
    logs = np.log(diagonals)
    constants = logs.sum(axis=1) - gauss + np.log(weights) - threshold
    sizes = np.abs(logs).sum(axis=1) + gauss + np.abs(np.log(weights)) + abs(threshold)
    if estimator.covariance_type in ("diag", "spherical"):
        found = _sum_of_squares(inputs, 0.5 * diagonals**2, means, constants, sizes, np.eye(count))
    elif estimator.covariance_type == "full":
        found = _whitened(inputs, list(roots), means, constants, sizes)
    else:
        found = _tied(inputs, roots, means, constants, sizes)
    if count == 1:
        return found
    off = 2.0 * UNIT["float64"] * (count + 16.0 + 4.0 * (1.0 + abs(threshold)))  # of its logarithm of the sum
    above = found.smooth(Activation("elu", 1.0, off))
    return above.linear(np.ones((1, count)), np.array([count - 1.0]), name=inputs.name)


def _diagonals(roots: Floats, covariance: str, count: int, width: int) -> Floats:
    """The diagonals of the roots of all components' precisions."""
    match covariance:
        case "full":
            return np.array([np.diag(root) for root in roots])
        case "tied":
            return np.repeat(np.diag(roots)[None, :], count, axis=0)
        case "diag":
            return roots
        case _:
            return np.repeat(roots[:, None], width, axis=1)


def _tied(inputs: InputColumns, root: Floats, means: Floats, constants: Floats, sizes: Floats) -> Flow:
    """constants_k - |x @ root - means_k @ root|^2 / 2, with the same squares for all."""
    own, sizes_own = means @ root, np.abs(means) @ np.abs(root)
    turned = inputs.linear(root.T, np.zeros(len(root)), np.abs(root.T), np.zeros(len(root)))
    count, width = means.shape
    halves = np.full((count, width), -0.5)
    quadratic = squared(turned, inputs.name).linear(halves, name=inputs.name, sizes=_majorant(-halves, np.zeros(count)))
    shift = constants - 0.5 * (own**2).sum(axis=1)
    size_shift = sizes + (sizes_own**2).sum(axis=1)
    straight = turned.linear(own, shift, name=inputs.name, sizes=_majorant(2.0 * sizes_own, size_shift))
    return quadratic.plus(straight, name=inputs.name)


# ---------------------------------------------------------------------- support vectors


def radial_machine(estimator: Any, inputs: InputColumns) -> Flow:
    """sum_i alpha_i exp(-gamma |x - x_i|^2) + intercept."""
    vectors, alphas = (_dense(part) for part in (estimator.support_vectors_, estimator.dual_coef_))
    if len(vectors) > MOST_VECTORS:
        raise UnsupportedModel(
            f"The {inputs.name} has {len(vectors):,} support vectors, each of which is an exponential; at most "
            f"{MOST_VECTORS:,} are searched. Fit it on fewer rows, or with a larger C (a smaller nu).",
            operation=f"{inputs.name} with {len(vectors)} support vectors",
        )
    gamma = float(estimator._gamma)
    factors = np.full(vectors.shape, gamma)
    none = np.zeros(len(vectors))
    exponents = _sum_of_squares(inputs, factors, vectors, none, none, np.eye(len(vectors)))
    intercept, total = np.ravel(estimator.intercept_), alphas.sum(axis=1)
    size = np.abs(intercept) + 2.0 * np.abs(alphas).sum(axis=1)
    return exponents.smooth(Activation("elu")).linear(
        alphas, intercept + total, name=inputs.name, sizes=_majorant(2.0 * np.abs(alphas), size)
    )


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
