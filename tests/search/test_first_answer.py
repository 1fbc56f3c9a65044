"""The first answer on a machine: in plain Python, the same as the compiled one, while another process compiles."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from random_problems import random_problem
from random_rules import random_ruled_problem

from ifonly import (
    Explainer,
    Limits,
    Query,
    Real,
    Schema,
    Search,
    StoppedBy,
    Unknown,
    certify,
    check,
    compiling,
    datasets,
)
from ifonly.certifying.warm import TWIN
from ifonly.compiling import Kernels, plain
from ifonly.model import Network, network_model
from ifonly.proof import Claim
from ifonly.search import worker
from ifonly.search.warm import KERNELS
from ifonly.tolerances import DEFAULT


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever happens, the next test has the compiled kernels."""
    for kernels in (KERNELS, TWIN):
        kernels.load()
    before = [(kernels, dict(vars(kernels))) for kernels in (KERNELS, TWIN)]
    yield
    for kernels, fields in before:
        vars(kernels).clear()
        vars(kernels).update(fields)


def take_away(kernels: Kernels, monkeypatch: pytest.MonkeyPatch, *, cached: bool = False, at_work: bool = True) -> None:
    """As on a machine where nothing is compiled yet; no process is started."""
    monkeypatch.delenv(compiling.SWITCH, raising=False)
    monkeypatch.setattr(Kernels, "cached", cached)
    monkeypatch.setattr(Kernels, "being_compiled", at_work)
    monkeypatch.setattr(Kernels, "_compile_behind", lambda self: None)
    kernels.compiled, kernels.now, kernels._looked, kernels._told = False, None, -math.inf, False


def network(*sizes: int, seed: int = 0) -> Network:
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(n, m)) * math.sqrt(2.0 / m), 0.1 * rng.normal(size=n)) for m, n in zip(sizes, (*sizes[1:], 1), strict=True)]  # fmt: skip
    return Network.of(layers)


def large(inputs: int = 40, *hidden: int) -> tuple[Explainer, dict[str, float]]:
    """An explainer for which one node takes long, and a row."""
    schema = Schema([Real(f"x{i}", 0, 1) for i in range(inputs)])
    model = network_model(network(inputs, *(hidden or (100,) * 10)), schema)
    return Explainer(model), schema.row(np.full(inputs, 0.5))


# ---------------------------------------------------------------------------------------------- the same answers


