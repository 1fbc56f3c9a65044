"""The badges of the README, from what pyproject.toml and the package say: python tools/badges.py.

They are files in docs/images; nothing is asked of a service. A test holds them to this.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
LETTER, PAD, HIGH = 6.6, 7, 20
"""Of a badge, in pixels: the width of a letter, the room beside the words, its height."""


def badges() -> dict[str, tuple[str, str]]:
    """File names, and what stands on the left and on the right."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [found[1] for line in project["classifiers"] if (found := re.search(r":: (3\.\d+)$", line))]
    said = {
        "badge-python.svg": ("python", " | ".join(versions)),
        "badge-licence.svg": ("licence", project["license"]),
    }
    if (ROOT / "src" / "ifonly" / "py.typed").exists():
        said["badge-typed.svg"] = ("types", "checked, strict")
    return said


def drawn(left: str, right: str) -> str:
    """A badge, readable without its colours."""
    first, second = (round(LETTER * len(text) + 2 * PAD) for text in (left, right))
    told = escape(f"{left}: {right}", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{HIGH}" role="img" '
        f'aria-label="{told}"><title>{told}</title>\n'
        f'<rect width="{first + second}" height="{HIGH}" rx="3" fill="#1f4e79"/>\n'
        f'<path d="M3 0H{first}V{HIGH}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3" fill="#444"/>\n'
        f'<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{first / 2:g}" y="14">{escape(left)}</text>'
        f'<text x="{first + second / 2:g}" y="14">{escape(right)}</text></g>\n</svg>\n'
    )


def main() -> None:
    """Write them."""
    for name, (left, right) in badges().items():
        (IMAGES / name).write_text(drawn(left, right), encoding="utf-8")


if __name__ == "__main__":
    main()
