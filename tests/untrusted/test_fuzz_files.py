"""Damaged files of every kind: read, or refused in a printable sentence. `tests/untrusted/files.py` does it for long."""

from __future__ import annotations

import io
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ifonly import import_model, load_model
from ifonly.errors import FileError, ModelError
from untrusted.files import READERS, SCHEMA, faults

COUNT = int(os.environ.get("IFONLY_FUZZ", "150"))
"""Files of each kind."""


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("kind", READERS)
def test_damaged_files(kind: str, tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    assert [f"{seed}: {fault}" for seed, fault in faults(kind, range(COUNT), tmp_path, told)] == []
    assert told["read"] > 0 and len(told) > 1


@pytest.mark.parametrize("kind", READERS)
def test_honest_files_are_read(kind: str, tmp_path: Path) -> None:
    reader = READERS[kind]
    for name, content in reader.seeds():
        whole: Any = content
        if hasattr(content, "SerializeToString"):
            whole = content.SerializeToString()
        elif not isinstance(content, bytes):
            continue
        (tmp_path / name).write_bytes(whole)
        reader.read(tmp_path / name)


def doubling(times: int, operation: str) -> Any:
    """A small file that asks for 2 ** times columns."""
    nodes = [helper.make_node(operation, ["x", "x"], ["t0"], **({"axis": 1} if operation == "Concat" else {}))]
    for k in range(1, times):
        given = {"axis": 1} if operation == "Concat" else {}
        nodes.append(helper.make_node(operation, [f"t{k - 1}", f"t{k - 1}"], [f"t{k}"], **given))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", len(SCHEMA.columns)])],
        [helper.make_tensor_value_info(f"t{times - 1}", TensorProto.FLOAT, ["N", "K"])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_small_file_cannot_ask_for_much_memory() -> None:
    with pytest.raises(ModelError, match="which is more than the"):
        import_model(doubling(40, "Concat"), SCHEMA)
    assert import_model(doubling(40, "Add"), SCHEMA).network.outputs == len(SCHEMA.columns)


def test_weights_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    name, proto = READERS["onnx"].seeds()[0]
    onnx.save(proto, tmp_path / name, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(FileError, match="which is not a file"):
        load_model(tmp_path / name, SCHEMA)


def test_what_is_well_formed_does_not_come_to_the_seam() -> None:
    """A refusal that is meant has no cause; a foreign error that became one does."""
    _, proto = READERS["onnx"].seeds()[0]
    proto.graph.node[1].op_type = "Erf"
    with pytest.raises(ModelError) as meant:
        import_model(proto, SCHEMA)
    assert meant.value.__cause__ is None
    _, proto = READERS["onnx"].seeds()[0]
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((2, 2, 2), np.float32), "w"))
    with pytest.raises(ModelError):
        import_model(proto, SCHEMA)


def test_arrays_that_lie_about_their_size(tmp_path: Path) -> None:
    """An npz whose checksums are right and whose headers are not."""
    ((name, content),) = READERS["npz"].seeds()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {entry: archive.read(entry) for entry in archive.namelist()}
    for wrong in (b"(3, 9999999999)", b"(-1, 7)        ", b"'|O8'          ", b"(10**9999,)    "):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for entry, data in members.items():
                place = data.find(b"'shape': (")
                changed = data[: place + 9] + wrong + data[place + 9 + len(wrong) :] if "weight0" in entry else data
                archive.writestr(entry, changed)
        with pytest.raises(FileError, match=r"damaged|claims"):
            load_model(tmp_path / name, SCHEMA)
