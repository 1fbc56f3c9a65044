"""Missing numbers against brute force: every row of a small schema, judged by the pipeline's own `predict` with the NaN in
place, by a distance and by constraints that are written here anew.

The values of a number are listed here in fractions, and so is what is compared: nothing of the schema's own grids,
nor of the enumerator, which is a method like the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
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

from ifonly import (
    Binary,
    Categorical,
    Distance,
    Explainer,
    Imputable,
    Integer,
    Nearest,
    NoneExists,
    Ordinal,
    Query,
    Real,
    Schema,
)
from ifonly.methods import Enumerate, MipObj, Search

pytestmark = pytest.mark.filterwarnings("ignore")

SEEDS, PEOPLE = {"integers": 50, "steps": 10, "mixed": 10}, 5
NUMBERS = ("p", "q", "r")
Row = dict[str, Any]


def listed(lower: str, step: str, count: int) -> tuple[float, ...]:
    """The numbers lower, lower + step, ...: each the float64 nearest to the exact one."""
    return tuple(float(Fraction(lower) + k * Fraction(step)) for k in range(count))


@dataclass(frozen=True)
class Space:
    """A schema, and the values that its features may change to, by a list of them."""

    schema: Schema
    values: dict[str, tuple[Any, ...]]
    strays: dict[str, tuple[float, ...]]
    """Values that a person may have, and nobody may change to."""

    def width(self, name: str) -> float:
        return float(self.values[name][-1] - self.values[name][0])


OTHERS = (Binary("flag"), Categorical("job", ("a", "b", "c", None)))
OPTIONS: dict[str, tuple[Any, ...]] = {"flag": (False, True), "job": ("a", "b", "c", None)}
WHOLE = Space(
    Schema(
        (
            Integer("p", 0, 6, missing=True),
            Integer("q", -4, 8, 2, missing=True),
            Integer("r", 0, 4, missing=True),
            *OTHERS,
        )
    ),
    {"p": tuple(range(7)), "q": tuple(range(-4, 9, 2)), "r": tuple(range(5)), **OPTIONS},
    dict.fromkeys(NUMBERS, ()),
)
STEPPED = Space(  # the middle of each range is no value of it
    Schema(
        (
            Real("p", 0, 6, step="2/3", missing=True),
            Real("q", -4, 8, step=4, missing=True),
            Real("r", 0, 3.6, step="0.4", missing=True),
            *OTHERS,
        )
    ),
    {"p": listed("0", "2/3", 10), "q": listed("-4", "4", 4), "r": listed("0", "0.4", 10), **OPTIONS},
    {"p": (3.0, 0.7), "q": (2.0, -3.5), "r": (1.8, 1.7)},
)
MIXED = Space(
    Schema(
        (
            Real("p", 1, 6, step=5, missing=True),
            Integer("q", -4, 8, 3, missing=True),
            Real("r", 0.1, 2.1, step="0.4", missing=True),
            Binary("flag"),
            Ordinal("job", ("a", "b", "c")),
        )
    ),
    {
        "p": (1.0, 6.0),
        "q": (-4, -1, 2, 5, 8),
        "r": listed("0.1", "0.4", 6),
        "flag": (False, True),
        "job": ("a", "b", "c"),
    },
    {"p": (3.5, 2.0), "q": (), "r": (1.9,)},
)
SPACES = {"integers": WHOLE, "steps": STEPPED, "mixed": MIXED}


def exact(number: float) -> Fraction:
    """The decimal that is written."""
    return Fraction(repr(float(number)))


def people(space: Space, rng: np.random.Generator, count: int) -> pd.DataFrame:
    owned = {name: (*space.values[name], *space.strays[name]) for name in NUMBERS}
    frame = pd.DataFrame({name: rng.choice(owned[name], count).astype(float) for name in NUMBERS})
    frame = frame.mask(rng.uniform(size=frame.shape) < rng.choice([0.1, 0.4]))
    frame["flag"] = rng.integers(0, 2, count).astype(bool)
    jobs = [np.nan if job is None else job for job in space.values["job"]]
    frame["job"] = pd.Series(rng.choice(np.array(jobs, dtype=object), count), dtype=object)
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


def pipeline(space: Space, rng: np.random.Generator) -> Any:
    frame = people(space, rng, 120)
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
    strict: bool = False
    """It says 'less than', which no method takes of a real number."""


def known(row: Row, *names: str) -> bool:
    return all(row[name] is not None for name in names)


def sayings(space: Space, rng: np.random.Generator, filled: bool) -> Iterator[Said]:
    """Constraints, each with what it means: a missing number breaks nothing."""
    low = int(rng.integers(0, 4))
    every = [
        Said("p is fixed", lambda b, a: a["p"] == b["p"]),
        Said("r only goes up", lambda b, a: not known(b, "r") or a["r"] >= b["r"]),
        Said("q only goes down", lambda b, a: not known(b, "q") or a["q"] <= b["q"]),
        Said(f"p in [{low}, 5]", lambda b, a: not known(a, "p") or low <= a["p"] <= 5),
        Said("q changes by at most 2", lambda b, a: not known(b, "q") or abs(exact(a["q"]) - exact(b["q"])) <= 2),
        Said("r changes in steps of 2", lambda b, a: not known(b, "r") or (exact(a["r"]) - exact(b["r"])) % 2 == 0),
        Said("p + q >= 3", lambda b, a: not known(a, "p", "q") or exact(a["p"]) + exact(a["q"]) >= 3),
        Said("if r >= 2 then job = a", lambda b, a: not known(a, "r") or a["r"] < 2 or a["job"] == "a", True),
        Said("if job = a then p <= 3", lambda b, a: not known(a, "p") or a["job"] != "a" or a["p"] <= 3),
        Said("p >= 3 or r >= 2", lambda b, a: not known(a, "p") or not known(a, "r") or a["p"] >= 3 or a["r"] >= 2),
        Said(
            "not (p >= 3 and r >= 2)",
            lambda b, a: not ((known(a, "p") and a["p"] >= 3) and (known(a, "r") and a["r"] >= 2)),
            True,
        ),
        Said("flag is fixed", lambda b, a: a["flag"] == b["flag"]),
        Said("job is fixed", lambda b, a: a["job"] == b["job"]),
    ]
    if not filled:
        every.append(Said("at most 2 changes", lambda b, a: sum(a[name] != b[name] for name in a) <= 2))
        every.append(Said("job changes only with q", lambda b, a: a["job"] == b["job"] or a["q"] != b["q"]))
    every = [one for one in every if space is WHOLE or not one.strict]
    yield from rng.choice(np.array(every, dtype=object), rng.integers(0, 5), replace=False)


def away(one: PreparedQuery, after: Row) -> float:
    """The distance, as the documents define it."""
    before, norm, weights = one.before, one.norm, one.weights
    total, most, changed = 0.0, 0.0, 0.0
    for name in before:
        weight, old, new = weights.get(name, 1.0), before[name], after[name]
        if old == new:
            continue
        if name in NUMBERS:
            delta = one.filling[name] if old is None else abs(new - old) / one.space.width(name)
        elif isinstance(one.space.schema[name], Ordinal):
            places = one.space.values[name]
            delta = abs(places.index(new) - places.index(old)) / len(places)
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
class PreparedQuery:
    """A question of one person, and what it means."""

    space: Space
    before: Row
    norm: str
    weights: dict[str, float]
    filling: dict[str, float]
    said: list[Said]

    @property
    def query(self) -> Query:
        leave = [Imputable(name, change) for name, change in self.filling.items()]
        words = [one.words for one in self.said]
        return Query(distance=Distance(self.norm, weights=self.weights), constraints=[*words, *leave])

    def allows(self, after: Row) -> bool:
        return all(one.allows(self.before, after) for one in self.said)

    def away(self, after: Row) -> float:
        return away(self, after)

    def options(self, name: str) -> tuple[Any, ...]:
        """The values that it may have: those of the list, the person's own, and nothing else."""
        values, own = self.space.values[name], self.before[name]
        if name in NUMBERS and own is None:
            return (None, *(values if name in self.filling else ()))
        return values if own in values else (own, *values)

    def rows(self) -> list[Row]:
        """Every row that can be an answer, but for what is said."""
        rows = (
            dict(zip(self.before, values, strict=True)) for values in itertools.product(*map(self.options, self.before))
        )
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


