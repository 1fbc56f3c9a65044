"""ONNX graphs that go on after their trees: onnxruntime on the whole file, over all rows, is the truth.

Operations on the scores, labels that are mapped, second ensembles, and what skl2onnx writes for models of models. To
refuse a graph is right; an answer must be true of the file as it is.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask
from benchmarks.attack.decisions import Truth, all_rows, missing_library, same, wrong
from benchmarks.attack.onnx_files import ML, Runtime, ensemble, model, tree

TAILS = ("Neg", "Mul", "Add", "Sub", "From", "Abs", "Relu", "Sigmoid", "Identity", "Second", "Softmax")
"""`From` is a constant less the scores, `Second` adds another ensemble."""
EXPORTS = ("tree", "forest", "boosting", "scaled", "stacking", "stacking two", "voting", "calibrated", "bagging",
           "one against the rest", "adaboost")  # fmt: skip


class Graphs:
    """Trees by hand with a tail, or an export of skl2onnx."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = [
            {"kind": "integer", "name": f"x{i}", "lower": low, "upper": low + chance.randint(2, 9), "step": 1}
            for i, low in enumerate(chance.choices([-3, 0, 0, 2], k=chance.randint(1, 3)))
        ]
        people = [[chance.randint(f["lower"], f["upper"]) for f in features] for _ in range(3)]
        case: dict[str, Any] = {"features": features, "people": people, "distance": {"norm": "l1"}}
        if chance.random() < 0.35:
            rows = [[[chance.randint(f["lower"], f["upper"]) for f in features], chance.choice([0, 1])]
                    for _ in range(chance.choice([30, 80]))]  # fmt: skip
            return {**case, "export": chance.choice(EXPORTS), "train": rows, "seed": chance.randrange(100), "tail": []}
        outputs = chance.choice([1, 1, 2, 3])
        decides = outputs > 1
        return {
            **case,
            "outputs": outputs,
            "trees": [tree(chance, features, outputs, 3, all_weights=True) for _ in range(chance.choice([1, 2]))],
            "second": [tree(chance, features, outputs, 2, all_weights=True)],
            "tail": [[chance.choice(TAILS), chance.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 3.0])]
                     for _ in range(chance.choice([0, 1, 1, 2]))],
            "labels": chance.choice(["own", "own", "swapped", "of the tail", "none"]) if decides else "none",
            "least": chance.choice([-1.0, -0.5, 0.1, 0.6, 1.2]) if not decides and chance.random() < 0.5 else None,
        }  # fmt: skip

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly.schema.io import schema_from_json

        if case.get("export") and (with_missing := missing_library(["sklearn", "skl2onnx"])):
            return Outcome(f"{with_missing} is not installed")
        if "train" in case and len({label for _, label in case["train"]}) < 2:
            return Outcome("one class")
        try:
            proto = exported(case) if case.get("export") else built(case)
        except Exception as error:  # what skl2onnx cannot write is no file
            return Outcome(f"not exported: {type(error).__name__}")
        runtime, least = Runtime(proto), case.get("least")
        schema = schema_from_json({"format": "ifonly-schema", "version": 1, "features": case["features"]})
        imported = ask(ifonly.import_model, proto, schema, regression=least is not None)
        explainer = ask(ifonly.Explainer, imported).using(reasons=False)
        told = Outcome("already")
        for person in map(tuple, case["people"]):
            told.faults += [f"{fault} for {person}" for fault in asked_of(case, explainer, runtime, person, told)]
        return told


def asked_of(case: dict[str, Any], explainer: Any, runtime: Runtime, person: tuple[Any, ...], told: Outcome) -> Any:
    """One person's question about each other class of the file, or about a prediction of at least so much."""
    import ifonly

    least = case.get("least")
    decide = runtime.decide if least is None else partial(runtime.decide_above, least)
    rows = all_rows(case["features"], person)
    every = [True] if least is not None else classes(case)
    for resolved in every:
        if same(decide([person])[0][0], resolved):
            continue
        target = resolved if least is None else ifonly.ScoreTarget(at_least=least, margin=1e-6)
        try:
            answer = ask(explainer.explain, list(person), target=target)
        except Refused:
            told.status = "refused"
            continue
        told.status = answer.status
        yield from wrong(Truth(case["features"], person, resolved, decide, case["distance"]), answer, rows)


