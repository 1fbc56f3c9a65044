"""The ONNX model itself, run by onnxruntime where it is installed, else by ONNX's own reference evaluator."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.reference
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.model.importers.onnx_inputs import OnnxInputs
from ifonly.model.importers.onnx_operations import FLOAT_OF, first_float
from ifonly.model.importers.probabilities import settled

Floats = NDArray[np.float64]


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
            kind = FLOAT_OF[first_float(proto.graph)]
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
