"""Test the lowest declared versions of the dependencies, in a virtual environment of its own.

    tools/check lowest                   the packages that are always installed: the demo and some tests
    python tools/lowest.py --extras      with those of the extra `test` as well (but torch), and the tests about them

The pins are derived from pyproject.toml: `click>=8.2` is tested as `click==8.2`. The newest versions are what every
other check runs with. Needs a package index; the environment is a temporary folder unless --keep names one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOWER_BOUND = re.compile(r"(?P<name>[\w.-]+)(?:>=|==)(?P<version>[\w.]+)(?:\s*;.*)?")
WHOLE_EXTRA = re.compile(r"ifonly\[(?P<extras>[\w,-]+)\]")
RUNNERS = ("pytest", "hypothesis")
"""What runs the tests; part of the extra `test`."""
NOT_HERE = frozenset({"torch", "mypy", "ruff", "import-linter"})
"""torch has one version in the extra `test`, and other ones are gigabytes; tools for the sources have no users."""

CORE_TESTS = (
    "tests/cli/test_cli_query.py",
    "tests/cli/test_cli_recourse.py",
    "tests/oracles/test_enumerate.py",
    "tests/mip/test_mip_reach.py::test_random_wide_questions_contradict_no_one",
)
"""click and rich (the command line), numba (the search against the enumerator), highspy (against the search)."""
EXTRA_TESTS = (
    "tests/schema",
    "tests/smt",
    "tests/mip/test_mip_backends.py",
    "tests/model/test_import_additive.py",
    "tests/model/test_import_boosting.py",
    "tests/model/test_import_onnx.py",
    "tests/model/test_import_onnx_ml.py",
    "tests/model/test_import_onnx_trees.py",
    "tests/model/test_import_sklearn.py",
    "tests/model/test_import_sklearn_trees.py",
    "tests/service/test_service_doors.py",
    "tests/test_diagnostics.py",
    "tests/cli/test_cli_outputs.py",
)
NEWER = (
    # fit(eval_X=...)
    "tests/model/test_import_boosting.py::test_what_stopped_early_counts_up_to_its_best_round[lightgbm]",
)
"""Tests that call what only newer versions of a library have."""


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/lowest.py", description=__doc__.splitlines()[0])
    parser.add_argument("--extras", action="store_true", help="also the extra `test`, without torch")
    parser.add_argument("--keep", type=Path, help="make the environment there, and keep it")
    parser.add_argument("--pins", action="store_true", help="print the pins, and do nothing")
    options = parser.parse_args(words)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = lowest(project, extras=options.extras)
    print("lowest declared:", " ".join(pins), flush=True)
    if options.pins:
        return 0
    if options.keep is not None:
        return tested(options.keep, pins, extras=options.extras)
    with tempfile.TemporaryDirectory() as folder:
        return tested(Path(folder) / "venv", pins, extras=options.extras)


def lowest(project: dict[str, object], *, extras: bool) -> list[str]:
    """The lowest version of each dependency, as `name==version`."""
    groups: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    every: list[str] = list(project["dependencies"])  # type: ignore[call-overload]
    for one in flattened(groups["test"], groups):
        name = pinned(one).partition("==")[0]
        if name in RUNNERS or (extras and name not in NOT_HERE):
            every.append(one)
    return sorted({pinned(one) for one in every})


def flattened(requirements: list[str], groups: dict[str, list[str]]) -> list[str]:
    """The requirements, those of other extras in the place of their names."""
    found: list[str] = []
    for one in requirements:
        inner = WHOLE_EXTRA.fullmatch(one)
        names = inner["extras"].split(",") if inner else []
        found += flattened([r for name in names for r in groups[name]], groups) if inner else [one]
    return found


def pinned(requirement: str) -> str:
    """`click>=8.2` as `click==8.2`."""
    found = LOWER_BOUND.fullmatch(requirement)
    if found is None:
        raise SystemExit(f"'{requirement}' of pyproject.toml has no lower bound; write it as name>=version.")
    return f"{found['name']}=={found['version']}"


def tested(place: Path, pins: list[str], *, extras: bool) -> int:
    """Install the pins and this project, run the demo and the tests; the exit code."""
    begun = time.monotonic()
    venv.create(place, with_pip=True)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    environment = {**os.environ, "IFONLY_COMPILE": "first", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    tests = (
        CORE_TESTS if not extras else (*CORE_TESTS, *EXTRA_TESTS, "-W", "ignore", *(f"--deselect={t}" for t in NEWER))
    )
    steps: tuple[tuple[object, ...], ...] = (
        (programs / "python", "-m", "pip", "install", "-q", *pins, ROOT),
        (programs / "ifonly", "demo"),
        (programs / "python", "-m", "pytest", "-p", "no:cacheprovider", *tests),
    )
    for step in steps:
        print("==", *step, flush=True)
        if subprocess.run(list(map(str, step)), cwd=ROOT, env=environment).returncode:
            print(f"With the lowest declared versions this fails: {' '.join(map(str, step[1:4]))} ...")
            return 1
    print(f"Passed with {' '.join(pins)} ({time.monotonic() - begun:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
