"""The files of the page, without a browser: its words, what it refers to, its types."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "src" / "ifonly" / "service" / "page"
SCRIPTS = sorted(PAGE.glob("*.js"))
CODE = {path.name: path.read_text() for path in SCRIPTS}
HTML = (PAGE / "index.html").read_text()


def words() -> dict[str, dict[str, str]]:
    table = re.search(r"export const WORDS = (\{.*?\n\});", CODE["words.js"], re.DOTALL)
    assert table
    return dict(json.loads(table[1]))


def test_every_word_is_there_in_every_language_with_the_same_gaps() -> None:
    table = words()
    assert {"en", "de"} <= set(table)
    for own in table.values():
        assert set(own) == set(table["en"])
        for name, text in own.items():
            assert text.strip(), name
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", table["en"][name])), name


def test_every_word_that_is_used_exists_and_every_one_that_exists_is_used() -> None:
    code = "".join(text for name, text in CODE.items() if name != "words.js")
    used = set(re.findall(r'data-(?:word|label)="(\w+)"', HTML)) | set(re.findall(r'\bt\("(\w+)"', code))
    used |= set(re.findall(r'"(\w+)"', code))  # names that are passed on
    stems = set(re.findall(r"\bt\(`(\w+_)\$\{", code))
    known = set(words()["en"])
    assert set(re.findall(r'\bt\("(\w+)"', code)) | set(re.findall(r'data-word="(\w+)"', HTML)) <= known
    assert {name for name in known if name not in used and not name.startswith(tuple(stems))} == {"language"} - used


def test_the_page_refers_to_its_own_files_only() -> None:
    referred = re.findall(r'(?:href|src)="([^"#][^"]*)"', HTML)
    assert referred
    for path in referred:
        assert path.startswith("page/") and (PAGE / path.removeprefix("page/")).is_file(), path  # relative
    for name, text in CODE.items():
        for path in re.findall(r'(?:\} from |import\()"([^"\n]+)"', text):
            assert path.startswith("./") and (PAGE / path.removeprefix("./")).is_file(), (name, path)
    everything = HTML + (PAGE / "desk.css").read_text() + "".join(CODE.values())
    outside = re.findall(r"https?://[^\s\"'`]+|@import|url\(", everything)
    assert outside == ["http://www.w3.org/2000/svg"]


def test_nothing_becomes_markup_and_nothing_is_stored() -> None:
    code = "".join(CODE.values())
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
                 "localStorage", "sessionStorage", "document.cookie", "indexedDB"):  # fmt: skip
        assert word not in code
    assert not re.search(r"\sstyle=|\son\w+=|<script(?![^>]*src=)|<style", HTML)


def test_every_part_that_is_asked_for_is_in_the_page() -> None:
    ids = re.findall(r'\bid="([\w-]+)"', HTML)
    assert len(ids) == len(set(ids))
    code = "".join(CODE.values())
    assert set(re.findall(r'\b(?:part|select|fillSelect)\("([\w-]+)"', code)) <= set(ids)


def test_modules_are_small() -> None:
    for name, text in CODE.items():
        assert text.startswith("// "), name
        assert len(text.splitlines()) <= 400, name


def test_types() -> None:
    checker = shutil.which("tsc")
    if checker is None:
        pytest.skip("tsc is not installed (npm install typescript)")
    told = subprocess.run(
        [checker, "-p", ROOT / "tools" / "tsconfig.json"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout
