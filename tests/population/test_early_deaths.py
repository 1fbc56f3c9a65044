"""Workers that end before they are ready: started again after a pause; a run ends by that only when nothing is answered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ifonly import Explainer
from ifonly.engines import Processes
from ifonly.errors import QuestionError
from ifonly.model import Model
from ifonly.population import output as parts
from ifonly.population import run, sources
from ifonly.population.engines import processes
from ifonly.population.output import manifest_of
from ifonly.population.output_paths import place_of
from population.streaming import records, same
from population.test_streams import SCHEMA, Moody, moody, points, stopped

COUNT = 200


class Stillborn(Moody):
    """A model whose process ends while it is unpickled, before it is ready: the first `times` times, counted in a file."""

    def end_early(self, counter: Path, times: int, how: str) -> Stillborn:
        self.counter, self.times, self.how = counter, times, how
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with self.counter.open("ab") as file:
            file.write(b".")
            file.flush()
            before = file.tell()
        if before <= self.times:
            match self.how:
                case "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "exit":
                    os._exit(3)
                case _:
                    raise MemoryError("nothing left")


def stillborn(counter: Path, times: int, how: str = "killed", kills: float = 9.0) -> Explainer:
    model = moody(kills=kills).model
    original = Stillborn(model.original.inner, 9.0, kills, 9.0).end_early(counter, times, how)
    dying = Model(function=model.function, schema=SCHEMA, original=original, classes=model.classes)
    return Explainer(dying, constraints=["x is fixed"])


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_PAUSE", 0.001)


@pytest.mark.long
@pytest.mark.parametrize(("workers", "how"), [(1, "killed"), (2, "killed"), (1, "exit"), (1, "raise")])
def test_workers_that_end_before_they_are_ready_cost_nothing(tmp_path, workers, how):
    rows = points(COUNT)
    stillborn(tmp_path / "starts", 5, how).explain_to(tmp_path / "answers.jsonl", rows, engine=Processes(workers))
    moody().explain_to(tmp_path / "meant.jsonl", rows)
    assert (tmp_path / "starts").stat().st_size >= 6
    assert same(records(tmp_path / "answers.jsonl"), records(tmp_path / "meant.jsonl"))


@pytest.mark.long
def test_a_row_that_ends_its_worker_is_still_found(tmp_path):
    rows = points(40)
    explainer = stillborn(tmp_path / "starts", 4, kills=rows["x"][17])
    written = explainer.explain_to(tmp_path / "answers.jsonl", rows, engine=Processes(1))
    found = records(tmp_path / "answers.jsonl")
    assert written.counts["error"] == 1 and written.counts["nearest"] == 39
    assert "This row was given up" in found[17]["note"]


@pytest.mark.long
@pytest.mark.parametrize(("how", "words"), [("killed", "by the signal SIGKILL"), ("exit", "with the exit code 3"),
                                            ("raise", "(MemoryError: 'nothing left')")])  # fmt: skip
def test_workers_that_never_become_ready(tmp_path, monkeypatch, how, words):
    """Said in a sentence; what an earlier run has answered is kept."""
    monkeypatch.setattr(parts, "MOST_ROWS", 64)
    monkeypatch.setattr(sources, "ROWS", 64)
    monkeypatch.setattr(run, "FIRST_ROWS", 64)
    monkeypatch.setattr(processes, "MAX_EARLY_EXITS", 2)
    rows, path = points(COUNT), tmp_path / "answers.jsonl"
    starts = tmp_path / "starts"
    explainer = stillborn(starts, 10**9, how)
    stopped(explainer, path, rows, None)
    before = (manifest_of(place_of(path)) or {})["rows"]
    with pytest.raises(QuestionError, match="No worker process becomes ready: 4 in a row did not") as told:
        explainer.explain_to(path, rows, existing="resume", engine=Processes(2))
    assert words in str(told.value) and "--resume" in str(told.value)
    assert starts.stat().st_size in (4, 5)  # the other worker of two may be starting when the fourth one ends
    assert 0 < before == (manifest_of(place_of(path)) or {})["rows"] < COUNT
    assert explainer.explain_to(path, rows, existing="resume").rows == COUNT


@pytest.mark.long
def test_no_room_for_another_process(tmp_path, monkeypatch):
    """The system refuses to start one for a while."""
    spawn, refused = processes.spawn, []

    def refusing(*given: Any) -> Any:
        if len(refused) < 4:
            refused.append(given)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return spawn(*given)

    monkeypatch.setattr(processes, "spawn", refusing)
    rows = points(20)
    assert moody().explain_to(tmp_path / "a.jsonl", rows, engine=Processes(1)).counts["nearest"] == 20
    assert len(refused) == 4


def test_pauses_become_longer(monkeypatch):
    monkeypatch.setattr(processes, "FIRST_PAUSE", 0.1)
    now = [0.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])
    pool = object.__new__(processes._ProcessPool)
    pool._count, pool._early_exits, pool._starts = 1, 0, []
    for _ in range(7):
        pool._restart_later("ended")
    assert pool._starts == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]


SCRIPT = """
from ifonly.engines import Processes
from population.test_streams import moody, points

moody().explain_to("answers.jsonl", points(10), engine=Processes(2))
"""


@pytest.mark.long
def test_a_script_without_a_main(tmp_path):
    """One sentence, and no traceback of each worker that was tried."""
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    assert ran.returncode != 0
    assert ran.stderr.count("Traceback") == 1 and '`if __name__ == "__main__":`' in ran.stderr.splitlines()[-1]
