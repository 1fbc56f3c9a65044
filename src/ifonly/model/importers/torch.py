"""torch importer: modules of linear, piecewise-linear and smooth operations, read from the graph of torch.fx.

The module is copied (so that its training state and its hooks stay as they are, and later training does not change an
imported model), put into evaluation mode and traced; each operation then becomes a step of the flow. A sigmoid or
softmax at the very end is taken off: the score is the logit before it, and the probabilities still decide ties.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx, nn

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_tables import ColumnTable
from ifonly.model.importers.flow_operations import Final, Value, as_inner
from ifonly.model.importers.probabilities import model_of_flow, settled
from ifonly.model.importers.shaped import Shaped
from ifonly.model.importers.torch_call import TorchCall, flat
from ifonly.model.importers.torch_inputs import TorchInputs, torch_inputs
from ifonly.model.importers.torch_operations import AFTER_FINAL, FUNCTIONS, METHODS, MODULES
from ifonly.model.importers.torch_tables import table_handler, takes_tables
from ifonly.model.kind import Precision
from ifonly.model.model import Model
from ifonly.printing import first_line
from ifonly.schema import Schema

Floats = NDArray[np.float64]
UNSUPPORTED = (
    "is not supported: only linear layers, embeddings, ReLU and its piecewise-linear relatives, tanh, sigmoid, "
    "softplus, GELU, SiLU and ELU, maxima, sums and batch normalisation are"
)
NORMALISES = (
    "divides the values of a row by their own deviation, which has no exact form here; train with BatchNorm1d instead, "
    "which is a scaling by fixed numbers in evaluation mode"
)
UNSUPPORTED_MODULES = {
    **dict.fromkeys(("LayerNorm", "GroupNorm", "InstanceNorm1d", "RMSNorm", "layer_norm", "rms_norm"), NORMALISES),
    "Embedding": "looks up what is no whole number; give it the column of a Categorical or Integer feature",
}
"""Why some operations are refused, and what to do instead."""


def import_torch(
    module: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    inputs: dict[str, Any] | None = None,
) -> Model:
    """A torch module that maps (rows, columns), or several inputs, to (rows, outputs) as a Model."""
    if isinstance(module, torch.jit.ScriptModule):
        from ifonly.model.importers.torch_script import import_script

        precision = _precision(module)
        return import_script(module, schema, precision, classes=classes, regression=regression, inputs=inputs or {})
    if not isinstance(module, nn.Module):
        raise ModelError(f"A torch model must be a torch.nn.Module; got {type(module).__name__}.")
    module = _copied(module)
    precision = _precision(module)
    graph = _traced(module)
    taken = torch_inputs(graph, schema, inputs or {})
    value, node = _TorchReader(module, taken, precision).read(graph)
    before = _before(module, graph, node) if isinstance(value, Final) else None
    original, source = TorchOriginal(module, taken, precision, before), f"torch {type(module).__name__}"
    return model_of_flow(value, original, schema, classes=classes, regression=regression, source=source)


@dataclass(frozen=True)
class TorchOriginal:
    """The user's own module, in evaluation mode. `before` gives the logits when the module gives probabilities."""

    module: nn.Module
    inputs: TorchInputs
    precision: Precision
    before: Any = None

    def __call__(self, points: Floats) -> Floats:
        rows = self.inputs.arguments(points, self.precision)
        with torch.no_grad():
            given = self._numbers(self._called(self.module, rows), len(points))
            if self.before is None:
                return given
            return settled(self._numbers(self.before(*rows), len(points)), given)

    @staticmethod
    def _called(module: nn.Module, rows: Any) -> Any:
        try:
            return module(*rows)
        except Exception as error:
            raise ModelError(
                f"The module cannot answer for rows of the schema: {type(error).__name__}: {first_line(error)}"
            ) from None

    @staticmethod
    def _numbers(output: Any, rows: int) -> Floats:
        return np.asarray(output.to(torch.float64).numpy()).reshape(rows, -1)


