"""Sums of curves of trees: rounding behind every activation, and which curves there may be."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly.errors import ModelError
from ifonly.model.mixed import MixedSum, through_activation
from ifonly.model.smooth import Activation
from ifonly.model.smooth.activations import LEAST, NAMES

RISING = [name for name in NAMES if name not in LEAST]


@pytest.mark.parametrize("name", NAMES)
def test_an_activation_passes_on_the_error_of_its_argument(name):
    """Whatever the activation: 0.26 of the error, right for a sigmoid, is too little for all others."""
    curve, draw = Activation(name), np.random.default_rng(0)
    for largest in (0.5, 3.0, 30.0):
        z = draw.uniform(-largest, largest, 4000)
        for moved in (z + 1e-9, z + 1e-3):
            error = np.abs(moved - z).max()
            bound, size = through_activation(curve, np.array([error]), largest, 2.0**-53)
            off = np.abs(curve(moved) - curve(z))
            assert off.max() <= bound[0] and np.abs(curve(z)).max() <= size
            assert name == "sigmoid" or largest < 30.0 or off.max() > 0.26 * error
            assert bound[0] <= 1.2 * error + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_curve_of_trees_never_falls(name):
    """Bounds over boxes take a curve's values at the ends."""
    z, curve = np.linspace(-20.0, 20.0, 4001), Activation(name)
    made = {"parts": (), "curves": (curve,), "weight": np.ones((1, 1)), "shift": np.zeros(1)}
    if name in RISING:
        assert (np.diff(curve(z)) >= 0.0).all() and MixedSum(**made).curves == (curve,)
    else:
        assert (np.diff(curve(z)) < 0.0).any()
        with pytest.raises(ModelError, match=f"never falls; {name} does"):
            MixedSum(**made)
