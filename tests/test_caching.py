"""Caches bounded by bytes, and what is kept between questions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, Limits, Network, Real, Schema
from ifonly.caching import SizedCache, bytes_of, cached
from ifonly.methods import MipObj
from ifonly.model import network_model


def lengths(most: int) -> SizedCache[bytes]:
    return SizedCache(most, len)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = lengths(100)
    for name in "abc":
        cache.put(name, name.encode() * 30)
    assert cache.get("a") is not None  # used again
    cache.put("d", b"d" * 30)
    assert [cache.get(name) is not None for name in "abcd"] == [True, False, True, True]
    assert cache.nbytes == 90 <= cache.most_bytes


def test_many_small_values_or_few_large_ones() -> None:
    cache = lengths(1000)
    for k in range(5000):
        cache.put(k, b"x")
    assert len(cache) == 1000
    cache.put("large", b"x" * 990)
    assert len(cache) == 11 and cache.nbytes == 1000
    cache.put("larger than all", b"x" * 5000)
    assert len(cache) == 1, "the last one is in use, and kept until the next"
    cache.put("small", b"x")
    assert cache.nbytes == 1


def test_made_once_and_not_kept_where_making_fails() -> None:
    cache, made = lengths(100), []

    def make() -> bytes:
        made.append(1)
        if len(made) == 1:
            raise ValueError
        return b"value"

    with pytest.raises(ValueError):
        cache.get_or_make("key", make)
    assert [cache.get_or_make("key", make) for _ in range(3)] == [b"value"] * 3 and len(made) == 2
    assert cache.get_or_make([], make) == cache.get_or_make([], make) and len(made) == 4  # cannot be hashed
    cache.put("key", b"other")
    assert cache.nbytes == len(b"other")
    copy = pickle.loads(pickle.dumps(SizedCache(7, len)))
    assert (copy.most_bytes, len(copy)) == (7, 0)


def test_sizes_are_counted_once_there_is_more_than_one_value() -> None:
    counted = []

    def size(value: bytes) -> int:
        counted.append(value)
        return len(value)

    cache = SizedCache(100, size)
    cache.put("a", b"a" * 60)
    assert cache.get("a") is not None and not counted
    cache.put("b", b"b" * 30)
    cache.put("c", b"c" * 30)
    assert sorted(counted) == [b"a" * 60, b"b" * 30, b"c" * 30]
    assert cache.get("a") is None and cache.nbytes == 60


def test_functions_are_bounded_by_what_they_return_and_take() -> None:
    calls = []

    @cached(10_000)
    def doubled(text: str) -> str:
        calls.append(text)
        return 2 * text

    assert doubled("a" * 1000) == doubled("a" * 1000) and len(calls) == 1
    for letter in "bcdefg":
        doubled(letter * 1000)
    doubled("a" * 1000)
    assert len(calls) == 8


def test_bytes_are_counted_once_and_views_by_what_they_keep_alive() -> None:
    array = np.zeros(1000)
    own = bytes_of(array)
    assert 8000 <= own <= 8200
    assert own <= bytes_of([array, array, array[:2], array.reshape(10, 100).T]) <= own + 500
    assert bytes_of([array], without=[array]) < 500
    network = Network.of([(np.zeros((100, 50)), np.zeros(100)), (np.zeros((1, 100)), np.zeros(1))])
    assert 8 * 5201 <= bytes_of(network) <= 8 * 5201 + 4000


# ---------------------------------------------------------------------- what explainers keep


@pytest.fixture(scope="module")
def forest() -> Explainer:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 4))
    model = RandomForestClassifier(30, random_state=0).fit(rows, rows.sum(axis=1) > 0.0)
    return Explainer(model, schema=Schema([Real(f"x{i}", -5, 5) for i in range(4)]))


def prepared(explainer: Explainer) -> SizedCache[Any]:
    return explainer._answerer.runner.solver.prepared


def test_a_further_question_to_a_forest_keeps_no_more_than_its_leaves_take(forest: Explainer) -> None:
    for k in range(3):
        forest.explain([-1.0] * 4, constraints=[f"x0 <= {k + 1}"])
    leaves = len(forest.model.function.ensemble.values)  # type: ignore[attr-defined]
    sizes = [entry.nbytes for entry in prepared(forest)._entries.values()]
    assert len(sizes) == 3 and max(sizes) <= 16 * leaves + 20_000
    # the trees in cells, which all questions share, take more than that
    assert sum(part.nbytes for part in forest_parts(forest)) > 4 * max(sizes)


def forest_parts(explainer: Explainer) -> list[np.ndarray]:
    from ifonly.solvers.search.trees.compiled import TREE_KERNELS
    from ifonly.solvers.search.trees.shared import shared_trees

    parts = shared_trees(explainer.model.function, TREE_KERNELS.now).parts  # type: ignore[arg-type]
    return [part for part in parts if isinstance(part, np.ndarray)]


def test_however_many_questions_the_bytes_are_bounded() -> None:
    rng = np.random.default_rng(0)
    network = Network.of([(rng.normal(size=(40, 6)), rng.normal(size=40)), (rng.normal(size=(1, 40)), np.zeros(1))])
    explainer = Explainer(network_model(network, Schema([Real(f"x{i}", 0, 1) for i in range(6)])))
    explainer.explain([0.5] * 6)
    (one,) = (entry.nbytes for entry in prepared(explainer)._entries.values())
    prepared(explainer).most_bytes = 10 * one
    for k in range(40):
        explainer.explain([0.5] * 6, constraints=[f"x0 <= {0.6 + k / 100}"])
    assert 5 <= len(prepared(explainer)) <= 10 and prepared(explainer).nbytes <= 10 * one


def test_programs_keep_bounds_of_some_domains() -> None:
    rng = np.random.default_rng(0)
    network = Network.of([(rng.normal(size=(8, 2)), rng.normal(size=8)), (rng.normal(size=(1, 8)), np.zeros(1))])
    explainer = Explainer(network_model(network, Schema([Real("x", 0, 1), Real("y", 0, 1)]))).using(MipObj())
    explainer.explain([0.5, 0.5])
    (entry,) = prepared(explainer)._entries.values()
    kept = entry.value.solver.kept
    assert 0 < kept.nbytes < 4096 and kept.most_bytes <= entry.nbytes


def test_people_who_lack_numbers_share_one_cache() -> None:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(rows, rows.sum(axis=1) > 0.0)
    explainer = Explainer(model, schema=Schema([Real(f"x{i}", -3, 3, missing=True) for i in range(3)]))
    for row in ([1.0, None, 0.5], [None, None, 0.5], [1.0, 1.0, 0.5]):
        explainer.explain(row, limits=Limits(seconds=60))
    assert len(prepared(explainer)) == 3 and len(explainer._answerer._by_missing) == 2
    again = pickle.loads(pickle.dumps(explainer))
    assert len(prepared(again)) == 0
    again.explain([1.0, None, 0.5])
    assert len(prepared(again)) == 1