# ---------------------------------------------------------------------- the graph


def _copied(module: nn.Module) -> nn.Module:
    """A copy on the CPU, in evaluation mode, that the user's own later training does not touch."""
    try:
        return _uncompiled(copy.deepcopy(_uncompiled(module))).cpu().eval()
    except Exception as error:
        raise ModelError(f"The module {type(module).__name__} cannot be copied: {error}") from None


def _uncompiled(module: Any) -> Any:
    """What torch.compile was given: compiled code computes the same, and cannot be traced."""
    found = getattr(module, "_orig_mod", module)
    for name, child in list(found.named_children()):
        if hasattr(child, "_orig_mod"):
            setattr(found, name, child._orig_mod)
    for part in found.modules():
        if getattr(part, "_compiled_call_impl", None) is not None:  # module.compile(), in place
            part._compiled_call_impl = None
    return found


def _precision(module: nn.Module) -> Precision:
    tensors = [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]
    dtypes = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    for dtype in sorted(dtypes):
        if dtype not in ("float32", "float64"):
            raise UnsupportedModel(
                f"The module computes in {dtype}, which rounds too coarsely to tell nearby rows apart; convert it with "
                f".float(), which keeps every weight as it is, and decide with that module.",
                operation=dtype,
            )
    if len(dtypes) > 1:
        raise ModelError("The module mixes float32 and float64; convert it with .float() or .double().")
    return "float64" if dtypes == {"float64"} else "float32"


def _traced(module: nn.Module) -> fx.Graph:
    try:
        return fx.Tracer().trace(module)
    except Exception as error:
        raise UnsupportedModel(
            f"The module {type(module).__name__} cannot be traced by torch.fx ({first_line(error)}); "
            f"its forward must be a fixed sequence of operations.",
            operation=type(module).__name__,
        ) from None


def _before(module: nn.Module, graph: fx.Graph, node: fx.Node) -> fx.GraphModule:
    """The module up to the input of its last activation."""
    shorter = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for old in graph.nodes:  # each comes after what it reads
        copies[old] = shorter.node_copy(old, lambda n: copies[n])
        if old is node:
            break
    shorter.output(copies[node])
    return fx.GraphModule(module, shorter)


