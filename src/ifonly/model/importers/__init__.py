"""Model importers for scikit-learn, torch, Keras, ONNX, XGBoost, LightGBM, CatBoost, interpret and scorecards.

Frameworks are recognised without importing them. Each importer builds an equivalent function (a network or trees),
keeps the user's own object as the original, and compares the two on rows of the schema (`check_agreement`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, MissingExtra, ModelError, UnsupportedModel
from ifonly.model.agreement import check_agreement
from ifonly.model.files import read_network
from ifonly.model.importers.detect import SURROGATE, library_of
from ifonly.model.importers.named_inputs import InputNames, checked_inputs
from ifonly.model.importers.pickles import ENDINGS, load_pickle
from ifonly.model.importers.scorecard import import_scorecard
from ifonly.model.model import Model, class_list, network_model
from ifonly.model.network import Network
from ifonly.model.scorecard import Scorecard, is_scorecard_file
from ifonly.model.smooth import SmoothNetwork
from ifonly.model.trees.files import is_trees_file, load_trees
from ifonly.printing import shown
from ifonly.schema import Schema
from ifonly.schema.arguments import path_of

__all__ = ["import_model", "load_model", "load_pickle"]

IMPORTERS = {
    "keras": ("keras", "import_keras"),
    "torch": ("torch", "import_torch"),
    "onnx": ("onnx", "import_onnx"),
    "sklearn": ("sklearn", "import_sklearn"),
    "xgboost": ("trees", "import_trees"),
    "lightgbm": ("trees", "import_trees"),
    "catboost": ("trees", "import_trees"),
}
"""By the package that a model's class is from: the module and the function that import it, loaded when one is met."""
OPTIONS = {"keras": ("inputs",), "torch": ("inputs",), "onnx": ("output", "inputs"), "sklearn": ("output",)}
"""Options of `import_model` that only models of some frameworks take."""


def import_model(
    model: Any,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | int | None = None,
    inputs: InputNames | None = None,
) -> Model:
    """The model as an ifonly Model, checked against the original on rows of the schema.

    `model` is a fitted scikit-learn estimator or pipeline, a model of XGBoost, LightGBM, CatBoost or interpret, a torch
    module, a Keras or ONNX model, a Network, a SmoothNetwork, a Scorecard, or a path (see `load_model`). `classes`
    names the classes where the model does not, or renames them. One output means two classes and several outputs one
    class each, unless `regression` says that outputs are predictions. `output` names the output of an ONNX model that
    holds its scores or probabilities, where several may, or is the number of an output of a MultiOutputClassifier.
    `inputs` says which features each of several inputs of a torch or ONNX model holds: {"num": ["Age", "Income"],
    "cat": ["Job"]}.
    """
    classes, named = class_list(classes), checked_inputs(inputs)
    _check_output(output)
    if isinstance(model, str | Path):
        return load_model(model, schema, classes=classes, regression=regression, output=output, inputs=inputs)
    if isinstance(model, Network | SmoothNetwork):
        return check_agreement(network_model(model, schema, classes=classes, regression=regression))
    if isinstance(model, Scorecard):
        return import_scorecard(model, schema, classes=classes, regression=regression)
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass a fitted object of it.")
    return _warned(_imported(model, schema, classes, regression, {"output": output, "inputs": named}))


def _warned(model: Model) -> Model:
    """The model, after its warnings were issued."""
    for sentence in model.warnings:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    return model


def _imported(model: Any, schema: Schema, classes: tuple[Any, ...], regression: bool, more: dict[str, Any]) -> Model:
    """The model of some framework, by its importer."""
    framework = _framework(model)
    if framework is None:
        raise _refused(model)
    if framework == "keras" and int(str(getattr(sys.modules.get("keras"), "__version__", "3")).partition(".")[0]) < 3:
        raise UnsupportedModel(
            f"This is a model of Keras {sys.modules['keras'].__version__}; supported is Keras 3, which loads it from a "
            f"file.",
            operation="keras",
        )
    module, function = IMPORTERS[framework]
    taken = {name: value for name, value in more.items() if name in OPTIONS.get(framework, ())}
    for name in (name for name, value in more.items() if value not in (None, {}) and name not in taken):
        raise ModelError(f"'{name}' is not for a model of {framework}; leave it out.")
    made: Model = getattr(import_module(f"ifonly.model.importers.{module}"), function)(
        model, schema, classes=classes, regression=regression, **taken
    )
    return made


