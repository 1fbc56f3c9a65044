"""Sum of curves of tree ensembles and of a network: a kind of model, such as a vote of a forest and a linear model.

    scores(x) = network(x) + W (g_1(t_1(x)), ..., g_m(t_m(x))) + shift

Each t_j is an ensemble over features with one output, and g_j the identity or a curve that never falls. No form that
the other searches take is equal to it, so it is searched box by box (`ifonly.solvers.search.boxes`), over finite
features.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.kind import Kind, Precision
from ifonly.model.layers import interval
from ifonly.model.network import Network
from ifonly.model.smooth import Activation, SmoothNetwork
from ifonly.model.trees.kind import Trees

Floats = NDArray[np.float64]
UNITS = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass(frozen=True, eq=False)
class Interpolated:
    """Linear between knots, constant beyond the first and the last; values never fall."""

    knots: Floats
    values_at: Floats

    def __call__(self, z: Floats) -> Floats:
        return np.asarray(np.interp(z, self.knots, self.values_at))

    @property
    def steepest(self) -> float:
        return float((np.diff(self.values_at) / np.diff(self.knots)).max(initial=0.0))


Curve: TypeAlias = Activation | Interpolated | None
"""An activation that never falls (calibration and votes have sigmoids), an interpolation, or the identity."""


def on(curve: Curve, z: Floats) -> Floats:
    return z if curve is None else curve(z)


@dataclass(frozen=True, eq=False)
class MixedSum(Kind):
    """`weight`: (outputs, parts); `network` has all outputs, and None adds nothing."""

    search: ClassVar[str] = "boxes"

    parts: tuple[Trees, ...]
    curves: tuple[Curve, ...]
    weight: Floats
    shift: Floats
    network: Network | SmoothNetwork | None = None
    precision: Precision = "float64"
    """What the network is computed in; trees say so themselves."""

    def __post_init__(self) -> None:
        falling = [one.name for one in self.curves if isinstance(one, Activation) and one.falls]
        if falling:
            raise ModelError(f"A curve of trees never falls; {falling[0]} does.")

    @property
    def name(self) -> str:
        beside = "" if self.network is None else f" and {self.network.name}"
        return f"a sum of trees{beside}"

    @property
    def inputs(self) -> int:
        return self.parts[0].inputs

    @property
    def outputs(self) -> int:
        return len(self.shift)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(b"ifonly-mixed-1" + self.weight.tobytes() + self.shift.tobytes())
        for trees, curve in zip(self.parts, self.curves, strict=True):
            shape = repr(curve) if not isinstance(curve, Interpolated) else repr((curve.knots, curve.values_at))
            digest.update(f"{trees.fingerprint} {shape};".encode())
        digest.update(b"" if self.network is None else f"{self.network.fingerprint} {self.precision}".encode())
        return digest.hexdigest()

    @property
    def within(self) -> tuple[Floats, Floats] | None:
        return None if self.network is None else self.network.within

    def sizes(self) -> dict[str, Any]:
        trees = sum(len(one.ensemble.roots) for one in self.parts)
        return {"trees": trees, **({} if self.network is None else self.network.sizes()), "outputs": self.outputs}

    def scores(self, x: Floats) -> Floats:
        found = np.column_stack([on(c, t.scores(x)[:, 0]) for t, c in zip(self.parts, self.curves, strict=True)])
        total = (found[:, None, :] * self.weight).sum(axis=2) + self.shift
        return total if self.network is None else total + self.network.scores(x)

    def steady_scores(self, x: Floats) -> Floats:
        if self.network is None:
            return self.scores(x)
        return self.network.steady_scores(x) + replace(self, network=None).scores(x)

    def error(self, lower: Floats, upper: Floats, precision: Precision, exact: NDArray[np.bool_]) -> Floats:
        """That of each part, through its curve, and of adding them up."""
        total = np.zeros((len(lower), self.outputs))
        size = np.broadcast_to(np.abs(self.shift), total.shape).copy()
        if self.network is not None:
            computed: Precision = "float32" if precision == self.precision == "float32" else "float64"
            total += self.network.error(lower, upper, computed, exact)
            least, most = interval(self.network, lower, upper)
            size += np.maximum(np.abs(least), np.abs(most))
        for j, (trees, curve) in enumerate(zip(self.parts, self.curves, strict=True)):
            own, largest = trees.error(lower, upper, precision, exact), largest_of(trees)
            unit = UNITS[trees.ensemble.summation.precision]
            if isinstance(curve, Activation):
                own, largest = through_activation(curve, own, largest, unit)
            elif isinstance(curve, Interpolated):
                most_of = float(np.abs(curve.values_at).max())
                own, largest = own * curve.steepest + 64.0 * unit * (most_of + curve.steepest * largest), most_of
            total += own * np.abs(self.weight[:, j])
            size += largest * np.abs(self.weight[:, j])
        return total + (len(self.parts) + 16.0) * 2.0**-52 * size


def through_activation(curve: Activation, error: Floats, largest: float, unit: float) -> tuple[Floats, float]:
    """How far a library's activation of arguments in [-largest, largest], computed with an error, may be off; and the
    largest |value|.
    """
    reach = largest + error  # where arguments with their error are
    least, most = curve.slopes(-reach, reach)
    steepest = np.maximum(np.abs(least), np.abs(most))
    ends = curve.values(np.array(-largest), np.array(largest))
    return steepest * error + curve.library_error(unit, -reach, reach), float(np.abs(ends).max())


def largest_of(trees: Trees) -> float:
    """More than any |score| of the trees, which have one output."""
    how = trees.ensemble.summation
    size = float(np.abs(how.start).max() + trees.ensemble.largest.sum())
    return float(size * abs(how.scale / how.divisor) + np.abs(how.shift).max())
