"""An operation of a traced torch module, and its constants as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from ifonly.model.flow import Flow
from ifonly.model.importers.flow_operations import OperationCall, Value
from ifonly.model.kind import Precision


class Rows:
    """The number of rows of the table, which nothing may depend on."""


ROWS = Rows()


@dataclass(frozen=True)
class TorchCall(OperationCall):
    """An operation of a traced module: its node, and the precision that it computes in."""

    framework: ClassVar[str] = "torch module"

    node: fx.Node
    precision: Precision = "float64"
    rank: int | None = None
    """Dimensions of its result, where they were noted."""

    @property
    def source(self) -> fx.Node:
        """The node of its first argument."""
        return self.node.all_input_nodes[0]

    def number(self, value: Any) -> NDArray[np.float64]:
        """A constant as torch takes it: in the precision of the module."""
        return number(value).astype(self.precision).astype(np.float64)

    def bound(self, value: Value) -> Value:
        """An argument that is a value of the row, such a constant, or None."""
        return value if value is None or isinstance(value, Flow) else self.number(value)


def number(value: Any) -> NDArray[np.float64]:
    """A tensor or a Python number in float64."""
    if isinstance(value, torch.Tensor):
        return np.asarray(value.detach().to(torch.float64).numpy())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} is not a number")
    return np.array(float(value))


def constant(value: Value) -> Value:
    """An argument that is a value of the row, or else a constant."""
    return value if isinstance(value, Flow) else number(value)


def flat(args: Any) -> list[Any]:
    """Arguments, with lists and tuples among them opened."""
    return [item for arg in args for item in (arg if isinstance(arg, list | tuple) else [arg])]
