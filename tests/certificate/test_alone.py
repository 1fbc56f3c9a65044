"""The checker loads alone: of the library nothing but errors, paths and escaping; no other package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ifonly
from ifonly import certify, datasets

MAY = {"certificate", "errors", "files", "printing"}
"""The rooms that may be loaded with the checker."""
CODE = """
import sys
from ifonly.certificate.check import check
print(check(sys.argv[1]).verdict)
print(*sorted(sys.modules))
"""


def test_it_checks_without_the_rest_of_the_library(tmp_path: Path) -> None:
    explainer = ifonly.Explainer(datasets.network("compas", rules=False))
    certify(explainer, datasets.load("compas", rules=False).row(0)).save(tmp_path / "one.cert")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "one.cert")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    verdict, loaded = done.stdout.splitlines()
    assert verdict == "VALID"
    names = loaded.split()
    assert {name.split(".")[1] for name in names if name.startswith("ifonly.")} <= MAY
    assert not {"numpy", "numba", "llvmlite", "highspy", "scipy", "pandas", "torch"} & set(names)
