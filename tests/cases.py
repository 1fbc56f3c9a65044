"""The reference cases: networks, people and optimal distances that another solver found.

`tests/data` holds, for each case, a network (ReLU, one score, class 1 iff it is positive), encoded rows that it denies,
and the optimal distances of a big-M mixed-integer program solved by Gurobi 13 with gap 0 and tolerances of 1e-9.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ifonly import Model, Network, Schema
from ifonly.model import network_model

DATA = Path(__file__).parent / "data"
NORMS = ("l0", "l1", "l2", "linf")
CASES = (
    ("compas", "2x10", "raw"),
    ("compas", "2x10", "norm"),
    ("credit", "2x10", "raw"),
    ("credit", "2x10", "norm"),
    ("credit", "2x50", "norm"),
    ("adult", "2x10", "raw"),
    ("adult", "2x10", "norm"),
    ("adult", "2x50", "norm"),
)


def load(
    dataset: str, arch: str = "2x10", variant: str = "norm", *, margin: float = 0.0, folder: Path = DATA
) -> tuple[Model, NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """The model, the denied people (as points) and, by norm, the optimal distance of person i (NaN where unknown)."""
    schema = Schema.load(folder / f"{dataset}.schema.json")
    with np.load(folder / f"{dataset}_{arch}_{variant}.npz", allow_pickle=False) as case:
        layers = [(case[f"W{i}"].T, case[f"b{i}"]) for i in range(sum(name.startswith("W") for name in case.files))]
        network = Network.of(layers).after(np.diag(case["scale"]), case["shift"])
        points = schema.decode(case["X"])
        suffix = f"@{margin:g}"
        optima = {name.removesuffix(suffix): case[name] for name in case.files if name.endswith(suffix)}
    return network_model(network, schema), points, optima
