"""Schema files: written whole, read with care."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ifonly import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.errors import FileError, SchemaError
from ifonly.schema import schema_from_json, schema_to_json, write_whole

SCHEMA = Schema(
    [
        Real("x", 0, 0.1),
        Integer("n", 0, 9, 3),
        Binary("b", ("no", "yes")),
        Ordinal("o", ["a", "b"]),
        Categorical("c", ["ä", None], "code"),
    ],
    ["c", "o>=b", "x", "n", "o>=a", "b"],
)


def test_a_file_keeps_everything(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == SCHEMA
    assert Schema.load(str(tmp_path / "schema.json")).columns == SCHEMA.columns
    assert [p.name for p in tmp_path.iterdir()] == ["schema.json"]  # nothing left beside it


def test_the_file_is_readable_and_versioned() -> None:
    data = schema_to_json(SCHEMA)
    assert (data["format"], data["version"]) == ("ifonly-schema", 1)
    assert data["features"][1] == {"kind": "integer", "name": "n", "lower": 0, "upper": 9, "step": 3}
    assert "columns" not in schema_to_json(Schema(SCHEMA.features))
    assert "rules" not in data


def test_the_rules_for_everybody_are_kept(tmp_path: Path) -> None:
    schema = Schema(SCHEMA.features, rules=["n only goes up", "if b = yes then n >= 3"])
    schema.save(tmp_path / "schema.json")
    loaded = Schema.load(tmp_path / "schema.json")
    assert loaded == schema and hash(loaded) == hash(schema)
    assert loaded.rules == ("n only goes up", "if b = yes then n >= 3")
    assert loaded != Schema(SCHEMA.features)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    SCHEMA.save(path)
    with pytest.raises(TypeError):
        write_whole(path, "text")  # type: ignore[arg-type]
    assert Schema.load(path) == SCHEMA
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(FileError, match="Cannot write '.*nowhere.*': No such file"):
        SCHEMA.save(tmp_path / "nowhere" / "schema.json")


def with_feature(**feature: object) -> dict[str, object]:
    return {"format": "ifonly-schema", "version": 1, "features": [feature]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], '"format": "ifonly-schema"'),
        ({"format": "other"}, '"format": "ifonly-schema"'),
        ({"format": "ifonly-schema", "version": 9}, "version 9; this ifonly reads version 1"),
        ({"format": "ifonly-schema", "version": 1}, 'list "features"'),
        ({"format": "ifonly-schema", "version": 1, "features": [7]}, "Feature number 0.*it is 7"),
        ({**with_feature(kind="real", name="x", lower=0, upper=1), "columns": [1]}, '"columns"'),
        ({**with_feature(kind="real", name="x", lower=0, upper=1), "rules": "x >= 0.5"}, '"rules".*"Age only goes up"'),
        (with_feature(kind="complex", name="x"), "'complex'"),
        (with_feature(kind=["real"], name="x"), "kind"),
        (with_feature(kind="real", lower=0, upper=1), 'needs "name"'),
        (with_feature(kind="real", name="x", lower=0), "'x'.*needs \"upper\""),
        (with_feature(kind="real", name="x", lower=0, upper=1, colour="m"), "'x': unknown entries \\['colour'\\]"),
        (with_feature(kind="real", name="x", lower="0", upper=1), "'x': 'lower' must be a finite number"),
        (with_feature(kind="real", name=5, lower=0, upper=1), "name must be a non-empty string; got 5"),
    ],
)
def test_what_is_no_schema(data: object, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        schema_from_json(data)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Cannot read the schema '.*gone.json': No such file"):
        Schema.load(tmp_path / "gone.json")
    with pytest.raises(FileError, match="Cannot read the schema"):
        Schema.load(tmp_path)
    broken = tmp_path / "broken.json"
    for content in (b"{", b"\xff\xfe", b"", b"[" * 100_000):
        broken.write_bytes(content)
        with pytest.raises(FileError, match="broken.json' is not a JSON file"):
            Schema.load(broken)
    broken.write_text(json.dumps({"format": "ifonly-schema", "version": 1, "features": []}))
    with pytest.raises(SchemaError, match="In '.*broken.json': A schema needs at least one feature"):
        Schema.load(broken)
