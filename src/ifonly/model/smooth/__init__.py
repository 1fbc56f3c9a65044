"""Networks with smooth activations inside: tanh, sigmoid, softplus, GELU, SiLU, ELU, also between ReLUs."""

from ifonly.model.smooth.activations import RELU, Activation
from ifonly.model.smooth.kind import SmoothNetwork

__all__ = ["RELU", "Activation", "SmoothNetwork"]
