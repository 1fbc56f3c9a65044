"""Every public function with hostile values: a value or one sentence comes back, never a raw error.

Each call is made with one argument replaced by each of the values below; what can be made is then asked about, shown and
written as JSON, because that is where a value that slipped through would do harm.
"""

from __future__ import annotations

import decimal
import enum
import fractions
import json
import math
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ifonly
import ifonly.certifying
from ifonly import (
    Accepted,
    AcceptedBySome,
    Actionable,
    Allowed,
    Binary,
    Categorical,
    CausalModel,
    ClassTarget,
    Distance,
    Explainer,
    Fixed,
    Imputable,
    Integer,
    Limits,
    MaxChanges,
    MaxDelta,
    Model,
    Neighbourhood,
    Network,
    OneOfTarget,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    Ordinal,
    OtherTarget,
    ProbabilityTarget,
    Query,
    Range,
    Real,
    RobustToTrees,
    RobustToWeights,
    Rule,
    Schema,
    Scorecard,
    ScoreTarget,
    Steps,
    Sufficiency,
    TopTarget,
    Unconstrained,
    audit,
    import_model,
    load_model,
)
from ifonly.answering.diverse import Diversity
from ifonly.causes import LinearEquation, ModelEquation, TableEquation
from ifonly.diagnostics import bounds_over_time, cost_by_changes
from ifonly.engines import Processes
from ifonly.errors import Contradiction, IfonlyError
from ifonly.methods import Enumerate, Tolerances
from ifonly.model import load_network, network_model, save_network
from ifonly.model.importers import load_pickle
from ifonly.model.trees import Ensemble, LibraryTree, Summation, Trees
from ifonly.notices import (
    Letter,
    NoticeRequest,
    ReasonCodes,
    ReasonGroup,
    example_template,
    notice,
    notices_to,
    principal_reasons,
    write_mail_merge,
    write_pages,
    write_printout,
)
from ifonly.plausibility import Mahalanobis, Near, dense, inliers, reconstructed
from ifonly.population import Grouping, Output, flip_sets
from ifonly.population.reading import read_answers
from ifonly.problem import scales_from_data
from ifonly.report import answer_page, audit_csv, audit_html, audit_json, audit_page, audit_svg, plain, text
from ifonly.report.reasons import reasons_page
from ifonly.results import Recourse, SufficientReasons
from ifonly.schema import infer, read_points, schema_from_json
from ifonly.surrogates import BlackBox
from untrusted.files import wrong_words


