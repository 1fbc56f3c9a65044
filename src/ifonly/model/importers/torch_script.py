"""TorchScript modules, scripted or traced: read from the ONNX export of their graph, answered by the module itself.

The Python code of such a module is gone, but torch writes its graph as ONNX, which is read as any ONNX model. The
original is the user's own module; only the logits before a last sigmoid or softmax are those of the export, and ties
are those of the module's probabilities.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ifonly.caching import cached_property
from ifonly.errors import MissingExtra, UnsupportedModel
from ifonly.model.agreement import check_agreement
from ifonly.model.importers.probabilities import reported, settled
from ifonly.model.importers.torch_inputs import TorchInputs, named_entries
from ifonly.model.kind import Precision
from ifonly.model.model import Model, Scores
from ifonly.printing import first_line
from ifonly.schema import Schema

Floats = NDArray[np.float64]
OPSET = 20
"""The first in which GELU is an operation of its own."""


def import_script(
    module: Any, schema: Schema, precision: Precision, *, classes: tuple[Any, ...], regression: bool,
    inputs: dict[str, Any],
) -> Model:  # fmt: skip
    """A TorchScript module as a Model; `inputs` says which features each of several inputs holds."""
    try:
        from ifonly.model.importers.onnx import import_onnx
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise MissingExtra("onnx", extra="onnx", needed_for="Reading a TorchScript module") from None
    content = _saved(module)
    own = _loaded(content)
    names = [argument.name for argument in own.forward.schema.arguments[1:] if not argument.has_default_value()]
    several = len(names) > 1 or any(name in inputs for name in names)
    taken = TorchInputs(schema, named_entries(names, schema, inputs) if several else ())
    exported = _exported(own, names, taken.arguments(schema.sample(2, np.random.default_rng(0)), precision))
    read = import_onnx(exported, schema, classes=classes, regression=regression, inputs=inputs)
    original = ScriptOriginal(
        content, taken, precision, read.original if getattr(read.original, "logits", False) else None
    )
    whole = replace(original, logits=None)
    made = replace(
        read,
        original=original,
        source="torch ScriptModule",
        precision=precision,
        probabilities=None if original.logits is None else reported(original, whole, schema),
    )
    return check_agreement(made)


def _saved(module: Any) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, that another format is newer
        torch.jit.save(module, content)
    return content.getvalue()


def _loaded(content: bytes) -> Any:
    """A copy of its own, on the CPU, in evaluation mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.load(io.BytesIO(content), map_location="cpu").eval()


def _exported(module: Any, names: list[str], given: tuple[Any, ...]) -> Any:
    """The module's graph as an ONNX model."""
    import onnx

    content, axes = io.BytesIO(), {name: {0: "rows"} for name in names}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, given, content, input_names=names, dynamic_axes=axes, opset_version=OPSET, dynamo=False
            )
    except Exception as error:
        raise UnsupportedModel(
            f"The TorchScript module cannot be written as ONNX ({first_line(error)}); import the torch module that it "
            f"was made from.",
            operation="ScriptModule",
        ) from None
    return onnx.load_model_from_string(content.getvalue())


@dataclass(frozen=True)
class ScriptOriginal:
    """The user's own module, as torch saves it. `logits` gives what comes before its last activation."""

    content: bytes
    inputs: TorchInputs
    precision: Precision
    logits: Scores | None = None

    def __getstate__(self) -> dict[str, Any]:  # a module cannot be pickled; the bytes can
        return {name: getattr(self, name) for name in ("content", "inputs", "precision", "logits")}

    @cached_property
    def module(self) -> Any:
        return _loaded(self.content)

    def __call__(self, points: Floats) -> Floats:
        with torch.no_grad():
            answered = self.module(*self.inputs.arguments(points, self.precision))
        given = np.asarray(answered.to(torch.float64).numpy()).reshape(len(points), -1)
        return given if self.logits is None else settled(self.logits(points), given)
