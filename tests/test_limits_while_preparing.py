"""Limits hold while a question is prepared: no time and no memory end in an honest answer, whatever the model and method.

Nothing here depends on the machine's speed: the limits are so small that nothing at all fits into them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import Binary, Explainer, Integer, Limits, Nearest, Network, NoneExists, Real, Schema, Unknown
from ifonly.methods import Enumerate, MipExp, MipObj, MipSat, Search
from ifonly.model import network_model
from ifonly.model.trees import Trees
from ifonly.resources import LimitReached, check_limits, limited
from ifonly.results import StoppedBy
from ifonly.solvers.search.trees.cells import Cells

REALS = Schema([Real(f"x{i}", 0, 1) for i in range(5)])
FEW = Schema([Binary("a"), Integer("b", 0, 9), Binary("c")])
STEPS = Schema([Real(f"x{i}", 0, 1, step="0.001") for i in range(5)])


def network(schema: Schema, seed: int = 0) -> Explainer:
    rng = np.random.default_rng(seed)
    sizes = [len(schema.columns), 12, 12, 1]
    layers = [(rng.normal(size=(n, m)), rng.normal(size=n)) for m, n in zip(sizes, sizes[1:], strict=False)]
    return Explainer(network_model(Network.of(layers), schema))


def forest(schema: Schema = REALS) -> Explainer:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(300, 5))
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(rows, rows.sum(axis=1) > 2.5)
    return Explainer(model, schema=schema)


def smooth() -> Explainer:
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(200, 5))
    model = MLPClassifier((8,), activation="tanh", solver="lbfgs", random_state=0).fit(rows, rows.sum(axis=1) > 2.5)
    return Explainer(model, schema=REALS)


CASES: dict[str, tuple[Callable[[], Explainer], Any]] = {
    "network": (lambda: network(REALS), Search()),
    "table of a finite space": (lambda: network(FEW), Search()),
    "trees": (forest, Search()),
    "trees and steps": (lambda: forest(STEPS), Search()),
    "smooth network": (smooth, Search()),
    "network, program": (lambda: network(REALS), MipObj()),
    "network, intervals": (lambda: network(REALS), MipExp()),
    "network, formula": (lambda: network(REALS), MipSat()),
    "trees, program": (forest, MipObj()),
    "trees, intervals": (forest, MipExp()),
    "trees, formula": (forest, MipSat()),
}


def case(name: str) -> tuple[Explainer, list[float]]:
    make, method = CASES[name]
    explainer = make().using(method)
    point = [0.2] * 5 if len(explainer.schema) == 5 else [0, 3, 0]
    return explainer, point


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", CASES)
def test_no_time_to_prepare(name: str) -> None:
    explainer, row = case(name)
    answer = explainer.explain(row, limits=Limits(seconds=1e-9))
    assert isinstance(answer, Unknown) and answer.lower == 0.0
    assert answer.stop is not None and (answer.stop.by, answer.stop.amount) == (StoppedBy.SECONDS, 1e-9)
    assert "1e-09 seconds" in answer.note or "time" in answer.note
    assert len(explainer._answerer.runner.solver.prepared) == 0, "nothing was prepared to the end"
    done = explainer.explain(row, limits=Limits(seconds=600.0))
    assert isinstance(done, Nearest | NoneExists) and done.stop is None


@pytest.mark.parametrize("name", CASES)
def test_no_memory_to_prepare(name: str) -> None:
    explainer, row = case(name)
    answer = explainer.explain(row, limits=Limits(memory_bytes=100))
    assert isinstance(answer, Unknown) and answer.lower == 0.0
    assert answer.stop is not None and (answer.stop.by, answer.stop.amount) == (StoppedBy.MEMORY, 100)


def test_a_program_of_trees_is_not_written_where_it_does_not_fit() -> None:
    explainer = forest().using(MipObj())
    answer = explainer.explain([0.2] * 5, limits=Limits(memory_bytes=8_000))
    assert isinstance(answer, Unknown) and answer.stop is not None and answer.stop.by is StoppedBy.MEMORY


def test_several_people_have_their_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def kept(seconds: float | None, memory_bytes: int | None) -> Any:
        seen.append(seconds)
        return limited(None, memory_bytes)

    monkeypatch.setattr("ifonly.answering.checked_solver.limited", kept)
    answers = network(REALS).using(limits=Limits(seconds=600.0)).explain_many(np.full((7, 5), 0.2) + np.eye(7, 5) / 9)
    people = len({tuple(answer.factual.values()) for answer in answers})
    assert seen == [600.0 * people]


def test_one_persons_cells_are_priced_within_the_time() -> None:
    explainer = forest(STEPS)
    explainer.explain([0.2] * 5)
    assert isinstance(explainer.model.function, Trees)
    solver = next(iter(explainer._answerer.runner.solver.prepared._entries.values())).value.solver
    cells: Cells = solver.packed.cells
    with limited(1e-9, None), pytest.raises(LimitReached):
        cells.person(solver.costs.domains(np.full((1, 5), 0.2)), 0, solver.packed.kernels.now)


def test_enumerating_looks_at_the_clock_at_once() -> None:
    answer = network(FEW).using(Enumerate()).explain([0, 3, 0], limits=Limits(seconds=1e-9))
    assert isinstance(answer, Unknown) and answer.stop is not None and answer.stop.by is StoppedBy.SECONDS


def test_limits_are_those_of_the_innermost_and_end_with_it() -> None:
    check_limits(2**60)
    with limited(None, 100):
        check_limits(100)
        with pytest.raises(LimitReached) as reached:
            check_limits(101)
        assert reached.value.resource == "memory"
        with limited(1e-9, None):
            time.sleep(1e-3)
            with pytest.raises(LimitReached, match="seconds"):
                check_limits()
        check_limits()
    check_limits(2**60)
