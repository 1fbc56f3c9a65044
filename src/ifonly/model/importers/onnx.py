"""ONNX importer: graphs of linear, piecewise-linear and smooth operations, and of tree ensembles.

A file is data, not code: it is parsed with a bound on its size, checked, and read node by node. Weights in other files
are read only from the folder of the model. The original is the whole model with the outputs that it declares. A
sigmoid or softmax at the very end is taken off: the score is the logit before it, and the probabilities still decide
ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
from numpy.typing import NDArray

from ifonly.errors import FileError, IfonlyError, ModelError, UnsupportedModel
from ifonly.files import file_errors
from ifonly.model.agreement import ROWS, check_agreement, comparison_rows
from ifonly.model.files import check_size
from ifonly.model.flow import Flow
from ifonly.model.importers.onnx_graph import MAX_BYTES, OnnxReader
from ifonly.model.importers.onnx_inputs import OnnxInputs, inputs_of
from ifonly.model.importers.onnx_ml import equal_flows, opposite_flows
from ifonly.model.importers.onnx_operations import FLOAT_OF, OnnxFinal, first_float, tensors
from ifonly.model.importers.onnx_original import OnnxOriginal, OnnxRun
from ifonly.model.importers.onnx_outputs import (
    ScoresOutput,
    any_number_of_rows,
    ending_of,
    shortened,
    without_activation,
)
from ifonly.model.importers.probabilities import check_final, reported
from ifonly.model.importers.trees.onnx_trees import OnnxTrees, following, read_onnx_trees
from ifonly.model.kind import Precision
from ifonly.model.model import Model, class_names, describe_columns
from ifonly.model.trees import FeatureColumns, Trees, bound_splits, edge_points, reachable
from ifonly.printing import first_line
from ifonly.schema import Schema
from ifonly.schema.arguments import path_of

Floats = NDArray[np.float64]
TIE = 2.0**-20
"""Margins of trees that differ by less may have equal probabilities in float32."""


def load_onnx(
    path: str | Path,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | None = None,
    inputs: dict[str, Any] | None = None,
) -> Model:
    """An .onnx file as a Model."""
    path = Path(path)
    with file_errors(f"read the model '{path}'"):
        check_size(path, MAX_BYTES)
        content = path.read_bytes()
    try:
        proto = onnx.load_model_from_string(content)
        if not proto.graph.node:
            raise ValueError("it has no graph")
    except Exception as error:
        raise FileError(f"'{path}' is not an ONNX file, or is damaged ({error}).") from None
    _load_external(proto, path.resolve().parent)
    return import_onnx(proto, schema, classes=classes, regression=regression, output=output, inputs=inputs)


def import_onnx(
    proto: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | None = None,
    inputs: dict[str, Any] | None = None,
) -> Model:
    """An ONNX model as a Model. `output` names the output that holds the scores, where several may; `inputs` says which
    features each input holds."""
    if not isinstance(proto, onnx.ModelProto):
        raise ModelError(f"An ONNX model must be an onnx.ModelProto; got {type(proto).__name__}.")
    with _reading():
        if isinstance(output, int):
            raise ModelError(f"'output' is the name of an output of an ONNX model; got {output}.")
        _check(proto)
        ending = ending_of(proto.graph, output)
        taken = inputs_of(proto.graph, schema, inputs or {})
        return _imported(_Ending(proto, ending, taken, classes, regression))


@contextmanager
def _reading() -> Iterator[None]:
    """Turn exceptions of ONNX, protobuf and numpy about a damaged model into a ModelError.

    Errors of ifonly and failed assertions pass. The exception stays attached as the cause: tests check that no
    well-formed model comes here, so that a bug of ifonly is not taken for a damaged file.
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


def _imported(given: _Ending) -> Model:
    proto, ending, inputs = given.proto, given.ending, given.inputs
    trees = read_onnx_trees(proto)
    if trees is not None:
        return _imported_trees(given, trees)
    tensors = [ending.tensor, *([ending.decided_by] if ending.labels else [])]
    short = shortened(proto, tensors, FLOAT_OF[first_float(proto.graph)])
    reader = OnnxReader(any_number_of_rows(short, inputs.batch).graph, inputs)
    value, *deciding = reader.read()
    given = replace(given, regression=given.regression or (ending.regression and not given.classes))
    final, flow = given.checked(value, deciding)
    network = flow.to_network()
    model = given.imported(network, final, second=final is not None and final.second, precision=reader.precision)
    return replace(model, warnings=tuple(reader.warnings))


