"""The map of the house is what the code is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def house() -> Any:
    spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_is() -> None:
    module = house()
    assert module.page() == module.PAGE.read_text(), "docs/architecture.md is out of date: run python tools/house.py"


def test_every_room_that_exists_is_in_it() -> None:
    module = house()
    rooms = {room for layer in module.layers() for room in layer}
    there = {path.stem for path in module.PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms == there - {"__init__", "py"}


def test_the_functions_that_it_names_exist() -> None:
    import ifonly.asking.asker as asker
    from ifonly import Explainer, Schema
    from ifonly.asking.finder import Finder
    from ifonly.asking.telling import Teller

    for owner, names in ((Explainer, ["_asked"]), (Schema, ["read"]), (asker.Asker, ["askers", "wanted", "standing"]),
                         (Finder, ["question", "_solver", "_checked"]), (Teller, ["answers"])):  # fmt: skip
        assert all(hasattr(owner, name) for name in names)