class Loud:
    """An object whose every question about it fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __str__(self) -> str:
        raise RuntimeError("no str")

    def __float__(self) -> float:
        raise RuntimeError("no float")


class Number(enum.IntEnum):
    ONE = 1


HOSTILE: dict[str, Any] = {
    "none": None,
    "true": True,
    "zero": 0,
    "negative": -1,
    "4,000 digits": 10**4000,
    "-5,000 digits": -(10**5000),
    "beyond int64": 2**64,
    "1e999": float("1e999"),
    "-inf": -math.inf,
    "nan": math.nan,
    "tiny": 5e-324,
    "huge": 1.7e308,
    "text": "abc",
    "empty": "",
    "digits": "9" * 5000,
    "1e999 in words": "1e999",
    "escape": "\x1b[31mred\x1b[0m\n\r\x00",
    "bidi": "\u202eabc\u2028\u2066",
    "surrogate": "\ud800x",
    "long text": "z" * 100_000,
    "bytes": b"5",
    "decimal": decimal.Decimal("1e999999"),
    "decimal snan": decimal.Decimal("sNaN"),
    "fraction": fractions.Fraction(10**400, 3),
    "complex": 1 + 2j,
    "numpy int": np.int64(-3),
    "numpy float": np.float32(1.5),
    "numpy nan": np.float64(math.nan),
    "numpy longdouble": np.longdouble("1e4000"),
    "numpy bool": np.bool_(True),
    "numpy text": np.str_("a\x1b"),
    "numpy date": np.datetime64("2020-01-01"),
    "numpy complex": np.complex128(1j),
    "array 0": np.array(1.0),
    "array 1": np.array([1.0, 2.0]),
    "array 2": np.zeros((2, 3)),
    "array of objects": np.array([None, "a", 10**400], dtype=object),
    "no array": np.zeros((0, 4)),
    "list": [],
    "nested": [[1], [2, [3]]],
    "ragged": [[1, 2], [3]],
    "texts": ["a", "\x1b"],
    "big numbers": [10**400, 1],
    "tuple": (1, 2),
    "dict": {},
    "dict of text": {"x": "y"},
    "dict of big": {"Age": 10**400},
    "dict of dict": {"Job": {("clerk", "nurse"): 10**400}},
    "set": {1, 2},
    "object": object(),
    "loud": Loud(),
    "type": int,
    "function": len,
    "enum": Number.ONE,
    "generator": iter([1, 2]),
    "range": range(3),
    "path": Path("/nowhere/at/all"),
    "folder": Path("/"),
}

SCHEMA = Schema([Integer("Age", 17, 20), Ordinal("Level", ["a", "b", "c"]), Categorical("Job", ["clerk", "nurse"]),
                 Binary("Owner")])  # fmt: skip
MODEL = network_model(Network.of([(np.ones((1, 7)), [-20.0])]), SCHEMA, classes=("denied", "approved"))
AUTOENCODER = network_model(Network.of([(0.9 * np.eye(7), [0.0] * 7)]), SCHEMA, regression=True)
THREE = network_model(Network.of([(np.eye(3, 7), [0.0] * 3)]), SCHEMA, classes=("x", "y", "z"))
STUMP = LibraryTree(column=[1, -1, -1], threshold=[0.0] * 3, left=[1, -1, -1], right=[2, -1, -1],
                    value=[[0.0], [1.0], [-1.0]], sets={0: [2]}, adds_to=0)  # fmt: skip
STUMPS = Ensemble.of([STUMP] * 3, columns=len(SCHEMA), summation=Summation.plain(1))
FOREST = Model(function=Trees(STUMPS, SCHEMA), schema=SCHEMA, original=STUMPS.scores, classes=("denied", "approved"))
EXPLAINER = Explainer(MODEL)
ANN = {"Age": 18, "Level": "a", "Job": "clerk", "Owner": False}
NOTICE = notice(EXPLAINER.using(Enumerate()), ANN)
NOTICES = NoticeRequest(explainer=EXPLAINER.using(Enumerate()), query=Query(target="approved"))
TABLE = {name: [value, value] for name, value in ANN.items()}
PEOPLE = [SCHEMA.row(point) for point in SCHEMA.sample(30, np.random.default_rng(0))]


def owners(rows: list[dict[str, Any]]) -> list[Any]:
    """The decisions of a model that can only be called."""
    return [row["Owner"] for row in rows]


def ask(row: Any = None, **question: Any) -> Any:
    how = {name: question.pop(name) for name in ("method", "reasons") if name in question}
    if "fewest_first" in question:
        question["query"] = Query(fewest_first=question.pop("fewest_first"))
    explainer = EXPLAINER.using(**{"method": Enumerate(), **how})
    answer = explainer.explain(ANN if row is None else row, **{"limits": Limits(seconds=600.0), **question})
    return shown(answer)


def streamed(path: Any, table: Any, **more: Any) -> Any:
    """A table as a stream: a record per row, or one sentence and no file."""
    written = EXPLAINER.using(Enumerate()).explain_to(path, table, **more)
    if written.path.is_file():
        records = [json.loads(line) for line in written.path.read_text(encoding="utf-8").splitlines()]
        assert [record["row"] for record in records] == list(range(written.rows))
        assert all(not wrong_words(record["note"]) for record in records)
    return written


def ask_for_several(**asked: Any) -> Any:
    apart = {name: asked.pop(name) for name in ("k", "apart", "differ", "apart_distance") if name in asked}
    explainer = EXPLAINER.using(Enumerate(), limits=asked.pop("limits", None))
    return explainer.explain_diverse(**{"row": ANN, "several": Diversity(**{"k": 2, **apart}), **asked})


def shown(answer: Any) -> Any:
    """The answer, shown in every way; what it says is printable, and it is JSON."""
    page = plain(answer_page(answer)) + text(answer)
    assert page.replace("\n", "").isprintable()
    json.dumps(answer.to_dict(), allow_nan=False).encode()
    return answer


def reasoned(row: Any, sufficiency: Any, **more: Any) -> Any:
    """The reasons, shown in every way, and read back from JSON."""
    told = EXPLAINER.using(Enumerate()).why(row, sufficiency, **more)
    page = str(told) + told.sentence() + told.sentence("de") + plain(reasons_page(told)) + told.to_html()
    assert page.replace("\n", "").isprintable()
    assert SufficientReasons.from_dict(json.loads(json.dumps(told.to_dict(), allow_nan=False))) == told
    return told


CAUSES = CausalModel(
    SCHEMA, {"Age": LinearEquation({"Owner": 1.0}), "Level": TableEquation(["Job"], {"clerk": "a", "nurse": "c"})}
)


def acted(row: Any, causes: Any, **more: Any) -> Any:
    """The recourse, shown in every way, and read back from JSON."""
    told = EXPLAINER.recourse(row, causes, **more)
    page = str(told) + repr(told) + told.sentence() + told.to_html() + causes.to_svg()
    assert page.replace("\n", "").isprintable()
    assert Recourse.from_dict(json.loads(json.dumps(told.to_dict(), allow_nan=False))) == told
    return told


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        return True
    return key


def page_of(picture: Any) -> Any:
    """The picture, shown in a page."""
    page = picture._repr_html_()
    assert page.replace("\n", "").isprintable()
    return picture


def notice_of(told: Any) -> Any:
    """The notice, as a page and as JSON."""
    assert told.to_html().replace("\n", "").isprintable()
    json.loads(told.to_json())
    return told


def schema_with(feature: Any) -> Any:
    """Use the feature: sample, read, infer, write as JSON, and ask about it."""
    schema = Schema([feature, Binary("Owner")])
    points = schema.sample(5, np.random.default_rng(0))
    row = schema.row(points[0])
    schema.read(row)
    model = network_model(Network.of([(np.ones((1, len(schema.columns))), [0.0])]), schema)
    json.dumps([f.to_dict() for f in schema]).encode()
    if len(schema.columns) > 50 or isinstance(feature, Integer | Real):
        return schema
    return shown(Explainer(model).using(Enumerate()).explain(row))


def with_constraint(constraint: Any) -> Any:
    return ask(constraints=[constraint])


def with_target(target: Any) -> Any:
    answer = Explainer(THREE).using(Enumerate()).explain(ANN, target=target, limits=Limits(seconds=600.0))
    return shown(answer)


def model_of(**given: Any) -> Any:
    model = import_model(given.pop("model", Network.of([(np.ones((1, 7)), [-20.0])])), SCHEMA, **given)
    if model.is_classifier:
        return shown(Explainer(model).using(Enumerate()).explain(ANN))
    return model


def saved(folder: Path, **given: Any) -> Any:
    name = given.pop("path", folder / "net.json")
    if isinstance(name, str):
        name = folder / name
    save_network(Network.of([(np.ones((1, 7)), [-20.0])]), name, **given)
    return load_model(name, SCHEMA)


def _key(value: Any) -> Any:
    """The value as a key of a dict, if it can be one."""
    try:
        hash(value)
    except TypeError:
        return "key"
    return value


def _word(value: Any) -> str:
    """The value in a sentence, if Python can write it."""
    try:
        return str(value)
    except (ValueError, RuntimeError):
        return "9" * 5000


def audited(by: Any) -> Any:
    answers = EXPLAINER.using(Enumerate()).explain_many([ANN, {**ANN, "Level": "c"}])
    found = audit(answers, by=by)
    json.dumps(found.to_dict(), allow_nan=False).encode()
    svg = audit_svg(found)
    assert svg.replace("\n", "").isprintable()
    svg.encode()
    assert plain(audit_page(found)).replace("\n", "").isprintable()
    for written in (audit_html(found), audit_csv(found), audit_json(found)):
        assert written.replace("\n", "").isprintable()
        written.encode()
    return found


def with_missing(value: Any, leave: Imputable) -> Any:
    """A number that may be missing, filled in or not, of a model that would take that."""
    schema = Schema([Integer("Age", 0, 3, missing=True), Binary("Owner")])
    model = network_model(Network.of([([[1.0, 0.0]], [-1.5])]), schema)
    filled = network_model(Network.of([([[0.0, 0.0]], [-1.5])]), schema.with_missing(["Age"]))
    explainer = Explainer(replace(model, for_schema=lambda own: filled)).using(Enumerate())
    return shown(explainer.explain({"Age": value, "Owner": True}, constraints=[leave]))


Call = Callable[..., Any]
CALLS: dict[str, tuple[Call, Mapping[str, Any]]] = {
    "Real": (lambda **k: schema_with(Real(**k)), {"name": "x", "lower": 0.0, "upper": 1.0, "missing": False}),
    "Integer": (
        lambda **k: schema_with(Integer(**k)), {"name": "x", "lower": 0, "upper": 10, "step": 2, "missing": False},
    ),
    "Binary": (lambda **k: schema_with(Binary(**k)), {"name": "x", "values": (0, 1)}),
    "Ordinal": (
        lambda **k: schema_with(Ordinal(**k)), {"name": "x", "levels": ("a", "b"), "encoding": "thermometer"},
    ),
    "Categorical": (
        lambda **k: schema_with(Categorical(**k)), {"name": "x", "categories": ("a", "b"), "encoding": "onehot"},
    ),
    "option": (lambda option: schema_with(Categorical("x", ("a", option))), {"option": "b"}),
    "two options": (lambda option: schema_with(Binary("x", (option, "no"))), {"option": "b"}),
    "Schema": (Schema, {"features": SCHEMA.features, "columns": SCHEMA.columns, "rules": ("Age is fixed",)}),
    "Schema.load": (Schema.load, {"path": "schema.json"}),
    "Schema.read": (SCHEMA.read, {"row": ANN}),
    "Schema.infer": (Schema.infer, {"table": TABLE}),
    "infer column": (lambda column: infer({"x": column}), {"column": [1, 2]}),
    "infer values": (lambda value: infer({"x": [value, 1, "a"], "y": [value, value, 2]}), {"value": 1}),
    "infer name": (lambda name: infer({_key(name): [1, 2, 3]}), {"name": "x"}),
    "schema_from_json": (schema_from_json, {"data": {}}),
    "schema json": (
        lambda **k: schema_from_json({"format": "ifonly-schema", "version": 1, "features": [], **k}),
        {"format": "x", "version": 1, "features": [], "columns": [], "rules": []},
    ),
    "schema json feature": (
        lambda **k: schema_from_json({"format": "ifonly-schema", "version": 1, "features": [k]}),
        {"kind": "integer", "name": "x", "lower": 0, "upper": 1, "step": 1, "missing": True},
    ),
    "read_points": (lambda table: read_points(SCHEMA, table, errors=[]), {"table": TABLE}),
    "rows": (lambda row: [ask(row), *EXPLAINER.explain_many([ANN, row])], {"row": ANN}),
    "prepare": (lambda **k: repr(EXPLAINER.using(Enumerate()).prepare(**k)),
                {"query": None, "target": "approved", "distance": "l1", "constraints": ["Level is fixed"], "wait": False}),
    "explain_to": (streamed, {"path": "answers.jsonl", "table": TABLE, "keep": ["Level"], "existing": "replace", "engine": None}),
    "rows of a stream": (lambda row: streamed("rows.jsonl", [ANN, row]), {"row": ANN}),
    "columns of a stream": (lambda **k: streamed("columns.jsonl", {**TABLE, **k}), TABLE),
    "Processes": (lambda count: Processes(count), {"count": 2}),
    "Output": (lambda **k: Output(**k),
                  {"path": "answers.csv", "flat_changes": True, "escape_formulas": True, "partition_by": ("Level",)}),
    "cells": (lambda **k: shown(EXPLAINER.using(Enumerate()).explain_many([k])[0]), ANN),
    "columns": (lambda **k: EXPLAINER.using(Enumerate()).explain_many({**TABLE, **k}), TABLE),
    "explain": (
        lambda **k: ask(**k),
        {"row": ANN, "target": "approved", "distance": "l1", "constraints": (), "fewest_first": False,
         "method": Enumerate(), "limits": Limits(), "reasons": True},
    ),
    "robustness": (
        lambda **k: json.dumps(EXPLAINER.robustness(**k).to_dict(), allow_nan=False),
        {"answer": ANN, "target": "denied", "relative": False},
    ),
    "why": (
        lambda row, **k: reasoned(row, Sufficiency(**k)),
        {"row": ANN, "target": "approved", "within": ("Age is fixed",), "prefer": ("Age",), "several": 1},
    ),
    "why beside": (
        lambda **k: reasoned(k.pop("row"), None, **k),
        {"row": ANN, "target": "approved", "within": 0.5, "several": None, "limits": Limits(seconds=600.0)},
    ),
    "why weights": (lambda weight: reasoned(ANN, Sufficiency(prefer={"Age": weight})), {"weight": 2.0}),
    "recourse": (
        acted,
        {"row": ANN, "causes": CAUSES, "target": "approved", "distance": "l1", "constraints": ("at most 1 change",)},
    ),
    "CausalModel": (lambda **k: CausalModel(**k).after(ANN, {"Owner": True}), {"schema": SCHEMA, "equations": CAUSES.equations, "holding": 0.1}),
    "equation": (lambda equation: CausalModel(SCHEMA, {"Age": equation}).after(ANN, {"Owner": True}), {"equation": LinearEquation({"Owner": 1})}),
    "LinearEquation": (lambda **k: CausalModel(SCHEMA, {"Age": LinearEquation(**k)}).after(ANN, {}),
                       {"weights": {"Job": {"clerk": 1, "nurse": 2}}, "intercept": 0.5}),
    "weight of an equation": (lambda weight: acted(ANN, CausalModel(SCHEMA, {"Age": LinearEquation({"Owner": weight})})), {"weight": 1}),
    "TableEquation": (lambda **k: CausalModel(SCHEMA, {"Age": TableEquation(**k)}), {"parents": ["Owner"], "values": {True: 1, False: 2}}),
    "value of a table": (lambda value: CausalModel(SCHEMA, {"Level": TableEquation(["Owner"], {True: value, False: "a"})}).after(ANN, {"Owner": True}),
                         {"value": "b"}),
    "key of a table": (lambda key: TableEquation(["Owner"], {_hashable(key): 1}), {"key": True}),
    "ModelEquation": (lambda **k: CausalModel(SCHEMA, {"Age": ModelEquation(**k)}), {"parents": ["Owner"], "model": Network.of([([[1.0]], [0.0])])}),
    "CausalModel.of": (CausalModel.of, {"graph": {"Age": ["Owner"]}, "regressors": {"Age": LinearEquation({"Owner": 1})}, "schema": SCHEMA}),
    "CausalModel.fit": (CausalModel.fit, {"graph": {"Age": ["Owner"]}, "table": [ANN] * 12, "schema": SCHEMA, "equations": "linear"}),
    "CausalModel.from_dict": (CausalModel.from_dict, {"data": CAUSES.to_dict(), "schema": SCHEMA}),
    "causes plain data": (lambda **k: CausalModel.from_dict({**CAUSES.to_dict(), **k}, SCHEMA), {"equations": {}, "holding": 0.1, "version": 1}),
    "equation plain data": (
        lambda **k: CausalModel.from_dict({**CAUSES.to_dict(), "equations": {"Age": {"kind": "linear", **k}}}, SCHEMA),
        {"weights": {"Owner": 1}, "intercept": 0},
    ),
    "table plain data": (
        lambda **k: CausalModel.from_dict({**CAUSES.to_dict(), "equations": {"Age": {"kind": "table", **k}}}, SCHEMA),
        {"parents": ["Owner"], "values": [[[True], 1], [[False], 2]]},
    ),
    "network plain data": (
        lambda **k: CausalModel.from_dict({**CAUSES.to_dict(), "equations": {"Age": {"kind": "network", **k}}}, SCHEMA),
        {"parents": ["Owner"], "layers": [{"weight": [[1.0]], "bias": [0.0]}]},
    ),
    "CausalModel.load": (lambda path: CausalModel.load(path, SCHEMA), {"path": "causes.json"}),
    "CausalModel.after": (CAUSES.after, {"row": ANN, "actions": {"Owner": True}}),
    "trees plain data": (
        lambda **k: CausalModel.from_dict({**CAUSES.to_dict(), "equations": {"Age": {"kind": "trees", **k}}}, SCHEMA),
        {"parents": ["Owner"], "trees": {"format": "ifonly-trees", "version": 1}},
    ),
    "CausalModel.from_dowhy": (CausalModel.from_dowhy, {"model": object(), "schema": SCHEMA}),
    "diverse_recourse": (lambda **k: EXPLAINER.diverse_recourse(ANN, CAUSES, **k), {"k": 1}),
    "value of an action": (lambda value: CAUSES.after(ANN, {"Owner": value}), {"value": True}),
    "Recourse.from_dict": (Recourse.from_dict, {"data": EXPLAINER.recourse(ANN, CAUSES).to_dict()}),
    "recourse plain data": (
        lambda **k: Recourse.from_dict({**EXPLAINER.recourse(ANN, CAUSES).to_dict(), **k}), EXPLAINER.recourse(ANN, CAUSES).to_dict(),
    ),
    "Neighbourhood": (
        lambda **k: reasoned(ANN, Sufficiency(within=Neighbourhood(**k))),
        {"constraints": ("Age is fixed",), "radius": 0.5, "distance": "l1"},
    ),
    "principal_reasons": (
        lambda **k: json.dumps(principal_reasons(EXPLAINER.using(Enumerate()), **k).to_dict(), allow_nan=False),
        {"row": ANN, "codes": ReasonCodes(), "target": "approved", "most": 4, "limits": Limits(seconds=600.0)},
    ),
    "ReasonGroup": (
        lambda **k: principal_reasons(EXPLAINER.using(Enumerate()), ANN, ReasonCodes((ReasonGroup(**k),))).to_dict(),
        {"features": ("Age",), "code": "1", "text": "too young"},
    ),
    "notice": (
        lambda **k: notice_of(notice(EXPLAINER.using(Enumerate()), **k)),
        {"row": ANN, "letter": "gdpr", "codes": ReasonCodes(), "query": Query(), "ways": 2},
    ),
    "Letter": (
        lambda **k: notice_of(replace(NOTICE, letter=Letter(**k))),
        {"form": "c-1", "language": "en", "fields": {"creditor": "Bank"}, "template": None, "subject": "it"},
    ),
    "Letter field": (lambda text: notice_of(replace(NOTICE, letter=Letter(fields={"creditor": text}))), {"text": "Bank"}),
    "Notice.with_certificate": (lambda certificate: NOTICE.with_certificate(certificate), {"certificate": "x.cert"}),
    "example_template": (example_template, {"form": "c-1", "language": "en"}),
    "NoticeRequest": (
        lambda **k: notice_of(NoticeRequest(**k).notice(ANN)),
        {"explainer": EXPLAINER, "letter": "c-1", "codes": ReasonCodes(), "query": Query(), "ways": 1},
    ),
    "notices_to": (
        lambda **k: notices_to(**k),
        {"path": "n.jsonl", "table": [ANN], "request": NOTICES, "keep": (), "existing": "replace", "engine": None},
    ),
    "write_pages": (write_pages, {"path": "notices.jsonl", "folder": "pages", "letter": "c-1"}),
    "write_printout": (write_printout, {"path": "notices.jsonl", "page": "all.html", "letter": "c-1"}),
    "write_mail_merge": (write_mail_merge, {"path": "notices.jsonl", "table": "merge.csv"}),
    "ReasonCodes": (lambda groups: ReasonCodes(groups), {"groups": ()}),
    "ReasonCodes.from_dict": (ReasonCodes.from_dict, {"data": {}}),
    "ReasonCodes.load": (ReasonCodes.load, {"path": "codes.json"}),
    "bounds_over_time": (
        lambda **k: page_of(bounds_over_time(EXPLAINER.using(Enumerate()), **k)),
        {"row": ANN, "query": Query(), "target": "approved", "distance": "l1", "constraints": ()},
    ),
    "cost_by_changes": (
        lambda **k: page_of(cost_by_changes(EXPLAINER.using(Enumerate()), **k)),
        {"row": ANN, "query": Query(), "target": "approved", "distance": "l1", "constraints": ()},
    ),
    "explain_diverse": (
        ask_for_several,
        {"row": ANN, "k": 2, "apart": 0.01, "differ": "distance", "apart_distance": "l1", "target": "approved",
         "distance": "l1", "constraints": (), "limits": Limits(seconds=600.0)},
    ),
    "Diversity": (Diversity, {"k": 2, "apart": 0.01, "differ": "distance", "apart_distance": "l1"}),
    "Explainer": (
        lambda **k: shown(Explainer(**k).using(Enumerate()).explain(ANN)),
        {"model": MODEL, "schema": SCHEMA, "classes": ("a", "b"), "constraints": (), "threads": 1,
         "tolerances": Tolerances()},
    ),
    "Limits": (lambda **k: ask(limits=Limits(**k)), {"seconds": 1.0, "nodes": 10, "memory_bytes": 2**30}),
    "Tolerances": (
        Tolerances, dict.fromkeys(("gap", "relative_gap", "agreement_relative", "agreement_relative_float32"), 1e-6),
    ),
    "Distance": (
        lambda **k: ask(distance=Distance(**k)),
        {"norm": "l1", "weights": {"Age": 2.0}, "scales": {"Age": 2.0}, "up": {"Age": 2.0}, "down": {"Age": 2.0},
         "transitions": {"Job": {("clerk", "nurse"): 2.0}}},
    ),
    "weight": (lambda name, number: ask(distance=Distance(weights={_key(name): number})), {"name": "Age", "number": 1.0}),
    "share": (lambda a, b: ask(distance=Distance({"l0": a, "l1": b})), {"a": 0.5, "b": 0.5}),
    "transition": (
        lambda a, b, cost: ask(distance=Distance(transitions={"Job": {(_key(a), _key(b)): cost}})),
        {"a": "clerk", "b": "nurse", "cost": 2.0},
    ),
    "ClassTarget": (lambda **k: with_target(ClassTarget(**k)), {"label": "x", "margin": 1e-6}),
    "ScoreTarget": (
        lambda **k: with_target(ScoreTarget(**k)), {"at_least": 0.5, "at_most": 2.5, "output": 0, "margin": 1e-6},
    ),
    "ProbabilityTarget": (
        lambda **k: Explainer(MODEL.as_log_odds()).using(Enumerate()).explain(ANN, target=ProbabilityTarget(**k)),
        {"label": "approved", "at_least": 0.6, "margin": 1e-6},
    ),
    "OneOfTarget": (lambda **k: with_target(OneOfTarget(**k)), {"labels": ("x", "y"), "margin": 1e-6}),
    "OtherTarget": (lambda **k: with_target(OtherTarget(**k)), {"margin": 1e-6}),
    "TopTarget": (lambda **k: with_target(TopTarget(**k)), {"label": "x", "k": 2, "margin": 1e-6}),
    "Fixed": (lambda **k: with_constraint(Fixed(**k)), {"feature": "Age"}),
    "Unconstrained": (lambda **k: with_constraint(Unconstrained(**k)), {"feature": "Age"}),
    "Imputable": (lambda **k: with_missing(None, Imputable(**k)), {"feature": "Age", "change": 0.5}),
    "a number that may be missing": (lambda x: with_missing(x, Imputable("Age")), {"x": None}),
    "OnlyUp": (lambda **k: with_constraint(OnlyUp(**k)), {"feature": "Age"}),
    "OnlyDown": (lambda **k: with_constraint(OnlyDown(**k)), {"feature": "Age"}),
    "OnlyWith": (lambda **k: with_constraint(OnlyWith(**k)), {"feature": "Age", "partner": "Job"}),
    "Actionable": (lambda **k: with_constraint(Actionable(**k)), {"features": ("Age", "Job")}),
    "Accepted": (
        lambda **k: with_constraint(Accepted(**k)), {"by": MODEL, "target": "approved", "name": "fraud check"},
    ),
    "AcceptedBySome": (
        lambda **k: with_constraint(AcceptedBySome(**k)),
        {"least": 1, "of": [Accepted(by=MODEL, target="approved", name="fraud check")]},
    ),
    "RobustToWeights": (
        lambda **k: with_constraint(RobustToWeights(**k)),
        {"delta": 0.01, "relative": False, "of": Accepted(by=MODEL, target="approved", name="fraud check")},
    ),
    "RobustToTrees": (
        lambda **k: with_constraint(RobustToTrees(**k)),
        {"most": 1, "of": Accepted(by=FOREST, target="approved", name="forest")},
    ),
    "trees in words": (
        lambda number: str(EXPLAINER.knowing(Accepted(by=FOREST, target="approved", name="forest")).explain(
            ANN, constraints=[f"forest accepts without any {_word(number)} trees"])),
        {"number": 1},
    ),
    "weights in words": (lambda number: ask(constraints=[f"robust to weights within {_word(number)}"]), {"number": 1}),
    "Range": (lambda **k: with_constraint(Range(**k)), {"feature": "Age", "lower": 17, "upper": 20}),
    "Allowed": (lambda **k: with_constraint(Allowed(**k)), {"feature": "Job", "values": ("clerk",)}),
    "allowed value": (lambda value: with_constraint(Allowed("Job", [value])), {"value": "clerk"}),
    "MaxDelta by": (lambda **k: with_constraint(MaxDelta(**k)), {"feature": "Age", "by": 2}),
    "MaxDelta share": (lambda **k: with_constraint(MaxDelta(**k)), {"feature": "Age", "share": 0.5}),
    "Steps": (lambda **k: with_constraint(Steps(**k)), {"feature": "Age", "step": 2}),
    "MaxChanges": (lambda **k: with_constraint(MaxChanges(**k)), {"most": 2}),
    "Rule": (lambda **k: with_constraint(Rule(**k)), {"text": "Age >= 18"}),
    "a rule in words": (lambda rule: ask(constraints=[rule]), {"rule": "Age >= 18"}),
    "a number in words": (lambda number: ask(constraints=[f"Age >= {_word(number)}"]), {"number": 18}),
    "steps in words": (lambda number: ask(constraints=[f"Age changes in steps of {_word(number)}"]), {"number": 1}),
    "share in words": (lambda number: ask(constraints=[f"Age changes by at most {_word(number)} %"]), {"number": 18}),
    "changes in words": (lambda number: ask(constraints=[f"at most {_word(number)} changes"]), {"number": 2}),
    "scales_from_data": (scales_from_data, {"schema": SCHEMA, "table": TABLE, "kind": "std"}),
    "Network.of": (lambda weight, bias: Network.of([(weight, bias)]), {"weight": [[1.0]], "bias": [0.0]}),
    "Network layers": (lambda layers: Network.of(layers), {"layers": [([[1.0]], [0.0])]}),
    "Network": (Network, {"layers": MODEL.network.layers}),
    "Model": (
        lambda **k: Model(original=MODEL.original, **k),
        {"function": MODEL.network, "schema": SCHEMA, "classes": ("a", "b"), "precision": "float64"},
    ),
    "import_model": (model_of, {"model": MODEL.network, "classes": ("a", "b"), "regression": False, "inputs": {}}),
    "Scorecard.from_dict": (
        lambda **k: model_of(model=Scorecard.from_dict(k)),
        {"format": "ifonly-scorecard", "version": 1, "base": 1, "cutoff": 2.5, "classes": ("a", "b"),
         "features": {"Age": [{"points": 1}]}},
    ),
    "scorecard bins": (
        lambda name, bins: model_of(model=Scorecard.from_dict({"cutoff": 2, "features": {_key(name): bins}})),
        {"name": "Age", "bins": [{"points": 1}]},
    ),
    "scorecard bin": (
        lambda points, **k: [
            model_of(model=Scorecard.from_dict({"cutoff": 2, "features": {
                "Age": [{key: value, "points": points}, {"points": 0}], "Job": [{"is": "nurse", "points": 1}, {"points": 0}]
            }}))
            for key, value in k.items()
        ],
        {"points": 1, "below": 18, "up_to": 18, "is": 19, "missing": True},
    ),
    "Scorecard": (Scorecard, {"bins": Scorecard.from_dict({"features": {"Age": [{"points": 1}]}}).bins,
                              "base": decimal.Decimal(1), "cutoff": None, "classes": ()}),
    "Scorecard.load": (Scorecard.load, {"path": "x.json"}),
    "class name": (lambda name: model_of(classes=("a", name)), {"name": "b"}),
    "load_model": (lambda path: load_model(path, SCHEMA), {"path": "x.npz"}),
    "load_network": (load_network, {"path": "x.npz"}),
    "load_pickle": (lambda path: load_pickle(path, SCHEMA), {"path": "x.pkl"}),
    "audit": (audited, {"by": "Age"}),
    "Grouping": (lambda **how: audited(Grouping(**how)), {"by": "Age", "least": 5, "parts": 3, "seed": 1}),
    "audit answers": (lambda answers: audit(answers), {"answers": []}),
    "audit an answer": (lambda answer: audit([answer], by="Age"), {"answer": EXPLAINER.explain(ANN)}),
    "audit judge": (lambda judge: audit([], judge=judge), {"judge": None}),
    "Explainer.judge": (EXPLAINER.judge, {"query": None, "reasons": True}),
    "read_answers": (lambda path: list(read_answers(path)), {"path": "x.jsonl"}),
    "audit label": (lambda label: audited([label, "other"]), {"label": "x"}),
    "audit function": (lambda label: audited(lambda row: label), {"label": "x"}),
    "flip_sets": (flip_sets, {"answers": []}),
    "Mahalanobis.of": (
        lambda **k: Mahalanobis.of(SCHEMA, **k).between(ANN, {**ANN, "Age": 20}), {"table": TABLE, "ridge": 1e-3},
    ),
    "Mahalanobis.within": (lambda at_most: Mahalanobis.of(SCHEMA, TABLE).within(at_most), {"at_most": 1.0}),
    "inliers": (
        lambda **k: ask(constraints=[inliers(SCHEMA, **k)]),
        {"table": TABLE, "outliers": 0.1, "trees": 2},
    ),
    "dense": (
        lambda **k: ask(constraints=[dense(SCHEMA, **k)]),
        {"table": TABLE, "components": 1, "outliers": 0.1, "covariance": "diag"},
    ),
    "BlackBox": (
        lambda **k: BlackBox(**k),
        {"predict": owners, "table": PEOPLE, "schema": SCHEMA, "draws": 100, "rounds": 1, "seed": 0},
    ),
    "reconstructed": (
        lambda **k: ask(constraints=[reconstructed(**k)]),
        {"autoencoder": AUTOENCODER, "schema": SCHEMA, "at_most": 9.0, "norm": "l1"},
    ),
    "Near.of": (lambda **k: ask(constraints=[Near.of(SCHEMA, **k)]), {"table": TABLE, "at_most": 1.0, "distance": "l1"}),
    "check": (lambda file: ifonly.check(file), {"file": "x.cert"}),
    "Certificate.load": (ifonly.Certificate.load, {"path": "x.cert"}),
    "Certificate.from_bytes": (ifonly.Certificate.from_bytes, {"content": b""}),
    "certify_recourse": (
        lambda **k: ifonly.certifying.certify_recourse(EXPLAINER, **k),
        {"row": ANN, "causes": CAUSES, "query": None, "target": None, "distance": "l1"},
    ),
    "certify_filled": (
        lambda **k: ifonly.certifying.certify_filled(EXPLAINER, **k),
        {"row": ANN, "query": Query(constraints=["Age is fixed"]), "target": "approved", "distance": "l1"},
    ),
    "certify_none": (
        lambda **k: ifonly.certifying.certify_none(EXPLAINER, **k),
        {"row": ANN, "query": Query(constraints=[f"{name} is fixed" for name in ANN]), "target": "approved", "distance": "l1"},
    ),
    "prove": (ifonly.certifying.prove, {"certificate": "x.cert"}),
    "certified_query": (ifonly.certifying.certified_query, {"certificate": "x.cert"}),
    "certified_query of data": (lambda data: ifonly.certifying.certified_query(ifonly.Certificate(data)), {"data": {}}),
    "certified_query of a question": (
        lambda asked: ifonly.certifying.certified_query(ifonly.Certificate({"question": asked})), {"asked": {}},
    ),
    "datasets.load": (ifonly.datasets.load, {"name": "credit"}),
    "datasets.network": (ifonly.datasets.network, {"name": "credit"}),
    "answers.plot": (
        lambda by: Explainer(MODEL).explain_many([ANN, ANN]).plot(by=by), {"by": ["x", "y"]},
    ),
}  # fmt: skip

CASES = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]


def faults_of(name: str, argument: str) -> list[str]:
    call, given = CALLS[name]
    faults = []
    for value_name, value in HOSTILE.items():
        value = iter([1, 2]) if value_name == "generator" else value
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call(**{**given, argument: value})
        except Contradiction:
            faults.append(f"{value_name}: {traceback.format_exc()}")
        except IfonlyError as error:
            if fault := wrong_words(str(error)):
                faults.append(f"{value_name}: {fault}: {str(error)[:200]!r}")
        except Exception:
            faults.append(f"{value_name}: {traceback.format_exc()}")
    return faults


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("name", "argument"), CASES, ids=[f"{name}({argument})" for name, argument in CASES])
def test_hostile_values(name: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faults = faults_of(name, argument)
    assert not faults, "\n".join(faults)


def test_honest_values_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls themselves are right: what is refused is refused for the hostile value."""
    monkeypatch.chdir(tmp_path)
    missing = {"Scorecard.load", "Schema.load", "schema_from_json", "schema json", "load_model", "load_network", "load_pickle", "check",
               "Certificate.load", "read_answers", "Certificate.from_bytes", "prove", "certified_query", "certified_query of data",
               "certified_query of a question", "ReasonCodes.from_dict", "ReasonCodes.load", "CausalModel.load", "CausalModel.from_dowhy", "trees plain data", "Notice.with_certificate",
               "write_pages", "write_printout", "write_mail_merge"}  # fmt: skip
    for name, (call, given) in CALLS.items():
        if name not in missing:
            call(**given)