def asked(space: Space, rng: np.random.Generator, row: Row) -> PreparedQuery:
    filled = bool(rng.integers(2)) or space is not WHOLE
    return PreparedQuery(
        space=space,
        before={name: None if value is None or value != value else value for name, value in row.items()},
        norm=str(rng.choice(["l0", "l1", "l2", "linf"])),
        weights={name: float(rng.choice([0.5, 1.0, 3.0])) for name in space.values if rng.integers(2)},
        filling={name: float(rng.choice([0.02, 0.2, 1.0])) for name in NUMBERS if filled and rng.integers(3)},
        said=list(sayings(space, rng, filled)),
    )


def judge(one: PreparedQuery, answer: Any, model: Any, within: float = 1e-9) -> None:
    """Is it what every row says?"""
    assert answer.factual == one.before
    least, most = one.nearest(model)
    if least == math.inf:
        assert isinstance(answer, NoneExists), one
        return
    assert isinstance(answer, Nearest), (one, answer)
    after = answer.counterfactual
    assert after is not None and one.allows(after)
    assert all(after[name] in one.options(name) for name in after), (one, after)
    assert least - within <= answer.upper <= most + within, (one, answer)
    assert one.away(after) == pytest.approx(answer.upper, abs=1e-9)
    assert model.predict(table([after]))[0] == answer.decision_after != answer.decision_before
    assert [change.feature for change in answer.changes] == [n for n in after if one.before[n] != after[n]]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("space", "seed"), [(name, seed) for name in SPACES for seed in range(SEEDS[name])])
