"""Models as converters export them, against every row of a finite schema judged by onnxruntime on the file as it is.

IFONLY_EXPORTS=200 asks so many questions of each kind of export; the suite asks a few.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ifonly import Binary, Categorical, Explainer, Integer, Nearest, NoneExists, Ordinal, Schema, import_model
from ifonly.problem import Distance

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

COUNT = int(os.environ.get("IFONLY_EXPORTS", "0"))
CLOSE = 1e-5
Rng = np.random.Generator
Case = tuple[Any, Schema, Callable[[list[dict[str, Any]]], dict[str, np.ndarray]]]
"""A model, its schema, and how its user gives rows to it."""


def numbers(rng: Rng) -> Schema:
    return Schema([Integer("a", 0, int(rng.integers(2, 9))), Integer("b", -3, 3), Binary("c"), Integer("d", 0, 2)])


def mixed(rng: Rng) -> Schema:
    jobs = ["clerk", "cook", "pilot"][: int(rng.integers(2, 4))]
    return Schema([
        Integer("a", 0, int(rng.integers(2, 9))), Categorical("job", jobs), Integer("b", -3, 3),
        Ordinal("level", ["low", "mid", "high"]), Categorical("zone", [1, 2, 5]),
    ])  # fmt: skip


def every(schema: Schema) -> list[dict[str, Any]]:
    values = [
        list(range(int(f.lower), int(f.upper) + 1)) if isinstance(f, Integer) else list(f.options)
        for f in schema.features
    ]
    return [dict(zip(schema.names, row, strict=True)) for row in itertools.product(*values)]


def labels(rng: Rng, x: np.ndarray, classes: int) -> np.ndarray:
    found = (x @ rng.normal(size=(x.shape[1], classes)) + rng.normal(size=classes)).argmax(axis=1)
    found[:classes] = range(classes)
    return np.asarray(found)


def estimator(rng: Rng) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.neural_network import MLPClassifier

    seed = int(rng.integers(1000))
    return [
        LogisticRegression(max_iter=30),
        MLPClassifier((4,), max_iter=15, learning_rate_init=0.05, random_state=seed),
        MLPClassifier((3, 3), max_iter=15, learning_rate_init=0.05, random_state=seed),
        RidgeClassifier(),
        LinearDiscriminantAnalysis(),
    ][int(rng.integers(5))]


def scaler(rng: Rng) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    return [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), SimpleImputer(strategy="most_frequent")][
        int(rng.integers(5))
    ]


def options(rng: Rng, last: Any, dtype: str = "float32") -> dict[str, Any]:
    """Probabilities zipped with the classes, or not; onnxruntime zips no doubles."""
    zipped = bool(rng.random() < 0.5) and dtype == "float32"
    return {"options": {"zipmap": zipped}} if hasattr(last, "predict_proba") else {}


def one_table(rng: Rng) -> Case:
    """A pipeline of numbers with one input, of floats, doubles or whole numbers."""
    from skl2onnx.common import data_types as t
    from sklearn.pipeline import make_pipeline

    schema, last = numbers(rng), estimator(rng)
    rows = schema.sample(60, rng)
    x = schema.encode(rows)
    model = make_pipeline(scaler(rng), last).fit(x, labels(rng, x, int(rng.integers(2, 4))))
    kinds = [(t.FloatTensorType, "float32"), (t.Int64TensorType, "int64"), (t.DoubleTensorType, "float64")]
    kind, dtype = kinds[int(rng.integers(3 if hasattr(last, "predict_proba") else 2))]  # it writes no doubles of those
    proto = skl2onnx.convert_sklearn(model, initial_types=[("X", kind([None, 4]))], **options(rng, last, dtype))
    return proto, schema, lambda some: {"X": np.array([list(r.values()) for r in some], dtype=float).astype(dtype)}


def by_column(rng: Rng) -> Case:
    """A ColumnTransformer with one input per column: numbers, texts, whole numbers."""
    pandas = pytest.importorskip("pandas")
    from skl2onnx.common import data_types as t
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    schema, last = mixed(rng), estimator(rng)
    frame = pandas.DataFrame([dict(schema.row(point)) for point in schema.sample(60, rng)])
    encoder = (
        OneHotEncoder(handle_unknown="ignore")
        if rng.random() < 0.5
        else OneHotEncoder(categories=[list(schema["job"].options), list(schema["level"].options)])
    )
    coded = OrdinalEncoder(categories=[[1, 2, 5]]) if rng.random() < 0.5 else OneHotEncoder(categories=[[1, 2, 5]])
    front = ColumnTransformer(
        [("n", scaler(rng), ["a", "b"]), ("t", encoder, ["job", "level"]), ("z", coded, ["zone"])], sparse_threshold=0.0
    )
    numeric = schema.encode(np.array([schema.read(dict(row)) for row in frame.to_dict("records")]))
    model = make_pipeline(front, last).fit(frame, labels(rng, numeric, int(rng.integers(2, 4))))
    kinds = {"a": t.FloatTensorType, "b": t.FloatTensorType, "zone": t.Int64TensorType}
    types = [(name, kinds.get(name, t.StringTensorType)([None, 1])) for name in frame.columns]
    proto = skl2onnx.convert_sklearn(model, initial_types=types, **options(rng, last))

    def given(some: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        dtypes = {"a": "float32", "b": "float32", "zone": "int64"}
        return {n: np.array([[r[n]] for r in some], dtype=dtypes.get(n, object)) for n in frame.columns}

    return proto, schema, given


def from_torch(rng: Rng) -> Case:
    """A torch export: a fixed batch or a symbolic one, with a softmax or bare scores."""
    import io

    torch = pytest.importorskip("torch")
    torch.manual_seed(int(rng.integers(1000)))
    schema, classes = numbers(rng), int(rng.integers(2, 4))
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(5, classes),
        *([torch.nn.Softmax(1)] if rng.random() < 0.5 else []),
    ).eval()  # fmt: skip
    for weights in module.parameters():
        weights.data *= 2.0
    batch, buffer = int(rng.integers(0, 4)), io.BytesIO()
    axes = {} if batch else {"dynamic_axes": {"x": {0: "rows"}}}
    torch.onnx.export(
        module, (torch.zeros(batch or 2, 4),), buffer, input_names=["x"], output_names=["scores"], dynamo=False, **axes
    )
    return (
        onnx.load_model_from_string(buffer.getvalue()),
        schema,
        lambda some: {"x": np.array([list(r.values()) for r in some], dtype="float32")},
    )


KINDS: dict[str, tuple[Callable[[Rng], Case], int]] = {
    "one table": (one_table, 12),
    "by column": (by_column, 10),
    "torch": (from_torch, 8),
}


def judged(proto: Any, given: Any, rows: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """What the file says of rows: the class as a number, and by how much."""
    whole = runtime.SessionOptions()
    whole.log_severity_level = 3
    session = runtime.InferenceSession(proto.SerializeToString(), whole, providers=["CPUExecutionProvider"])
    fixed = session.get_inputs()[0].shape[0]
    size = fixed if isinstance(fixed, int) else len(rows)
    parts = []
    for first in range(0, len(rows), size):
        part = (rows[first : first + size] + rows[:size])[:size]
        parts.append(session.run(None, given(part)))
    outputs = parts[0] if len(parts) == 1 else [np.concatenate(p)[: len(rows)] for p in zip(*parts, strict=True)]
    scores = outputs[-1]
    if isinstance(scores, list):
        scores = np.array([list(one.values()) for one in scores])
    scores = np.asarray(scores, dtype=float).reshape(len(rows), -1)
    if scores.shape[1] == 1:
        return np.asarray(outputs[0]).ravel().astype(int), np.abs(scores[:, 0])
    ranked = np.sort(scores, axis=1)
    decided = scores.argmax(axis=1) if len(outputs) == 1 else np.asarray(outputs[0]).ravel()
    return decided.astype(int), ranked[:, -1] - ranked[:, -2]


def asked(seed: int, kind: str) -> str:
    rng = np.random.default_rng([seed, 15])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto, schema, given = KINDS[kind][0](rng)
    rows = every(schema)
    try:
        decided, score_margin = judged(proto, given, rows)
    except runtime.capi.onnxruntime_pybind11_state.NotImplemented:  # it has no imputer of doubles
        return ""
    if (score_margin < CLOSE).any():
        return ""
    model = import_model(proto, schema)
    place = int(rng.integers(len(rows)))
    resolved = int(rng.choice([k for k in range(len(model.classes)) if k != decided[place]]))
    distance = Distance(str(rng.choice(["l1", "l2", "linf", "l0"])))
    answer = (
        Explainer(model).using(reasons=False).explain(rows[place], target=model.classes[resolved], distance=distance)
    )
    assert answer.decision_before == model.classes[decided[place]], (seed, answer)
    points = np.array([schema.read(row) for row in rows])
    far = np.array([distance.between(schema, points[place], point) for point in points])
    nearest = far[decided == resolved].min(initial=math.inf)
    if nearest == math.inf:
        assert isinstance(answer, NoneExists), (seed, answer)
        return "none"
    assert isinstance(answer, Nearest), (seed, answer, answer.note)
    assert abs(answer.upper - nearest) <= 1e-6 * nearest and answer.lower <= nearest * (1 + 1e-9), (
        seed,
        nearest,
        answer,
    )
    assert decided[rows.index(dict(answer.counterfactual or {}))] == resolved
    return "nearest"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("kind", list(KINDS))
def test_agrees_with_the_runtime_on_every_row(kind: str) -> None:
    ends = [asked(seed, kind) for seed in range(COUNT or KINDS[kind][1])]
    assert ends.count("nearest") >= len(ends) / 3, ends
    if COUNT:
        print(kind, {end: ends.count(end) for end in set(ends)})
