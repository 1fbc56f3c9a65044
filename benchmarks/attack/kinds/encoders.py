"""Codes as text before encoders: the user's own `predict`, on the user's own values, is the truth.

A table of codes (leading zeros, digits, True and "True", 1 and "1") is what a pipeline was fitted on. The schema is
inferred from the frame or from a csv file, or stated, also with options that the encoder has never seen; rows come
as dicts, frames or csv. What an answer leaves alone keeps the user's own value, what it changes has the answer's.
"""

from __future__ import annotations

import csv
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.attack.asking import Fault, Outcome, Refused, ask, shown
from benchmarks.attack.decisions import Decision, Truth, ahead, all_rows, same, wrong
from benchmarks.attack.space import Feature, Row, is_number, options

CODES: dict[str, list[Any]] = {
    "zeros": ["01067", "01069", "10115", "99084", "00501"],
    "digits": ["1", "2", "10", "11"],
    "one length": ["11", "12", "13", "21"],
    "mixed": ["A1", "7", "07", "B"],
    "words": ["True", "False", "maybe"],
    "decimals": ["1.0", "1.50", "2"],
    "exponents": ["1e3", "1000", "2e5"],
    "signs": ["+1", "-1", "1"],
    "grouped": ["1,000", "10.000", "1000"],
    "missing words": ["NA", "none", "DE"],
    "long": ["4000000000000000001", "4000000000000000002", "4000000000000000003"],
    "whole": [1, 2, 3, 10],
    "truth": [False, True],
    "numbers": [0.5, 1.0, 1.5, 4.0],
}
UNSEEN = {"str": ["01068", "3", "C", "truth"], "int": [4, 7], "bool": [], "float": []}


class Encoders:
    """One fitted pipeline, one way to its schema, three people."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        drawn = chance.sample(sorted(CODES), chance.randint(1, 3))
        values = [chance.sample(CODES[family], min(len(CODES[family]), chance.randint(2, 5))) for family in drawn]
        votes = [{str(v): chance.choice([-2, -1, 1, 2]) for v in own} for own in values]
        rows = []
        for _ in range(chance.choice([30, 60])):
            row = [chance.choice(own) for own in values]
            score = sum(vote[str(v)] for vote, v in zip(votes, row, strict=True))
            rows.append([row, "yes" if score > 0 else "no"])
        rows[0][1], rows[1][1] = "yes", "no"
        schema = chance.choice(["frame", "csv", "csv", "stated"])
        unseen = [
            chance.sample(UNSEEN[type(own[0]).__name__], 1) if chance.random() < 0.4 and UNSEEN[type(own[0]).__name__]
            else [] for own in values
        ]  # fmt: skip
        return {
            "columns": [chance.choice([f"{name.replace(' ', '_')}{i}", f"plz_{i}"]) for i, name in enumerate(drawn)],
            "values": values,
            "unseen": unseen if schema == "stated" else [[] for _ in values],
            "train": rows,
            "people": [[chance.choice([*own, *more]) if chance.random() < 0.9 else own[0]
                        for own, more in zip(values, unseen if schema == "stated" else [[]] * len(values), strict=True)]
                       for _ in range(3)],
            "schema": schema,
            "rows": chance.choice(["dict", "frame", "csv"]),
            "imputer": chance.random() < 0.5,
            "encoder": chance.choice(["onehot", "onehot", "ordinal"]),
            "estimator": chance.choice(["linear", "tree"]),
        }  # fmt: skip

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        user = User(case)
        if user.model is None:
            return Outcome("not fitted")
        with tempfile.TemporaryDirectory() as folder:
            try:
                schema = ask(schema_of, case, user, Path(folder))
                explainer = ask(ifonly.Explainer, user.model, schema=schema).using(reasons=False)
            except Refused as why:
                shown(why)
                return Outcome(f"{case['schema']} refused")
            features = json.loads(schema.to_json())["features"]
            told = Outcome("already")
            for person in map(tuple, case["people"]):
                told.faults += [
                    f"{fault} for {person}" for fault in asked_of(case, user, explainer, features, person, told)
                ]
            return told


def asked_of(
    case: dict[str, Any], user: User, explainer: Any, features: list[Feature], person: Row, told: Outcome
) -> Any:
    """One person's question and what is false about the answer, in the user's own values."""
    now, _ = user.decide([person])[0]
    if now not in ("yes", "no"):
        return  # the user's own model cannot be asked about this person
    resolved = "no" if now == "yes" else "yes"
    try:
        answer = answer_of(case, explainer, person, resolved)
    except Refused:
        told.status = "row refused"
        return
    if answer.status == "error":
        told.status = "row refused"
        return
    told.status = answer.status
    own = dict(zip(case["columns"], person, strict=True))
    before = tuple(read(f, own[f["name"]]) for f in features)
    if any(not is_number(f) and value not in (options(f) or ()) for f, value in zip(features, before, strict=True)):
        yield f"answered for a value that is not among the options of {features}"
        return

    def in_own_values(row: Row) -> Row:
        """What stays as it is, is the user's own; columns that the schema leaves out stay as well."""
        changed = {f["name"]: b for f, a, b in zip(features, before, row, strict=True) if not same(a, b)}
        return tuple(changed.get(name, own[name]) for name in case["columns"])

    def decide(rows: list[Row]) -> list[Decision]:
        return user.decide([in_own_values(row) for row in rows])

    truth = Truth(features, before, resolved, decide, {"norm": "l1"})
    yield from wrong(truth, answer, all_rows(features, before))


