"""Small files that want much: each ends within its time, with memory in proportion to the file."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import pytest

from certificate.bombs import BOMBS, CHILD

SECONDS = 1.0
LATE = 3.0
"""How late a check may end, in units of the child's own measure of the machine."""
MIB = 2**20


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * 1024 * MIB, 4 * 1024 * MIB))


def run(path):
    """Verdict, failure, seconds, MiB, the unit of time; in a process of its own that cannot take more than 4 GiB."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(SECONDS)], capture_output=True, text=True, timeout=600,
        preexec_fn=limited, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    return json.loads(done.stdout)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_it_ends_within_its_limits(bomb, tmp_path):
    path = tmp_path / "bomb.cert"
    path.write_bytes(bomb())
    text = min(64 * MIB, MIB + 10 * path.stat().st_size)
    verdict, failure, took, mib, unit = run(path)
    assert verdict in ("INVALID", "UNDECIDED") and failure and len(failure) < 1000
    assert took <= SECONDS + LATE * unit
    assert mib * MIB <= 64 * MIB + 32 * text
