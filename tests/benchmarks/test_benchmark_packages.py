"""The packages of the benchmarks: imports point up the table of their README, which names every module."""

import ast
import re

from benchmarks.terminal import HERE

TABLE = re.findall(r"^\| `(\w+)(?:/|\.py)` \|(.*)$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
PACKAGES = [name for name, _ in TABLE]


def modules():
    inside = {"cache", "inside", "__pycache__"}  # networks and environments; what runs without this package
    return [path for path in HERE.rglob("*.py") if not inside & set(path.relative_to(HERE).parts)]


def package(path):
    return path.relative_to(HERE).parts[0].removesuffix(".py")


def test_the_table_names_every_package():
    missing = {package(path) for path in modules()} - {"__init__", *PACKAGES}
    assert not missing, f"benchmarks/README.md, 'The packages', has no line for {missing}"


def test_imports_point_up_the_table():
    wrong = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
            if parts[:1] == ["benchmarks"] and package(path) in PACKAGES:
                other = parts[1] if len(parts) > 1 else "?"
                if other not in PACKAGES or PACKAGES.index(other) > PACKAGES.index(package(path)):
                    wrong.append(f"{path.relative_to(HERE)} imports {node.module}")
    assert not wrong


def test_the_table_names_every_module():
    text = dict(TABLE)
    for path in modules():
        parts = path.relative_to(HERE).parts
        if parts[0] in PACKAGES and len(parts) > 1 and parts[1] != "__init__.py":
            name = parts[1] if parts[1].endswith(".py") else f"{parts[1]}/"
            assert f"`{name.removesuffix('.py')}`" in text[parts[0]], f"benchmarks/README.md has no {'/'.join(parts)}"