@dataclass(frozen=True)
class _Ending:
    """The outputs of a graph, and what is needed to make a Model of them."""

    proto: Any
    ending: ScoresOutput
    inputs: OnnxInputs
    classes: tuple[Any, ...]
    regression: bool

    def checked(self, value: Any, deciding: Sequence[Any]) -> tuple[OnnxFinal | None, Flow]:
        """The last activation, if there is one, and the scores before it; an error where labels are of other scores."""
        final = value if isinstance(value, OnnxFinal) else None
        flow = value.flow if isinstance(value, OnnxFinal) else value
        assert isinstance(flow, Flow)
        for other in deciding:
            if not _same_decision(flow, other):
                raise UnsupportedModel(
                    f"The label '{self.ending.labels}' of the ONNX model decides for the largest of "
                    f"'{self.ending.decided_by}', where its own scores '{self.ending.output}' are others; export it "
                    f"with the scores that it decides by.",
                    operation="label",
                )
        if final is not None and not final.each_alone:
            check_final(final.operation, final.activation, final.flow.width, regression=self.regression)
        return final, flow

    def imported(
        self, function: Any, final: OnnxFinal | None, *, second: bool, precision: Precision, at: Any = None
    ) -> Model:
        """The Model of a function of the schema's row."""
        outputs, ending = function.outputs, self.ending
        own = ending.classes if len(ending.classes) == max(2, outputs) and not self.regression else ()
        names = class_names(self.classes or own, outputs, regression=self.regression)
        original = self._original(final, () if self.regression else own or tuple(range(len(names))), second=second)
        model = Model(
            function=function,
            schema=self.inputs.schema,
            original=original,
            classes=names,
            source="onnx",
            precision=precision,
        )
        decided = original.decided if ending.labels and names else None
        if final is not None and not final.each_alone:
            model = replace(model, probabilities=reported(original, original.declared, model.schema))
        elif at is not None and names and not second and _are_probabilities(original.declared, model.schema):
            model = replace(model, probabilities=original.declared, scores_are="probabilities")
        return check_agreement(model, at=at, decided=decided)

    def _original(self, final: OnnxFinal | None, classes: tuple[Any, ...], *, second: bool) -> OnnxOriginal:
        """The whole model with its declared outputs, and the tensor before its last activation."""
        ending, inside = self.ending, final is not None and final.inside
        names = [ending.output, *([ending.labels] if ending.labels else [])]
        if final is not None and not inside:
            names.append(final.source)
        bare = None
        if final is not None and inside:
            content = without_activation(self.proto, final.source).SerializeToString()
            bare = OnnxRun(content, self.inputs, (final.source,))
        whole = OnnxRun(self.proto.SerializeToString(), self.inputs, tuple(names))
        return OnnxOriginal(whole, ending, classes, final is not None and not inside, bare, second)


def _same_decision(flow: Flow, deciding: Any) -> bool:
    """Whether the largest of the deciding scores is always the class that the flow decides for."""
    if isinstance(deciding, OnnxFinal):
        return deciding.columns > 1 and equal_flows(flow, deciding.flow)
    if flow.width == 1 and deciding.width == 2:
        first, second = (deciding.select([k], name="a label") for k in (0, 1))
        return equal_flows(flow, second) and opposite_flows(first, second)
    return deciding.width > 1 and equal_flows(flow, deciding)


def _imported_trees(ending: _Ending, trees: OnnxTrees) -> Model:
    """A graph that is a tree ensemble, followed at most by operations that keep its decision."""
    schema, columns = ending.inputs.schema, len(ending.inputs.schema.columns)
    if trees.ensemble.columns != columns:
        raise ModelError(f"The ONNX model takes {trees.ensemble.columns} columns, but {describe_columns(schema)}.")
    value, deciding = following(ending.proto, trees, ending.ending, ending.inputs)
    final = value if isinstance(value, OnnxFinal) else None
    ending = replace(ending, regression=ending.regression or (not trees.decides and final is None))
    ending.checked(value, deciding)
    owners = [0] * columns
    for i, own in enumerate(schema.feature_columns):
        for j in own.tolist():
            owners[j] = i
    splits = bound_splits(trees.ensemble, FeatureColumns(owners, schema.encode), schema)
    function = Trees(reachable(splits, schema), schema, tie=TIE if final is not None else 0.0)
    at = edge_points(splits, schema, library=trees.ensemble)
    return ending.imported(function, final, second=trees.second, precision=splits.summation.precision, at=at)


def _are_probabilities(outputs: Any, schema: Schema) -> bool:
    own = outputs(comparison_rows(schema, ROWS, seed=2))
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
        raise ModelError(f"The ONNX model is not valid: {first_line(error)}") from None


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
                raise FileError(f"The weights of '{tensor.name}' are said to be in '{place}', which is not a file.")
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
