"""Names and sizes: a class name is used once in the whole package; functions stay small, unless a comment says why."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ifonly

ROOT = Path(ifonly.__file__).parent
KERNELS = (
    "solvers/search/kernels/",
    "solvers/search/smooth/kernels/",
    "solvers/search/trees/kernels/",
    "certifying/float_check/",
)
LINES, KERNEL_LINES = 40, 60
PARAMETERS, KERNEL_PARAMETERS = 6, 10
MARKER = "# size: "
"""A comment line that begins so, right above `def` (or above its decorators), says why a function is larger."""

MODULES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def functions(name: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """The functions of a module, and whether a comment says why they are larger."""
    lines = MODULES[name].read_text(encoding="utf-8").splitlines()
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            above = (lines[at - 2].strip() for at in (first, node.lineno) if at >= 2)
            yield node, any(line.startswith(MARKER) for line in above)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    own = [*node.args.posonlyargs, *node.args.args]
    return len(own) + len(node.args.kwonlyargs) - bool(own and own[0].arg in ("self", "cls"))


def too_long(name: str) -> list[str]:
    most = KERNEL_LINES if name.startswith(KERNELS) else LINES
    return [
        f"{name}: {node.name}"
        for node, excused in functions(name)
        if not excused and (node.end_lineno or node.lineno) - node.lineno + 1 > most
    ]


def too_many_parameters(name: str) -> list[str]:
    """In the kernels of every function; elsewhere of those that other modules may call."""
    inside = name.startswith(KERNELS)
    return [
        f"{name}: {node.name}"
        for node, excused in functions(name)
        if not excused
        and (inside or not node.name.startswith("_") or node.name == "__init__")
        and parameters(node) > (KERNEL_PARAMETERS if inside else PARAMETERS)
    ]


def test_no_two_classes_of_one_name() -> None:
    places = defaultdict(list)
    for name, path in MODULES.items():
        for found in re.findall(r"^ *class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places[found].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_functions_are_small() -> None:
    assert not [found for name in MODULES for found in too_long(name)]
    assert not [found for name in MODULES for found in too_many_parameters(name)]


NAMED_ROWS = frozenset({"index", "count", "number", "need", "idx", "F", "I", "LF", "LI"})
NAMED_VALUES = frozenset({"norm", "side"})


def unnamed(tree: ast.AST) -> Iterator[ast.expr]:
    """`index[2]`, `count[1]`, `norm == 1`: numbers for which the kernels' layout has names."""
    counted = {
        node.target.id for node in ast.walk(tree) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            of_level = ast.unparse(node.value) == "r.F"  # TriangleBuffers: the first number is a level, not a row
            if _last(node.value) in NAMED_ROWS and _is_number(first) and not of_level:
                yield node
        elif isinstance(node, ast.Compare):
            subject = node.left.value if isinstance(node.left, ast.Subscript) else node.left
            if _last(subject) in NAMED_VALUES - counted and any(map(_is_number, node.comparators)):
                yield node


def test_numbers_in_the_kernels_arrays_have_names() -> None:
    kernels = [path for name, path in MODULES.items() if name.startswith("solvers/search/")]
    assert len(kernels) > 50
    paths = [*kernels, *(Path(__file__).parent / "search").glob("*.py")]
    found = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for path in paths
        if path.name != "reference_kernels.py"  # references have arrays of their own
        for node in unnamed(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found


def _last(node: ast.expr) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


METAPHORS = frozenset(
    [
        "asker",
        "askers",
        "asked",
        "wanted",
        "teller",
        "speller",
        "herald",
        "clerk",
        "shelf",
        "manners",
        "errand",
        "duty",
        "sitting",
        "visit",
        "lacking",
        "luck",
        "lucky",
        "blur",
        "twin",
        "house",
        "room",
        "door",
    ]
)
"""Words of an earlier dialect; the glossary has the terms of the field."""


def test_modules_classes_and_functions_have_plain_names() -> None:
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for name in MODULES:
        defined = [node.name for node in ast.walk(parsed(name)) if isinstance(node, kinds)]
        words = {
            word.lower()
            for one in [*defined, *Path(name).with_suffix("").parts]
            for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", one)
        }
        assert not METAPHORS & words, name
