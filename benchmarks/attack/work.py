"""Workers: processes of their own that run cases, so that a hang or a crash is an outcome and not the end.

A worker reads one line of JSON per case and writes one line per outcome. Its memory is limited; its time is watched
from outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MEMORY_BYTES = 8 * 2**30
LOADING_SECONDS = 300.0
"""More than it takes to import the libraries of a kind; the first case of a process has so much longer."""
ROOT = Path(__file__).resolve().parents[2]


def drawn(kind: str, seed: int, number: int) -> dict[str, Any]:
    """The case with this number: the same on every machine."""
    from benchmarks.attack.kinds import KINDS

    case = KINDS[kind].make(random.Random(f"{kind}/{seed}/{number}"))
    plain: dict[str, Any] = json.loads(json.dumps({"kind": kind, **case}))
    return plain


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Status and faults of a case, in this process."""
    from benchmarks.attack.asking import outcome
    from benchmarks.attack.kinds import KINDS

    if case["kind"] == "warm":
        return warmed()
    told = outcome(lambda: KINDS[case["kind"]].run(case))
    return {"status": told.status, "faults": told.faults[:5]}


def warmed() -> dict[str, Any]:
    """Ask everything that has to be compiled once."""
    import ifonly
    from benchmarks.attack.decisions import missing_library

    schema = ifonly.Schema([ifonly.Real("a", 0, 1), ifonly.Integer("b", 0, 9), ifonly.Categorical("c", ["u", "v"])])
    net = ifonly.Network.of([([[1.0, 1.0, 0.0, 0.5], [-1.0, 0.3, 1.0, 0.0]], [-2.0, 0.1]), ([[1.0, -0.5]], [-0.3])])
    explainer = ifonly.Explainer(net, schema=schema)
    for norm in ("l0", "l1", "l2", "linf"):
        explainer.explain([0.2, 1, "u"], distance=norm, constraints=["a + b <= 9", "at most 3 changes"])
        ifonly.check(ifonly.certify(explainer, [0.2, 1, "u"], distance=norm))
    card = {"base": 0, "cutoff": 5, "features": {"b": [{"below": 4, "points": 0}, {"points": 7}]}}
    models: list[Any] = [ifonly.Scorecard.from_dict(card)]
    if not missing_library(["sklearn"]):
        from sklearn.tree import DecisionTreeClassifier

        rows = [[0.1, k, 1, 0] for k in range(10)]
        models += [DecisionTreeClassifier().fit(rows, [k * classes // 10 for k in range(10)]) for classes in (2, 3)]
    for model in models:
        for norm in ("l0", "l1", "l2", "linf"):
            trees = ifonly.Explainer(model, schema=schema)
            trees.explain([0.2, 1, "u"], target=trees.model.classes[1], distance=norm)
    return {"status": "warm", "faults": []}


def serve() -> None:
    """The loop of a worker."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the library prints goes elsewhere
    planted = os.environ.get("ATTACK_PLANT")
    if planted:
        from benchmarks.attack.planted import plant

        plant(planted)
    for line in sys.stdin:
        asked = json.loads(line)
        case = asked.get("case")
        told: dict[str, Any]
        try:
            told = run(case or drawn(asked["kind"], asked["seed"], asked["number"]))
        except Exception as error:
            import traceback

            told = {"status": "attacker broken", "faults": [f"{type(error).__name__}: {error}", traceback.format_exc()]}
        print(json.dumps(told), file=out, flush=True)


class Worker:
    """A worker and what it is busy with."""

    def __init__(self, plant: str = "") -> None:
        self.plant = plant
        self.process: subprocess.Popen[str] | None = None
        self.busy: dict[str, Any] | None = None
        self.since = 0.0
        self.loaded: set[str] = set()
        """Kinds whose libraries the process has imported."""

    def start(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(ROOT)]))
            self.loaded = set()
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", "from benchmarks.attack.work import serve; serve()"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
                env={**os.environ, **threads, "PYTHONPATH": path, "ATTACK_PLANT": self.plant, "IFONLY_TRACEBACK": "1"},
            )  # fmt: skip
        return self.process

    def give(self, asked: dict[str, Any]) -> None:
        process = self.start()
        assert process.stdin is not None
        self.busy, self.since = asked, time.monotonic()
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # seen as a crash when it is asked for the outcome

    def outcome(self, seconds: float) -> dict[str, Any] | None:
        """The outcome of what it is busy with; None while it is still at it."""
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 0)
        if ready:
            line = self.process.stdout.readline()
            self.loaded.add(self.kind)
            self.busy = None
            if line:
                told: dict[str, Any] = json.loads(line)
                return told
            code = self.process.wait()
            return {"status": "crash", "faults": [f"the process ended with code {code}"]}
        if time.monotonic() - self.since > seconds + self.loading:
            self.stop()
            self.busy = None
            return {"status": "hang", "faults": [f"no answer within {seconds:g} s"]}
        return None

    @property
    def kind(self) -> str:
        """What it is busy with."""
        assert self.busy is not None
        name: str = (self.busy.get("case") or self.busy)["kind"]
        return name

    @property
    def loading(self) -> float:
        """Seconds that the process may take to import libraries first."""
        from benchmarks.attack.kinds import NEEDS

        return LOADING_SECONDS if self.kind in NEEDS and self.kind not in self.loaded else 0.0

    def ask(self, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Give, and wait for the outcome."""
        self.give(asked)
        while True:
            assert self.process is not None and self.process.stdout is not None
            select.select([self.process.stdout], [], [], 0.2)
            told = self.outcome(seconds)
            if told is not None:
                return told

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            self.process = None
