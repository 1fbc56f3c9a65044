"""Sums of curves of trees: rounding behind every activation, and which curves there may be."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly.errors import ModelError
from ifonly.model.mixed import MixedSum, through_activation
from ifonly.model.smooth import Activation
from ifonly.model.smooth.activations import NAMES

POWERS = (2.5, 1.5, 0.5, 0.0, -1.0)
CURVES = [*(Activation(name) for name in NAMES if name != "power"), *(Activation("power", alpha=p) for p in POWERS)]
every_curve = pytest.mark.parametrize("curve", CURVES, ids=lambda one: f"{one.name} {one.alpha}")


@every_curve
def test_an_activation_passes_on_the_error_of_its_argument(curve):
    """Whatever the activation: 0.26 of the error, right for a sigmoid, is too little for all others."""
    draw = np.random.default_rng(0)
    for largest in (0.5, 3.0, 30.0):
        z = draw.uniform(-largest, largest, 4000)
        for moved in (z + 1e-9, z + 1e-3):
            error = np.abs(moved - z).max()
            bound, size = through_activation(curve, np.array([error]), largest, 2.0**-53)
            off = np.abs(curve(moved) - curve(z))
            assert off.max() <= bound[0] and np.abs(curve(z)).max() <= size
            assert curve.name == "sigmoid" or largest < 30.0 or off.max() > 0.26 * error
            assert bound[0] <= 1.2 * error + 1e-12


@every_curve
def test_a_curve_of_trees_never_falls(curve):
    """Bounds over boxes take a curve's values at the ends."""
    z = np.linspace(-20.0, 20.0, 4001)
    made = {"parts": (), "curves": (curve,), "weight": np.ones((1, 1)), "shift": np.zeros(1)}
    if not curve.falls:
        assert (np.diff(curve(z)) >= 0.0).all() and MixedSum(**made).curves == (curve,)
    else:
        assert (np.diff(curve(z)) < 0.0).any()
        with pytest.raises(ModelError, match=f"never falls; {curve.name} does"):
            MixedSum(**made)
