"""ONNX: graphs of Gemm, MatMul, arithmetic with constants, and what bends piecewise linearly.

A file is data, not code: it is parsed with a bound on its size, checked, and read node by node. Weights in other files
are read only from the folder of the model. The original is ONNX's own reference evaluator, or onnxruntime where it is
installed. A sigmoid or softmax at the very end is taken off: the score is the logit before it, and the
probabilities still decide ties.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator, Mapping
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
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.onnx_inputs import OnnxInputs, inputs_of
from ifonly.model.importers.onnx_ml import (
    AFTER,
    LAST,
    MACHINE_LEARNING,
    AfterFinal,
    ScoresOutput,
    any_number_of_rows,
    ending_of,
    shortened,
    without_activation,
)
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
    silu_of,
)
from ifonly.model.importers.onnx_piecewise import PIECEWISE
from ifonly.model.importers.onnx_tables import ENCODERS, TABLES, OnnxTable, takes_tables
from ifonly.model.importers.probabilities import Reported, check_final, settled
from ifonly.model.importers.shaped import Shaped
from ifonly.model.importers.trees.onnx_trees import OnnxTrees, read_onnx_trees
from ifonly.model.kind import Precision
from ifonly.model.model import Model, class_names, describe_columns
from ifonly.model.rounding import column_box
from ifonly.model.trees import Feed, Trees, bound
from ifonly.schema import Schema
from ifonly.schema.given import path_of

Floats = NDArray[np.float64]
Value: TypeAlias = Flow | Shaped | OnnxTable | AfterFinal | NDArray[Any]
MAX_BYTES = 2**31
SURE = 1e-5
"""Scores of trees that are nearer to a tie than this may be decided by rounding."""
FLOAT_OF = {kind: elem for elem, kind in FLOATS.items()}
TIE = 2.0**-20
"""Margins of trees that differ by less may have equal probabilities in float32."""


def load_onnx(
    path: str | Path,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | None = None,
) -> Model:
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
    return import_onnx(proto, schema, classes=classes, regression=regression, output=output)


def import_onnx(
    proto: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | None = None,
) -> Model:
    """An ONNX model as a Model. `output` names the output that holds the scores, where several may."""
    if not isinstance(proto, onnx.ModelProto):
        raise ModelError(f"An ONNX model must be an onnx.ModelProto; got {type(proto).__name__}.")
    with _reading():
        return _imported(proto, schema, classes, regression, output)


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


def _imported(proto: Any, schema: Schema, classes: tuple[Any, ...], regression: bool, output: str | None) -> Model:
    _check(proto)
    trees = read_onnx_trees(proto)
    if trees is not None:
        return _imported_trees(trees, inputs_of(proto.graph, schema), schema, classes, regression)
    ending = ending_of(proto.graph, output)
    whole = shortened(proto, ending.tensor, FLOAT_OF[_first_float(proto.graph)])
    inputs = inputs_of(whole.graph, schema)
    reader = _OnnxReader(any_number_of_rows(copy.deepcopy(whole), inputs.batch).graph, inputs)
    value = reader.read()
    final = value if isinstance(value, OnnxFinal) else None
    regression = regression or (ending.regression and not classes)
    if final is not None and not final.each_alone:
        check_final(final.operation, final.activation, final.flow.width, regression=regression)
    flow = value.flow if isinstance(value, OnnxFinal) else value
    assert isinstance(flow, Flow)
    network = flow.finish()
    own = ending.classes if len(ending.classes) == max(2, network.outputs) and not regression else ()
    names = class_names(classes or own, network.outputs, regression=regression)
    given = OnnxOriginal(whole.SerializeToString(), inputs)
    model = Model(
        function=network,
        schema=schema,
        original=_original(whole, inputs, final),
        classes=names,
        source="onnx",
        precision=reader.precision,
        probabilities=Reported(given) if final is not None and not final.each_alone else None,
    )
    if ending.labels and model.classes:
        _check_labels(model, _labels(proto, inputs, ending), own or tuple(range(len(names))))
    return check_agreement(model)


def _original(whole: Any, inputs: OnnxInputs, final: OnnxFinal | None) -> Any:
    """The scores by the model itself: its output, or what stands before the last activation."""
    content = whole.SerializeToString()
    if final is None or not final.inside:
        return OnnxOriginal(content, inputs, *(() if final is None else (final.tensor, final.second)))
    bare = OnnxOriginal(without_activation(whole, final.tensor).SerializeToString(), inputs)
    return OnnxTreesOriginal(bare, OnnxOriginal(content, inputs), second=final.second, settle=True)


def _labels(proto: Any, inputs: OnnxInputs, ending: ScoresOutput) -> OnnxOriginal:
    return OnnxOriginal(shortened(proto, ending.labels).SerializeToString(), inputs)


def _first_float(graph: Any) -> str:
    """The precision that the weights of a graph, or else its inputs, are in."""
    kinds = [tensor.data_type for tensor in _tensors(graph)]
    kinds += [given.type.tensor_type.elem_type for given in graph.input]
    return next((FLOATS[kind] for kind in kinds if kind in FLOATS), "float32")


def _imported_trees(
    trees: OnnxTrees, inputs: OnnxInputs, schema: Schema, classes: tuple[Any, ...], regression: bool
) -> Model:
    columns = len(schema.columns)
    if trees.ensemble.columns != columns:
        raise ModelError(f"The ONNX model takes {trees.ensemble.columns} columns, but {describe_columns(schema)}.")
    owners = [0] * columns
    for i, own in enumerate(schema.feature_columns):
        for j in own.tolist():
            owners[j] = i
    ensemble = bound(trees.ensemble, Feed(owners, schema.encode), schema)
    bare, whole = (OnnxOriginal(content, inputs) for content in (trees.bare, trees.whole))
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
        _check_labels(model, OnnxOriginal(trees.labels, inputs), trees.classes)
    if decides and (trees.second if trees.activation == "LOGISTIC" else trees.activation == "SOFTMAX"):
        return check_agreement(replace(model, probabilities=whole))
    if decides and trees.activation == "NONE" and not trees.second and _are_probabilities(whole, schema):
        return check_agreement(replace(model, probabilities=whole, scores_are="probabilities"))
    return check_agreement(model)


def _check_labels(model: Model, given: OnnxOriginal, classes: tuple[Any, ...]) -> None:
    """Are the labels of the graph those that its scores say? A runtime may have a rule of its own."""
    points = comparison_rows(model.schema, ROWS, seed=1)
    scores, labels = model.scores(points), np.ravel(given.run(points)[0]).tolist()
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
    """The ONNX model itself. `logits` names the tensor before its last activation, if it has one; with `second`, its
    second column counts."""

    content: bytes
    inputs: OnnxInputs
    logits: str = ""
    second: bool = False

    def __call__(self, points: Floats) -> Floats:
        outputs = [np.asarray(output, dtype=np.float64).reshape(len(points), -1) for output in self.run(points)]
        if not self.logits:
            return outputs[0]
        given, logits = outputs
        logits = logits[:, 1:] if self.second else logits
        return settled(logits, given[:, -1:] if logits.shape[1] == 1 else given)

    def run(self, points: Floats) -> list[NDArray[Any]]:
        """What the model gives for these rows, output by output."""
        parts = []
        with np.errstate(all="ignore"):  # the evaluator takes logarithms of probabilities that are rounded to 0
            for rows, feed in self.inputs.feeds(points):
                parts.append([np.asarray(output)[:rows] for output in self._session(feed)])
        return [np.concatenate(outputs) for outputs in zip(*parts, strict=True)]

    def __getstate__(self) -> dict[str, Any]:  # a session cannot travel to another process; the bytes can
        return {name: getattr(self, name) for name in ("content", "inputs", "logits", "second")}

    @cached_property
    def _session(self) -> Any:
        """A function from inputs to outputs."""
        proto = onnx.load_model_from_string(self.content)
        if self.logits:
            kind = FLOAT_OF[_first_float(proto.graph)]
            proto.graph.output.append(onnx.helper.make_tensor_value_info(self.logits, kind, None))
        try:
            runtime = importlib.import_module("onnxruntime")
            options = runtime.SessionOptions()
            options.intra_op_num_threads = 1  # a few rows at a time: threads cost more than they bring
            options.log_severity_level = 3  # errors: what it warns of is how converters write models
            session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception:  # not installed, or too old for this file
            session = onnx.reference.ReferenceEvaluator(proto)
        return lambda feed: session.run(None, feed)


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


# ---------------------------------------------------------------------- the graph


@dataclass
class _OnnxReader:
    """Walks the graph, node by node."""

    graph: Any
    inputs: OnnxInputs
    values: dict[str, Value] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    computed: int = 0
    """Bytes of the constants that were computed from others."""

    @property
    def precision(self) -> Precision:
        return "float64" if self.kinds == {"float64"} else "float32"

    def read(self) -> Value:
        for stored in self.graph.initializer:
            self.values[stored.name] = self._constant(stored)
        self._given()
        for position, node in enumerate(self.graph.node):
            self._node(node, node.name or f"node {position}")
        name = self.graph.output[0].name
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

    def _given(self) -> None:
        """The inputs: values of a network at once where they are its columns, and nothing asks for categories."""
        numbers = all(one.kind.startswith("float") for one in self.inputs.given)
        self.kinds |= {one.kind for one in self.inputs.given if one.kind.startswith("float")}
        encoders = any(node.op_type in ENCODERS and node.domain for node in self.graph.node)
        if self.inputs.plain and numbers and not encoders:
            self.values[self.inputs.given[0].name] = self.encoded
            return
        arithmetic = Columns(self.inputs.schema)
        for one, columns in zip(self.inputs.given, self.inputs.columns(arithmetic).values(), strict=True):
            self.values[one.name] = OnnxTable(tuple(columns), arithmetic, one.kind.startswith("float"))

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
        if not takes_tables(operation, inputs):
            inputs = [value.flow(call, self.encoded) if isinstance(value, OnnxTable) else value for value in inputs]
        silu = silu_of(operation, inputs)
        if silu is not None:
            operation, inputs = SILU, [silu]
            call = replace(call, operation=operation)
        elif operation not in (*HARMLESS, *AFTER):
            inputs = [inside(value) for value in inputs]
        flows = [value for value in inputs if isinstance(value, Flow | Shaped | AfterFinal)]
        handlers = self._handlers(call, inputs)
        if operation == "Cast" and (flows or call.given["to"] in FLOATS):
            self._note(call.given["to"], name)
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
            self.values.update(zip(node.output, result, strict=False))
        else:
            self.values[node.output[0]] = result

    def _handlers(self, call: OnnxCall, inputs: list[Any]) -> Mapping[str, Any]:
        """The operations that take such inputs, this one among them."""
        finals = any(isinstance(value, AfterFinal) for value in inputs)
        flows = finals or any(isinstance(value, Flow | Shaped) for value in inputs)
        numeric = HANDLERS | PIECEWISE | MACHINE_LEARNING
        handlers = numeric if flows else TABLES if takes_tables(call.operation, inputs) else CONSTANT
        handlers = AFTER if finals and call.operation in AFTER else handlers
        if call.operation not in handlers:
            raise UnsupportedModel(
                f"The operation {call.operation} ('{call.name}') of the ONNX model is not supported: only linear "
                f"layers, Relu and its piecewise-linear relatives, Tanh, Sigmoid, Softplus, Gelu and Elu, maxima, sums "
                f"and batch normalisation are.",
                operation=call.operation,
            )
        if finals and call.operation not in (*HARMLESS, *AFTER):
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