@pytest.mark.parametrize("make", [random_problem, random_ruled_problem])
def test_plain_and_compiled_agree(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row or none, bounds and (all but always) nodes. Sums are in another order, so the last bits may differ."""
    asked = nodes_differ = 0
    for seed in range(40):
        question, points = make(seed)
        solver = Search(table_rows=0).prepare(question)
        compiled = solver.solve(points, Limits(nodes=200))
        with monkeypatch.context() as patch:
            take_away(KERNELS, patch)
            claims = solver.solve(points, Limits(nodes=200))
            assert not KERNELS.compiled
        KERNELS.load()
        for one, other in zip(compiled, claims, strict=True):
            asked += 1
            nodes_differ += one.nodes != other.nodes
            assert same(one, other), (seed, one, other)
    assert asked >= 70 and nodes_differ <= asked // 20


def same(one: Claim, other: Claim) -> bool:
    if (one.point is None) != (other.point is None) or (one.stop is None) != (other.stop is None):
        return False
    return one.lower == other.lower or abs(one.lower - other.lower) <= DEFAULT.allowed(max(one.lower, other.lower))


def test_tables_are_scanned_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data, explainer = datasets.load("compas"), Explainer(datasets.network("compas"))
    rows = [data.row(i) for i in range(50)]
    compiled = explainer.explain_many(rows)
    take_away(KERNELS, monkeypatch)
    answers = explainer.explain_many(rows)
    assert not KERNELS.compiled
    assert [(a.status, a.counterfactual, a.lower) for a in answers] == [
        (a.status, a.counterfactual, a.lower) for a in compiled
    ]


def test_plain_means_plain() -> None:
    """No function that numba compiled is left within reach."""
    functions, _ = KERNELS._functions()
    seen: set[int] = set()

    def visit(function: Any) -> None:
        if id(function) in seen:
            return
        seen.add(id(function))
        assert not hasattr(function, "py_func")
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if hasattr(value, "__code__") or hasattr(value, "py_func"):
                visit(value)

    for function in plain(functions).values():
        visit(function)
    assert len(seen) > 50


def test_certificates_of_plain_proofs_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit"))
    for kernels in (KERNELS, TWIN):
        take_away(kernels, monkeypatch)
    for row in (0, 51):
        assert check(certify(explainer, data.row(row))).valid
    assert not KERNELS.compiled and not TWIN.compiled


# ---------------------------------------------------------------------------------------------- who answers when


def test_a_search_goes_on_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun in plain Python, ended compiled: the same answer as without the change."""
    explainer, data = Explainer(datasets.network("credit")), datasets.load("credit")
    question, point = explainer.question(data.row(2), Query(distance="l2"))  # about a thousand nodes
    points, solver = point[None, :], Search().prepare(question)
    expected = solver.solve(points, Limits())
    take_away(KERNELS, monkeypatch)
    slices = []
    call = worker.Worker._call

    def counted(self: Any, *arguments: Any) -> Any:
        slices.append(KERNELS.compiled)
        if len(slices) == 3:
            monkeypatch.setattr(Kernels, "cached", True)
        return call(self, *arguments)

    monkeypatch.setattr(worker.Worker, "_call", counted)
    monkeypatch.setattr(compiling, "LOOK_SECONDS", 0.0)
    claims = solver.solve(points, Limits())
    assert slices[0] is False and slices[-1] is True
    assert all(same(one, other) for one, other in zip(expected, claims, strict=True))


def test_what_is_too_large_for_plain_python_waits_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explainer, row = large()
    take_away(KERNELS, monkeypatch)
    KERNELS._looked = math.inf  # not before the waiting
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.0)
    threading.Timer(0.5, lambda: monkeypatch.setattr(Kernels, "cached", True)).start()
    answer = explainer.explain(row, limits=Limits(nodes=1))
    assert KERNELS.compiled
    assert answer.stop is None or answer.stop.by is StoppedBy.NODES
    said = capsys.readouterr().err
    assert said == "Compiling the search for this machine: about forty seconds, once; this question waits for it ...\n"


def test_a_time_limit_is_no_longer_for_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, row = large()
    take_away(KERNELS, monkeypatch)
    begun = time.thread_time()
    answer = explainer.explain(row, limits=Limits(seconds=0.2))
    assert time.thread_time() - begun < 0.5
    assert not KERNELS.compiled
    assert answer.stop is not None and answer.stop.by is StoppedBy.SECONDS and answer.stop.amount == 0.2
    assert answer.lower == 0.0


def test_who_waits_longer_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit"))
    take_away(KERNELS, monkeypatch)
    explainer.explain_many([data.row(i) for i in range(3)])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(compiling, "LOOK_SECONDS", 0.0)
    explainer.explain_many([data.row(i) for i in range(9)])
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "; until then answers take longer ..." in said