@dataclass
class _TorchReader:
    """Walks the graph, operation by operation."""

    module: nn.Module
    inputs: TorchInputs
    precision: Precision
    values: dict[fx.Node, Value] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    """Dimensions of the tensors of nodes, by their names, where some operation needs them."""

    def read(self, graph: fx.Graph) -> tuple[Flow | Final, fx.Node]:
        """The output, and the node whose value it is before a last activation."""
        tables = self.inputs.tables()
        if any(node.target is torch.stack for node in graph.nodes):
            self.ranks = self._ranks(graph)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.values[node] = self._input(node, tables, looks_up=takes_tables(self.module, graph))
            elif node.op == "output":
                return self._output(node)
            elif node.op == "get_attr":
                self.values[node] = operator.attrgetter(str(node.target))(self.module)
            else:
                self.values[node] = self._call(node)
        raise ModelError("The module has no output.")

    def _input(self, node: fx.Node, tables: dict[str, ColumnTable], *, looks_up: bool) -> Value:
        name = str(node.target)
        if self.inputs.keyed and not node.args:
            return tables
        if name in tables:
            return tables[name]
        if node.args:
            return node.args[0]  # an optional argument: its default
        return tables[""] if looks_up else tables[""].encoded

    def _output(self, node: fx.Node) -> tuple[Flow | Final, fx.Node]:
        returned = node.args[0]
        value = self.values.get(returned) if isinstance(returned, fx.Node) else None
        if isinstance(value, Final):
            return value, value.source
        if not isinstance(value, Flow) or not isinstance(returned, fx.Node):
            raise UnsupportedModel("The module must return one tensor of scores.", operation="output")
        return value, returned

    def _call(self, node: fx.Node) -> Value:
        args = fx.node.map_arg(node.args, lambda n: self.values[n])
        kwargs = fx.node.map_arg(node.kwargs, lambda n: self.values[n])
        if node.target is operator.getitem and isinstance(args[0], dict):
            return args[0][args[1]]
        if node.op != "call_module" and not any(
            isinstance(a, Flow | Shaped | Final | ColumnTable) for a in flat((*args, *kwargs.values()))
        ):
            return self._constant(node, args, kwargs)
        child = self.module.get_submodule(str(node.target)) if node.op == "call_module" else None
        call, handler, attributes = self._handler(node, child, args)
        if handler is None:
            raise call.refuse(UNSUPPORTED_MODULES.get(call.operation, UNSUPPORTED))
        args = (*args, *(getattr(child, attribute) for attribute in attributes))
        tables = any(isinstance(a, ColumnTable) for a in flat((*args, *kwargs.values())))
        if tables and not (args and isinstance(args[0], ColumnTable) and table_handler(node, child)):
            args, kwargs = (fx.node.map_aggregate(part, partial(_as_flow, call)) for part in (args, kwargs))
        if handler not in AFTER_FINAL:
            args = fx.node.map_aggregate(args, as_inner)
            if any(isinstance(arg, Final) for arg in flat(args)):
                raise call.refuse("follows a softmax, which may only come last")
        try:
            return handler(call, *args, **kwargs)
        except (TypeError, AttributeError, IndexError) as error:
            raise call.refuse(f"is used in a way that is not supported ({error})") from None

    def _handler(self, node: fx.Node, child: Any, args: Any) -> tuple[TorchCall, Any, Sequence[str]]:
        """The operation, its handler (None: there is none), and the module's attributes that it takes."""
        attributes: Sequence[str] = ()
        if child is not None:
            name, operation = str(node.target), type(child).__name__
            handler, *attributes = next((MODULES[c] for c in type(child).__mro__ if c in MODULES), (None,))
        elif node.op == "call_function":
            name, operation = str(node.name), getattr(node.target, "__name__", str(node.target))
            handler = FUNCTIONS.get(node.target)
        else:
            name, operation = str(node.name), str(node.target)
            handler = METHODS.get(operation)
        if args and isinstance(args[0], ColumnTable):
            found = table_handler(node, child)
            handler, attributes = (handler, attributes) if found is None else (found[0], found[1:])
        return TorchCall(name, operation, node, self.precision, self.ranks.get(node.name)), handler, attributes

    def _ranks(self, graph: fx.Graph) -> dict[str, int]:
        """Of the tensors of a run on two rows; a column has one dimension or two, which a flow does not say."""
        found: dict[str, int] = {}

        class Noting(fx.Interpreter):  # type: ignore[misc]
            def run_node(self, n: fx.Node) -> Any:
                value = super().run_node(n)
                found[n.name] = value.dim() if isinstance(value, torch.Tensor) else -1
                return value

        points = self.inputs.schema.sample(2, np.random.default_rng(0))
        try:
            with torch.no_grad():
                Noting(fx.GraphModule(self.module, graph)).run(*self.inputs.arguments(points, self.precision))
        except Exception:  # the module cannot answer: comparing it with what was read says so
            return {}
        return found

    def _constant(self, node: fx.Node, args: Any, kwargs: Any) -> Value:
        """What the module computes from its own weights alone is computed."""
        try:
            with torch.no_grad():
                if node.op == "call_function" and callable(node.target):
                    return node.target(*args, **kwargs)
                return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        except Exception as error:
            raise UnsupportedModel(
                f"The operation {node.target} ('{node.name}') of the torch module is not supported ({error}).",
                operation=str(node.target),
            ) from None


def _as_flow(call: TorchCall, value: Any) -> Any:
    return value.flow(call.name) if isinstance(value, ColumnTable) else value
