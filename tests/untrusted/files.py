"""Readers of files, honest files to damage, and what may come out: a value, or an IfonlyError.

python tests/untrusted/files.py onnx --count 100000 --seed 1      many files, with counts; without a kind, all kinds
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from ifonly import Binary, Categorical, Explainer, Integer, Model, Network, Ordinal, Real, Schema, load_model
from ifonly.cli.tables import read_table
from ifonly.errors import Contradiction, IfonlyError
from ifonly.model import save_network, save_trees
from ifonly.model.model import ForwardPass
from ifonly.model.trees import Ensemble, FeatureColumns, LibraryTree, Summation, Trees, bound
from ifonly.schema import infer as propose
from ifonly.schema import load_schema, read_points, schema_to_json
from untrusted.mutate import damaged, distorted, twisted

SCHEMA = Schema(
    (
        Real("income", -5.0, 10.0),
        Integer("age", 18, 90, 2),
        Binary("owner"),
        Ordinal("level", ("low", "mid", "high")),
        Categorical("job", ("clerk", "nurse", None)),
    )
)
LONGEST = 2_000
"""Characters of a message: what a file says is quoted, not repeated."""


@dataclass(frozen=True)
class Reader:
    """How honest files are made (name and content), how one is changed, and what reads it."""

    seeds: Callable[[], list[tuple[str, Any]]]
    change: Callable[[Any, random.Random], bytes]
    read: Callable[[Path], Any]


# ---------------------------------------------------------------------- honest files


def _onnx_models() -> list[tuple[str, Any]]:
    """Every operation that is read, and every kind of tensor storage."""
    from onnx import TensorProto, helper, numpy_helper

    rng, columns = np.random.default_rng(0), len(SCHEMA.columns)

    def model(nodes: list[Any], stored: dict[str, Any], kind: int = TensorProto.FLOAT, opset: int = 17) -> Any:
        out = nodes[-1].output[0]
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", kind, ["N", columns])],
            [helper.make_tensor_value_info(out, kind, ["N", "K"])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def f(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    node = helper.make_node
    first = [node("Gemm", ["x", "w", "b"], ["h"]), node("Relu", ["h"], ["r"])]
    weights = {"w": f(columns, 4), "b": f(4)}
    plain = model([*first, node("Gemm", ["r", "v", "c"], ["y"], transB=1, alpha=0.5, beta=2.0)],
                  {**weights, "v": f(1, 4), "c": f(1)})  # fmt: skip
    chain = model(
        [
            node("Sub", ["x", "mean"], ["a"]), node("Div", ["a", "three"], ["d"]), node("MatMul", ["d", "w"], ["e"]),
            node("Add", ["b", "e"], ["g"]), node("Relu", ["g"], ["r"]), node("Mul", ["r", "m"], ["s"]),
            node("Neg", ["s"], ["n"]), node("MatMul", ["n", "v"], ["y"]),
        ],
        {**weights, "mean": f(columns), "three": np.float32(3), "m": f(4), "v": f(4, 2)},
    )  # fmt: skip
    shapes = model(
        [
            node("Flatten", ["x"], ["a"], axis=1), node("Reshape", ["a", "whole"], ["c0"]), node("Identity", ["c0"], ["c1"]),
            node("Cast", ["c1"], ["c2"], to=TensorProto.FLOAT), node("Transpose", ["wt"], ["w"], perm=[1, 0]),
            node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2))),
            node("Unsqueeze", ["b0", "zero"], ["b1"]), node("Squeeze", ["b1", "zero"], ["b"]),
            node("Gemm", ["c2", "w", "b"], ["h"]), node("Mul", ["h", "two"], ["h2"]),
            node("Dropout", ["h2"], ["h3"]), node("Relu", ["h3"], ["r"]), node("MatMul", ["r", "v"], ["p"]),
            node("Sigmoid", ["p"], ["y"]),
        ],
        {"whole": np.array([0, -1]), "wt": f(4, columns), "zero": np.array([0]), "b0": f(4), "v": f(4, 1)},
    )  # fmt: skip
    normal = model(
        [
            node("Gemm", ["x", "w", "b"], ["h"]), node("Gemm", ["x", "w2"], ["h2"]),
            node("Concat", ["h", "h2"], ["j"], axis=1),
            node("BatchNormalization", ["j", "s", "t", "m", "q"], ["n"], epsilon=1e-3), node("Relu", ["n"], ["r"]),
            node("Gemm", ["r", "v"], ["o"]), node("Sum", ["o", "o"], ["o2"]), node("Softmax", ["o2"], ["y"], axis=1),
        ],
        {**weights, "w2": f(columns, 3), "s": f(7), "t": f(7), "m": f(7), "q": np.abs(f(7)), "v": f(7, 3)},
    )  # fmt: skip
    double = model([node("Gemm", ["x", "w"], ["y"])], {"w": rng.normal(size=(columns, 1))}, TensorProto.DOUBLE)
    listed = model([node("Gemm", ["x", "w"], ["y"])], {"w": f(columns, 1)})
    listed.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [columns, 1], f(columns).tolist()))
    bent = model(
        [
            *first, node("LeakyRelu", ["h"], ["l"], alpha=0.1), node("PRelu", ["l", "b"], ["p"]),
            node("Clip", ["p", "low", "high"], ["k"]), node("Max", ["k", "r", "b"], ["m"]),
            node("Unsqueeze", ["m", "one"], ["u"]), node("MaxPool", ["u"], ["q"], kernel_shape=[2], pads=[1, 0]),
            node("Flatten", ["q"], ["z"]), node("Add", ["z", "h"], ["s"]), node("Split", ["s", "two"], ["i", "j"], axis=1),
            node("Slice", ["x", "from", "to", "one"], ["t"]), node("Concat", ["i", "t"], ["o"], axis=1),
            node("Abs", ["o"], ["a"]), node("HardSigmoid", ["a"], ["g"]), node("ReduceMax", ["g"], ["y"], axes=[1]),
        ],
        {**weights, "low": np.float32(-1), "high": np.float32(2), "one": np.int64([1]), "two": np.int64([2, 2]),
         "from": np.int64([0]), "to": np.int64([2])},
    )  # fmt: skip
    return [("model.onnx", one) for one in (plain, chain, shapes, normal, double, listed, bent)]


def _onnx_exports() -> list[tuple[str, Any]]:
    """As converters write them: labels beside probabilities, one input per column, encoders and scalers."""
    from onnx import TensorProto, helper, numpy_helper

    ml, columns = {"domain": "ai.onnx.ml"}, len(SCHEMA.columns)
    numbers = np.random.default_rng(0).normal(size=3 * columns).round(2)
    scale = helper.make_node("Scaler", ["x"], ["s"], offset=[0.5] * columns, scale=[2.0] * columns, **ml)
    decide = helper.make_node(
        "LinearClassifier", ["s"], ["label", "p"], coefficients=numbers.tolist(), intercepts=[0.0, 1.0, 2.0],
        classlabels_ints=[0, 1, 2], multi_class=1, post_transform="SOFTMAX", **ml,
    )  # fmt: skip
    share = helper.make_node("Normalizer", ["p"], ["q"], norm="L1", **ml)
    zipped = helper.make_node("ZipMap", ["q"], ["z"], classlabels_int64s=[0, 1, 2], **ml)
    by_name = [
        helper.make_node("OneHotEncoder", ["level"], ["l3"], cats_strings=["low", "mid", "high"], zeros=1, **ml),
        helper.make_node("Reshape", ["l3", "shape"], ["l"]), helper.make_node("Cast", ["age"], ["a"], to=1),
        helper.make_node("Imputer", ["income"], ["i"], imputed_value_floats=[1.0], replaced_value_float=-77.0, **ml),
        helper.make_node("Concat", ["i", "a", "l"], ["all"], axis=1),
        helper.make_node("LinearRegressor", ["all"], ["y"], coefficients=[1.0, 0.5, 1.0, 2.0, 3.0], **ml),
    ]  # fmt: skip
    value, float_, int_, text = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
    probabilities = helper.make_sequence_type_proto(
        helper.make_map_type_proto(int_, helper.make_tensor_type_proto(float_, []))
    )
    graphs = [
        ([scale, decide, share], [value("x", float_, [None, columns])], [value("label", int_, [None]), value("q", float_, [None, 3])]),
        ([scale, decide, share, zipped], [value("x", float_, [5, columns])],
         [value("label", int_, [None]), helper.make_value_info("z", probabilities)]),
        (by_name, [value("income", float_, [None, 1]), value("age", int_, [None, 1]), value("level", text, [None, 1])],
         [value("y", float_, [None, 1])]),
    ]  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    stored = [numpy_helper.from_array(np.array([-1, 3]), "shape")]
    made = [helper.make_graph(nodes, "g", given, out, stored) for nodes, given, out in graphs]
    return [("model.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=8)) for graph in made]


def _networks(name: str) -> list[tuple[str, Any]]:
    rng, columns = np.random.default_rng(0), len(SCHEMA.columns)
    pairs = [(rng.normal(size=(3, columns)), rng.normal(size=3)), (rng.normal(size=(1, 3)), rng.normal(size=1))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save_network(Network.of(pairs), path, classes=("no", "yes"))
        return [(name, path.read_bytes())]


def _trees(name: str) -> list[tuple[str, Any]]:
    """Two trees over the schema: a number, options, a vector at each leaf."""
    heap = {"left": [1, 3, 2, 3, 4], "right": [2, 4, 2, 3, 4], "value": np.arange(10.0).reshape(5, 2)}
    imported_trees = [
        LibraryTree(column=[column, 1, -1, -1, -1], threshold=[0.5, 30.0, 0, 0, 0], **heap)
        for column in (0, len(SCHEMA.columns) - 1)
    ]
    ensemble = Ensemble.of(
        imported_trees, columns=len(SCHEMA.columns), summation=Summation.plain(2), compared_in="float32"
    )
    owners = [i for i, feature in enumerate(SCHEMA.features) for _ in feature.column_names]
    trees = Trees(bound(ensemble, FeatureColumns(owners, SCHEMA.encode), SCHEMA), SCHEMA)
    model = Model(function=trees, schema=SCHEMA, original=ForwardPass(trees, SCHEMA), classes=("no", "yes"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save_trees(model, path)
        return [(name, path.read_bytes())]


def _onnx_trees() -> list[tuple[str, Any]]:
    from onnx import TensorProto, helper

    columns = len(SCHEMA.columns)
    nodes = {"treeids": [0] * 5, "nodeids": [0, 1, 2, 3, 4], "featureids": [0, 1, 0, 0, 0],
             "values": [0.5, 30.0, 0.0, 0.0, 0.0], "modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF"],
             "truenodeids": [1, 3, 0, 0, 0], "falsenodeids": [2, 4, 0, 0, 0]}  # fmt: skip
    leaves = {"treeids": [0] * 3, "nodeids": [2, 3, 4], "ids": [0, 0, 0], "weights": [0.5, -1.0, 2.0]}
    given = {f"nodes_{key}": value for key, value in nodes.items()}
    more = {"classlabels_int64s": [0, 1], "post_transform": "LOGISTIC", "base_values": [0.25]}
    decides = {**given, **{f"class_{key}": value for key, value in leaves.items()}, **more}
    predicts = {**given, **{f"target_{key}": value for key, value in leaves.items()}, "n_targets": 1}
    models = []
    for operation, attributes, outputs in (
        ("TreeEnsembleClassifier", decides, ["label", "y"]), ("TreeEnsembleRegressor", predicts, ["y"]),
    ):  # fmt: skip
        node = helper.make_node(operation, ["x"], outputs, domain="ai.onnx.ml", **attributes)
        graph = helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", columns])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "K"])],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        models.append(("model.onnx", helper.make_model(graph, opset_imports=opsets, ir_version=8)))
    return models


ROWS = [
    {"income": 1.5, "age": 20, "owner": True, "level": "mid", "job": "nurse"},
    {"income": -2, "age": 90, "owner": False, "level": "low", "job": None},
]


def _parquet() -> list[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    return [("rows.parquet", file.getvalue())]


CARD = {
    "format": "ifonly-scorecard",
    "version": 1,
    "base": 3.5,
    "cutoff": 20,
    "classes": ["no", "yes"],
    "features": {
        "income": [
            {"is": [0, 7.5], "points": 1},
            {"below": -1.25, "points": 2},
            {"up_to": 3, "points": 4},
            {"points": 9},
        ],
        "level": [{"is": "low", "points": 1}, {"points": 12}],
        "job": [{"is": ["clerk", "nurse"], "points": 5}, {"missing": True, "points": -5}],
    },
}
POINTS = """feature,bin,points
,base,3.5
,cutoff,20
income,= 0,1
income,< -1.25,2
income,<= 3,4
income,other,9
job,= clerk,5
job,other,1
job,missing,-5
"""


def _csv() -> list[tuple[str, Any]]:
    lines = [",".join(ROWS[0]), *(",".join("" if v is None else str(v) for v in row.values()) for row in ROWS)]
    return [("rows.csv", "\n".join(lines).encode())]


# ---------------------------------------------------------------------- changes


def _proto(model: Any, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return damaged(model.SerializeToString(), rng)
    content: bytes = distorted(model, rng).SerializeToString()
    return content


def _text(value: Any, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return damaged(json.dumps(value).encode(), rng)
    return json.dumps(twisted(value, rng)).encode()


def _sometimes(content: bytes, rng: random.Random) -> bytes:
    return damaged(content, rng) if rng.random() < 0.9 else content


def _lines(rows: Any, rng: random.Random) -> bytes:
    return b"\n".join(_text(row, rng) if rng.random() < 0.6 else json.dumps(row).encode() for row in rows)


def _read_rows(path: Path) -> None:
    table = read_table(path)
    columns = {name: table.column(name) for name in table.columns}
    read_points(SCHEMA, list(table.rows), errors=[])
    propose(columns)


@cache
def _explainer() -> Explainer:
    weights = np.linspace(-1.0, 1.0, len(SCHEMA.columns))[None, :]
    return Explainer(Network.of([(weights, np.zeros(1))]), schema=SCHEMA)


def _answer_rows(path: Path) -> None:
    """As a stream: each row an answer or an error row, or one sentence for all and nothing under the output's name."""
    output = path.with_name("answers.jsonl")
    with contextlib.suppress(FileNotFoundError):
        output.unlink()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            written = _explainer().explain_to(output, path, keep=["job"])
    finally:
        left = {one.name for one in path.parent.glob("answers*")}
        output.with_name("answers.jsonl.manifest.json").unlink(missing_ok=True)
        if (output.exists() and len(left) != 2) or (not output.exists() and left):
            raise AssertionError(f"there is left: {left}")
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    if [one["row"] for one in records] != list(range(written.rows)) or sum(written.counts.values()) != written.rows:
        raise AssertionError(f"{len(records)} records of {written.rows} rows: {written.counts}")
    for one in records:
        if one["status"] not in ("nearest", "none exists", "error") or wrong_words(one["note"]):
            raise AssertionError(f"a record that is none: {one}")