def classes(case: dict[str, Any]) -> list[int]:
    return [0, 1] if case.get("export") or case["outputs"] == 1 else list(range(case["outputs"]))


# ---------------------------------------------------------------------- the files


def built(case: dict[str, Any]) -> Any:
    """Trees, and what follows them."""
    from onnx import helper

    outputs, many = case["outputs"], len(case["features"])
    decides = outputs > 1
    more = {"classlabels_int64s": list(range(outputs))} if decides else {"n_targets": 1}
    nodes = [ensemble(case["trees"], ["label0", "scores0"] if decides else ["scores0"], **more)]
    constants, now = {}, "scores0"
    for k, (kind, value) in enumerate(case["tail"]):
        after, constant = f"scores{k + 1}", f"constant{k}"
        if kind == "Second":
            names = [f"label{k + 1}", f"more{k}"] if decides else [f"more{k}"]
            nodes += [ensemble(case["second"], names, **more), helper.make_node("Add", [now, f"more{k}"], [after])]
        elif kind in ("Mul", "Add", "Sub", "From"):
            constants[constant] = value
            given = [constant, now] if kind == "From" else [now, constant]
            nodes.append(helper.make_node("Sub" if kind == "From" else kind, given, [after]))
        else:
            nodes.append(helper.make_node(kind, [now], [after]))
        now = after
    told: dict[str, Any] = {}
    if case["labels"] == "own":
        told["label0"] = "INT64"
    elif case["labels"] == "swapped":
        keys = list(range(outputs))
        nodes.append(helper.make_node("LabelEncoder", ["label0"], ["mapped"], domain=ML, keys_int64s=keys,
                                      values_int64s=keys[1:] + keys[:1]))  # fmt: skip
        told["mapped"] = "INT64"
    elif case["labels"] == "of the tail":
        nodes.append(helper.make_node("ArgMax", [now], ["largest"], axis=1, keepdims=0))
        told["largest"] = "INT64"
    return model(nodes, many, {**told, now: outputs}, constants)


def exported(case: dict[str, Any]) -> Any:
    """What skl2onnx writes for a fitted model."""
    import numpy as np
    from skl2onnx import to_onnx

    x = np.array([row for row, _ in case["train"]], dtype=np.float32)
    fitted = estimator(case["export"], case["seed"]).fit(x, [label for _, label in case["train"]])
    return to_onnx(fitted, x[:1], options={"zipmap": False}, target_opset={"": 17, ML: 3})


def estimator(name: str, seed: int) -> Any:
    from sklearn import calibration, ensemble, linear_model, multiclass, pipeline, preprocessing
    from sklearn.tree import DecisionTreeClassifier

    def own(k: int = 0) -> Any:
        return DecisionTreeClassifier(max_depth=3 - k, random_state=seed + k)

    line = linear_model.LogisticRegression()
    match name:
        case "tree":
            return own()
        case "forest":
            return ensemble.RandomForestClassifier(4, max_depth=3, random_state=seed)
        case "boosting":
            return ensemble.GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=seed)
        case "scaled":
            return pipeline.make_pipeline(preprocessing.StandardScaler(), own())
        case "stacking":
            return ensemble.StackingClassifier([("a", own())], line, cv=2)
        case "stacking two":
            return ensemble.StackingClassifier([("a", own()), ("b", own(1))], line, cv=2)
        case "voting":
            return ensemble.VotingClassifier([("a", own()), ("b", line)], voting="soft", flatten_transform=False)
        case "calibrated":
            return calibration.CalibratedClassifierCV(own(), cv=2)
        case "bagging":
            return ensemble.BaggingClassifier(own(), 3, random_state=seed)
        case "one against the rest":
            return multiclass.OneVsRestClassifier(own())
        case _:
            return ensemble.AdaBoostClassifier(own(2), n_estimators=3, random_state=seed)
