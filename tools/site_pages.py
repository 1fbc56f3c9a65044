"""Hooks of mkdocs: documents outside docs/ become pages of the site, and links follow them.

mkdocs calls these functions (see `hooks` in mkdocs.yml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OUTSIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
          "benchmarks/README.md": "benchmarks.md"}  # fmt: skip
"""Documents outside docs/, and the pages that they become."""
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the documents that are outside docs/."""
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_linked(text, (ROOT / source).parent)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page that lead out of docs/."""
    if page.file.src_uri in OUTSIDE.values():
        return markdown
    return _linked(markdown, (ROOT / "docs" / page.file.src_uri).parent)


def _linked(text: str, folder: Path) -> str:
    """Links to documents become links to their pages; links to code become the code's path, as text."""

    def link(found: re.Match[str]) -> str:
        target, place = found[1], found[2] or ""
        if target.startswith(("http:", "https:", "mailto:")):
            return found[0]
        there = (folder / target).resolve()
        inside = there.relative_to(ROOT).as_posix() if there.is_relative_to(ROOT) else target
        if inside in OUTSIDE:
            return f"]({OUTSIDE[inside]}{place})"
        if inside.startswith("docs/"):
            return f"]({_from(folder, inside.removeprefix('docs/'))}{place})"
        return f"] (`{inside}`)"

    return LINK.sub(link, text)


def _from(folder: Path, page: str) -> str:
    """A page of docs/ as seen from a folder: the root of the site, or a folder inside docs/."""
    docs = ROOT / "docs"
    depth = len(folder.relative_to(docs).parts) if folder.is_relative_to(docs) else 0
    return "../" * depth + page
