"""Pickles, only by this name: loading one runs whatever code its author put into it.

`load_model` never comes here. `load_pickle` is for files that you made yourself, or whose maker you trust as you
would trust them with your keyboard.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, IfonlyError, MissingExtra, ModelError
from ifonly.model.model import Model
from ifonly.schema import Schema
from ifonly.schema.arguments import path_of

ENDINGS = (".pkl", ".pickle", ".joblib", ".pt", ".pth")


def load_pickle(path: str | Path, schema: Schema, *, classes: tuple[Any, ...] = (), regression: bool = False) -> Model:
    """A scikit-learn model (.pkl, .pickle, .joblib) or a whole torch module (.pt, .pth). Runs the code in the file."""
    from ifonly.model.importers import import_model

    path = path_of(path)
    try:
        there = path.is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise FileError(f"Cannot read the model '{path}': no such file.")
    try:
        match path.suffix.lower():
            case ".pkl" | ".pickle":
                with path.open("rb") as file:
                    model = pickle.load(file)
            case ".joblib":
                model = _joblib(path)
            case ".pt" | ".pth":
                model = _torch(path)
            case _:
                raise FileError(f"A pickled model ends in .pkl, .pickle, .joblib, .pt or .pth; '{path.name}' does not.")
    except IfonlyError:
        raise
    except AttributeError as error:  # a class of a script, which is not there in this program
        raise FileError(
            f"'{path}' needs a class that cannot be found here ({error}): import the model in the program that defines "
            f"it, with import_model, or export it to ONNX."
        ) from None
    except Exception as error:
        raise FileError(f"'{path}' cannot be unpickled, or is damaged ({type(error).__name__}: {error}).") from None
    if isinstance(model, dict):
        raise ModelError(
            f"'{path.name}' holds a dict, not a model (weights alone?); build the module, give it the weights with "
            f"load_state_dict, and pass it to import_model."
        )
    return import_model(model, schema, classes=classes, regression=regression)


def _joblib(path: Path) -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtra("joblib", extra="sklearn", needed_for="Reading a .joblib file") from None
    return joblib.load(path)


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", extra="torch", needed_for="Reading a .pt or .pth file") from None
    return torch.load(path, map_location="cpu", weights_only=False)
