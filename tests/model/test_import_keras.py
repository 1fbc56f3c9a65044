"""Keras 3 models become networks that give the same scores; IFONLY_KERAS=200 asks so many questions of random ones."""

from __future__ import annotations

import itertools
import math
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import (
    Binary,
    Categorical,
    Explainer,
    Integer,
    Nearest,
    NoneExists,
    ProbabilityTarget,
    Real,
    Schema,
    import_model,
    load_model,
)
from ifonly.errors import FileError, ModelError, UnsupportedModel
from ifonly.problem import Distance

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is not installed")
if not keras.__version__.startswith("3"):
    pytest.skip("Keras 3 is meant", allow_module_level=True)
layers = keras.layers

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras's own, of numpy 2

COUNT = int(os.environ.get("IFONLY_KERAS", "5"))
SCHEMA = Schema([Real(f"x{i}", -2.0, 2.0) for i in range(3)])
SMALL = Schema([Integer("a", 0, 6), Integer("b", -3, 3), Binary("c")])


def spread(model: Any, rng: np.random.Generator) -> Any:
    """Weights that are not those of a fresh model: statistics too."""
    weights = model.get_weights()
    model.set_weights([
        np.abs(rng.normal(size=w.shape)) + 0.1 if "variance" in v.path else rng.normal(size=w.shape) if w.shape else w
        for w, v in zip(weights, model.weights, strict=True)
    ])  # fmt: skip
    for layer in model.layers:
        if isinstance(layer, layers.Normalization):
            layer.finalize_state()
    return model


def sequential(rng: np.random.Generator, end: str = "softmax", width: int = 3) -> Any:
    front = [[], [layers.Normalization()], [layers.Rescaling(0.5, [1.0] * width)]][int(rng.integers(3))]
    outputs = 1 if end in ("sigmoid", "one") else int(rng.integers(2, 4))
    last = {
        "softmax": [layers.Dense(outputs, activation="softmax")], "sigmoid": [layers.Dense(1, activation="sigmoid")],
        "apart": [layers.Dense(outputs), layers.Softmax()], "log": [layers.Dense(outputs, activation="log_softmax")],
        "logits": [layers.Dense(outputs, use_bias=False), layers.Activation("linear")], "one": [layers.Dense(1)],
    }[end]  # fmt: skip
    model = keras.Sequential([
        layers.Input((width,)), *front, layers.Dense(4, activation="relu"), layers.BatchNormalization(),
        layers.Dropout(0.3), layers.Dense(3), layers.ReLU(), *last,
    ])  # fmt: skip
    return spread(model, rng)


@pytest.mark.parametrize("end", ["softmax", "sigmoid", "apart", "log", "logits", "one"])
def test_sequential_models(end: str) -> None:
    model = sequential(np.random.default_rng(3), end)
    before = model.predict(np.zeros((2, 3)), verbose=0)
    imported = import_model(model, SCHEMA)
    assert (imported.probabilities is not None) == (end not in ("logits", "one"))
    assert imported.precision == "float32" and imported.source == "keras Sequential"
    points = SCHEMA.sample(100, np.random.default_rng(0))
    scores = imported.scores(points)
    own = model.predict(SCHEMA.encode(points), verbose=0)
    assert np.allclose(imported.exact_scores(points), scores, rtol=1e-4, atol=1e-4)
    if own.shape[1] > 1:
        assert (imported.decide(scores) == own.argmax(axis=1)).all()
    spread(model, np.random.default_rng(4))  # further training changes nothing
    assert np.array_equal(imported.scores(points), scores)
    assert not np.array_equal(model.predict(np.zeros((2, 3)), verbose=0), before)


def test_functional_models_and_models_inside_models() -> None:
    inside = keras.Sequential([layers.Input((4,)), layers.Dense(4, activation="relu"), layers.Dense(4)])
    x = keras.Input((3,))
    h = layers.Dense(4, activation="relu")(x)
    h = inside(h)
    joined = layers.Concatenate()([layers.Dense(2)(h), layers.Add()([layers.Dense(2)(h), layers.Dense(2)(h)])])
    model = spread(keras.Model(x, layers.Activation("sigmoid")(layers.Dense(1)(joined))), np.random.default_rng(0))
    imported = import_model(model, SCHEMA, classes=("no", "yes"))
    answer = Explainer(imported).explain([0.1, 0.2, 0.3], target=ProbabilityTarget("yes", at_least=0.3))
    if answer.counterfactual is not None:
        row = np.array([list(answer.counterfactual.values())])
        assert float(model.predict(row, verbose=0)[0, 0]) >= 0.3
    copied = pickle.loads(pickle.dumps(imported))
    points = SCHEMA.sample(5, np.random.default_rng(0))
    assert np.array_equal(copied.scores(points), imported.scores(points))


