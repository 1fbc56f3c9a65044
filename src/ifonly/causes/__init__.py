"""Causal models: a graph of features, an equation for each feature with causes, and what follows from an action."""

from ifonly.causes.causal_model import CausalModel, check_causes
from ifonly.causes.equations import LinearEquation, ModelEquation, TableEquation

__all__ = ["CausalModel", "LinearEquation", "ModelEquation", "TableEquation", "check_causes"]
