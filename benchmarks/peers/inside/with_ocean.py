"""OCEAN's constraint programs (CP-SAT, one worker) for forests and XGBoost: the nearest row in l1, proven.

`ocean-isolation`: of those that an isolation forest takes for inliers, by its own threshold.
"""

import time
from importlib.metadata import version

import numpy as np

MOST_WAITING = 15.0
"""By which a limit of wall time is raised at most, where other processes take the processor's time."""


def versions():
    return f"oceanpy {version('oceanpy')}, ortools {version('ortools')}"


def make(handed, way):
    import pandas as pd
    from ocean import ConstraintProgrammingExplainer
    from ocean.abc import Mapper
    from ocean.feature import Feature

    mapping, columns = {}, []
    for g, feature in enumerate(handed.features):
        name = f"F{g:02d}"
        if "options" in feature:
            codes = [f"{option:03d}" for option in range(feature["options"])]
            mapping[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
            columns += [(name, code) for code in codes]
        else:
            mapping[name] = Feature(Feature.Type.CONTINUOUS, levels=(-0.5, 1.5))
            columns.append((name, ""))
    mapper, model = Mapper(mapping, columns=pd.MultiIndex.from_tuples(columns)), handed.model()
    if hasattr(model, "get_booster"):  # it looks for the columns of XGBoost by their names
        model.get_booster().feature_names = [" ".join(part for part in column if part) for column in columns]
    isolating = {}
    if way == "isolation":
        import joblib

        isolating["isolation"] = joblib.load(handed.folder / "isolation.joblib")
        isolating["isolation_threshold"] = float(-isolating["isolation"].offset_)
    explainer = ConstraintProgrammingExplainer(model, mapper=mapper, **isolating)

    waited = 1.0

    def explain(columns, k):
        nonlocal waited
        begun, spent = time.perf_counter(), time.process_time()
        limit = max(1, int(handed.budget * waited))
        found = explainer.explain(columns, y=1, norm=1, max_time=limit, num_workers=1, random_seed=1)
        wall, used = time.perf_counter() - begun, time.process_time() - spent
        waited = min(max(wall / max(used, 1e-3), 1.0), MOST_WAITING)
        if explainer.get_solving_status() != "OPTIMAL":
            raise TimeoutError(f"time limit: {explainer.get_solving_status()}")
        return np.asarray(found.x, dtype=np.float64)[None, :]

    return explain
