"""What torch's operations are told: which one this is, and its arguments, some of which are values of the row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.kind import Precision

Value: TypeAlias = Any  # a Flow, a Shaped, a TorchFinal, ROWS, a tensor, or a plain Python constant


class Rows:
    """The number of rows of the table, which nothing may depend on."""


ROWS = Rows()


@dataclass(frozen=True)
class TorchFinal:
    """The value of an activation that may only stand at the end."""

    flow: Flow
    node: fx.Node
    activation: Literal["sigmoid", "softmax"]
    operation: str


@dataclass(frozen=True)
class TorchCall:
    """Which operation this is, for messages, and the precision that it computes in."""

    node: fx.Node
    name: str
    operation: str
    precision: Precision = "float64"

    def refuse(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(
            f"The operation {self.operation} ('{self.name}') of the torch module {why}.", operation=self.operation
        )

    def number(self, value: Any) -> NDArray[np.float64]:
        """A constant as torch takes it: in the precision of the module."""
        return number(value).astype(self.precision).astype(np.float64)


def number(value: Any) -> NDArray[np.float64]:
    if isinstance(value, torch.Tensor):
        return np.asarray(value.detach().to(torch.float64).numpy())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} is not a number")
    return np.array(float(value))


def flat(args: Any) -> list[Any]:
    """Arguments, with lists and tuples among them opened."""
    return [item for arg in args for item in (arg if isinstance(arg, list | tuple) else [arg])]
