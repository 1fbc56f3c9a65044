"""Missing numbers against brute force: every row of a small schema, judged by the pipeline's own `predict` with the NaN in
place, by a distance and by constraints that are written here anew."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from ifonly import Binary, Categorical, Distance, Explainer, FillIn, Integer, Nearest, NoneExists, Query, Schema

pytestmark = pytest.mark.filterwarnings("ignore")

SEEDS, PEOPLE = 50, 5
NUMBERS = ("p", "q", "r")
SCHEMA = Schema(
    (
        Integer("p", 0, 6, missing=True),
        Integer("q", -4, 8, 2, missing=True),
        Integer("r", 0, 4, missing=True),
        Binary("flag"),
        Categorical("job", ("a", "b", "c", None)),
    )
)
VALUES: dict[str, tuple[Any, ...]] = {
    "p": tuple(range(7)),
    "q": tuple(range(-4, 9, 2)),
    "r": tuple(range(5)),
    "flag": (False, True),
    "job": ("a", "b", "c", None),
}
WIDTH = {"p": 6.0, "q": 12.0, "r": 4.0}
Row = dict[str, Any]


def people(rng: np.random.Generator, count: int) -> pd.DataFrame:
    frame = pd.DataFrame({name: rng.choice(VALUES[name], count).astype(float) for name in NUMBERS})
    frame = frame.mask(rng.uniform(size=frame.shape) < rng.choice([0.1, 0.4]))
    frame["flag"] = rng.integers(0, 2, count).astype(bool)
    frame["job"] = pd.Series(rng.choice(np.array(["a", "b", "c", np.nan], dtype=object), count), dtype=object)
    return frame


def front(rng: np.random.Generator) -> Any:
    """Imputers of all kinds, in all places."""

    def imputer() -> SimpleImputer:
        strategy = str(rng.choice(["mean", "median", "most_frequent", "constant"]))
        value = float(rng.choice([-1.0, 0.0, 2.5])) if strategy == "constant" else None
        return SimpleImputer(strategy=strategy, fill_value=value, add_indicator=bool(rng.integers(2)))

    one_hot, scaler = OneHotEncoder(handle_unknown="ignore"), (StandardScaler, MinMaxScaler)[rng.integers(2)]()
    match rng.integers(5):
        case 0:
            numbers: Any = make_pipeline(imputer(), scaler)
        case 1:
            numbers = make_pipeline(scaler, imputer())
        case 2:
            numbers = FeatureUnion([("i", imputer()), ("m", MissingIndicator(features="all"))])
        case 3:  # each with its own
            parts = [(name, make_pipeline(imputer(), StandardScaler()), [name]) for name in NUMBERS]
            return ColumnTransformer([*parts, ("rest", one_hot, ["flag", "job"])])
        case _:  # all of the table before its columns are parted
            first = ColumnTransformer([("n", imputer(), list(NUMBERS)), ("rest", one_hot, ["flag", "job"])])
            return make_pipeline(first, scaler if isinstance(scaler, MinMaxScaler) else MinMaxScaler())
    return ColumnTransformer([("n", numbers, list(NUMBERS)), ("rest", one_hot, ["flag", "job"])])


def pipeline(rng: np.random.Generator) -> Any:
    frame = people(rng, 120)
    truth = frame[list(NUMBERS)].fillna(1.0) @ rng.normal(size=3) + 2.0 * frame["flag"] + 2.0 * (frame["job"] == "a")
    truth = truth + 2.0 * frame["p"].isna() + rng.normal(size=120)
    if rng.integers(3):
        estimator: Any = MLPClassifier((6, 4), max_iter=60, solver="lbfgs", random_state=int(rng.integers(99)))
    else:
        estimator = LogisticRegression()
    return make_pipeline(front(rng), estimator).fit(frame, truth > truth.median())


# ---------------------------------------------------------------------- the question, and what it says of two rows


@dataclass(frozen=True)
class Said:
    words: Any
    allows: Callable[[Row, Row], bool]


def known(row: Row, *names: str) -> bool:
    return all(row[name] is not None for name in names)


def sayings(rng: np.random.Generator, filled: bool) -> Iterator[Said]:
    """Constraints, each with what it means: a missing number breaks nothing."""
    low = int(rng.integers(0, 4))
    every = [
        Said("p is fixed", lambda b, a: a["p"] == b["p"]),
        Said("r only goes up", lambda b, a: not known(b, "r") or a["r"] >= b["r"]),
        Said("q only goes down", lambda b, a: not known(b, "q") or a["q"] <= b["q"]),
        Said(f"p in [{low}, 5]", lambda b, a: not known(a, "p") or low <= a["p"] <= 5),
        Said("q changes by at most 2", lambda b, a: not known(b, "q") or abs(a["q"] - b["q"]) <= 2),
        Said("r changes in steps of 2", lambda b, a: not known(b, "r") or (a["r"] - b["r"]) % 2 == 0),
        Said("p + q >= 3", lambda b, a: not known(a, "p", "q") or a["p"] + a["q"] >= 3),
        Said("if r >= 2 then job = a", lambda b, a: not known(a, "r") or a["r"] < 2 or a["job"] == "a"),
        Said("if job = a then p <= 3", lambda b, a: not known(a, "p") or a["job"] != "a" or a["p"] <= 3),
        Said("p >= 3 or r >= 2", lambda b, a: not known(a, "p") or not known(a, "r") or a["p"] >= 3 or a["r"] >= 2),
        Said(
            "not (p >= 3 and r >= 2)",
            lambda b, a: not ((known(a, "p") and a["p"] >= 3) and (known(a, "r") and a["r"] >= 2)),
        ),
        Said("flag is fixed", lambda b, a: a["flag"] == b["flag"]),
        Said("job is fixed", lambda b, a: a["job"] == b["job"]),
    ]
    if not filled:
        every.append(Said("at most 2 changes", lambda b, a: sum(a[name] != b[name] for name in a) <= 2))
        every.append(Said("job changes only with q", lambda b, a: a["job"] == b["job"] or a["q"] != b["q"]))
    yield from rng.choice(np.array(every, dtype=object), rng.integers(0, 5), replace=False)


def away(before: Row, after: Row, norm: str, weights: dict[str, float], filling: dict[str, float]) -> float:
    """The distance, as the documents define it."""
    total, most, changed = 0.0, 0.0, 0.0
    for name in before:
        weight, old, new = weights.get(name, 1.0), before[name], after[name]
        if old == new:
            continue
        if name in NUMBERS:
            delta = filling[name] if old is None else abs(new - old) / WIDTH[name]
        else:
            delta = 1.0
        total += (weight * delta) ** 2 if norm == "l2" else weight * delta
        most, changed = max(most, weight * delta), changed + weight
    n = len(before)
    return {"l0": changed / n, "l1": total / n, "l2": math.sqrt(total / n), "linf": most / n}[norm]


def table(rows: list[Row]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    frame["job"] = pd.Series([np.nan if job is None else job for job in frame["job"]], dtype=object)
    return frame.astype(dict.fromkeys(NUMBERS, float) | {"flag": bool})


@dataclass(frozen=True)
class Asked:
    """A question of one person, and what it means."""

    before: Row
    norm: str
    weights: dict[str, float]
    filling: dict[str, float]
    said: list[Said]

    @property
    def query(self) -> Query:
        leave = [FillIn(name, change) for name, change in self.filling.items()]
        words = [one.words for one in self.said]
        return Query(distance=Distance(self.norm, weights=self.weights), constraints=[*words, *leave])

    def allows(self, after: Row) -> bool:
        return all(one.allows(self.before, after) for one in self.said)

    def away(self, after: Row) -> float:
        return away(self.before, after, self.norm, self.weights, self.filling)

    def rows(self) -> list[Row]:
        """Every row that can be an answer, but for what is said."""
        options: list[Any] = [
            VALUES[n]
            if self.before[n] is not None or n not in NUMBERS
            else (None, *(VALUES[n] if n in self.filling else ()))
            for n in VALUES
        ]
        rows = (dict(zip(VALUES, values, strict=True)) for values in itertools.product(*options))
        return [row for row in rows if self.allows(row)]

    def nearest(self, model: Any) -> tuple[float, float]:
        """The nearest row that the model decides otherwise: if what is on the edge counts, and if not."""
        rows, now = self.rows(), model.predict(table([self.before]))[0]
        if not rows:
            return math.inf, math.inf
        frame = table(rows)
        other, edge = model.predict(frame) != now, np.abs(model.predict_proba(frame)[:, 1] - 0.5) < 1e-5
        far = np.array([self.away(row) for row in rows])
        return far[other | edge].min(initial=math.inf), far[other & ~edge].min(initial=math.inf)


def asked(rng: np.random.Generator, row: Row) -> Asked:
    filled = bool(rng.integers(2))
    return Asked(
        before={name: None if value is None or value != value else value for name, value in row.items()},
        norm=str(rng.choice(["l0", "l1", "l2", "linf"])),
        weights={name: float(rng.choice([0.5, 1.0, 3.0])) for name in VALUES if rng.integers(2)},
        filling={name: float(rng.choice([0.02, 0.2, 1.0])) for name in NUMBERS if filled and rng.integers(3)},
        said=list(sayings(rng, filled)),
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_against_every_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = pipeline(rng)
    explainer = Explainer(model, schema=SCHEMA)
    frame = people(rng, 400)
    lacking = frame[frame[list(NUMBERS)].isna().any(axis=1)]
    for position in range(PEOPLE):
        row = lacking.iloc[position].to_dict()
        one = asked(rng, row)
        answer = explainer.explain(row, one.query)
        assert answer.factual == one.before
        least, most = one.nearest(model)
        if least == math.inf:
            assert isinstance(answer, NoneExists), one
            continue
        assert isinstance(answer, Nearest), (one, answer)
        after = answer.counterfactual
        assert after is not None and one.allows(after)
        assert least - 1e-9 <= answer.upper <= most + 1e-9, (one, answer)
        assert one.away(after) == pytest.approx(answer.upper, abs=1e-9)
        assert model.predict(table([after]))[0] == answer.decision_after != answer.decision_before
        assert [change.feature for change in answer.changes] == [n for n in VALUES if one.before[n] != after[n]]
