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
from collections.abc import Callable
from pathlib import Path

import pytest

from population import streaming

KILLS = int(os.environ.get("IFONLY_KILLS", "2"))
COUNT = 3000
SECONDS = 600
"""A hang is a failure; nothing here is about time."""
HELD = 30 * streaming.ROWS
"""Runs are held when so many rows are written: a test that is late does not find them finished."""
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
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment())


def finished(process: subprocess.Popen[str]) -> str:
    """What a run says; one that is held goes on."""
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


def wait_for(event: Callable[[], bool], words: str) -> None:
    until = time.monotonic() + SECONDS
    while not event():
        assert time.monotonic() < until, words
        time.sleep(0.005)


def workers_of(process: int) -> list[int]:
    """Those that answer; not the one that multiprocessing keeps for itself."""
    found = []
    for child in children(process):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return found


@pytest.mark.long
def test_a_run_that_is_killed_goes_on(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    any_rounding, output = random.Random(1), tmp_path / "answers.jsonl"
    for kill in range(KILLS):
        before = parts_there(output)
        process = started(people, output, "here", "resume", f"hold={(before + 4) * streaming.ROWS}")
        more = before + 1 + any_rounding.randrange(3)
        wait_for(lambda more=more: parts_there(output) >= more, "no part is written")
        time.sleep(any_rounding.random() * 0.05)  # any moment will do
        process.kill()
        process.communicate()
        assert not output.exists(), kill  # not before all of it is there
    assert finished(started(people, output, "here", "resume")).split() == ["finished", str(COUNT)]
    assert streaming.same(streaming.records(output), undisturbed)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["answers.jsonl", "answers.jsonl.manifest.json"]
    assert finished(started(people, output, "here", "resume")).split() == ["already", str(COUNT)]


@pytest.mark.long
def test_workers_that_are_killed_cost_nothing(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    any_rounding, output = random.Random(2), tmp_path / "answers.jsonl"
    process = started(people, output, 2, f"hold={HELD}")
    for kill in range(KILLS):
        wait_for(lambda kill=kill: parts_there(output) > kill and bool(workers_of(process.pid)), "no part is written")
        time.sleep(any_rounding.random() * 0.05)  # any moment will do
        with contextlib.suppress(ProcessLookupError):
            os.kill(any_rounding.choice(workers_of(process.pid)), signal.SIGKILL)
    assert finished(process).split() == ["held", "finished", str(COUNT)]
    assert streaming.same(streaming.records(output), undisturbed)


@pytest.mark.long
def test_workers_end_with_the_run(people: Path, tmp_path: Path) -> None:
    process = started(people, tmp_path / "answers.jsonl", 2, f"hold={HELD}")
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    workers = workers_of(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: all(map(_is_zombie, workers)), "a worker outlives its run")
    assert len(workers) == 2


def _is_zombie(process: int) -> bool:
    """Has it ended, though nobody may have asked how?"""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.long
def test_ctrl_c_leaves_a_run_that_goes_on(people: Path, undisturbed: list[dict], tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    process = started(people, output, "here", f"hold={HELD}")
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    left = sorted(one.name for one in output.with_name("answers.jsonl.parts").iterdir())
    assert all(name.startswith("part-") or name == ".lock" for name in left)
    assert finished(started(people, output, "here", "resume"))
    assert streaming.same(streaming.records(output), undisturbed)


@pytest.mark.long
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
