"""Runs that are killed: after resume the output is that of a run that nobody disturbed, row for row.

IFONLY_KILLS=10 kills ten times where the suite kills twice.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from population import streaming

KILLS = int(os.environ.get("IFONLY_KILLS", "2"))
COUNT = 3000
SECONDS = 120
SCRIPT = Path(streaming.__file__)

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds worker processes in /proc")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return streaming.table(COUNT, tmp_path_factory.mktemp("people") / "people.csv")


@pytest.fixture(scope="module")
def undisturbed(people: Path) -> list[dict]:
    output = people.parent / "undisturbed.jsonl"
    assert finished(started(people, output, "here"))
    return streaming.records(output)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, sys.path), str(SCRIPT.parents[1])])}


def started(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def finished(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    return out


def parts_there(output: Path) -> int:
    folder = output.with_name(f"{output.name}.parts")
    return len(list(folder.glob("part-*"))) if folder.is_dir() else 0


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def workers_of(process: int) -> list[int]:
    """Those that answer; not the one that multiprocessing keeps for itself."""
    found = []
    for child in children(process):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


def test_a_run_that_is_killed_goes_on(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    luck, output = random.Random(1), tmp_path / "answers.jsonl"
    for kill in range(KILLS):
        before = parts_there(output)
        process = started(people, output, "here", "resume")
        until = time.monotonic() + SECONDS
        while parts_there(output) < before + 1 + luck.randrange(3) and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.005)
        time.sleep(luck.random() * 0.05)
        process.kill()
        process.communicate()
        assert not output.exists(), kill  # not before all of it is there
    assert finished(started(people, output, "here", "resume")).split() == ["finished", str(COUNT)]
    assert streaming.same(streaming.records(output), undisturbed)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["answers.jsonl", "answers.jsonl.manifest.json"]
    assert finished(started(people, output, "here", "resume")).split() == ["already", str(COUNT)]


def test_workers_that_are_killed_cost_nothing(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    luck, output = random.Random(2), tmp_path / "answers.jsonl"
    process = started(people, output, 2)
    killed = 0
    while process.poll() is None and killed < KILLS:
        before = parts_there(output)
        while process.poll() is None and parts_there(output) <= before:
            time.sleep(0.005)
        time.sleep(luck.random() * 0.05)
        if workers := workers_of(process.pid):
            os.kill(luck.choice(workers), signal.SIGKILL)
            killed += 1
    assert finished(process).split() == ["finished", str(COUNT)]
    assert killed >= 1
    assert streaming.same(streaming.records(output), undisturbed)


def test_workers_end_with_the_run(people: Path, tmp_path: Path) -> None:
    process = started(people, tmp_path / "answers.jsonl", 2)
    while not parts_there(tmp_path / "answers.jsonl"):
        assert process.poll() is None
        time.sleep(0.01)
    workers = workers_of(process.pid)
    process.kill()
    process.communicate()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() and not _is_zombie(worker) for worker in workers):
        assert time.monotonic() < until, "a worker outlives its run"
        time.sleep(0.05)
    assert len(workers) == 2


def _is_zombie(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_ctrl_c_leaves_a_run_that_goes_on(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    process = started(people, output, "here")
    while parts_there(output) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    left = sorted(one.name for one in output.with_name("answers.jsonl.parts").iterdir())
    assert all(name.startswith("part-") or name == ".lock" for name in left)
    assert finished(started(people, output, "here", "resume"))
    assert streaming.same(streaming.records(output), undisturbed)


def test_a_full_disk_leaves_a_run_that_goes_on(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    limited = "import resource, signal, runpy, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " \
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY)); " \
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"  # fmt: skip
    words = [sys.executable, "-c", limited, str(SCRIPT), str(people), str(output), "here"]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment(), timeout=SECONDS)
    assert ran.returncode != 0
    assert "Cannot write" in ran.stderr and "rows are answered and kept" in ran.stderr
    assert not output.exists()
    assert finished(started(people, output, "here", "resume"))
    assert streaming.same(streaming.records(output), undisturbed)
