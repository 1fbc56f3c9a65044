"""Veritas: the nearest row in linf, by bisection on exact maximisation, for forests and XGBoost over real columns."""

from importlib.metadata import version

import numpy as np

STEPS = 40
CLOSE = 1e-4
"""Relative: a row is proven when no row is nearer by more than this."""
LITTLE = 1e-7
"""Rows that are as near as this count as where they are: people sit on thresholds."""


def versions():
    return f"dtai-veritas {version('dtai-veritas')}"


def make(handed, way):
    import veritas
    from veritas.robustness import VeritasRobustnessSearch

    trees = veritas.get_addtree(handed.model(), silent=True)

    def near(lower, upper):
        return upper - lower <= CLOSE * upper or upper <= LITTLE

    def explain(columns, k):
        search = VeritasRobustnessSearch(
            columns, 1.0, None, trees, num_steps=STEPS, max_time=handed.budget, silent=True, search_guard=1e-9,
            stop_condition=near,
        )  # fmt: skip
        _, lower, upper = search.search()
        if not near(lower, upper):
            raise TimeoutError(f"time limit: between {lower} and {upper}")
        best = min(search.generated_examples, key=lambda row: np.abs(np.asarray(row) - columns).max())
        return np.asarray(best, dtype=np.float64)[None, :]

    return explain