def test_where_nobody_compiles_it_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only cache: plain Python for two seconds, then the compiler."""
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit"))
    take_away(KERNELS, monkeypatch, at_work=False)
    explainer.explain(data.row(0))
    assert not KERNELS.compiled
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(compiling, "LOOK_SECONDS", 0.0)
    explainer.explain(data.row(1))
    assert KERNELS.compiled


def test_threads_forks_and_pickles_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit"), threads=2)
    rows = [data.row(i) for i in range(8)]
    expected = [(answer.status, answer.counterfactual) for answer in explainer.explain_many(rows)]
    take_away(KERNELS, monkeypatch)
    assert [(answer.status, answer.counterfactual) for answer in explainer.explain_many(rows)] == expected
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(pickle.loads(pickle.dumps(explainer)).explain, rows))
    assert [(answer.status, answer.counterfactual) for answer in told] == expected
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(2) as processes:
            told = processes.map(explainer.explain, rows)
        assert [(answer.status, answer.counterfactual) for answer in told] == expected
    assert not KERNELS.compiled


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(KERNELS, monkeypatch)
    monkeypatch.setenv(compiling.SWITCH, compiling.FIRST)
    KERNELS.prepare()
    assert KERNELS.compiled


# ---------------------------------------------------------------------------------------------- the other process


@pytest.mark.skipif(compiling.fcntl is None, reason="no locks between processes here")
def test_one_process_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[Any] = []

    def start(command: list[str], **options: Any) -> Any:
        (file,) = options["pass_fds"]
        started.append((command, options["env"], os.dup(file)))
        return SimpleNamespace(pid=0, returncode=None)

    monkeypatch.setattr(Kernels, "_mark", tmp_path / "x.ready")
    monkeypatch.setattr(compiling.subprocess, "Popen", start)
    mine, others = (Kernels("module:name", "it", KERNELS._functions, KERNELS._try_out) for _ in range(2))
    assert not mine.being_compiled
    mine._compile_behind()
    others._compile_behind()
    assert len(started) == 1 and mine.being_compiled and others.being_compiled
    command, environment, file = started[0]
    assert command[1:] == ["-P", "-m", "ifonly.compiling", "module:name"]
    assert environment[compiling.SWITCH] == compiling.FIRST
    os.close(file)  # as when that process ends, however it ends
    assert not others.being_compiled
    others._compile_behind()
    assert len(started) == 2
    os.close(started[1][2])


@pytest.mark.parametrize("why", ["frozen", "embedded", "nowhere", "no processes"])
def test_where_no_process_can_be_started(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(*_: Any, **__: Any) -> Any:
        raise PermissionError if why == "no processes" else AssertionError

    monkeypatch.setattr(compiling.subprocess, "Popen", start)
    monkeypatch.setattr(Kernels, "_mark", tmp_path / ("no folder" if why == "nowhere" else "") / "x.ready")
    if why == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    if why == "embedded":
        monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    kernels = Kernels("module:name", "it", KERNELS._functions, KERNELS._try_out)
    kernels._compile_behind()
    assert not kernels.being_compiled


FRESH = """
import json
from ifonly import Explainer, datasets
from ifonly.search.warm import KERNELS
answer = Explainer(datasets.network("credit")).explain(datasets.load("credit").row(51))
print(json.dumps([answer.status, answer.method, KERNELS.compiled, KERNELS.being_compiled, KERNELS.compiler]))
"""


def test_a_new_machine(tmp_path: Path) -> None:
    """An empty cache: the answer is proven, nothing is said, and a process has begun to compile."""
    environment = {k: v for k, v in os.environ.items() if k != compiling.SWITCH} | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH], env=environment, capture_output=True, text=True, check=True
    )
    status, method, compiled, at_work, compiler = json.loads(done.stdout)
    try:
        assert (status, method, compiled, at_work) == ("nearest", "search", False, compiling.fcntl is not None)
        assert done.stderr == ""
    finally:
        if compiler is not None:
            os.kill(compiler, signal.SIGKILL)


# ---------------------------------------------------------------------------------------------- the clock in a node


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("hidden", [(100,) * 10, (400,) * 3])
def test_time_is_up_inside_a_node(hidden: tuple[int, ...], distance: str) -> None:
    """A node takes up to a second here. Processor time, which a busy machine does not stretch."""
    explainer, row = large(100, *hidden)
    explainer.explain(row, distance=distance, limits=Limits(seconds=0.05))  # prepared
    begun = time.thread_time()
    answer = explainer.explain(row, distance=distance, limits=Limits(seconds=0.1))
    assert time.thread_time() - begun < 0.15
    assert answer.seconds >= 0.1 or answer.stop is None
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]


def test_bounds_hold_wherever_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halted at any moment, inside any node: what is claimed until then is true."""
    monkeypatch.setattr(worker, "SLOW_NODE", 0)
    data, explainer = datasets.load("credit"), Explainer(datasets.network("credit"))
    stopped = 0
    for row in range(12):
        for distance in ("l1", "l2", "linf"):
            best = explainer.explain(data.row(row), distance=distance)
            for seconds in np.geomspace(1e-6, 1e-2, 12).tolist():
                cut = explainer.explain(data.row(row), distance=distance, limits=Limits(seconds=seconds))
                assert cut.lower <= best.upper * (1.0 + 1e-12)
                assert cut.upper >= best.lower * (1.0 - 1e-12)
                assert isinstance(cut, Unknown) == (cut.counterfactual is None)
                stopped += cut.stop is not None
    assert stopped > 50