def _refused(model: Any) -> UnsupportedModel:
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    if callable(model) or callable(getattr(type(model), "predict", None)):
        return UnsupportedModel(f"A model of type {name} cannot be imported; {SURROGATE}.", operation=name)
    return UnsupportedModel(
        f"A model of type {name} cannot be imported; supported are fitted scikit-learn estimators and pipelines, "
        f"models of XGBoost, LightGBM, CatBoost and interpret, torch modules, Keras and ONNX models, scorecards, and "
        f"the files .npz, .json, .csv and .onnx.",
        operation=name,
    )


def load_model(
    path: str | Path,
    schema: Schema,
    *,
    classes: tuple[Any, ...] = (),
    regression: bool = False,
    output: str | int | None = None,
    inputs: InputNames | None = None,
) -> Model:
    """A model file as an ifonly Model. Nothing in such a file is ever run.

    ifonly's own .npz or .json; a scorecard as .json or .csv; .onnx; .json or .ubj of XGBoost, .txt of LightGBM, .cbm or
    .json of CatBoost.
    """
    path, classes = path_of(path), class_list(classes)
    _check_output(output)
    ending = path.suffix.lower()
    if ending == ".onnx":
        more = {"output": output, "inputs": checked_inputs(inputs)}
        return _warned(_onnx_reader()(path, schema, classes=classes, regression=regression, **more))
    _refuse_programs(path, ending)
    if is_scorecard_file(path):
        return import_scorecard(Scorecard.load(path), schema, classes=classes, regression=regression)
    library = library_of(path)
    if library is not None:
        from ifonly.model.importers.trees import import_trees, load_library

        return _warned(import_trees(load_library(path, library), schema, classes=classes, regression=regression))
    if ending not in (".npz", ".json"):
        raise FileError(
            f"A model file ends in .npz, .json, .csv (a scorecard), .onnx, or as XGBoost (.ubj), LightGBM (.txt) and "
            f"CatBoost (.cbm) write theirs; '{path.name}' does not."
        )
    if is_trees_file(path):
        return check_agreement(load_trees(path, schema, classes=classes))
    return _load_network(path, schema, classes, regression=regression)


def _load_network(path: Path, schema: Schema, classes: tuple[Any, ...], *, regression: bool) -> Model:
    stored = read_network(path)
    regression = regression or (stored.regression and not classes)
    names = classes or (() if regression else stored.classes)
    return check_agreement(network_model(stored.network, schema, classes=names, regression=regression))


def _onnx_reader() -> Callable[..., Model]:
    try:
        from ifonly.model.importers.onnx import load_onnx
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise MissingExtra("onnx", extra="onnx", needed_for="Reading an ONNX file") from None
    return load_onnx


def _refuse_programs(path: Path, ending: str) -> None:
    """Files that run code when they are loaded, or that another library must read."""
    if ending in ENDINGS:
        raise FileError(
            f"'{path.name}' is a pickle, and loading such a file runs code in it, so load_model does not; if you trust "
            f"where it comes from, use ifonly.model.importers.load_pickle(path, schema)."
        )
    if ending in (".keras", ".h5"):
        raise FileError(
            f"'{path.name}' is a Keras file, which is Keras's to read: load it with keras.saving.load_model(path, "
            f"safe_mode=True), which runs no code in it, and import the model."
        )


def _check_output(output: Any) -> None:
    if output is not None and (isinstance(output, bool) or not isinstance(output, str | int)):
        raise ModelError(
            f"'output' is the name of an output of an ONNX model, or the number of an output of a "
            f"MultiOutputClassifier; got {shown(output)}."
        )


def _framework(model: Any) -> str | None:
    """The framework of the model's class, or of the nearest of its base classes that is from one."""
    for cls in type(model).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in IMPORTERS:
            return package
    return None
