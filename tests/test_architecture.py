"""docs/architecture.md describes the code as it is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def layers_tool() -> Any:
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tools" / "layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["layers"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_is() -> None:
    module = layers_tool()
    assert module.page() == module.PAGE.read_text(), "docs/architecture.md is out of date: run python tools/layers.py"


def test_every_package_has_a_layer() -> None:
    module = layers_tool()
    named = {part for layer in module.layers() for part in layer}
    there = {path.stem for path in module.PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert named == there - {"__init__", "py"}


def test_the_functions_that_it_names_exist() -> None:
    import ifonly.answering.runner as runner
    from ifonly import Schema
    from ifonly.answering.build_answers import AnswerBuilder
    from ifonly.answering.checked_solver import CheckedSolver
    from ifonly.answering.common_constraints import CommonConstraints
    from ifonly.answering.prepared_methods import PreparedMethods

    for owner, names in ((CommonConstraints, ["complete"]), (Schema, ["read"]), (runner.QueryRunner, ["batch", "resolved", "already_satisfied", "split"]),
                         (CheckedSolver, ["question", "_checked"]), (PreparedMethods, ["method"]), (AnswerBuilder, ["answers"])):  # fmt: skip
        assert all(hasattr(owner, name) for name in names)
