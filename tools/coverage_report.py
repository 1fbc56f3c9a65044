"""Statement coverage of the short tests, worker processes and commands included: tools/check coverage

    python tools/coverage_report.py [ARGUMENTS OF PYTEST]     # --all: of all tests

Prints the modules by coverage, the total without the compiled kernels (numba's code is not traced), and the functions
that no test has entered.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1]
REPORT = FOLDER / ".coverage.json"


def coverage(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=FOLDER, check=False).returncode


def summary(files: dict[str, Any]) -> str:
    """Covered and all statements outside the kernels, and the functions of which no statement is covered."""
    covered = statements = 0
    never = []
    for name, file in files.items():
        if "kernel" in name:
            continue
        covered += file["summary"]["covered_lines"]
        statements += file["summary"]["num_statements"]
        for function, its in file["functions"].items():
            if function and its["summary"]["num_statements"] > 1 and not its["summary"]["covered_lines"]:
                never.append(f"  {name}: {function}")
    lines = [f"{covered:,} of {statements:,} statements outside the kernels: {covered / statements:.1%}"]
    return "\n".join([*lines, f"{len(never)} functions that no test enters:", *sorted(never)])


def main() -> int:
    coverage("erase")
    code = coverage("run", "-m", "pytest", "-n", "2", *sys.argv[1:])
    coverage("combine", "-q")
    coverage("report", "--sort=cover", "--skip-covered")
    coverage("json", "-q", "-o", str(REPORT))
    print(summary(json.loads(REPORT.read_text())["files"]))
    REPORT.unlink()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
