"""The documents tell the truth: every Python block runs, and prints what the text block after it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/schema.md",
    "docs/query.md",
    "docs/rules.md",
    "docs/recourse.md",
    "docs/distances.md",
    "docs/diversity.md",
    "docs/plausibility.md",
    "docs/answers.md",
    "docs/certificate.md",
    "docs/methods.md",
    "docs/models.md",
    "docs/engine.md",
    "docs/datasets.md",
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for (kind, code), (next_kind, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        ran += 1
        if next_kind == "text":
            assert printed.getvalue() == expected
    assert ran


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name} -> {link}"