def branched(merge: Any, *after: Any) -> Any:
    x = keras.Input((3,))
    h = merge()([layers.Dense(4, activation="relu")(x), layers.Dense(4)(x), layers.Dense(4)(x)])
    for layer in (*after, layers.Dense(1)):
        h = layer(h)
    return keras.Model(x, h)


def pooled(pool: Any, channels: str) -> Any:
    shape = (6, 2) if channels == "channels_last" else (2, 6)
    table = [layers.Reshape(shape), pool(data_format=channels), layers.Flatten(data_format="channels_last")]
    return chain(layers.Dense(12), *table, layers.Dense(1))


MORE: dict[str, Any] = {
    **{name: lambda name=name: chain(layers.Dense(4, activation=name), layers.Dense(1))
       for name in ("tanh", "sigmoid", "silu", "gelu", "elu", "softplus", "hard_sigmoid", "relu6", "leaky_relu")},
    "LeakyReLU": lambda: chain(layers.Dense(4), layers.LeakyReLU(negative_slope=0.1), layers.Dense(1)),
    "PReLU": lambda: chain(layers.Dense(4), layers.PReLU(), layers.Dense(1)),
    "ELU": lambda: chain(layers.Dense(4), layers.ELU(alpha=0.7), layers.Dense(1)),
    "capped": lambda: chain(layers.Dense(4), layers.ReLU(max_value=0.7, negative_slope=0.3), layers.Dense(1)),
    "two sigmoids": lambda: chain(layers.Dense(4, activation="sigmoid"), layers.Dense(1, activation="sigmoid")),
    "Average": lambda: branched(layers.Average),
    "Maximum": lambda: branched(layers.Maximum, layers.Activation("tanh")),
    "Minimum": lambda: branched(layers.Minimum),
    "Subtract": lambda: branched(lambda: lambda some: layers.Subtract()(some[:2])),
    **{f"{pool.__name__} {channels}": lambda pool=pool, channels=channels: pooled(pool, channels)
       for pool in (layers.MaxPooling1D, layers.GlobalMaxPooling1D) for channels in ("channels_last", "channels_first")},
}  # fmt: skip


@pytest.mark.parametrize("name", list(MORE))
def test_layers_that_the_table_of_operations_has(name: str) -> None:
    model = spread(MORE[name](), np.random.default_rng(5))
    imported = import_model(model, SCHEMA, classes=("no", "yes"))
    points = SCHEMA.sample(200, np.random.default_rng(0))
    own = model.predict(SCHEMA.encode(points), verbose=0)
    if imported.probabilities is None:
        assert np.allclose(imported.exact_scores(points), own, rtol=1e-5, atol=1e-5)
    else:
        assert np.allclose(imported.probabilities(points)[:, 1:], own, rtol=1e-5, atol=1e-5)
    answer = Explainer(imported).using(reasons=False).explain(points[0].tolist())
    assert isinstance(answer, Nearest | NoneExists)


def test_a_file_is_kerass_to_read(tmp_path: Path) -> None:
    model = sequential(np.random.default_rng(1))
    model.save(tmp_path / "model.keras")
    with pytest.raises(FileError, match=r"load it with keras.saving.load_model\(path, safe_mode=True\)"):
        load_model(tmp_path / "model.keras", SCHEMA)
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    points = SCHEMA.sample(20, np.random.default_rng(0))
    assert np.array_equal(import_model(loaded, SCHEMA).scores(points), import_model(model, SCHEMA).scores(points))


def chain(*some: Any) -> Any:
    return keras.Sequential([layers.Input((3,)), *some])