def test_against_every_row(space: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = pipeline(SPACES[space], rng)
    explainer = Explainer(model, schema=SPACES[space].schema)
    frame = people(SPACES[space], rng, 400)
    with_missing = frame[frame[list(NUMBERS)].isna().any(axis=1)]
    for position in range(PEOPLE):
        row = with_missing.iloc[position].to_dict()
        one = asked(SPACES[space], rng, row)
        judge(one, explainer.explain(row, one.query), model)


@pytest.mark.long
@pytest.mark.parametrize("space", ["steps", "mixed"])
@pytest.mark.parametrize("method", [Search(), Enumerate(), MipObj()], ids=lambda method: method.name)
def test_every_method_fills_in_a_value_of_the_grid(method: Any, space: str) -> None:
    filled = 0
    for seed in range(12):
        rng = np.random.default_rng(1000 + seed)
        model = pipeline(SPACES[space], rng)
        frame = people(SPACES[space], rng, 100)
        row = frame[frame["p"].isna() & frame["q"].isin(SPACES[space].values["q"])].iloc[0]
        row["r"] = SPACES[space].values["r"][0]  # programs take people on the grid only
        one = asked(SPACES[space], rng, row.to_dict())
        one = replace(one, filling={"p": 0.01}, said=[], norm="l1")
        answer = Explainer(model, schema=SPACES[space].schema).using(method).explain(row.to_dict(), one.query)
        judge(one, answer, model, 1e-6 if isinstance(method, MipObj) else 1e-9)
        filled += answer.counterfactual is not None and answer.counterfactual["p"] is not None
    assert filled >= 3
