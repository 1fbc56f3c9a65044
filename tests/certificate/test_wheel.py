"""`ifonly-check`, the checker as a distribution of its own: built, and run where nothing else is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from certificate.samples import small

ROOT = Path(__file__).resolve().parents[2]
ALONE = [sys.executable, "-I", "-S", "-c"]
CODE = """
import sys
sys.path.append(sys.argv.pop(1))
from ifonly_check.certificate.command import main
code = main(sys.argv[1:])
print(*sorted(name.split(".")[0] for name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(words, cwd=ROOT / "checker", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


def alone(wheel, *words):
    return subprocess.run([*ALONE, CODE, str(wheel), *map(str, words)], capture_output=True, text=True, check=False)


def test_it_checks_with_the_standard_library_only(wheel, tmp_path):
    small("l2").save(tmp_path / "good.cert")
    done = alone(wheel, tmp_path / "good.cert", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "VALID"
    loaded = set(done.stderr.split())
    assert "ifonly_check" in loaded and loaded <= {*sys.stdlib_module_names, "ifonly_check", "__main__"}
    (tmp_path / "bad.cert").write_bytes(b"nothing")
    done = alone(wheel, tmp_path / "bad.cert")
    assert done.returncode == 1 and done.stdout.splitlines()[0] == "INVALID"


def test_it_is_the_same_source_and_needs_nothing(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        metadata = files.read(next(name for name in names if name.endswith("METADATA"))).decode()
        assert "Requires-Dist" not in metadata
        for name in names:
            if name.startswith("ifonly_check/") and name != "ifonly_check/__init__.py":
                assert files.read(name) == (ROOT / "src" / "ifonly" / name.removeprefix("ifonly_check/")).read_bytes()
        assert any(name.endswith("entry_points.txt") for name in names)
