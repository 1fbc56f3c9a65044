"""ONNX: graphs of Gemm, MatMul, arithmetic with constants, and what bends piecewise linearly.

A file is data, not code: it is parsed with a bound on its size, checked, and read node by node. Weights in other files
are read only from the folder of the model. The original is ONNX's own reference evaluator, or onnxruntime where it is
installed. A sigmoid or softmax at the very end is taken off: the score is the logit before it, and the
probabilities still decide ties.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
from numpy.typing import NDArray

from ifonly.errors import FileError, IfonlyError, ModelError
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.files import check_size
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_graph import MAX_BYTES, OnnxReader
from ifonly.model.importers.onnx_inputs import OnnxInputs, inputs_of
from ifonly.model.importers.onnx_ml import ScoresOutput, any_number_of_rows, ending_of, shortened, without_activation
from ifonly.model.importers.onnx_operations import FLOAT_OF, OnnxFinal, first_float, tensors
from ifonly.model.importers.onnx_original import OnnxOriginal, OnnxTreesOriginal
from ifonly.model.importers.probabilities import Reported, check_final, lead_of
from ifonly.model.importers.trees.onnx_trees import OnnxTrees, read_onnx_trees
from ifonly.model.model import Model, class_names, describe_columns
from ifonly.model.trees import Feed, Trees, bound
from ifonly.schema import Schema
from ifonly.schema.given import path_of

Floats = NDArray[np.float64]
SURE = 1e-5
"""Scores of trees that are nearer to a tie than this may be decided by rounding."""
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
    whole = shortened(proto, ending.tensor, FLOAT_OF[first_float(proto.graph)])
    inputs = inputs_of(whole.graph, schema)
    reader = OnnxReader(any_number_of_rows(copy.deepcopy(whole), inputs.batch).graph, inputs)
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
        warnings=tuple(reader.warnings),
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
    lead = lead_of(scores)
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


# ---------------------------------------------------------------------- the file


def _check(proto: Any) -> None:
    for tensor in tensors(proto.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ModelError(
                f"The weights of '{tensor.name}' are in another file; load the model by its path, with load_model."
            )
    try:
        onnx.checker.check_model(proto)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(f"The ONNX model is not valid: {reason}") from None


def _load_external(proto: Any, folder: Path) -> None:
    """Read weights that are stored in other files, if those are in the folder of the model."""
    from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

    total = 0
    for tensor in tensors(proto.graph):
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