def _own_code() -> Any:
    class Own(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    return Own()


def _two_inputs() -> Any:
    x, y = keras.Input((3,)), keras.Input((3,))
    return keras.Model([x, y], layers.Add()([x, y]))


def _inside() -> Any:
    return chain(layers.Dense(3), chain(layers.Dense(2, activation="softmax")), layers.Dropout(0.1))


REFUSALS: dict[str, tuple[Any, str]] = {
    "lambda": (lambda: chain(layers.Lambda(lambda x: x * 2), layers.Dense(1)), r"layer Lambda \('.*'\) of the Keras model is not"),
    "softsign": (lambda: chain(layers.Dense(4, activation="softsign"), layers.Dense(1)), "has the activation softsign"),
    "threshold": (lambda: chain(layers.Dense(4), layers.ReLU(threshold=1.0), layers.Dense(1)), "jumps at its threshold"),
    "after": (lambda: chain(layers.Dense(2, activation="softmax"), layers.Dense(2)), "follows a softmax"),
    "table": (lambda: chain(layers.Dense(6), layers.Reshape((2, 3))), "must return one row of scores"),
    "dense table": (lambda: chain(layers.Reshape((3, 1)), layers.Dense(2)), "is not a product of one row of values"),
    "product": (lambda: branched(layers.Multiply), "layer Multiply .* is not supported"),
    "inside": (_inside, "ends a model inside the model"),
    "multilabel": (lambda: chain(layers.Dense(3, activation="sigmoid")), "multilabel"),
    "half": (lambda: chain(layers.Dense(3, dtype="mixed_float16")), "computes in float16"),
    "columns": (lambda: keras.Sequential([layers.Input((5,)), layers.Dense(1)]), r"takes rows of shape \(5,\)"),
    "unbuilt": (lambda: keras.Sequential([layers.Dense(1)]), "not built yet; give it an Input layer"),
    "code": (_own_code, "Own computes by code of its own"),
    "inputs": (_two_inputs, "is no feature of the schema; say which"),
    "layer": (lambda: layers.Dense(3), "must be a keras.Model; got Dense"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSALS))
def test_refusals(name: str) -> None:
    made, message = REFUSALS[name]
    with pytest.raises((ModelError, UnsupportedModel), match=message):
        import_model(made(), SCHEMA)


def test_older_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "__version__", "2.15.0")
    with pytest.raises(UnsupportedModel, match="a model of Keras 2.15.0; supported is Keras 3"):
        import_model(chain(layers.Dense(1)), SCHEMA)


def asked(seed: int) -> str:
    """The answer about a random model, against every row of a finite schema by the model's own predict."""
    rng = np.random.default_rng([seed, 3])
    model = sequential(rng, str(rng.choice(["softmax", "sigmoid", "apart", "logits"])), width=len(SMALL.columns))
    points = np.array(list(itertools.product(range(7), range(-3, 4), range(2))), dtype=float)
    own = model.predict(SMALL.encode(points), verbose=0).astype(float)
    if own.shape[1] == 1:
        decided, score_margin = (own[:, 0] > 0.5).astype(int), np.abs(own[:, 0] - 0.5)
    else:
        ranked = np.sort(own, axis=1)
        decided, score_margin = own.argmax(axis=1), ranked[:, -1] - ranked[:, -2]
    if (score_margin < 1e-5).any():
        return ""
    imported, place = import_model(model, SMALL), int(rng.integers(len(points)))
    wanted = int(rng.choice([k for k in range(len(imported.classes)) if k != decided[place]]))
    distance = Distance(str(rng.choice(["l1", "l2", "linf", "l0"])))
    asking = Explainer(imported).using(reasons=False)
    answer = asking.explain(SMALL.row(points[place]), target=wanted, distance=distance)
    assert answer.decision_before == decided[place], (seed, answer)
    far = np.array([distance.between(SMALL, points[place], point) for point in points])
    nearest = far[decided == wanted].min(initial=math.inf)
    if nearest == math.inf:
        assert isinstance(answer, NoneExists), (seed, answer)
        return "none"
    assert isinstance(answer, Nearest), (seed, answer, answer.note)
    assert abs(answer.upper - nearest) <= 1e-6 * nearest and answer.lower <= nearest * (1 + 1e-9), (seed, nearest)
    return "nearest"


def test_agrees_with_keras_on_every_row() -> None:
    ends = [asked(seed) for seed in range(COUNT)]
    assert "nearest" in ends, ends
    print({end: ends.count(end) for end in set(ends)})