def read(feature: Feature, value: Any) -> Any:
    """The user's value as the schema writes it: the option of the same text, or the number."""
    if is_number(feature):
        number = float(str(value).replace(",", ""))
        return int(number) if feature["kind"] == "integer" else number
    ways = (same, lambda a, b: str(a) == str(b), lambda a, b: number_of(a) == number_of(b) is not None)
    named = options(feature) or []
    return next((option for alike in ways for option in named if alike(option, value)), value)


def number_of(value: Any) -> float | None:
    """The number that a text stands for, if it does."""
    try:
        return float(value)
    except ValueError:
        return None


def schema_of(case: dict[str, Any], user: User, folder: Path) -> Any:
    """The schema: inferred from the frame, from a csv file by the command, or stated."""
    import ifonly
    from ifonly.schema.io import schema_from_json

    if case["schema"] == "frame":
        return ifonly.Schema.infer(user.frame([tuple(row) for row, _ in case["train"]]))
    if case["schema"] == "stated":
        stated = [{"kind": "categorical", "name": name, "categories": [*own, *more]}
                  for name, own, more in zip(case["columns"], case["values"], case["unseen"], strict=True)]  # fmt: skip
        return schema_from_json({"format": "ifonly-schema", "version": 1, "features": stated})
    from ifonly.cli.app import app

    table, found = folder / "table.csv", folder / "schema.json"
    write_csv(table, case["columns"], [row for row, _ in case["train"]])
    from click.testing import CliRunner

    told = CliRunner().invoke(app, ["schema", "infer", str(table), "--output", str(found)])
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise Fault(f"{type(told.exception).__name__}: {told.exception} (raised by ifonly schema infer)")
    if told.exit_code != 0:
        raise Refused(told.output)
    return ifonly.Schema.load(found)


def answer_of(case: dict[str, Any], explainer: Any, person: Row, resolved: str) -> Any:
    """The answer, to a row as the case gives it."""
    import ifonly

    if case["rows"] == "csv":
        with tempfile.TemporaryDirectory() as folder:
            table, out = Path(folder) / "people.csv", Path(folder) / "answers.jsonl"
            write_csv(table, case["columns"], [list(person)])
            ask(explainer.explain_to, out, table, ifonly.Query(target=resolved))
            record = json.loads(out.read_text())
        upper = record.get("distance")
        return SimpleNamespace(
            status=record["status"], note=record["note"], counterfactual=record.get("counterfactual"),
            lower=record["lower_bound"] if record.get("lower_bound") is not None else float("inf"),
            upper=upper if upper is not None else float("inf"),
        )  # fmt: skip
    row = dict(zip(case["columns"], person, strict=True))
    if case["rows"] == "frame":
        import pandas as pd

        return ask(explainer.explain_many, pd.DataFrame([row]), target=resolved)[0]
    return ask(explainer.explain, row, target=resolved)


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


class User:
    """Somebody who has fitted a pipeline on a frame of codes, and asks it about frames."""

    def __init__(self, case: dict[str, Any]) -> None:
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
        from sklearn.tree import DecisionTreeClassifier

        self.columns: list[str] = case["columns"]
        coded = [name for name, own in zip(self.columns, case["values"], strict=True) if not isinstance(own[0], float)]
        encoder = OneHotEncoder(handle_unknown="ignore")
        if case["encoder"] == "ordinal":
            encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        steps = [SimpleImputer(strategy="most_frequent"), encoder] if case["imputer"] else [encoder]
        last = LogisticRegression() if case["estimator"] == "linear" else DecisionTreeClassifier(random_state=0)
        front = ColumnTransformer([("codes", make_pipeline(*steps), coded)], remainder="passthrough")
        self.model: Any = make_pipeline(front, last)
        try:
            self.model.fit(self.frame([tuple(row) for row, _ in case["train"]]), [label for _, label in case["train"]])
        except Exception:  # an imputer of booleans, say: that is between scikit-learn and the user
            self.model = None

    def frame(self, rows: list[Row]) -> Any:
        import pandas as pd

        columns: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(self.columns)}
        return pd.DataFrame({name: pd.Series(own, dtype=object) if isinstance(own[0], str) else pd.Series(own)
                             for name, own in columns.items()})  # fmt: skip

    def decide(self, rows: list[Row]) -> list[Decision]:
        """Class and lead of each row; rows of other types are asked about by themselves, as a user would."""
        sorts: dict[tuple[type, ...], list[int]] = {}
        for i, row in enumerate(rows):
            sorts.setdefault(tuple(map(type, row)), []).append(i)
        found: dict[int, Decision] = {}
        for members in sorts.values():
            found |= dict(zip(members, self._decide([rows[i] for i in members]), strict=True))
        return [found[i] for i in range(len(rows))]

    def _decide(self, rows: list[Row]) -> list[Decision]:
        frame = self.frame(rows)
        try:
            labels, chances = self.model.predict(frame).tolist(), self.model.predict_proba(frame).tolist()
        except Exception as error:  # a value that the pipeline was never fitted on
            return [(f"{type(error).__name__}: {error}"[:80], 0.0)] * len(rows)
        return [(label, ahead(chance)) for label, chance in zip(labels, chances, strict=True)]
