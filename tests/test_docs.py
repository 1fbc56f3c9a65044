"""Documents are tests: every Python block runs and prints what the text block after it says; names, paths and links exist."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ifonly

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/schema.md",
    "docs/query.md",
    "docs/rules.md",
    "docs/recourse.md",
    "docs/audit.md",
    "docs/distances.md",
    "docs/diversity.md",
    "docs/invariants.md",
    "docs/plausibility.md",
    "docs/answers.md",
    "docs/why.md",
    "docs/chains.md",
    "docs/causes.md",
    "docs/notices.md",
    "docs/certificate.md",
    "docs/methods.md",
    "docs/models.md",
    "docs/missing.md",
    "docs/engine.md",
    "docs/datasets.md",
    "docs/populations.md",
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


@pytest.mark.long(keep=1)
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


def places(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_are_valid() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for link, place in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                there = page.parent / link if link else page
                assert there.exists(), f"{page.name} -> {link}"
                assert not place or place in places(there), f"{page.name} -> {link}#{place}"


def test_badges_match_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import badges

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert badges.badges()
    for name, (left, right) in badges.badges().items():
        assert (badges.IMAGES / name).read_text(encoding="utf-8") == badges.drawn(left, right)
        assert f"![{left}: {right}](docs/images/{name})" in readme


def test_the_site_builds(tmp_path: Path) -> None:
    """Strictly: no page outside the navigation, no broken link, every name of the reference found."""
    pytest.importorskip("material", reason="the site is built with mkdocs-material: pip install 'ifonly[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "explain_diverse" in (tmp_path / "site" / "api.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f": {page.name}\n" in listed, f"{page.name} is in no section of mkdocs.yml"


def test_the_names_of_the_glossary_exist() -> None:
    """Last column of each table: `module.Class`, without `ifonly.`; `.name` is in the same place as the name before it."""
    seen, previous = 0, ""
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and "in the code" not in line:
            for name in re.findall(r"`([\w.]+)`", line.rsplit(" | ", 1)[1]):
                if "trusted" in name:  # an entry of a file
                    continue
                previous = previous.rpartition(".")[0] + name if name.startswith(".") else name
                assert _found(f"ifonly.{previous}"), f"the glossary names {previous}, which does not exist"
                seen += 1
    assert seen > 50


def test_the_reference_names_what_is_public() -> None:
    named = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.M)
    assert len(named) > 50
    for name in named:
        assert _found(name), f"docs/api.md names {name}, which does not exist"
    short = {name.rpartition(".")[2] for name in named}
    public = {name for name in ifonly.__all__ if not isinstance(getattr(ifonly, name), ModuleType)}
    assert not public - short, f"docs/api.md does not name {', '.join(sorted(public - short))}"


def _found(name: str) -> bool:
    """A module, or what is inside one."""
    module, rest = name, ""
    while module:
        try:
            owner = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
            continue
        for part in filter(None, rest.split(".")):
            if not hasattr(owner, part):
                return part in getattr(owner, "__dataclass_fields__", {})
            owner = getattr(owner, part)
        return True
    return False


def test_files_and_names_that_pages_mention_exist() -> None:
    """Paths in back quotes are below the root, src/ifonly, or a package of the solvers; names begin with `ifonly.`."""
    roots = [ROOT, ROOT / "src" / "ifonly", *(ROOT / "src" / "ifonly" / "solvers").glob("**/")]
    seen = 0
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for path in re.findall(r"`((?:\w+/)+\w+\.(?:py|js))`", text):
            assert "NAME" in path or any((root / path).exists() for root in roots), f"{page.name} names {path}"
            seen += 1
        for name in re.findall(r"`(ifonly(?:\.\w+)+)[`(]", text):
            assert _found(name), f"{page.name} names {name}"
            seen += 1
    assert seen > 150
