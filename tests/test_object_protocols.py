"""The manners of the objects: they print short, pickle, copy, and answer the same from several threads and processes."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ifonly import Explainer, Fixed, Integer, Limits, Network, Query, Real, Schema, datasets
from ifonly.caching import without_gc
from ifonly.errors import ModelError, QuestionError
from ifonly.methods import MipObj

ROWS = 40


def told(answers: Any) -> list[dict[str, Any]]:
    """What answers say, but for the time that they took."""
    return [{**answer.to_dict(), "seconds": 0.0} for answer in answers]


def asked(explainer: Explainer) -> list[dict[str, Any]]:
    data = datasets.load("credit", rules=False)
    people = [data.row(i) for i in range(ROWS)]
    return told(explainer.explain_many(people, Query(distance="l1", constraints=["isMale is fixed"])))


@pytest.fixture(scope="module")
def credit() -> Explainer:
    return Explainer(
        datasets.network("credit", rules=False), classes=["deny", "approve"], constraints=[Fixed("AgeGroup")]
    )


@pytest.mark.long
def test_an_explainer_survives_pickling_and_copying(credit: Explainer) -> None:
    before = asked(credit)
    for reference in (pickle.loads(pickle.dumps(credit)), copy.copy(credit), copy.deepcopy(credit), credit.using()):
        assert asked(reference) == before
    quick = pickle.loads(pickle.dumps(credit.using(MipObj(), limits=Limits(seconds=7.0), threads=2)))
    assert (quick.method, quick.limits.seconds, quick.threads) == (MipObj(), 7.0, 2)


@pytest.mark.long
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_another_process_answers_the_same(credit: Explainer, start: str) -> None:
    before = asked(credit)
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.apply_async(asked, (credit,)).get(timeout=300) == before


def test_eight_threads_answer_as_one_does() -> None:
    data = datasets.load("adult", rules=False)
    people = [data.row(i) for i in range(64)]
    queries = [Query(distance=norm, constraints=rules) for norm in ("l0", "l1", "l2", "linf")
               for rules in ((), ("Age only goes up",))]  # fmt: skip
    alone = Explainer(datasets.network("adult", rules=False))
    before = [told([alone.explain(row, query) for row in people[k::8]]) for k, query in enumerate(queries)]
    shared = Explainer(datasets.network("adult", rules=False))
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(lambda k=k, q=q: told([shared.explain(row, q) for row in people[k::8]]))
                for k, q in enumerate(queries)]  # fmt: skip
        assert [job.result() for job in jobs] == before


def test_they_print_short(credit: Explainer) -> None:
    data = datasets.load("credit", rules=False)
    answer = credit.explain(data.row(0))
    answers = credit.explain_many([data.row(i) for i in range(20)], target="approve")
    for thing in (credit, credit.model, credit.schema, answer, answers, credit.audit([data.row(0)], target="approve")):
        assert repr(thing).startswith("<") and len(repr(thing)) < 200, repr(thing)
    assert repr(credit.schema).startswith("<Schema: 14 features: isMale (binary), isMarried (binary)")
    assert repr(answer) == "<Nearest: approve, l1 distance 0.0146731, 2 changes>"


def test_wrong_things_get_a_sentence() -> None:
    pandas = pytest.importorskip("pandas", reason="a table is needed")
    network = Network.of([([[1.0, 1.0]], [-9.0])])
    with pytest.raises(ModelError, match=r"Say what a row is with a Schema; a table becomes one with Schema\.infer"):
        Explainer(network, schema=pandas.DataFrame({"x": [1.0], "n": [2]}))
    schema = Schema([Real("x", 0, 1), Integer("n", 0, 9)])
    with pytest.raises(QuestionError, match="names its feature by a text"):
        Explainer(network, schema=schema).explain([0.5, 3], constraints=[Fixed(["x", "n"])])


def test_garbage_is_looked_for_again_after_many_answers() -> None:
    assert gc.isenabled()
    with without_gc():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), without_gc():
        raise KeyError
    assert gc.isenabled()
    gc.disable()  # somebody else's choice
    try:
        with without_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
