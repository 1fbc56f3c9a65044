"""People who lack numbers: answered like all others, by the pipeline's own word with the NaN in place."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import (
    Answer,
    Categorical,
    Distance,
    Explainer,
    Fixed,
    IfonlyError,
    Imputable,
    Integer,
    Nearest,
    Network,
    NoneExists,
    ProbabilityTarget,
    Query,
    Real,
    Schema,
    certify,
    check,
    datasets,
)
from ifonly.certifying import certified_query
from ifonly.cli.app import app
from ifonly.errors import QuestionError, RowError, SchemaError, UnsupportedQuestion
from ifonly.methods import MipObj
from ifonly.plausibility import Mahalanobis, Near, pairs, support
from ifonly.problem import read_constraint, scales_from_data
from ifonly.report import text
from ifonly.results import Progress
from ifonly.schema import Numeric, infer, schema_from_json, schema_to_json

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NUMBERS = ["Income", "Debt", "Years"]
CHOICES = ["Job"]


def table(count: int = 300, with_missing: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({
        "Income": rng.uniform(500, 9000, count).round(2),
        "Debt": rng.uniform(0, 5000, count).round(2),
        "Years": rng.integers(0, 30, count).astype(float),
        "Job": rng.choice(["clerk", "nurse", "none"], count),
    })  # fmt: skip
    frame[NUMBERS] = frame[NUMBERS].mask(rng.uniform(size=(count, 3)) < with_missing)
    return frame


def classes(frame: pd.DataFrame) -> Any:
    known = frame.fillna({"Income": 4000.0, "Debt": 2000.0, "Years": 10.0})
    return np.where(known["Income"] - known["Debt"] + 100 * known["Years"] > 3500, "yes", "no")


def fitted(*front: Any, estimator: Any = None) -> Any:
    frame = table()
    network = MLPClassifier((8,), max_iter=80, random_state=0, solver="lbfgs")
    return make_pipeline(*front, network if estimator is None else estimator).fit(frame, classes(frame))


def usual(**options: Any) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(**options), StandardScaler())
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("choices", OneHotEncoder(), CHOICES)])


FRAME = table()
SCHEMA = Schema.infer(FRAME)
LACKING = FRAME[FRAME[NUMBERS].isna().any(axis=1)]
NO_DEBT = FRAME[FRAME["Debt"].isna() & FRAME["Income"].notna() & FRAME["Years"].notna()].iloc[0].to_dict()
HALF_WAY = "Income in [0, 2800]"


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return fitted(usual(strategy="median", add_indicator=True))


@pytest.fixture(scope="module")
def explainer(pipeline: Any) -> Explainer:
    return Explainer(pipeline, schema=SCHEMA)


def as_frame(answers: Any) -> pd.DataFrame:
    return pd.DataFrame([answer.counterfactual for answer in answers]).astype(dict.fromkeys(NUMBERS, float))


# ---------------------------------------------------------------------- pipelines


def before_all(imputer: SimpleImputer) -> list[Any]:
    """The imputer sees the table first; what comes after it knows columns by number."""
    numbers = ColumnTransformer([("n", imputer, NUMBERS), ("c", OneHotEncoder(), CHOICES)])
    return [numbers, StandardScaler()]


def inside(imputer: SimpleImputer) -> list[Any]:
    each = [(name, make_pipeline(imputer, StandardScaler()), [name]) for name in NUMBERS]
    return [ColumnTransformer([*each, ("c", OneHotEncoder(), CHOICES)])]


def after_scaling(imputer: SimpleImputer) -> list[Any]:
    numbers = make_pipeline(StandardScaler(), imputer)
    return [ColumnTransformer([("n", numbers, NUMBERS), ("c", OneHotEncoder(), CHOICES)])]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("indicator", [False, True], ids=["plain", "indicator"])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("front", [before_all, inside, after_scaling])
def test_every_row_is_answered_and_accepted_with_the_nan_in_place(front: Any, strategy: str, indicator: bool) -> None:
    model = fitted(*front(SimpleImputer(strategy=strategy, add_indicator=indicator)))
    rows = FRAME.head(100)
    answers = Explainer(model, schema=SCHEMA).explain_many(rows)
    assert all(isinstance(answer, Nearest) for answer in answers)
    after = as_frame(answers)
    assert (model.predict(after) != model.predict(rows)).all()
    assert (after.isna().to_numpy() == rows.isna().to_numpy()).all()
    assert rows.isna().to_numpy().sum() >= 20


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("indicator", [False, True], ids=["plain", "indicator"])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_an_imputer_before_the_columns_are_parted(strategy: str, indicator: bool) -> None:
    """Where there is no answer, none of many random rows is one."""
    parted = ColumnTransformer([("n", StandardScaler(), [0, 1])], remainder="passthrough")
    model = make_pipeline(SimpleImputer(strategy=strategy, add_indicator=indicator), parted, LogisticRegression())
    rows, schema = FRAME[NUMBERS].head(60), Schema(SCHEMA.features[:3])
    model.fit(FRAME[NUMBERS], classes(FRAME))
    answers = Explainer(model, schema=schema).explain_many(rows)
    rng = np.random.default_rng(0)
    for answer, (_, row), now in zip(answers, rows.iterrows(), model.predict(rows), strict=True):
        if isinstance(answer, NoneExists):
            others = pd.DataFrame(
                {name: rng.uniform(f.lower, f.upper, 500) for name, f in zip(NUMBERS, schema, strict=True)}
            )  # type: ignore[union-attr]
            others.loc[:, row.isna().to_numpy()] = np.nan
            assert (model.predict(others) == now).all()
        else:
            assert isinstance(answer, Nearest)
            after = pd.DataFrame([answer.counterfactual], dtype=float)
            assert model.predict(after)[0] == answer.decision_after != now
            assert (after.isna().to_numpy()[0] == row.isna().to_numpy()).all()


@pytest.mark.long
@pytest.mark.parametrize("name", ["adult", "credit"])
def test_shipped_data_with_a_tenth_of_its_numbers_missing(name: str) -> None:
    data = datasets.load(name, rules=False)
    rng = np.random.default_rng(0)
    numbers = [feature.name for feature in data.schema if isinstance(feature, Numeric)]
    others = [feature.name for feature in data.schema if not isinstance(feature, Numeric)]
    frame, labels = pd.DataFrame(data.columns).tail(1500), np.asarray(data.labels)[-1500:]
    frame[numbers] = frame[numbers].astype(float).mask(rng.uniform(size=(1500, len(numbers))) < 0.1)
    impute = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    front = ColumnTransformer([("n", impute, numbers), ("o", OneHotEncoder(handle_unknown="ignore"), others)])
    model = make_pipeline(front, MLPClassifier((10,), max_iter=40, solver="lbfgs", random_state=0)).fit(frame, labels)
    features = [replace(f, missing=True) if isinstance(f, Numeric) else f for f in data.schema]
    rows = frame.head(40)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* was fitted without the option")  # 1,500 rows do not have every option
        explainer = Explainer(model, schema=Schema(features))
    answers = explainer.explain_many(rows)
    assert all(isinstance(answer, Nearest) for answer in answers), answers
    after = pd.DataFrame([answer.counterfactual for answer in answers]).astype(dict.fromkeys(numbers, float))
    assert (model.predict(after) != model.predict(rows)).all()
    assert (after.isna().to_numpy() == rows.isna().to_numpy()).all()
    assert rows.isna().to_numpy().sum() >= 10


def test_imputers_whose_marker_is_a_number() -> None:
    frame = FRAME.fillna(-999.0)
    model = make_pipeline(
        ColumnTransformer([
            ("n", make_pipeline(SimpleImputer(missing_values=-999.0, add_indicator=True), StandardScaler()), NUMBERS),
            ("c", OneHotEncoder(), CHOICES),
        ]),
        LogisticRegression(),
    ).fit(frame, classes(FRAME))  # fmt: skip
    answers = Explainer(model, schema=SCHEMA).explain_many(LACKING.head(20))
    after = as_frame(answers).fillna(-999.0)
    assert (model.predict(after) != model.predict(LACKING.head(20).fillna(-999.0))).all()


def test_a_pipeline_on_encoded_columns() -> None:
    whole = pd.get_dummies(FRAME, columns=["Job"], prefix_sep="=").astype(float)
    model = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression())
    model.fit(whole, classes(FRAME))
    schema = Schema(SCHEMA.features, tuple(whole.columns))
    rows = LACKING.head(20)
    answers = Explainer(model, schema=schema).explain_many(rows)
    after = pd.get_dummies(as_frame(answers), columns=["Job"], prefix_sep="=").astype(float)[whole.columns]
    assert (model.predict(after) != model.predict(whole.loc[rows.index])).all()


def test_without_support_there_is_a_sentence() -> None:
    network = Network.of([(np.ones((1, 2)), [-1.0])])
    explainer = Explainer(network, schema=Schema([Real("a", 0, 1, missing=True), Real("b", 0, 1)]))
    assert isinstance(explainer.explain({"a": 0.1, "b": 0.1}), Nearest)
    with pytest.raises(RowError, match=r"'a' has no value, and the model cannot do without it.*put an imputer before"):
        explainer.explain({"a": None, "b": 0.1})
    answers = explainer.explain_many([{"a": 0.1, "b": 0.1}, {"a": None, "b": 0.1}])
    assert [answer.status for answer in answers] == ["nearest", "error"] and "put an imputer" in answers[1].note
    whole = FRAME.dropna()
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(whole[NUMBERS], classes(whole))
    with pytest.raises(
        RowError, match="'Debt' reaches 'LogisticRegression' without a value where it is missing; put an"
    ):
        Explainer(scaled, schema=Schema(SCHEMA.features[:3])).explain({k: NO_DEBT[k] for k in NUMBERS})


def test_a_number_that_is_not_declared_so() -> None:
    with pytest.raises(RowError, match=r"'x' has no value in row 3; fill it in before asking, or, .*missing=True"):
        Real("x", 0, 1).read(None, row=3)


# ---------------------------------------------------------------------- rows, schemas, tables


def test_reading_and_writing_rows() -> None:
    schema = Schema([Real("x", 0, 1, missing=True), Integer("n", 0, 9, missing=True), Categorical("c", ["a", None])])
    for nothing in (None, math.nan, np.float32("nan"), pd.NA, "", "NA", " nan "):
        point = schema.read({"x": nothing, "n": nothing, "c": "a"})
        assert np.isnan(point[:2]).all() and schema.missing_names(point) == ("x", "n")
    assert schema.row(point) == {"x": None, "n": None, "c": "a"}
    with pytest.raises(RowError, match=r"'x' must be a number in \[0, 1\] or missing; the row has 'much'"):
        schema.read({"x": "much", "n": 1, "c": "a"})


def test_schemas_in_files(tmp_path: Path) -> None:
    schema = Schema([Real("x", 0, 1, missing=True), Integer("n", 0, 9, 3, missing=True), Real("y", 0, 1)])
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    assert (
        schema_to_json(schema)["features"][0]["missing"] is True
        and "missing" not in schema_to_json(schema)["features"][2]
    )
    with pytest.raises(SchemaError, match=r"'x': 'missing' must be True or False; it is 'yes'"):
        data = schema_to_json(schema)
        data["features"][0]["missing"] = "yes"
        schema_from_json(data)


def test_inference_says_so() -> None:
    schema, guesses = infer(FRAME)
    assert [feature.missing for feature in schema.features[:3]] == [True, True, True]  # type: ignore[union-attr]
    assert "missing in" in guesses[0].why
    whole = Schema.infer(FRAME.dropna())
    assert not any(feature.missing for feature in whole.features[:3])  # type: ignore[union-attr]


# ---------------------------------------------------------------------- answers


@pytest.mark.long
def test_one_and_many_agree_in_any_order(explainer: Explainer) -> None:
    rows = FRAME.head(40)
    many = explainer.explain_many(rows)
    assert [answer.row for answer in many] == list(range(40))
    for answer, (_, row) in zip(many, rows.iterrows(), strict=True):
        one = explainer.explain(row)
        assert (one.upper, one.counterfactual, one.factual) == (answer.upper, answer.counterfactual, answer.factual)
    several = explainer.using(threads=2).explain_many(rows)
    assert [answer.upper for answer in several] == [answer.upper for answer in many]


def test_a_row_that_lacks_everything() -> None:
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(FRAME[NUMBERS], classes(FRAME))
    answer = Explainer(model, schema=Schema(SCHEMA.features[:3])).explain([None, None, None])
    assert isinstance(answer, NoneExists)


def test_answers_are_strict_json_and_print_missing(explainer: Explainer) -> None:
    answer = explainer.explain(NO_DEBT)
    data = json.loads(answer.to_json(), parse_constant=pytest.fail)
    assert data["factual"]["Debt"] is None and data["counterfactual"]["Debt"] is None
    assert Answer.from_dict(data) == answer
    shown = text(answer) + str(answer) + repr(answer)
    assert "Debt     missing" in shown and "nan" not in shown.replace("finance", "")
    filled = explainer.explain(
        NO_DEBT, constraints=["Debt may be filled in at 0.01", "Income is fixed", "Years is fixed"]
    )
    assert "Debt had been" in str(filled) and "instead of missing" in str(filled)
    assert Answer.from_dict(json.loads(filled.to_json(), parse_constant=pytest.fail)) == filled


def test_diverse_sets(explainer: Explainer, pipeline: Any) -> None:
    several = explainer.explain_diverse(NO_DEBT, 3)
    assert len(several) == 3
    after = as_frame(several)
    assert after["Debt"].isna().all() and (pipeline.predict(after) == several[0].decision_after).all()


def test_audits(explainer: Explainer) -> None:
    rows = FRAME.head(60)
    groups = explainer.audit(rows, by=["lacks" if gone else "has" for gone in rows["Debt"].isna()], target="yes").groups
    assert {group.name for group in groups} == {"lacks", "has"} and all(group.share == 1.0 for group in groups)
    assert any("missing" in group.name for group in explainer.audit(rows, by="Years", target="yes").groups)


def test_other_methods_and_targets(explainer: Explainer, pipeline: Any) -> None:
    nearest = explainer.explain(NO_DEBT)
    assert explainer.using(MipObj()).explain(NO_DEBT).upper == pytest.approx(nearest.upper, rel=1e-5)
    assert explainer.explain(NO_DEBT, Query(fewest_first=True)).counterfactual is not None
    sure = explainer.explain(NO_DEBT, target=ProbabilityTarget(nearest.decision_after, at_least=0.9))
    column = list(pipeline.classes_).index(nearest.decision_after)
    assert pipeline.predict_proba(as_frame([sure]))[0, column] >= 0.9
    assert pickle.loads(pickle.dumps(explainer)).explain(NO_DEBT).upper == nearest.upper


def test_progress_counts_people_once(pipeline: Any) -> None:
    heard: list[Progress] = []
    Explainer(pipeline, schema=SCHEMA).using(listen=heard.append).explain_many(FRAME.head(50))
    assert {event.people for event in heard} == {50} and heard[-1].finished == 50
    heard.clear()
    twice = [*LACKING.head(4).to_dict("records"), *LACKING.head(4).to_dict("records")]
    answers = (
        Explainer(pipeline, schema=SCHEMA)
        .using(listen=heard.append)
        .explain_many(twice, constraints=[Imputable("Income", 0.01), Imputable("Debt", 0.01), Imputable("Years", 0.01)])
    )
    assert {event.people for event in heard} == {4} and heard[-1].finished == 4
    assert [answer.row for answer in answers] == list(range(8)) and answers[5].upper == answers[1].upper


# ---------------------------------------------------------------------- constraints


@pytest.mark.parametrize(
    "words",
    ["Debt is fixed", "Debt only goes up", "Debt in [0, 1]", "Debt changes by at most 10 %", "Debt changes in steps of 5",
     "Debt <= 0.001 * Income", "if Debt >= 0 then Years <= 1", "Debt is free"],
)  # fmt: skip
def test_what_is_said_of_a_missing_number_binds_nothing(explainer: Explainer, words: str) -> None:
    free = explainer.explain(NO_DEBT)
    assert explainer.explain(NO_DEBT, constraints=[words]).counterfactual == free.counterfactual
    ruled = Explainer(explainer.model, constraints=[words])
    assert ruled.explain(NO_DEBT).counterfactual == free.counterfactual


def test_what_is_said_of_other_numbers_binds(explainer: Explainer) -> None:
    free = explainer.explain(NO_DEBT)
    assert [change.feature for change in free.changes] == ["Income"]
    answer = explainer.explain(NO_DEBT, constraints=[HALF_WAY, "Debt >= 4000 or Years <= 50"])
    assert isinstance(answer, Nearest) and answer.upper > free.upper and len(answer.changes) > 1
    impossible = explainer.explain(NO_DEBT, constraints=["Income is fixed", "Years is fixed", "Job is fixed"])
    assert isinstance(impossible, NoneExists) and impossible.reasons is not None


def test_schemas_with_rules_of_their_own(pipeline: Any) -> None:
    schema = Schema(SCHEMA.features, SCHEMA.columns, ["Debt only goes down", HALF_WAY])
    answer = Explainer(pipeline, schema=schema).explain(NO_DEBT)
    assert isinstance(answer, Nearest) and len(answer.changes) > 1


def test_what_is_no_constraint(explainer: Explainer) -> None:
    class Wish:
        def describe(self) -> str:
            return "please"

    for row in (NO_DEBT, FRAME.dropna().iloc[0]):
        with pytest.raises(QuestionError, match="is not a constraint; use Fixed"):
            explainer.explain(row, constraints=[Wish()])  # type: ignore[list-item]


def test_what_compares_whole_rows_has_no_meaning(explainer: Explainer) -> None:
    with pytest.raises(RowError, match=r"compares whole rows, which has no meaning where 'Debt' is missing"):
        explainer.explain(NO_DEBT, constraints=[Near.of(SCHEMA, FRAME, 0.1)])
    with pytest.raises(RowError, match="A correlated cost has no meaning where 'Debt' is missing"):
        explainer.explain_correlated(NO_DEBT, Mahalanobis.of(SCHEMA, FRAME))
    answers = explainer.explain_many([NO_DEBT, FRAME.dropna().iloc[0]], constraints=[Near.of(SCHEMA, FRAME, 0.2)])
    assert [answer.status for answer in answers] == ["error", "nearest"]


def test_what_is_learned_from_data_that_lacks_numbers(explainer: Explainer) -> None:
    learned = [*support(SCHEMA, FRAME, quantiles=(0.05, 0.95)), *pairs(SCHEMA, FRAME)]
    answer = explainer.explain(NO_DEBT, constraints=learned)
    assert answer.counterfactual is not None and answer.counterfactual["Debt"] is None
    scales = scales_from_data(SCHEMA, FRAME, "std")
    assert scales["Debt"] == pytest.approx(float(FRAME["Debt"].std(ddof=0)))
    assert isinstance(explainer.explain(NO_DEBT, distance=Distance(scales=scales, up={"Debt": 2.0})), Nearest)


# ---------------------------------------------------------------------- filling in


def test_filling_in_costs_what_is_stated(explainer: Explainer, pipeline: Any) -> None:
    stays = explainer.explain(NO_DEBT)
    only = ["Income is fixed", "Years is fixed", "Job is fixed"]
    assert isinstance(explainer.explain(NO_DEBT, constraints=only), NoneExists)
    for change in (0.01, 1.0):
        answer = explainer.explain(NO_DEBT, constraints=[*only, Imputable("Debt", change)])
        assert isinstance(answer, Nearest) and answer.upper == pytest.approx(change / 4)
        assert (pipeline.predict(as_frame([answer])) == answer.decision_after).all()
    assert explainer.explain(NO_DEBT, constraints=[Imputable("Debt", 50.0)]).counterfactual == stays.counterfactual
    assert (
        explainer.explain(NO_DEBT, constraints=[Imputable("Debt", 0.01), Fixed("Debt")]).counterfactual
        == stays.counterfactual
    )
    many = explainer.explain_many([NO_DEBT, NO_DEBT], constraints=[*only, "Debt may be filled in"])
    assert [one.upper for one in many] == pytest.approx([0.25, 0.25])


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l0", "l1", "linf"])
def test_filling_in_by_another_method(explainer: Explainer, norm: str) -> None:
    leave = [Imputable("Income", 0.1), Imputable("Debt", 0.05), Imputable("Years", 0.02)]
    filled = 0
    for _, row in LACKING.head(6).iterrows():
        answers = [e.explain(row, distance=norm, constraints=leave) for e in (explainer, explainer.using(MipObj()))]
        assert answers[0].upper == pytest.approx(answers[1].upper, rel=1e-5)
        filled += any(change.before is None for change in answers[0].changes)
    assert filled or norm == "l0"


def test_a_filled_in_number_meets_what_is_said_of_it(explainer: Explainer) -> None:
    only = ["Income is fixed", "Years is fixed", "Job is fixed", "Debt may be filled in"]
    answer = explainer.explain(NO_DEBT, constraints=only)
    assert answer.counterfactual is not None
    value = answer.counterfactual["Debt"]
    assert isinstance(value, float) and len(f"{value:g}") <= 5  # no more digits than it needs
    beyond = [f"Debt <= {value - 500}", f"Debt >= {value + 500}"]
    ends = [explainer.explain(NO_DEBT, constraints=[*only, words]) for words in beyond]
    assert any(isinstance(one, NoneExists) for one in ends)
    ruled = explainer.explain(NO_DEBT, constraints=[*only, "Debt only goes up", "Debt changes by at most 1"])
    assert ruled.upper == answer.upper


def test_what_cannot_be_asked_where_numbers_may_be_filled_in(explainer: Explainer) -> None:
    leave = [Imputable("Debt", 0.001)]
    with pytest.raises(UnsupportedQuestion, match="That 'Debt' may be filled in can be asked with `explain`"):
        explainer.explain_diverse(NO_DEBT, 2, constraints=leave)
    with pytest.raises(UnsupportedQuestion, match="That 'Debt' may be filled in"):
        certify(explainer, NO_DEBT, constraints=leave)
    with pytest.raises(RowError, match="'at most 1 change' counts changes"):
        explainer.explain(NO_DEBT, constraints=[*leave, "at most 1 change"])
    with pytest.raises(QuestionError, match="use l0"):
        explainer.explain(NO_DEBT, Query(fewest_first=True, constraints=leave))
    with pytest.raises(QuestionError, match="'Job' is never missing, so there is nothing to fill in"):
        explainer.explain(NO_DEBT, constraints=["Job may be filled in"])
    with pytest.raises(
        QuestionError, match="Filling in 'Debt' must count as a change between 1e-09 and 1e.09; it is 0"
    ):
        Imputable("Debt", 0)
    whole = FRAME.dropna().iloc[0]
    assert certify(explainer, whole, constraints=leave) is not None  # who lacks nothing has nothing to fill in


def test_the_leave_in_words_and_in_json() -> None:
    query = Query(constraints=[Imputable("Debt", 0.25), Imputable("Income"), "Years may be filled in at 0.5"])
    assert Query.from_dict(json.loads(query.to_json())) == query
    assert [Imputable("Debt", 0.25).describe(), Imputable("Income").describe()] == [
        "Debt may be filled in at 0.25", "Income may be filled in",
    ]  # fmt: skip
    assert read_constraint("Debt may be filled in at 0.25", SCHEMA) == Imputable("Debt", 0.25)
    with pytest.raises(IfonlyError, match="after 'Debt may' comes: be filled in"):
        read_constraint("Debt may grow", SCHEMA)


# ---------------------------------------------------------------------- certificates, the command line


def test_certificates_say_that_the_number_is_missing(explainer: Explainer) -> None:
    certificate = certify(explainer, NO_DEBT)
    checked = check(certificate)
    assert checked.valid and "'Debt': categorical (missing), encoded as code; now missing" in str(checked)
    query, row = certified_query(certificate)
    assert explainer.explain(row, query).upper == pytest.approx(checked.upper)


def test_the_command_line_reads_empty_cells(pipeline: Any, tmp_path: Path) -> None:
    FRAME.head(12).to_csv(tmp_path / "rows.csv", index=False)
    SCHEMA.save(tmp_path / "schema.json")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(pipeline))
    files = ["--model", str(tmp_path / "model.pkl"), "--unsafe-pickle", "--schema", str(tmp_path / "schema.json"),
             "--rows", str(tmp_path / "rows.csv")]  # fmt: skip
    told = CliRunner().invoke(app, ["explain", *files, "--rule", "Debt may be filled in at 0.001", "--json"])
    assert told.exit_code == 0, told.output
    answers = json.loads(told.stdout)["answers"]
    assert len(answers) == 12 and {answer["status"] for answer in answers} == {"nearest"}
    assert any(answer["counterfactual"]["Income"] is None for answer in answers)
