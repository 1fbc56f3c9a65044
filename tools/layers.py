"""The map of the package: which part imports which. Writes it into docs/architecture.md; `--check` only compares.

python tools/layers.py            # write
python tools/layers.py --check    # exit code 1 where the page is not what the code is
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ifonly"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers: written by tools/layers.py -->\n", "<!-- end of layers -->\n"


def layers() -> list[list[str]]:
    """Packages and modules from the top layer down, as import-linter has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (top,) = [contract for contract in contracts if contract.get("containers") == ["ifonly"]]
    return [[part.strip() for part in layer.split("|")] for layer in top["layers"]]


def modules(part: str) -> list[Path]:
    """The files of a package or module."""
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported(path: Path) -> set[str]:
    """The parts that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ifonly":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ifonly."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("ifonly.")}
    return found


def purpose(part: str) -> str:
    """The first sentence of the part's own docstring."""
    folder = PACKAGE / part
    text = ast.get_docstring(ast.parse((folder / "__init__.py" if folder.is_dir() else modules(part)[0]).read_text()))
    return " ".join((text or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def table() -> str:
    """One row per part, from the top down."""
    parts = [part for layer in layers() for part in layer]
    lines = ["| package or module | holds | imports |", "|---|---|---|"]
    for part in parts:
        files = modules(part)
        used = set().union(*(imported(path) for path in files)) - {part}
        below = ", ".join(f"`{other}`" for other in parts if other in used)
        lines.append(f"| `{part}` | {purpose(part)} | {below} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} has to have the marks {BEGIN.strip()} and {END.strip()}.")
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> int:
    wanted = page()
    if "--check" in sys.argv[1:]:
        return int(wanted != PAGE.read_text())
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
