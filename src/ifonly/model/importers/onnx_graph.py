"""Reader of an ONNX graph, node by node: the value of each tensor, and the precision that it is computed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ifonly.caching import cached_property
from ifonly.errors import IfonlyError, ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.flow_operations import as_inner
from ifonly.model.importers.onnx_inputs import OnnxInputs
from ifonly.model.importers.onnx_ml import AFTER, LAST, MACHINE_LEARNING, AfterFinal
from ifonly.model.importers.onnx_operations import (
    AFTER_FINAL,
    CONSTANT,
    FLOATS,
    HANDLERS,
    SILU,
    OnnxCall,
    OnnxFinal,
    attributes,
    silu_of,
)
from ifonly.model.importers.onnx_shapes import SHAPE_HANDLERS
from ifonly.model.importers.onnx_tables import ENCODERS, TABLES, OnnxTable, embedded, looks_up, takes_tables
from ifonly.model.importers.shaped import Shaped
from ifonly.model.kind import Precision
from ifonly.model.rounding import column_box

Value: TypeAlias = Flow | Shaped | OnnxTable | AfterFinal | NDArray[Any]
MAX_BYTES = 2**31
"""Of a file, and of the constants that are computed from others."""


@dataclass
class OnnxReader:
    """Walks the graph, node by node."""

    graph: Any
    inputs: OnnxInputs
    values: dict[str, Value] = field(default_factory=dict)
    """Values of tensors by name. Initial ones are read in place of the inputs."""
    kinds: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    """Warnings of the import, one sentence each."""
    computed: int = 0
    """Bytes of the constants that were computed from others."""

    @property
    def precision(self) -> Precision:
        return "float64" if self.kinds == {"float64"} else "float32"

    def read(self) -> list[Value]:
        """The values of the outputs."""
        if not self.values:
            self._read_inputs()
        for stored in self.graph.initializer:
            self.values[stored.name] = self._constant(stored)
        for position, node in enumerate(self.graph.node):
            self._node(node, node.name or f"node {position}")
        return [self._output(one.name) for one in self.graph.output]

    def _output(self, name: str) -> Value:
        value = self.values.get(name)
        value = value.flow(OnnxCall(name, "output", {}, name), self.encoded) if isinstance(value, OnnxTable) else value
        if isinstance(value, Shaped):
            raise UnsupportedModel(
                f"The output '{name}' of the ONNX model gives each row a table of values; only one row of scores is "
                f"supported.",
                operation="output",
            )
        if not isinstance(value, Flow | OnnxFinal):
            raise ModelError(f"The output '{name}' of the ONNX model does not depend on its input.")
        return value

    @cached_property
    def encoded(self) -> Flow:
        """The encoded columns of the schema."""
        return Flow.of(len(self.inputs.schema.columns), *column_box(self.inputs.schema))

    def _read_inputs(self) -> None:
        """The inputs: one flow where they are the encoded columns and no operation encodes categories; else tables."""
        numbers = all(one.kind.startswith("float") for one in self.inputs.entries)
        self.kinds |= {one.kind for one in self.inputs.entries if one.kind.startswith("float")}
        stored = {tensor.name for tensor in self.graph.initializer}
        stored |= {name for node in self.graph.node if node.op_type == "Constant" for name in node.output}
        encoders = any((node.op_type in ENCODERS and node.domain) or looks_up(node, stored) for node in self.graph.node)
        if self.inputs.plain and numbers and not encoders:
            self.values[self.inputs.entries[0].name] = self.encoded
            return
        arithmetic = Columns(self.inputs.schema, warnings=self.warnings)
        for one, columns in zip(self.inputs.entries, self.inputs.columns(arithmetic).values(), strict=True):
            self.values[one.name] = OnnxTable(tuple(columns), arithmetic, one.kind.startswith("float"), one.flat)

    def _constant(self, tensor: Any) -> NDArray[Any]:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "f":
            self._note(tensor.data_type, tensor.name)
        return array

    def _note(self, elem_type: int, name: str) -> None:
        if elem_type not in FLOATS:
            raise UnsupportedModel(
                f"'{name}' of the ONNX model holds {onnx.TensorProto.DataType.Name(elem_type)} numbers; "
                f"only FLOAT and DOUBLE are supported.",
                operation=onnx.TensorProto.DataType.Name(elem_type),
            )
        self.kinds.add(FLOATS[elem_type])

    def _node(self, node: Any, name: str) -> None:
        operation = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        first, last = (names[k] if names else "" for names, k in ((node.input, 0), (node.output, -1)))
        call = OnnxCall(name, operation, attributes(node), first, last)
        for given in node.input:
            if given and given not in self.values:
                raise call.refuse(f"reads '{given}', which is not supported")
        inputs = [self.values[given] if given else None for given in node.input]
        if operation == "Gather" and isinstance(inputs[0], np.ndarray) and isinstance(inputs[1], OnnxTable):
            self.values[node.output[0]] = embedded(call, inputs[0], inputs[1], self.encoded)
            return
        if not takes_tables(operation, inputs):
            inputs = [value.flow(call, self.encoded) if isinstance(value, OnnxTable) else value for value in inputs]
        silu = silu_of(operation, inputs)
        if silu is not None:
            operation, inputs = SILU, [silu]
            call = replace(call, operation=operation)
        elif operation not in (*AFTER_FINAL, *AFTER):
            inputs = [as_inner(value) for value in inputs]
        flows = [value for value in inputs if isinstance(value, Flow | Shaped | AfterFinal)]
        handlers = self._handlers(call, inputs)
        if operation == "Cast" and (flows or call.attributes["to"] in FLOATS):
            self._note(call.attributes["to"], name)
        try:
            result = handlers[operation](call, *inputs)
        except (TypeError, AttributeError, IndexError, KeyError, ValueError) as error:
            if isinstance(error, IfonlyError):
                raise
            words = " ".join(str(error).split())
            raise call.refuse(f"is used in a way that is not supported ({words})") from error
        if isinstance(result, np.ndarray):
            self._count(call, result)
        if isinstance(result, tuple):
            named = zip(node.output, result, strict=False)
            self.values.update({name: value for name, value in named if value is not None})
        else:
            self.values[node.output[0]] = result

    def _handlers(self, call: OnnxCall, inputs: list[Any]) -> Mapping[str, Any]:
        """The operations that take such inputs, this one among them."""
        finals = any(isinstance(value, AfterFinal) for value in inputs)
        flows = finals or any(isinstance(value, Flow | Shaped) for value in inputs)
        numeric = HANDLERS | SHAPE_HANDLERS | MACHINE_LEARNING
        handlers = numeric if flows else TABLES if takes_tables(call.operation, inputs) else CONSTANT
        handlers = AFTER if finals and call.operation in AFTER else handlers
        if call.operation not in handlers:
            raise UnsupportedModel(
                f"The operation {call.operation} ('{call.name}') of the ONNX model is not supported: only linear "
                f"layers, Relu and its piecewise-linear relatives, Tanh, Sigmoid, Softplus, Gelu and Elu, maxima, sums "
                f"and batch normalisation are.",
                operation=call.operation,
            )
        if finals and call.operation not in (*AFTER_FINAL, *AFTER):
            raise call.refuse(LAST)
        return handlers

    def _count(self, call: OnnxCall, computed: NDArray[Any]) -> None:
        """A constant that was computed from others: how much they take together."""
        if computed.dtype == np.float16:
            raise call.refuse("computes in float16")
        self.computed += computed.nbytes
        if self.computed > MAX_BYTES:
            raise ModelError(
                f"The constants of the ONNX model take more than {MAX_BYTES // 2**20} MiB, the most that is read."
            )
