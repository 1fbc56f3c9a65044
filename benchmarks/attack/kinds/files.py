"""Hostile files: bytes changed, cut, doubled, spliced. Only a sentence (IfonlyError) may come out, in time."""

from __future__ import annotations

import base64
import io
import json
import random
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask

TOKENS = (b"1e999", b"-1", b"NaN", b"null", b"[]", b"{}", b'""', b"true", b"9" * 400, b"9" * 5000, b"\xff\xfe", b"\x00",
          b"\\ud800", b"[" * 3000, b'"\\u001b[31m"', b"0.1", b"18446744073709551616", b"1e-320")  # fmt: skip


class Files:
    """One damaged file of each format."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        kind = chance.choice(sorted(FORMATS))
        return {"file": kind, "bytes": base64.b64encode(damaged(chance, original(kind))).decode()}

    def run(self, case: dict[str, Any]) -> Outcome:
        suffix, load = FORMATS[case["file"]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{suffix}"
            path.write_bytes(base64.b64decode(case["bytes"]))
            try:
                ask(load, path)
            except Refused:
                return Outcome(f"{case['file']} refused")
        return Outcome(f"{case['file']} read")


def damaged(chance: random.Random, content: bytes) -> bytes:
    """The content with one to four changes."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(data) + 1)
        how = chance.randrange(7)
        if how == 0 and data:
            data[at % len(data)] = chance.randrange(256)
        elif how == 1 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif how == 2:
            del data[at : at + chance.choice([1, 1, 4, 100])]
        elif how == 3:
            data[at:at] = chance.choice(TOKENS)
        elif how == 4:
            other = chance.randrange(len(data) + 1)
            data[at:at] = data[other : other + chance.randint(1, 60)]
        elif how == 5:
            del data[at:]
        else:  # a number or a word of the text replaced as a whole
            end = at
            while end < len(data) and chr(data[end]) not in ",:]}{[ \n":
                end += 1
            data[at:end] = chance.choice(TOKENS)
    return bytes(data)


@lru_cache(maxsize=32)
def original(kind: str) -> bytes:
    """A whole file of the format."""
    import ifonly
    from ifonly import datasets

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{FORMATS[kind][0]}"
        model = datasets.network("compas", rules=False)
        if kind in ("npz", "json"):
            ifonly.model.save_network(model.network, path, classes=("low", "high"))
        elif kind == "schema":
            model.schema.save(path)
        elif kind == "certificate":
            ifonly.certify(ifonly.Explainer(model), datasets.load("compas", rules=False).row(0)).save(path)
        elif kind == "certificate text":
            made = ifonly.certify(ifonly.Explainer(model), datasets.load("compas", rules=False).row(0))
            return json.dumps(made.data, sort_keys=True, separators=(",", ":")).encode()
        elif kind == "onnx":
            return onnx_file()
        else:
            return _table(kind)
        return path.read_bytes()


def onnx_file() -> bytes:
    """A small network for two numbers."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = {
        "w1": np.array([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]], dtype=np.float32),
        "b1": np.array([0.1, -0.2, 0.3], dtype=np.float32),
        "w2": np.array([[1.0], [-1.0], [2.0]], dtype=np.float32),
        "b2": np.array([-0.5], dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], alpha=1.0, beta=1.0, transB=0),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"]),
        helper.make_node("Sigmoid", ["y"], ["p"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )  # fmt: skip
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    assert onnx.load_from_string(content)
    return content


def _table(kind: str) -> bytes:
    from ifonly import datasets

    data = datasets.load("compas", rules=False)
    people = [data.row(i) for i in range(5)]
    if kind == "jsonl":
        return "\n".join(json.dumps(row) for row in people).encode()
    lines = io.StringIO()
    lines.write(",".join(people[0]) + "\n")
    lines.writelines(",".join(map(str, row.values())) + "\n" for row in people)
    return lines.getvalue().encode()


def _certificate(path: Path) -> None:
    import ifonly

    told = ifonly.check(ifonly.Certificate.load(path), seconds=5)
    assert told.verdict in ("VALID", "INVALID", "UNDECIDED", "VALID EXCEPT FOR THE SOLVER'S BOUND"), told.verdict


def _certificate_text(path: Path) -> None:
    """The JSON itself, packed again, with a stamp that fits where there is a place for one."""
    import zlib

    import ifonly
    from ifonly.certificate.format import stamp

    content = path.read_bytes()
    try:
        data = json.loads(content)
        data["sha256"] = stamp(data)
        content = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError, AttributeError):
        pass
    told = ifonly.check(ifonly.Certificate.from_bytes(zlib.compress(content)), seconds=5)
    if told.verdict == "VALID":
        from benchmarks.attack.kinds.forged import untrue

        false = untrue(json.loads(content))
        assert not false, false


def _network(path: Path) -> None:
    import ifonly
    from ifonly import datasets

    model = datasets.network("compas", rules=False)
    network, classes = ifonly.model.load_network(path)
    explainer = ifonly.Explainer(network, schema=model.schema, classes=classes)
    explainer.using(reasons=False).explain(datasets.load("compas", rules=False).row(1), limits=ifonly.Limits(nodes=200))


def _onnx(path: Path) -> None:
    import ifonly

    schema = ifonly.Schema([ifonly.Real("a", 0, 1), ifonly.Integer("b", 0, 9)])
    model = ifonly.load_model(path, schema)
    ifonly.Explainer(model).using(reasons=False).explain([0.5, 3], target=None, limits=ifonly.Limits(nodes=200))


def _schema(path: Path) -> None:
    import ifonly

    schema = ifonly.Schema.load(path)
    schema.encode(schema.read({f.name: f.lower if hasattr(f, "lower") else f.options[0] for f in schema.features}))


def _rows(path: Path) -> None:
    """A table of people on the command line."""
    from ifonly.cli.app import app

    words = [
        "explain",
        "--dataset",
        "compas",
        "--rows",
        str(path),
        "--output",
        str(path.with_name("out.jsonl")),
        "--force",
    ]
    try:
        app.main(words)
    except SystemExit as ended:
        if ended.code in (0, 1, 2, 3, None):
            return
        raise AssertionError(f"exit code {ended.code}") from None


FORMATS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "npz": (".npz", _network),
    "json": (".json", _network),
    "schema": (".json", _schema),
    "certificate": (".cert", _certificate),
    "certificate text": (".cert", _certificate_text),
    "onnx": (".onnx", _onnx),
    "csv": (".csv", _rows),
    "jsonl": (".jsonl", _rows),
}
