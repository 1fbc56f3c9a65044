"""ONNX: feed-forward graphs of Gemm, MatMul, Relu and arithmetic with constants.

A file is data, not code: it is parsed with a bound on its size, checked, and read node by node. Weights in other files
are read only from the folder of the model. The original is ONNX's own reference evaluator, or onnxruntime where it is
installed. A sigmoid or softmax at the very end is taken off: the score is the logit before it, and the
probabilities still decide ties.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.reference
from numpy.typing import NDArray
from onnx import numpy_helper

from ifonly.caching import cached_property
from ifonly.errors import FileError, IfonlyError, ModelError, UnsupportedModel
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.files import check_size
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_operations import (
    CONSTANT,
    FLOATS,
    HANDLERS,
    HARMLESS,
    SILU,
    OnnxCall,
    OnnxFinal,
    attributes,
    inside,
    is_silu,
)
from ifonly.model.importers.probabilities import Reported, check_final, settled
from ifonly.model.importers.trees.onnx_trees import OnnxTrees, read_onnx_trees
from ifonly.model.kind import Precision
from ifonly.model.model import Model, class_names, describe_columns
from ifonly.model.trees import Feed, Trees, bound
from ifonly.schema import Schema
from ifonly.schema.given import path_of

Floats = NDArray[np.float64]
Value: TypeAlias = Flow | OnnxFinal | NDArray[Any]
MAX_BYTES = 2**31
SURE = 1e-5
"""Scores of trees that are nearer to a tie than this may be decided by rounding."""
TIE = 2.0**-20
"""Margins of trees that differ by less may have equal probabilities in float32."""


def load_onnx(path: str | Path, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """An .onnx file as a Model."""
    path = Path(path)
    try:
        check_size(path, MAX_BYTES)
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read the model '{path}': {error.strerror or error}.") from None
    try:
        proto = onnx.load_model_from_string(content)
        if not proto.graph.node:
            raise ValueError("it has no graph")
    except Exception as error:
        raise FileError(f"'{path}' is not an ONNX file, or is damaged ({error}).") from None
    _load_external(proto, path.resolve().parent)
    return import_onnx(proto, schema, classes=classes, regression=regression)


def import_onnx(proto: Any, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """An ONNX model that maps (rows, columns) to (rows, outputs) as a Model."""
    if not isinstance(proto, onnx.ModelProto):
        raise ModelError(f"An ONNX model must be an onnx.ModelProto; got {type(proto).__name__}.")
    with _reading():
        return _imported(proto, schema, classes, regression)


@contextmanager
def _reading() -> Iterator[None]:
    """The one place where what ONNX, protobuf and numpy raise about a model that is damaged becomes a ModelError.

    Refusals of our own and failed assertions pass. What was raised stays attached as the cause: no well-formed model
    may come here, and the tests hold that, so that a bug of ours is not taken for a damaged file.
    """
    try:
        with np.errstate(all="ignore"):  # numbers that overflow are refused where they are kept
            yield
    except (IfonlyError, AssertionError):
        raise
    except Exception as error:
        raise ModelError(
            f"The ONNX model cannot be read, or is damaged ({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def _imported(proto: Any, schema: Schema, classes: tuple[Any, ...], regression: bool) -> Model:
    _check(proto)
    trees = read_onnx_trees(proto)
    if trees is not None:
        return _imported_trees(trees, _input(proto.graph).name, schema, classes, regression)
    reader = _OnnxReader(proto.graph, schema)
    value = reader.read()
    flow, logits = value, ""
    if isinstance(value, OnnxFinal):
        flow, logits = value.flow, value.tensor
        check_final(value.operation, value.activation, flow.width, regression=regression)
    assert isinstance(flow, Flow)
    network = flow.finish()
    content, names = proto.SerializeToString(), class_names(classes, network.outputs, regression=regression)
    own = OnnxOriginal(content, schema, reader.input) if logits and len(names) == 2 else None
    return check_agreement(
        Model(
            function=network,
            schema=schema,
            original=OnnxOriginal(content, schema, reader.input, logits),
            classes=names,
            source="onnx",
            precision=reader.precision,
            probabilities=None if own is None else Reported(own),
        )
    )


def _imported_trees(trees: OnnxTrees, name: str, schema: Schema, classes: tuple[Any, ...], regression: bool) -> Model:
    columns = len(schema.columns)
    if trees.ensemble.columns != columns:
        raise ModelError(f"The ONNX model takes {trees.ensemble.columns} columns, but {describe_columns(schema)}.")
    owners = [0] * columns
    for i, own in enumerate(schema.feature_columns):
        for j in own.tolist():
            owners[j] = i
    ensemble = bound(trees.ensemble, Feed(owners, schema.encode), schema)
    bare, whole = (OnnxOriginal(content, schema, name) for content in (trees.bare, trees.whole))
    decides = bool(trees.classes) and not regression
    names = class_names(classes or trees.classes, ensemble.outputs, regression=not decides)
    model = Model(
        function=Trees(ensemble, schema, tie=TIE if decides and trees.activation != "NONE" else 0.0),
        schema=schema,
        original=OnnxTreesOriginal(bare, whole, second=trees.second, settle=trees.activation != "NONE"),
        classes=names,
        source="onnx",
        precision=ensemble.summation.precision,
    )
    if decides:
        _check_labels(model, OnnxOriginal(trees.labels, schema, name), trees.classes)
    if decides and trees.activation == "LOGISTIC" and trees.second:
        return check_agreement(replace(model, probabilities=whole))
    if decides and trees.activation == "NONE" and not trees.second and _are_probabilities(whole, schema):
        return check_agreement(replace(model, probabilities=whole, scores_are="probabilities"))
    return check_agreement(model)


def _check_labels(model: Model, given: OnnxOriginal, classes: tuple[Any, ...]) -> None:
    """Are the labels of the graph those that its scores say? A runtime may have a rule of its own."""
    points = comparison_rows(model.schema, ROWS, seed=1)
    scores, (dtype, run) = model.scores(points), given._session
    labels = np.ravel(run(model.schema.encode(points).astype(dtype))[0]).tolist()
    ranked = np.sort(scores, axis=1)
    lead = np.abs(scores[:, 0]) if scores.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
    for i, k in enumerate(model.decide(scores).tolist()):
        if lead[i] > SURE and classes[k] != labels[i]:
            raise ModelError(
                f"The ONNX model decides for {labels[i]!r} where its own scores {scores[i].tolist()} say "
                f"{classes[k]!r}, on the row {model.schema.row(points[i])}; for two classes, give weights to one of "
                f"them only."
            )


def _are_probabilities(given: Any, schema: Schema) -> bool:
    own = given(comparison_rows(schema, ROWS, seed=2))
    return bool((own >= 0.0).all() and np.allclose(own.sum(axis=1), 1.0, rtol=0.0, atol=1e-5))


@dataclass(frozen=True)
class OnnxTreesOriginal:
    """The scores of the graph without its last activation; near a tie they follow what the graph itself gives."""

    bare: Any
    whole: Any
    second: bool
    settle: bool

    def __call__(self, points: Floats) -> Floats:
        scores, given = self.bare(points), self.whole(points) if self.settle else None
        scores = scores[:, 1:] if self.second else scores
        return scores if given is None else settled(scores, given[:, 1:] if self.second else given)


@dataclass(frozen=True)
class OnnxOriginal:
    """The ONNX model itself. `logits` names the tensor before its last activation, if it has one."""

    content: bytes
    schema: Schema
    input: str
    logits: str = ""

    def __call__(self, points: Floats) -> Floats:
        encoded = np.atleast_2d(self.schema.encode(points))
        dtype, run = self._session
        with np.errstate(all="ignore"):  # the evaluator takes logarithms of probabilities that are rounded to 0
            given = run(encoded.astype(dtype))
        outputs = [np.asarray(output, dtype=np.float64).reshape(len(encoded), -1) for output in given]
        return settled(outputs[1], outputs[0]) if self.logits else outputs[0]

    def __getstate__(self) -> dict[str, Any]:  # a session cannot travel to another process; the bytes can
        return {name: getattr(self, name) for name in ("content", "schema", "input", "logits")}

    @cached_property
    def _session(self) -> tuple[Any, Any]:
        """The type of the input, and a function from rows to outputs."""
        proto = onnx.load_model_from_string(self.content)
        dtype = FLOATS[_input(proto.graph).type.tensor_type.elem_type]
        if self.logits:
            kind = onnx.TensorProto.FLOAT if dtype == "float32" else onnx.TensorProto.DOUBLE
            proto.graph.output.append(onnx.helper.make_tensor_value_info(self.logits, kind, None))
        try:
            runtime = importlib.import_module("onnxruntime")
            options = runtime.SessionOptions()
            options.intra_op_num_threads = 1  # a few rows at a time: threads cost more than they bring
            session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception:  # not installed, or too old for this file
            session = onnx.reference.ReferenceEvaluator(proto)
        return dtype, lambda rows: session.run(None, {self.input: rows})


# ---------------------------------------------------------------------- the file


def _check(proto: Any) -> None:
    for tensor in _tensors(proto.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ModelError(
                f"The weights of '{tensor.name}' are in another file; load the model by its path, with load_model."
            )
    try:
        onnx.checker.check_model(proto)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(f"The ONNX model is not valid: {reason}") from None


def _tensors(graph: Any) -> list[Any]:
    constants = [a.t for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    return [*graph.initializer, *constants]


def _load_external(proto: Any, folder: Path) -> None:
    """Read weights that are stored in other files, if those are in the folder of the model."""
    from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

    total = 0
    for tensor in _tensors(proto.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        with _reading():
            place = path_of(ExternalDataInfo(tensor).location)
        whole = (folder / place).resolve()
        if place.is_absolute() or not whole.is_relative_to(folder):
            raise FileError(
                f"The weights of '{tensor.name}' are said to be in '{place}', outside the folder of the model; "
                f"that is not read."
            )
        try:
            if not whole.is_file():  # reading a pipe would wait for ever
                raise FileError(f"The weights of '{tensor.name}' are said to be in '{place}', which is no file.")
            check_size(whole, MAX_BYTES)
            load_external_data_for_tensor(tensor, str(folder))
        except FileError:
            raise
        except Exception as error:
            raise FileError(f"Cannot read the weights of '{tensor.name}' from '{place}': {error}") from None
        total += len(tensor.raw_data)
        if total > MAX_BYTES:
            raise FileError(
                f"The weights of the model are larger than {MAX_BYTES // 2**20} MiB, the most that is read."
            )
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _input(graph: Any) -> Any:
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [given for given in graph.input if given.name not in stored]
    if len(inputs) != 1:
        raise UnsupportedModel(
            f"The ONNX model has {len(inputs)} inputs ({', '.join(given.name for given in inputs[:4])}); "
            f"only one table of columns is supported.",
            operation="several inputs",
        )
    return inputs[0]


# ---------------------------------------------------------------------- the graph


@dataclass
class _OnnxReader:
    """Walks the graph, node by node."""

    graph: Any
    schema: Schema
    values: dict[str, Value] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    computed: int = 0
    """Bytes of the constants that were computed from others."""

    @cached_property
    def input(self) -> str:
        return str(_input(self.graph).name)

    @property
    def precision(self) -> Precision:
        return "float64" if self.kinds == {"float64"} else "float32"

    def read(self) -> Value:
        tensor = _input(self.graph).type.tensor_type
        self._note(tensor.elem_type, self.input)
        columns = [d.dim_value for d in tensor.shape.dim[1:]]
        if len(columns) == 1 and columns[0] not in (0, len(self.schema.columns)):
            raise ModelError(f"The ONNX model takes {columns[0]} columns, but {describe_columns(self.schema)}.")
        for stored in self.graph.initializer:
            self.values[stored.name] = self._constant(stored)
        self.values[self.input] = Flow.of(len(self.schema.columns))
        for position, node in enumerate(self.graph.node):
            self._node(node, node.name or f"node {position}")
        if len(self.graph.output) != 1:
            raise UnsupportedModel(
                f"The ONNX model has {len(self.graph.output)} outputs "
                f"({', '.join(o.name for o in self.graph.output[:4])}); only one table of scores is supported.",
                operation="several outputs",
            )
        value = self.values.get(self.graph.output[0].name)
        if not isinstance(value, Flow | OnnxFinal):
            raise ModelError(
                f"The output '{self.graph.output[0].name}' of the ONNX model does not depend on its input."
            )
        return value

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
        call = OnnxCall(name, operation, attributes(node), node.input[0] if node.input else "")
        for given in node.input:
            if given and given not in self.values:
                raise call.refuse(f"reads '{given}', which is not supported")
        inputs = [self.values[given] if given else None for given in node.input]
        flows = [value for value in inputs if isinstance(value, Flow | OnnxFinal)]
        handlers = HANDLERS if flows else CONSTANT
        if operation not in handlers:
            raise UnsupportedModel(
                f"The operation {operation} ('{name}') of the ONNX model is not supported: only linear layers, Relu, "
                f"Tanh, Sigmoid, Softplus, Gelu, Elu, batch normalisation and arithmetic with constants are.",
                operation=operation,
            )
        if is_silu(operation, inputs):
            operation = SILU
        elif operation not in HARMLESS:
            inputs = [inside(value) for value in inputs]
        flows = [value for value in inputs if isinstance(value, Flow | OnnxFinal)]
        if operation != SILU and any(isinstance(value, OnnxFinal) for value in flows) and operation not in HARMLESS:
            raise call.refuse("follows a softmax, which may only come last")
        if operation == "Cast" and flows:
            self._note(call.given["to"], name)
        try:
            result = handlers[operation](call, *inputs)
        except (TypeError, AttributeError, IndexError, KeyError, ValueError) as error:
            if isinstance(error, IfonlyError):
                raise
            words = " ".join(str(error).split())
            raise call.refuse(f"is used in a way that is not supported ({words})") from error
        if isinstance(result, np.ndarray) and result.dtype == np.float16:
            raise call.refuse("computes in float16")
        if isinstance(result, np.ndarray):
            self.computed += result.nbytes
            if self.computed > MAX_BYTES:
                raise ModelError(
                    f"The constants of the ONNX model take more than {MAX_BYTES // 2**20} MiB, the most that is read."
                )
        self.values[node.output[0]] = result
