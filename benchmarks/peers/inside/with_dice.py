"""dice-ml: `gradient` on a torch network as its authors do it, `random` and `genetic` on a black box.

Its defaults, but for one: where the range of a feature is large, the last step of `gradient` (putting features back as
far as they go) bisects, as its documentation advises, instead of taking up to 10,000 steps per feature.
"""

from importlib.metadata import version

import numpy as np

OUTCOME = "decision"
WIDE = 10_000.0


def versions():
    return f"dice-ml {version('dice-ml')}; torch {version('torch')}"


def make(handed, way):
    import dice_ml

    frame = handed.frame(handed.train)
    frame[OUTCOME] = handed.labels
    numbers = [handed.names[g] for g in handed.numeric]
    bounds = {handed.names[g]: [handed.features[g]["lower"], handed.features[g]["upper"]] for g in handed.numeric}
    data = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name=OUTCOME)
    if way == "gradient":
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(handed.seed)
        network = _torch_network(handed, data)
        model = dice_ml.Model(model=network, backend="PYT", func="ohe-min-max")
        explainer = dice_ml.Dice(data, model, method="gradient")
        options = {"posthoc_sparsity_algorithm": "binary"} if _wide_ranges(handed) else {}
    else:
        model = dice_ml.Model(model=_BlackBox(handed), backend="sklearn")
        explainer = dice_ml.Dice(data, model, method=way)
        options = {"random_seed": handed.seed % 2**32} if way == "random" else {}

    def explain(point, k):
        extra = {"diversity_weight": 0.0} if way == "gradient" and k == 1 else {}
        found = explainer.generate_counterfactuals(
            handed.frame(point[None, :]), total_CFs=k, desired_class=1, permitted_range=_wide(bounds, frame), **options,
            **extra,
        )  # fmt: skip
        table = found.cf_examples_list[0].final_cfs_df
        return [] if table is None else handed.from_frame(table)

    return explain


def _wide(bounds, frame):
    """The features' bounds, inside what DiCE has seen: it refuses wider ones."""
    return {name: [max(low, frame[name].min()), min(high, frame[name].max())] for name, (low, high) in bounds.items()}


def _wide_ranges(handed):
    """DiCE's advice: search by bisection, not linearly, where the range of a feature is large."""
    return any(handed.features[g]["upper"] - handed.features[g]["lower"] > WIDE for g in handed.numeric)


class _BlackBox:
    """What DiCE asks a scikit-learn model."""

    classes_ = np.array([0, 1])

    def __init__(self, handed):
        self._handed = handed

    def predict_proba(self, frame):
        return self._handed.probabilities(self._handed.one_hot(self._handed.from_frame(frame)))

    def predict(self, frame):
        return self.predict_proba(frame).argmax(axis=1)


def _torch_network(handed, data):
    """The network over DiCE's own columns: numbers scaled to [0, 1] by the training rows, then one-hot options."""
    import torch

    names = {}
    for g, feature in enumerate(handed.features):
        if g in handed.numeric:
            names[feature["name"]] = handed.columns[g][0]
        else:
            names.update({f"{feature['name']}_{o}": at for o, at in enumerate(handed.columns[g])})
    first = data.data_df.iloc[[0]].drop(columns=OUTCOME)
    columns = list(data.get_ohe_min_max_normalized_data(first).columns)
    weight, bias = handed.layers[0]
    picked = weight[:, [names[name] for name in columns]].copy()
    bias = bias.copy()
    for j, name in enumerate(columns):
        if name in data.continuous_feature_names:
            low, high = float(data.data_df[name].min()), float(data.data_df[name].max())
            bias += picked[:, j] * low
            picked[:, j] *= high - low
    layers = []
    for i, (w, b) in enumerate([(picked, bias), *handed.layers[1:]]):
        linear = torch.nn.Linear(w.shape[1], w.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(w)))
            linear.bias.copy_(torch.from_numpy(np.ascontiguousarray(b)))
        layers += [linear, torch.nn.ReLU() if i + 1 < len(handed.layers) else torch.nn.Sigmoid()]
    return torch.nn.Sequential(*layers)