READERS: dict[str, Reader] = {
    "onnx": Reader(_onnx_models, _proto, lambda path: load_model(path, SCHEMA)),
    "npz": Reader(lambda: _networks("net.npz"), damaged, lambda path: load_model(path, SCHEMA)),
    "json": Reader(
        lambda: [(name, json.loads(content)) for name, content in _networks("net.json")], _text,
        lambda path: load_model(path, SCHEMA),
    ),
    "trees npz": Reader(lambda: _trees("trees.npz"), damaged, lambda path: load_model(path, SCHEMA)),
    "trees json": Reader(
        lambda: [(name, json.loads(content)) for name, content in _trees("trees.json")], _text,
        lambda path: load_model(path, SCHEMA),
    ),
    "onnx exports": Reader(_onnx_exports, _proto, lambda path: load_model(path, SCHEMA)),
    "trees onnx": Reader(_onnx_trees, _proto, lambda path: load_model(path, SCHEMA)),
    "scorecard": Reader(lambda: [("card.json", CARD)], _text, lambda path: load_model(path, SCHEMA)),
    "points": Reader(lambda: [("card.csv", POINTS.encode())], _sometimes, lambda path: load_model(path, SCHEMA)),
    "schema": Reader(lambda: [("schema.json", schema_to_json(SCHEMA))], _text, load_schema),
    "csv": Reader(_csv, damaged, _read_rows),
    "jsonl": Reader(lambda: [("rows.jsonl", ROWS)], _lines, _read_rows),
    "parquet": Reader(_parquet, damaged, _read_rows),
    "csv stream": Reader(_csv, damaged, _answer_rows),
    "jsonl stream": Reader(lambda: [("rows.jsonl", ROWS)], _lines, _answer_rows),
    "parquet stream": Reader(_parquet, damaged, _answer_rows),
}  # fmt: skip


