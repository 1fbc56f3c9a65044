"""The program as a process: start-up, pipes and terminals, Ctrl-C."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ifonly.cli import codes

SECONDS = 600
"""A hang is a failure."""
EXAMPLES = Path(__file__).parents[2] / "examples"
IFONLY = [sys.executable, "-m", "ifonly.cli"]

SLOW = """
import sys, time
from ifonly.solvers import search
from ifonly.cli import main

class Slow:
    name = "slow"
    def prepare(self, question, tolerances=None):
        self.solver = search.Enumerate().prepare(question)
        return self
    def solve(self, points, limits, *, threads=1, listen=None):
        print("asked", file=sys.stderr, flush=True)
        time.sleep(0.3 * len(points))
        return self.solver.solve(points, limits)

search.Search = Slow
main()
"""


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", "FORCE_COLOR", "NO_COLOR")}


def finished(words: list[str], *, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, encoding="utf-8", cwd=folder, timeout=SECONDS, env=environment()
    )


def test_help_loads_little():
    code = (
        "import sys, ifonly; before = set(sys.modules)\n"
        "from ifonly.cli.app import app\n"
        "try: app.main(['--help'])\n"
        "except SystemExit: pass\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new & {'rich', 'numba', 'highspy', 'pandas', 'pyarrow', 'llvmlite'}), file=sys.stderr)\n"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('ifonly.report')), file=sys.stderr)\n"
    )
    done = finished([sys.executable, "-c", code])
    assert done.stderr.splitlines() == ["[]", "[]"]


@pytest.mark.long
def test_a_pipe_gets_plain_text_and_errors_go_to_stderr():
    words = [*IFONLY, "explain", "--dataset", "compas", "--row", "3", "--method", "enumerate"]
    done = finished(words)
    assert done.returncode == codes.PROVEN
    assert "\x1b" not in done.stdout and "│" not in done.stdout and "* number of prior offences" in done.stdout
    assert done.stderr == ""
    wrong = finished([*words, "--fix", "Rase"])
    assert (wrong.returncode, wrong.stdout) == (codes.WRONG_INPUT, "")
    assert wrong.stderr == "error: --fix Rase: There is no feature 'Rase'; did you mean 'Race'?\n"


@pytest.mark.long
def test_a_terminal_gets_frames_and_colours():
    pty = pytest.importorskip("pty", reason="terminals of this kind exist only on POSIX")
    ours, theirs = pty.openpty()
    words = [*IFONLY, "explain", "--dataset", "compas", "--row", "3", "--method", "enumerate"]
    env = {**environment(), "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, env=env) as process:
        os.close(theirs)
        shown = _drain(ours)
        assert process.wait(SECONDS) == codes.PROVEN
    assert "\x1b[1;32m" in shown and "│" in shown and "number of prior offences" in shown


@pytest.mark.long
def test_ctrl_c_keeps_what_was_answered(tmp_path):
    output = tmp_path / "answers.jsonl"
    words = [sys.executable, "-c", SLOW, "explain", "--dataset", "compas", "--first", "200", "--method", "search"]
    with subprocess.Popen(
        [*words, "--output", str(output)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr is not None and process.stdout is not None
        assert process.stderr.readline() == "asked\n"
        while not any(part.stat().st_size for part in tmp_path.glob("answers.jsonl.parts/.part-*")):
            assert process.poll() is None
            time.sleep(0.01)
        for _ in range(2):  # one may have been asked before the first were written; the next one was not
            assert process.stderr.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().replace("asked\n", "")
        assert process.wait(SECONDS) == codes.INTERRUPTED
    assert "rows are answered and kept; go on with --resume." in said and "Traceback" not in said
    parts = sorted((tmp_path / "answers.jsonl.parts").glob("part-*"))
    records = [json.loads(line) for part in parts for line in part.read_text(encoding="utf-8").splitlines()]
    assert 1 <= len(records) < 200 and all(record["status"] == "nearest" for record in records)
    assert not output.exists()


@pytest.mark.long
def test_a_reader_that_leaves_is_no_error():
    words = [*IFONLY, "explain", "--dataset", "compas", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
        assert [line for line in said.splitlines() if not line.startswith(b"Compiling the search")] == []
        assert process.wait(SECONDS) == codes.BROKEN_PIPE


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["quickstart.py", "trees.py", "population.py", "audit.py", "bank.py", "torch_model.py"]
)
def test_the_examples_run(name, tmp_path):
    if name == "torch_model.py":
        pytest.importorskip("torch", reason="the example is about a torch network: pip install 'ifonly[torch]'")
    done = finished([sys.executable, "-W", "error", str(EXAMPLES / name)], folder=tmp_path)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Compiling the search")]
    assert (done.returncode, said) == (0, [])
    assert "nearest" in done.stdout
    if name == "audit.py":
        assert "<h1>Recourse to approve, by age group</h1>" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    if name == "torch_model.py":
        assert "answer.cert: VALID" in done.stdout
    if name == "population.py":
        lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["row"] for line in lines] == list(range(50))


def _drain(terminal: int) -> str:
    """Everything written to a terminal until its writer leaves."""
    read, until = b"", time.monotonic() + SECONDS
    while time.monotonic() < until:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        read += part
    os.close(terminal)
    return read.decode("utf-8")
