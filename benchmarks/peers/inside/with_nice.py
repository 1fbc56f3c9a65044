"""NICEx: the nearest training row of the wanted class, then features put back one by one; rewarded for proximity."""

from importlib.metadata import version

import numpy as np


def versions():
    return f"NICEx {version('NICEx')}"


def make(handed, way):
    from nice import NICE

    explainer = NICE(
        predict_fn=lambda rows: handed.probabilities(handed.one_hot(rows)),
        X_train=handed.train.copy(),
        cat_feat=list(handed.choices),
        num_feat=list(handed.numeric),
        y_train=handed.labels,
        optimization="proximity",
        justified_cf=True,
    )

    def explain(point, k):
        if k != 1:
            raise NotImplementedError("NICE returns one row.")
        return np.asarray(explainer.explain(point[None, :].copy()), dtype=np.float64)

    return explain
