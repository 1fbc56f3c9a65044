"""ONNX classifiers whose leaves have no weight for some classes, and files that onnxruntime does not take."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask
from benchmarks.attack.decisions import Truth, all_rows, same, wrong
from benchmarks.attack.onnx_files import Runtime, ensemble, model, tree

SPOILT = ("ir version", "opset", "post transform", "mode", "labels", "lengths")


class Leaves:
    """Three or more classes (two now and then); what the file's own label says is the decision."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        features = [
            {"kind": "integer", "name": f"x{i}", "lower": low, "upper": low + chance.randint(1, 6), "step": 1}
            for i, low in enumerate(chance.choices([-3, 0, 0, 2], k=chance.randint(1, 3)))
        ]
        classes = chance.choice([2, 3, 3, 3, 4, 5])
        some = chance.random() < 0.8
        trees = [tree(chance, features, classes, 3, all_weights=not some) for _ in range(chance.choice([1, 1, 2, 4]))]
        return {
            "features": features,
            "trees": trees,
            "classes": [f"c{k}" for k in range(classes)] if chance.random() < 0.5 else list(range(classes)),
            "post": chance.choice(["NONE", "NONE", "SOFTMAX", "LOGISTIC"]),
            "base": [chance.choice([0.0, 0.5, -1.0]) for _ in range(classes)] if chance.random() < 0.2 else [],
            "spoilt": chance.choice(SPOILT) if chance.random() < 0.2 else "",
            "people": [[chance.randint(f["lower"], f["upper"]) for f in features] for _ in range(3)],
            "wanted": chance.randrange(classes),
            "distance": {"norm": chance.choice(["l1", "l0", "linf"])},
        }

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly
        from ifonly import import_model
        from ifonly.schema.io import schema_from_json

        proto = file_of(case)
        schema = schema_from_json({"format": "ifonly-schema", "version": 1, "features": case["features"]})
        if case["spoilt"]:  # onnxruntime ends the process at some of these: what ifonly refuses is not given to it
            try:
                ask(import_model, proto, schema)
            except Refused:
                return Outcome("refused")
        try:
            runtime = Runtime(proto)
            runtime.decide([tuple(case["people"][0])])
        except Exception as error:
            imported = ask(import_model, proto, schema)
            return Outcome(
                "imported", [f"onnxruntime refuses the file, ifonly imports it as {imported!r}: {error}"[:300]]
            )
        explainer = ask(ifonly.Explainer, ask(import_model, proto, schema)).using(reasons=False)
        return answered(case, explainer, runtime, case["classes"][case["wanted"]])


def answered(case: dict[str, Any], explainer: Any, runtime: Runtime, resolved: Any) -> Outcome:
    """Everybody's answer, judged by onnxruntime on all rows."""
    told = Outcome("already")
    for person in map(tuple, case["people"]):
        if same(runtime.decide([person])[0][0], resolved):
            continue
        try:
            answer = ask(explainer.explain, list(person), target=resolved, distance=case["distance"]["norm"])
        except Refused:
            told.status = "refused"
            continue
        told.status = answer.status
        truth = Truth(case["features"], person, resolved, runtime.decide, case["distance"])
        told.faults += [f"{fault} for {person}" for fault in wrong(truth, answer, all_rows(case["features"], person))]
    return told


def file_of(case: dict[str, Any]) -> Any:
    """The file; a spoilt one is what a runtime may refuse: newer than it, or against the operator's definition."""
    import onnx

    named = "strings" if isinstance(case["classes"][0], str) else "int64s"
    more: dict[str, Any] = {f"classlabels_{named}": case["classes"], "post_transform": case["post"]}
    if case["base"]:
        more["base_values"] = case["base"]
    if case["spoilt"] == "post transform":
        more["post_transform"] = "NONE_SUCH"
    if case["spoilt"] == "labels":
        more[f"classlabels_{named}"] = case["classes"][:-1]
    node = ensemble(case["trees"], ["label", "scores"], **more)
    for attribute in node.attribute:
        if case["spoilt"] == "mode" and attribute.name == "nodes_modes":
            attribute.strings[0] = b"BRANCH_NONE_SUCH"
        if case["spoilt"] == "lengths" and attribute.name == "nodes_values":
            del attribute.floats[-1]
    kind = "STRING" if named == "strings" else "INT64"
    proto = model([node], len(case["features"]), {"label": kind, "scores": len(case["classes"])}, {})
    if case["spoilt"] == "ir version":
        proto.ir_version = onnx.IR_VERSION
    if case["spoilt"] == "opset":
        proto.opset_import[0].version = onnx.defs.onnx_opset_version()
    return proto
