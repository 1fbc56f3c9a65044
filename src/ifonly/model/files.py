"""Network files: `.npz` (exact, compact) and `.json` (readable), both safe to load.

Nothing in them is ever run: an npz file is read with pickling off, the sizes that its directory and its headers claim
are checked before anything is unpacked, and only arrays of numbers pass. A JSON file holds the same fields. Besides the
weights they may hold the names of the classes. Files are written atomically.
"""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.errors import FileError, ModelError
from ifonly.model.network import MAX_LAYERS, MAX_WEIGHTS, Network
from ifonly.printing import shown
from ifonly.schema.arguments import is_label, path_of
from ifonly.schema.io import replacing, write_whole
from ifonly.schema.values import plain

FORMAT = "ifonly-network"
VERSION = 1
MAX_BYTES = 2 * 2**30
MAX_JSON_BYTES = 2**28
MAX_HEAD_BYTES = 2**24

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a network file holds. Without class names, and if it is no regression, the classes are 0, 1, ..."""

    network: Network
    classes: tuple[Any, ...] = ()
    regression: bool = False


def save_network(
    network: Network, path: str | Path, *, classes: tuple[Any, ...] = (), regression: bool = False
) -> None:
    """Write a network (and the names of its classes, or that it has none) as .npz or .json, by the file's ending."""
    path = path_of(path)
    if not isinstance(network, Network):
        raise ModelError(
            f"A network file holds a piecewise-linear network; got {shown(network)}. Keep the model in its own "
            f"format (ONNX, for instance)."
        )
    names = [plain(name) for name in classes]
    for name in names:
        if not is_label(name):
            raise ModelError(
                f"The class name {shown(name)} is not a string, a number or a boolean; a file cannot hold it."
            )
    if names and regression:
        raise ModelError(f"A regression has no classes, but the class names {shown(names)} were given.")
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "classes": names, "layers": len(network.layers)}
    if regression:
        head["regression"] = True
    if network.within is not None and np.isfinite(network.within).all():
        head["within"] = [end.tolist() for end in network.within]
    if path.suffix == ".json":
        layers = [{"weight": a.weight.tolist(), "bias": a.bias.tolist()} for a in network.layers]
        text = json.dumps({**head, "layers": layers}) + "\n"
        write_whole(path, text.encode("utf-8"))
    elif path.suffix == ".npz":
        arrays: dict[str, Any] = {"head": np.array(json.dumps(head))}
        for i, layer in enumerate(network.layers):
            arrays[f"weight{i}"], arrays[f"bias{i}"] = layer.weight, layer.bias
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, **arrays)
    else:
        raise FileError(f"A network file ends in .npz or .json; '{path.name}' does not.")


def load_network(path: str | Path) -> tuple[Network, tuple[Any, ...]]:
    """Read a network file: the network and the names of its classes (possibly none)."""
    stored = read_network(path)
    return stored.network, stored.classes


def read_network(path: str | Path) -> Stored:
    """Read a network file, with its class names and task."""
    path = path_of(path)
    if path.suffix not in (".json", ".npz"):
        raise FileError(f"A network file ends in .npz or .json; '{path.name}' does not.")
    try:
        check_size(path, MAX_JSON_BYTES if path.suffix == ".json" else MAX_BYTES)
        head, layers = _read_json(path) if path.suffix == ".json" else _read_npz(path)
    except OSError as error:
        raise FileError(f"Cannot read the network '{path}': {error.strerror or error}.") from None
    except FileError:
        raise
    except Exception as error:  # a hostile file can make zip, zlib, json and numpy raise almost anything
        raise FileError(
            f"'{path}' is not a network file of ifonly, or is damaged ({type(error).__name__}: {error})."
        ) from None
    try:
        network = replace(Network.of(layers), within=head.get("within"))
    except ModelError as error:
        raise ModelError(f"In '{path}': {error}") from None
    classes = head.get("classes", [])
    if not isinstance(classes, list) or not all(map(is_label, classes)):
        raise FileError(f"'{path}': the class names must be a list of strings, numbers or booleans.")
    regression = head.get("regression", False)
    if not isinstance(regression, bool) or (regression and classes):
        raise FileError(f"'{path}': \"regression\" must be true or false, and a regression has no class names.")
    return Stored(network=network, classes=tuple(classes), regression=regression)


def check_size(path: Path, most: int) -> None:
    """Refuse a file that is larger than the limit."""
    if path.stat().st_size > most:
        raise FileError(f"'{path}' is larger than {most // 2**20} MiB, the most that is read.")


def _check_head(head: Any, path: Path) -> dict[str, Any]:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise FileError(f"'{path}' is not a network file of ifonly (its format is not '{FORMAT}').")
    if head.get("version") != VERSION:
        raise FileError(f"'{path}' has version {shown(head.get('version'))}; this ifonly reads version {VERSION}.")
    return head


def _read_json(path: Path) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    data = _check_head(json.loads(path.read_text(encoding="utf-8")), path)
    layers = data.get("layers")
    if not isinstance(layers, list) or not 1 <= len(layers) <= MAX_LAYERS:
        raise FileError(f"'{path}': \"layers\" must be a list of 1 to {MAX_LAYERS} layers.")
    return data, [(_numbers(a["weight"], path), _numbers(a["bias"], path)) for a in layers]


def _numbers(value: Any, path: Path) -> Any:
    array = np.array(value)
    if array.dtype.kind not in "iuf":
        raise FileError(f"'{path}' has weights that are not numbers.")
    return array


def _read_npz(path: Path) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "head.npy" not in entries:
            raise FileError(f"'{path}' is not a network file of ifonly (it has no 'head').")
        total = sum(entry.file_size for entry in archive.infolist())
        if len(archive.infolist()) > 2 * MAX_LAYERS + 1 or total > MAX_BYTES:
            raise FileError(f"'{path}' would unpack to {len(entries)} arrays of {total} bytes, which is no network.")
        head = _check_head(json.loads(str(read_array(archive, entries["head.npy"], path, kinds="U"))), path)
        count = head.get("layers")
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_LAYERS:
            raise FileError(f"'{path}' claims {shown(count)} layers.")
        names = [(f"weight{i}.npy", f"bias{i}.npy") for i in range(count)]
        for name in (name for pair in names for name in pair):
            if name not in entries:
                raise FileError(f"'{path}' is damaged: it claims {count} layers, but has no '{name[:-4]}'.")
        pairs = [[read_array(archive, entries[name], path, kinds="iuf") for name in pair] for pair in names]
        return head, [(weight, bias) for weight, bias in pairs]


def read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, *, kinds: str) -> Any:
    """One array, whose header must claim numbers (or text, for the head) and just as many bytes as there are."""
    name = entry.filename[:-4]
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise FileError(
                f"'{path}': the array '{name}' has a header of version {version}, which ifonly does not write."
            )
        shape, _, dtype = _HEADERS[version](file)
        if dtype.hasobject or dtype.kind not in kinds:
            raise FileError(f"'{path}': the array '{name}' holds {dtype}, not {'text' if kinds == 'U' else 'numbers'}.")
        claimed, header = math.prod(shape) * dtype.itemsize, file.tell()
    if claimed + header != entry.file_size or claimed > (MAX_HEAD_BYTES if kinds == "U" else 8 * MAX_WEIGHTS):
        raise FileError(f"'{path}': the array '{name}' claims {claimed} bytes, which it does not have.")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