# ---------------------------------------------------------------------- what comes out


def faults(kind: str, seeds: Iterator[int] | range, folder: Path, told: Counter[str]) -> Iterator[tuple[int, str]]:
    """The seeds whose file is not answered as it should be, and why. `told` counts what each came to."""
    reader = READERS[kind]
    honest = reader.seeds()
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        name, content = rng.choice(honest)
        path = folder / name
        path.write_bytes(reader.change(content, rng))
        begun = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                reader.read(path)
            told["read"] += 1
        except UserWarning as doubt:  # a list of categories that lacks an option of the schema is a list
            told["doubtful"] += 1
            if fault := wrong_words(str(doubt)) or ("" if "was fitted without the option" in str(doubt) else "unknown"):
                yield seed, f"{fault}: {str(doubt)[:300]!r}"
        except Contradiction:
            yield seed, traceback.format_exc()
        except IfonlyError as error:
            told[type(error).__name__] += 1
            if fault := wrong_words(str(error)):
                yield seed, f"{fault}: {str(error)[:300]!r}"
        except Exception as error:
            told[f"raw {type(error).__name__}"] += 1
            yield seed, traceback.format_exc()
        if time.process_time() - begun > 10.0:
            yield seed, f"took {time.process_time() - begun:.1f} s"


def wrong_words(message: str) -> str:
    """What is wrong with an error message, if anything is."""
    if not message.replace("\n", "").isprintable():
        return "unprintable characters"
    return "too long" if len(message) > LONGEST else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*READERS, []], help="which files (default: all)")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--most", type=int, default=20, help="faults to print for each kind")
    given = parser.parse_args()
    total = 0
    for kind in given.kinds or READERS:
        told: Counter[str] = Counter()
        shown: Counter[str] = Counter()
        begun, found = time.perf_counter(), 0
        with tempfile.TemporaryDirectory() as folder:
            for seed, fault in faults(kind, range(given.seed, given.seed + given.count), Path(folder), told):
                found += 1
                shown[last := "\n".join(fault.splitlines()[-3:])] += 1
                if shown[last] == 1 and len(shown) <= given.most:
                    print(f"{kind} {seed}: {fault}", flush=True)
        print(
            f"{kind}: {given.count} files, {found} faults, {dict(told)}, {time.perf_counter() - begun:.0f} s",
            flush=True,
        )
        total += found
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
