"""Our own network files: `.npz` (exact, compact) and `.json` (readable), both safe to load.

An npz file is read with pickling off and every array is checked; a JSON file holds the same fields. Besides the
weights they may carry the names of the classes.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import FileError, ModelError
from ifonly.model.network import MAX_LAYERS, Network

FORMAT = "ifonly-network"
VERSION = 1
MAX_BYTES = 2 * 2**30


def save_network(network: Network, path: str | Path, *, classes: tuple[Any, ...] = ()) -> None:
    """Write a network (and the names of its classes) as .npz or .json, by the file's ending."""
    path = Path(path)
    head = {"format": FORMAT, "version": VERSION, "classes": list(classes), "layers": len(network.layers)}
    if path.suffix == ".json":
        layers = [{"weight": a.weight.tolist(), "bias": a.bias.tolist()} for a in network.layers]
        path.write_text(json.dumps({**head, "layers": layers}) + "\n", encoding="utf-8")
    elif path.suffix == ".npz":
        arrays: dict[str, Any] = {"head": np.array(json.dumps(head))}
        for i, layer in enumerate(network.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = layer.weight, layer.bias
        with path.open("wb") as file:
            np.savez(file, **arrays)
    else:
        raise FileError(f"A network file ends in .npz or .json; '{path.name}' does not.")


def load_network(path: str | Path) -> tuple[Network, tuple[Any, ...]]:
    """Read a network file: the network and the names of its classes (possibly none)."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FileError(f"'{path}' is larger than {MAX_BYTES // 2**30} GiB.")
        head, layers = _read_json(path) if path.suffix == ".json" else _read_npz(path)
    except OSError as error:
        raise FileError(f"Cannot read the network '{path}': {error.strerror or error}.") from None
    except (KeyError, TypeError, ValueError, EOFError, RecursionError, zipfile.BadZipFile) as error:
        if isinstance(error, FileError | ModelError):
            raise
        raise FileError(
            f"'{path}' is not a network file of ifonly, or is damaged ({type(error).__name__}: {error})."
        ) from None
    try:
        network = Network.of(layers)
    except ModelError as error:
        raise ModelError(f"In '{path}': {error}") from None
    classes = head.get("classes", [])
    if not isinstance(classes, list) or not all(isinstance(c, str | int | float | bool) for c in classes):
        raise FileError(f"'{path}': the class names must be a list of strings, numbers or booleans.")
    return network, tuple(classes)


def _check_head(head: Any, path: Path) -> dict[str, Any]:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise FileError(f"'{path}' is not a network file of ifonly; convert it with: ifonly model convert")
    if head.get("version") != VERSION:
        raise FileError(f"'{path}' has version {head.get('version')!r}; this ifonly reads version {VERSION}.")
    return head


def _read_json(path: Path) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    data = _check_head(json.loads(path.read_text(encoding="utf-8")), path)
    return data, [(np.array(a["weight"], dtype=np.float64), np.array(a["bias"], dtype=np.float64))
                  for a in data["layers"]]  # fmt: skip


def _read_npz(path: Path) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    with np.load(path, allow_pickle=False) as archive:
        if not hasattr(archive, "files") or "head" not in archive.files:
            raise FileError(f"'{path}' is not a network file of ifonly; convert it with: ifonly model convert")
        head = _check_head(json.loads(str(archive["head"])), path)
        count = head["layers"]
        if not isinstance(count, int) or not 1 <= count <= MAX_LAYERS:
            raise FileError(f"'{path}' claims {count!r} layers.")
        return head, [(archive[f"weight{i}"], archive[f"bias{i}"]) for i in range(count)]
