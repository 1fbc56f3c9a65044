"""Keras models as people build them: sequential, functional, several inputs, embeddings, smooth activations."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.suites.models.people import CHOICES, JOBS, NUMBERS, REGIONS, applications, schema
from benchmarks.suites.models.subjects import Subject, Trained

CENTRES, SCALES = np.array([42.0, 2600.0, 900.0, 35.0]), np.array([14.0, 1700.0, 900.0, 35.0])


def library() -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    return keras


def numbers_and_codes(rows: Any) -> dict[str, Any]:
    """What a model of several inputs takes."""
    codes = {"job": [JOBS.index(r["job"]) for r in rows], "region": [REGIONS.index(r["region"]) for r in rows]}
    flat = {name: np.array(values, dtype="int32")[:, None] for name, values in codes.items()}
    numbers = np.array([[float(r[name]) for name in NUMBERS] for r in rows], dtype="float32")
    return {"num": numbers, **flat, "owner": np.array([[int(r["owner"])] for r in rows], dtype="int32")}


def taught(model: Any, given: Any, labels: Any, steps: int = 12) -> Any:
    model.compile(optimizer=library().optimizers.Adam(0.02), loss="binary_crossentropy")
    model.fit(given, labels, epochs=steps, batch_size=256, verbose=0)
    return model


def encoded(make: Callable[[Any, int], list[Any]]) -> Trained:
    """A sequential model of the schema's encoded columns."""
    keras, described, data = library(), schema(), applications()

    def columns(rows: Any) -> Any:
        return described.encode(np.array([described.read(row) for row in rows])).astype("float32")

    given = columns(data.table.to_dict("records"))
    front = keras.layers.Normalization()
    front.adapt(given)
    width = given.shape[1]
    layers = [keras.Input((width,)), front, *make(keras.layers, width), keras.layers.Dense(1, activation="sigmoid")]
    model = taught(keras.Sequential(layers), given, data.labels)
    return Trained(model=model, schema=described, predict=lambda rows: _decided(model, columns(rows)))


def _decided(model: Any, given: Any) -> list[int]:
    return [int(v > 0.5) for v in model.predict(given, verbose=0, batch_size=4096)[:, 0].tolist()]


def functional(make: Callable[[Any, Any], Any], *, keyed: bool = False) -> Trained:
    """A functional model of four inputs with embeddings; `keyed`: they are a dictionary."""
    keras, data = library(), applications()
    layers = keras.layers
    inputs = {"num": keras.Input((4,), name="num")}
    inputs |= {name: keras.Input((1,), name=name, dtype="int32") for name in CHOICES}
    scale = layers.Normalization(mean=CENTRES, variance=SCALES**2)
    tables = {"job": len(JOBS), "region": len(REGIONS), "owner": 2}
    found = [layers.Flatten()(layers.Embedding(size, 3)(inputs[name])) for name, size in tables.items()]
    joined = layers.Concatenate()([scale(inputs["num"]), *found])
    made = make(layers, joined)
    model = keras.Model(inputs if keyed else list(inputs.values()), layers.Dense(1, activation="sigmoid")(made))

    def given(rows: Any) -> Any:
        named = numbers_and_codes(rows)
        return named if keyed else list(named.values())

    taught(model, given(data.table.to_dict("records")), data.labels)
    return Trained(
        model=model,
        schema=schema("code"),
        predict=lambda rows: _decided(model, given(rows)),
        options={"inputs": {"num": NUMBERS}},
    )


def residual(layers: Any, x: Any) -> Any:
    first = layers.Dense(12, activation="relu")(x)
    return layers.Add()([first, layers.Dense(12, activation="relu")(first)])


def wide_and_deep(layers: Any, x: Any) -> Any:
    return layers.Concatenate()([x, layers.Dense(12, activation="relu")(x)])


def normalised(kind: str, layers: Any, width: int) -> list[Any]:
    return [layers.Dense(12), getattr(layers, kind)(), layers.Activation("relu")]


def dense(activation: str, layers: Any, x: Any) -> Any:
    return layers.Dense(12, activation=activation)(x)


KERAS = [
    Subject(
        family="Keras",
        name="two ReLU layers, Normalization, dropout",
        train=lambda: encoded(
            lambda layers, width: [
                layers.Dense(12, activation="relu"),
                layers.Dropout(0.1),
                layers.Dense(12, activation="relu"),
            ]
        ),
    ),
    Subject(
        family="Keras",
        name="tanh",
        train=lambda: encoded(lambda layers, width: [layers.Dense(12, activation="tanh")]),
    ),
    Subject(
        family="Keras",
        name="BatchNormalization, LeakyReLU",
        train=lambda: encoded(
            lambda layers, width: [layers.Dense(12), layers.BatchNormalization(), layers.LeakyReLU(0.1)]
        ),
    ),
    Subject(
        family="Keras",
        name="maxout by MaxPooling1D",
        train=lambda: encoded(
            lambda layers, width: [
                layers.Dense(12),
                layers.Reshape((12, 1)),
                layers.MaxPooling1D(2),
                layers.Flatten(),
            ]
        ),
    ),
    Subject(family="Keras", name="embeddings, four inputs", train=partial(functional, partial(dense, "relu"))),
    Subject(
        family="Keras",
        name="embeddings, a dictionary of inputs",
        train=partial(functional, partial(dense, "relu"), keyed=True),
    ),
    Subject(family="Keras", name="embeddings, GELU", train=partial(functional, partial(dense, "gelu"))),
    Subject(family="Keras", name="embeddings, residual", train=partial(functional, residual)),
    Subject(family="Keras", name="embeddings, wide and deep", train=partial(functional, wide_and_deep)),
    Subject(
        family="Keras",
        name="LayerNormalization",
        train=lambda: encoded(partial(normalised, "LayerNormalization")),
        advice="BatchNormalization",
        remedy=lambda: encoded(partial(normalised, "BatchNormalization")),
    ),
]
