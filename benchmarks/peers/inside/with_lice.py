"""LiCE: the nearest row by a mixed-integer program, with or without a density (a sum-product network) as a constraint.

It is not on PyPI: its checkout is named in the task. Of each row: the log-likelihood that the program counted with,
that of the sum-product network itself, and the least that is asked for (the median of the training rows).
"""

import sys
from importlib.metadata import version

import numpy as np

SOLVER = "gurobi"
"""Its own. The free licence takes 2,000 variables and constraints, and this is what keeps the density below that:"""
ROWS_PER_SUM = 1000
"""A sum node of the density is split no further than to so many rows (its own default of 200 gives programs that
HiGHS does not finish in minutes)."""
WAYS = ("plain", "median")


def versions():
    named = ", ".join(f"{name} {version(name)}" for name in ("spflow", "Pyomo", "gurobipy"))
    return f"LiCE (checkout), {named}"


def make(handed, way):
    sys.path.insert(0, handed.checkout)
    from LiCE.lice.LiCE import LiCE

    handler, rows = _handler(handed), np.column_stack([handed.train, handed.labels]).astype(np.float64)
    density = _density(handler, rows)
    least = float(np.median(density.compute_ll(rows)))
    _write_network(handed, handed.folder / "network.onnx")
    lice = LiCE(density, str(handed.folder / "network.onnx"), handler)

    def explain(point, k):
        _count_our_distance(handed, handler, point)
        threshold = -np.inf if way == "plain" else least
        found = lice.generate_counterfactual(
            point, True, threshold, time_limit=handed.budget, solver_name=SOLVER, n_counterfactuals=1
        )
        if not found:
            raise TimeoutError("time limit, or no row")
        row = np.array(found, dtype=np.float64)
        own = float(np.ravel(density.compute_ll(np.column_stack([row, [1.0]])))[0])
        counted = [float(value) for value in lice.stats["ll_computed"]]
        return row, {"density": own, "counted": counted, "least": least, "optimal": lice.stats["optimal"]}

    return explain


def _handler(handed):
    from LiCE.data.DataHandler import DataHandler

    choices = {f["name"]: list(range(f["options"])) for f in handed.features if "options" in f}
    return DataHandler(
        handed.train,
        handed.labels,
        categ_map={name: [float(v) for v in values] for name, values in choices.items()},
        bounds_map={f["name"]: (f["lower"], f["upper"]) for f in handed.features if "lower" in f},
        discrete=[f["name"] for f in handed.features if f["kind"] == "integer"],
        feature_names=handed.names,
    )


def _density(handler, rows):
    from LiCE.spn.SPN import SPN

    return SPN(rows, handler, normalize_data=False, learn_mspn_kwargs={"min_instances_slice": ROWS_PER_SUM})


def _count_our_distance(handed, handler, point):
    """Its costs are inverse deviations of the data; ours are told to it as such: ranges, and steps between levels."""
    for g, (told, feature) in enumerate(zip(handed.features, handler.features, strict=True)):
        if told.get("options", 0) > 2:
            steps = np.abs(np.arange(told["options"]) - point[g])
            cost = steps / told["options"] if told["kind"] == "ordinal" else (steps > 0).astype(float)
            feature._MAD = np.where(cost > 0, 1.0 / np.where(cost > 0, cost, 1.0), np.inf)
        else:
            feature._MAD = np.ones(1)


def _write_network(handed, path):
    """The network over LiCE's columns: numbers in [0, 1], one column of a choice between two, else one per option."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    (weight, bias), *others = handed.layers
    bias, columns = bias.copy(), []
    for g, feature in enumerate(handed.features):
        own = weight[:, handed.columns[g]]
        if "lower" in feature:
            bias += own[:, 0] * feature["lower"]
            own = own * (feature["upper"] - feature["lower"])
        elif feature["options"] == 2:
            bias += own[:, 0]
            own = own[:, 1:] - own[:, :1]
        columns.append(own)
    layers = [(np.hstack(columns), bias), *others]
    nodes, kept, at = [], [], "input"
    for i, (w, b) in enumerate(layers):
        kept += [
            numpy_helper.from_array(w.astype(np.float64), f"w{i}"),
            numpy_helper.from_array(b.astype(np.float64), f"b{i}"),
        ]
        nodes.append(
            helper.make_node(
                "Gemm", [at, f"w{i}", f"b{i}"], [f"z{i}"], name=f"linear{i}", alpha=1.0, beta=1.0, transB=1
            )
        )
        at = f"z{i}"
        if i + 1 < len(layers):
            nodes.append(helper.make_node("Relu", [at], [f"h{i}"], name=f"relu{i}"))
            at = f"h{i}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", width])
        for name, width in (("input", layers[0][0].shape[1]), (at, 1))
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], kept)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
