"""cfnow: `greedy` and `random` search over one-hot columns, its defaults but for the time limit."""

from importlib.metadata import version

import numpy as np

OWN_SECONDS = 15
"""cfnow goes on improving until its own time limit; this is the one that it is told."""


def versions():
    return f"cfnow {version('cfnow')}"


def make(handed, way):
    import pandas as pd
    from cfnow import find_tabular

    names, kinds = [], {}
    for g, feature in enumerate(handed.features):
        plain = f"f{g}"  # cfnow groups one-hot columns by what stands before the underscore
        mine = [plain] if g in handed.numeric else [f"{plain}_{o}" for o in range(feature["options"])]
        names += mine
        kinds.update(dict.fromkeys(mine, "num" if g in handed.numeric else "cat"))

    def explain(point, k):
        found = find_tabular(
            factual=pd.Series(handed.one_hot(point[None, :])[0], index=names),
            model_predict_proba=lambda rows: handed.probabilities(np.asarray(rows, dtype=np.float64)),
            feat_types=kinds,
            cf_strategy=way,
            has_ohe=True,
            count_cf=k,
            limit_seconds=int(min(handed.budget, OWN_SECONDS)),
        )
        return handed.points(np.array(found.cfs)) if len(found.cfs) else []

    return explain
