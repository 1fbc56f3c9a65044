"""`import ifonly` brings in nothing heavy, and what needs no extra works without them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ifonly

HEAVY = (
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "scipy",
    "torch",
    "onnx",
    "gurobipy",
    "highspy",
    "pyscipopt",
    "z3",
    "numba",
    "rich",
    "click",
)
EXTRAS = ("pandas", "polars", "pyarrow", "sklearn", "scipy", "torch", "onnx", "gurobipy", "pyscipopt", "z3")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def blocked(names: tuple[str, ...]) -> str:
    return f"import sys\nfor name in {names!r}: sys.modules[name] = None\n"


def test_the_import_is_light() -> None:
    assert run(f"import sys, ifonly; print([m for m in {HEAVY!r} if m in sys.modules])") == "[]"


@pytest.mark.long
def test_an_answer_without_any_extra() -> None:
    code = """
import ifonly
from ifonly import datasets
data, model = datasets.load("compas", rules=False), datasets.network("compas", rules=False)
answers = ifonly.Explainer(model).using(ifonly.methods.Enumerate()).explain_many([data.row(i) for i in range(20)])
print(answers)
"""
    assert run(blocked(EXTRAS) + code) == "<Answers: 20 nearest>"


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("ifonly.Answers([]).to_frame()", "pandas"),
        ("from ifonly import datasets; datasets.load('compas', rules=False).frame()", "pandas"),
    ],
)
def test_a_missing_extra_is_named(code: str, extra: str) -> None:
    wrapped = f"import ifonly\ntry:\n    {code}\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    said = run(blocked(EXTRAS) + wrapped)
    assert said.startswith("MissingExtra")
    assert f"pip install 'ifonly[{extra}]'" in said


def test_a_class_of_a_submodule_is_pointed_to() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Search'; it is ifonly\.methods\.Search$"):
        _ = ifonly.Search
    with pytest.raises(AttributeError, match="no attribute 'Nothing'$"):
        _ = ifonly.Nothing
