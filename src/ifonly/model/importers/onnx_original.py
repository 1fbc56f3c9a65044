"""Evaluation of the original ONNX model, with the outputs that it declares: by onnxruntime, or, where that is not
installed, by ONNX's own reference evaluator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.reference
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import ModelError
from ifonly.model.importers.onnx_inputs import OnnxInputs
from ifonly.model.importers.onnx_operations import FLOAT_OF, first_float
from ifonly.model.importers.onnx_outputs import ScoresOutput, plain_name
from ifonly.model.importers.probabilities import as_labelled, settled

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OnnxOriginal:
    """Scores by the declared outputs of the whole model, decided as its labels are.

    Scores before a last activation are a tensor of the whole model (`logits`), or, where the activation is part of a
    classifier's node, what the model gives up to that node without it (`bare`); near a tie they follow what the model
    itself gives. With `second`, the second of two columns is the score.
    """

    whole: OnnxRun
    ending: ScoresOutput
    classes: tuple[Any, ...]
    logits: bool = False
    bare: OnnxRun | None = None
    second: bool = False

    def __call__(self, points: Floats) -> Floats:
        given, labels, scores = self._answers(points)
        if self.bare is not None:
            scores = _table(self.bare.run(points)[0], ())
        scores = scores[:, 1:] if self.second else scores
        if self.logits or self.bare is not None:
            scores = settled(scores, given[:, -1:] if scores.shape[1] == 1 else given)
        return scores if labels is None else as_labelled(scores, labels)

    def declared(self, points: Floats) -> Floats:
        """The declared output of scores or probabilities."""
        return self._answers(points)[0]

    def decided(self, points: Floats) -> NDArray[np.intp]:
        """The declared labels, by the number of their class."""
        labels = self._answers(points)[1]
        assert labels is not None, "the model declares labels"
        return labels

    def _answers(self, points: Floats) -> tuple[Floats, NDArray[np.intp] | None, Floats]:
        """The declared output of scores, the labels by the number of their class, and the scores behind the first."""
        given, *more = self.whole.run(points)
        table = _table(given, self.ending.zipped)
        labels = self._numbered(np.ravel(more[0]).tolist()) if self.ending.labels and self.classes else None
        return table, labels, _table(more[-1], ()) if self.logits else table

    def _numbered(self, labels: list[Any]) -> NDArray[np.intp]:
        places = {name: k for k, name in enumerate(self.classes)}
        try:
            return np.array([places[plain_name(label)] for label in labels], dtype=np.intp)
        except KeyError as unknown:
            raise ModelError(
                f"The ONNX model decides for {unknown.args[0]!r}, which is none of its classes "
                f"{', '.join(map(repr, self.classes[:6]))}."
            ) from None


def _table(output: NDArray[Any], zipped: tuple[Any, ...]) -> Floats:
    """An output as a table: one row of numbers per row, or a dictionary that names them."""
    if zipped:
        return np.array([[row[name] for name in zipped] for row in output], dtype=np.float64)
    return np.asarray(output, dtype=np.float64).reshape(len(output), -1)


@dataclass(frozen=True)
class OnnxRun:
    """A session of an ONNX model that returns some of its tensors: declared outputs, or inner ones."""

    content: bytes
    inputs: OnnxInputs
    names: tuple[str, ...]

    def run(self, points: Floats) -> list[NDArray[Any]]:
        """What the model gives for these rows, tensor by tensor."""
        parts = []
        with np.errstate(all="ignore"):  # the evaluator takes logarithms of probabilities that are rounded to 0
            for rows, feed in self.inputs.feeds(points):
                parts.append([np.asarray(output)[:rows] for output in self._session(feed)])
        return [np.concatenate(outputs) for outputs in zip(*parts, strict=True)]

    def __getstate__(self) -> dict[str, Any]:  # a session cannot travel to another process; the bytes can
        return {name: getattr(self, name) for name in ("content", "inputs", "names")}

    @cached_property
    def _session(self) -> Callable[[dict[str, Any]], list[Any]]:
        """A function from inputs to the tensors."""
        proto = onnx.load_model_from_string(self.content)
        declared = {output.name for output in proto.graph.output}
        kind = FLOAT_OF[first_float(proto.graph)]
        for name in self.names:
            if name not in declared:
                proto.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
        run = _session(proto)
        names = list(self.names)

        def run_session(feed: dict[str, Any]) -> list[Any]:
            try:
                return list(run(names, feed))
            except Exception as error:
                raise ModelError(f"The ONNX model cannot answer for rows of the schema: {_reason(error)}") from None

        return run_session


def _session(proto: Any) -> Callable[..., Any]:
    """onnxruntime's session, where it is installed: what it refuses is refused here, whatever others make of it."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return onnx.reference.ReferenceEvaluator(proto).run
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # a few rows at a time: threads cost more than they bring
    options.log_severity_level = 4  # what it warns of is how converters write models; what fails is raised
    try:
        session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"onnxruntime, which would run the ONNX model, refuses it: {_reason(error)}") from None
    return session.run


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:400]}"