# ---------------------------------------------------------------------- embeddings and several inputs

JOBS = Schema([Integer("age", 18, 30), Categorical("job", ["clerk", "cook", "driver"]), Categorical("flat", [0, 1])])


def embedded(given: str, rng: np.random.Generator) -> Any:
    """A functional model with an embedding of the job, given as a list, a dictionary or one table."""
    age, job = keras.Input((1,), name="age"), keras.Input((1,), name="job", dtype="int32")
    flat = keras.Input((), name="flat", dtype="int32")
    if given == "one table":
        table = keras.Input((3,), name="table")
        parts, inputs = [table[:, :1], table[:, 1:2], table[:, 2]], table
    else:
        parts = [age, job, flat]
        inputs = {"age": age, "job": job, "flat": flat} if given == "dictionary" else parts
    found = [layers.Rescaling(0.1)(parts[0]), layers.Flatten()(layers.Embedding(3, 2)(parts[1]))]
    hidden = layers.Dense(4, activation="relu")(layers.Concatenate()([*found, layers.Embedding(2, 2)(parts[2])]))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(hidden))
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    return model


@pytest.mark.parametrize("given", ["list", "dictionary", "one table"])
def test_embeddings_are_read_and_agree_with_predict_on_every_row(given: str) -> None:
    model = embedded(given, np.random.default_rng(4))
    schema = Schema([
        replace(feature, encoding="code") if isinstance(feature, Categorical) else feature for feature in JOBS.features
    ]) if given == "one table" else JOBS  # fmt: skip
    imported = import_model(model, schema)
    rows = np.array(list(itertools.product(range(18, 31), range(3), range(2))), dtype=np.float64)
    kinds = [rows[:, :1].astype("float32"), rows[:, 1:2].astype("int32"), rows[:, 2].astype("int32")]
    values: Any = {"list": kinds, "dictionary": dict(zip(("age", "job", "flat"), kinds, strict=True))}.get(given, rows)
    own = model.predict(values, verbose=0)[:, 0]
    scores = imported.exact_scores(rows)[:, 0]
    assert np.allclose(1.0 / (1.0 + np.exp(-scores)), own, atol=1e-6)
    for row in rows[:: len(rows) // 6]:
        decided = own[(rows == row).all(axis=1)][0] > 0.5
        others = rows[(own > 0.5) != decided]
        answer = Explainer(imported).explain(schema.row(row))
        far = np.abs(others - row)
        nearest = ((far[:, 0] / 12) + (far[:, 1] > 0) + (far[:, 2] > 0)).min() / 3 if len(others) else math.inf
        assert isinstance(answer, Nearest if len(others) else NoneExists)
        assert not len(others) or math.isclose(answer.distance, nearest, rel_tol=1e-6)


def test_inputs_of_keras_models_are_bound_by_name() -> None:
    number, cat = keras.Input((1,), name="num"), keras.Input((2,), name="cat", dtype="int32")
    found = layers.Flatten()(layers.Embedding(3, 2)(cat))
    model = keras.Model([number, cat], layers.Dense(1)(layers.Concatenate()([number, found])))
    with pytest.raises(UnsupportedModel, match="'num' is no feature.*inputs="):
        import_model(model, JOBS)
    with pytest.raises(ModelError, match="takes rows of shape"):
        import_model(model, JOBS, inputs={"num": ["age"], "cat": ["job"]})
    with pytest.raises(ModelError, match="no input 'text'"):
        import_model(model, JOBS, inputs={"text": ["age"]})
    imported = import_model(model, JOBS, inputs={"num": ["age"], "cat": ["job", "flat"]})
    assert imported.deviation < 1e-5


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (lambda: layers.LayerNormalization(), "train with BatchNormalization"),
        (lambda: layers.Dense(3, dtype="mixed_bfloat16"), "bfloat16.*set_dtype_policy"),
        (lambda: layers.Dense(3, dtype="mixed_float16"), "float16.*set_weights"),
        (lambda: layers.Embedding(3, 2), "looks up"),
    ],
)
def test_refusals_say_what_to_do(layer: Any, said: str) -> None:
    model = keras.Sequential([keras.Input((3,)), layer(), layers.Flatten(), layers.Dense(1)])
    with pytest.raises((UnsupportedModel, ModelError), match=said):
        import_model(model, SCHEMA)
