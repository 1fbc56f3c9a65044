"""One virtual environment per peer library, made from a list of pinned versions and kept in the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from rich.console import Console

LOCKS = Path(__file__).resolve().parent / "locks"
LIBRARIES: dict[str, tuple[str, ...]] = {
    "dice": ("torch==2.13.0",), "nice": (), "cfnow": (), "alibi": (), "ocean": (), "veritas": (), "lice": (),
}  # fmt: skip
"""And what is installed with whatever it depends on, beside the list: a torch for processors is enough, where one is
to be had. (The lists leave out what a library declares but does not need here: DiCE's xgboost and lightgbm.)"""
PYTHONS = {"ocean": "python3.12"}
"""Interpreters that a library needs, where it is not ours."""


class NoEnvironment(Exception):
    """An environment could not be made; the message says why."""


def python_of(library: str, cache: Path, console: Console) -> Path:
    """The interpreter of a library's environment, which is made now if the cache does not have it."""
    lock = LOCKS / f"{library}.txt"
    resolved = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    folder = cache / f"env-{library}"
    python, mark = folder / "bin" / "python", folder / "made-from"
    if mark.exists() and mark.read_text() == resolved:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    with console.status(f"making an environment for {library} (about a minute, some hundred megabytes)"):
        try:
            _create(library, folder)
            install = [str(python), "-m", "pip", "install", "--quiet"]
            done = subprocess.run(
                [*install, "--no-deps", "--requirement", str(lock)], capture_output=True, text=True, check=False
            )
            if LIBRARIES[library] and not done.returncode:
                done = subprocess.run([*install, *LIBRARIES[library]], capture_output=True, text=True, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoEnvironment(f"no environment for {library}: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NoEnvironment(f"no environment for {library}: {' '.join(said)[:300] or 'pip failed'}")
    mark.write_text(resolved)
    return python


def _create(library: str, folder: Path) -> None:
    if library not in PYTHONS:
        venv.create(folder, with_pip=True)
        return
    python = shutil.which(PYTHONS[library])
    if python is None:
        raise NoEnvironment(f"no environment for {library}: it needs {PYTHONS[library]} on the path")
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
