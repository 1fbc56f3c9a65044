"""YAML from anybody: read or refused in a sentence, by work that grows with its length and not faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ifonly import Schema
from ifonly.errors import FileError, IfonlyError
from ifonly.schema import io, load_schema

yaml = pytest.importorskip("yaml")

LOADERS = [name for name in ("SafeLoader", "CSafeLoader") if hasattr(yaml, name)]
SIZE = 20_000


@pytest.fixture(params=LOADERS, autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "SafeLoader":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return str(request.param)


def refusal(text: str, folder: Path) -> str:
    path = folder / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(IfonlyError) as told:
        load_schema(path)
    return str(told.value)


class Counted:
    """A scanner that counts the candidates for keys it goes through: where the quadratic time was spent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        stale = yaml.scanner.Scanner.stale_possible_simple_keys

        def counting(scanner: Any) -> None:
            self.steps += len(scanner.possible_simple_keys)
            stale(scanner)

        monkeypatch.setattr(yaml.scanner.Scanner, "stale_possible_simple_keys", counting)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sign", ["[", "{", "[\n", "- ", "? ", "{a: ", "[a, "])
def test_deep_nesting_is_refused_early(tmp_path, monkeypatch, sign):
    counted = Counted(monkeypatch)
    assert "schema.yaml'" in refusal(sign * SIZE, tmp_path)
    few = counted.steps
    assert "schema.yaml'" in refusal(sign * (8 * SIZE), tmp_path)
    assert counted.steps - few <= 2 * few + SIZE  # eight times as long, and no more work: it ends at the depth


def test_more_than_so_deep(tmp_path):
    words = "more than 32 lists within lists"
    assert words in refusal("[" * 33 + "]" * 33, tmp_path)
    assert words not in refusal("[" * 32 + "]" * 32, tmp_path)
    assert words not in refusal("[[]], " * 1 + "\n".join("- [[a]]" for _ in range(200)), tmp_path)


def test_numbers_to_the_base_of_sixty(tmp_path):
    """YAML 1.1 reads 1:1:1 as a number, in quadratic time."""
    assert "a number of more than 1,000 characters" in refusal("a: 1" + ":1" * 300_000, tmp_path)
    assert "a number of other digits" in refusal("a: 1" + ":1" * 300 + ".5", tmp_path)  # too large for a float64


@pytest.mark.parametrize("text", ["a: !!bool x", "a: !!timestamp x", "!!set {a}", "a: !!binary aGk=", "a: !mine b",
                                  "!!python/object/apply:os.system [ls]"])  # fmt: skip
def test_tags_are_refused(tmp_path, text):
    assert "has a tag" in refusal(text, tmp_path)


def test_references_and_merges_are_refused(tmp_path):
    assert "has references" in refusal("a: &b [1]\nc: *b\n", tmp_path)
    assert "merges mappings" in refusal("<<: {}\n" * 9, tmp_path)


def test_what_we_write_is_read(tmp_path):
    from ifonly import Categorical, Integer

    odd = Schema((Categorical("=", ("<<", "1:30", "x" * 5000, "!!bool x", "*a", "null", "")), Integer("- b", 0, 3)))
    (tmp_path / "odd.yaml").write_text(odd.to_yaml(), encoding="utf-8")
    assert load_schema(tmp_path / "odd.yaml") == odd


def test_a_file_that_is_longer_than_it_says(tmp_path, monkeypatch):
    """/dev/zero is said to have no bytes."""
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero")
    monkeypatch.setattr(io, "MAX_YAML", 1000)
    for name in ("endless.yaml", "endless.json"):
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(FileError, match="is larger than"):
        load_schema(tmp_path / "endless.yaml")
    with pytest.raises(FileError, match="is larger than"):
        io.read_json(tmp_path / "endless.json", "schema", 1000)
