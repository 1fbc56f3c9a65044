"""alibi's CounterfactualProto on a Keras network over numbers scaled to [0, 1] and one-hot options, and AnchorTabular.
Their defaults.

alibi is published under the Business Source License 1.1: free to look at and to measure, not free to deploy.
"""

import os
from importlib.metadata import version

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def versions():
    return f"alibi {version('alibi')} (BSL 1.1); tensorflow {version('tensorflow-cpu')}"


def make(handed, way):
    return _anchors(handed) if way == "anchors" else _counterfactuals(handed)


def _anchors(handed):
    """Of a point: a row with a 1 for each feature of its anchor (precision 0.95)."""
    from alibi.explainers import AnchorTabular

    categories = {g: [str(option) for option in range(handed.features[g]["options"])] for g in handed.choices}
    explainer = AnchorTabular(handed.decided, feature_names=handed.names, categorical_names=categories, seed=0)
    explainer.fit(handed.train, disc_perc=(25, 50, 75))

    def explain(point, k):
        named = explainer.explain(point, threshold=0.95).raw["feature"]
        return [[float(g in named) for g in range(len(handed.features))]]

    return explain


def _counterfactuals(handed):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import CounterfactualProto

    lower, width = handed.scaling()
    network = _keras_network(tf, handed, lower, width)
    scaled = (handed.one_hot(handed.train) - lower) / width
    explainer = CounterfactualProto(
        network,
        shape=(1, scaled.shape[1]),
        cat_vars={handed.columns[g][0]: len(handed.columns[g]) for g in handed.choices},
        ohe=True,
        feature_range=(np.zeros((1, len(handed.features))), np.ones((1, len(handed.features)))),
        use_kdtree=True,
        theta=10.0,
    )
    explainer.fit(scaled, d_type="abdm", disc_perc=[25, 50, 75])

    def explain(point, k):
        if k != 1:
            raise NotImplementedError("CounterfactualProto returns one row.")
        found = explainer.explain((handed.one_hot(point[None, :]) - lower) / width, target_class=[1])
        return [] if found.cf is None else handed.points(np.asarray(found.cf["X"]) * width + lower)

    return explain


def _keras_network(tf, handed, lower, width):
    layers = [tf.keras.Input(shape=(len(lower),))]
    arrays = []
    for i, (weight, bias) in enumerate(handed.layers):
        if i == 0:
            weight, bias = weight * width, bias + weight @ lower
        if i + 1 == len(handed.layers):  # two classes by a softmax over (0, score)
            weight, bias = np.vstack([0.0 * weight, weight]), np.concatenate([[0.0], bias])
        last = i + 1 == len(handed.layers)
        layers.append(tf.keras.layers.Dense(len(bias), activation="softmax" if last else "relu"))
        arrays += [weight.T, bias]
    model = tf.keras.Sequential(layers)
    model.set_weights(arrays)
    return model
