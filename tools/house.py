"""The map of the package: which room imports which. Writes it into docs/architecture.md; `--check` only compares.

python tools/house.py            # write
python tools/house.py --check    # exit code 1 where the page is not what the code is
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ifonly"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: written by tools/house.py -->\n", "<!-- end of rooms -->\n"


def layers() -> list[list[str]]:
    """The rooms, from the top of the house down, as import-linter is told them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (house,) = [contract for contract in contracts if contract["type"] == "layers"]
    return [[room.strip() for room in layer.split("|")] for layer in house["layers"]]


def modules(room: str) -> list[Path]:
    """The files of a room."""
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported(path: Path) -> set[str]:
    """The rooms that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ifonly":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ifonly."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("ifonly.")}
    return found


def purpose(room: str) -> str:
    """The first sentence of the room's own docstring."""
    folder = PACKAGE / room
    told = ast.get_docstring(ast.parse((folder / "__init__.py" if folder.is_dir() else modules(room)[0]).read_text()))
    return " ".join((told or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def table() -> str:
    """One row per room, from the top down."""
    rooms = [room for layer in layers() for room in layer]
    lines = ["| room | holds | imports |", "|---|---|---|"]
    for room in rooms:
        files = modules(room)
        used = set().union(*(imported(path) for path in files)) - {room}
        below = ", ".join(f"`{other}`" for other in rooms if other in used)
        lines.append(f"| `{room}` | {purpose(room)} | {below} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} lacks the marks {BEGIN.strip()} and {END.strip()}.")
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> int:
    wanted = page()
    if "--check" in sys.argv[1:]:
        return int(wanted != PAGE.read_text())
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
