"""Schemas from schemas."""

import pytest

from ifonly import Categorical, Integer, Ordinal, Real, Schema, datasets
from ifonly.errors import FileError, SchemaError

SCHEMA = Schema(
    [Real("x", 0, 1), Categorical("job", ["a", "b", "c"]), Integer("n", 0, 9)],
    columns=["n", "job=c", "x", "job=a", "job=b"],
    rules=["n only goes up"],
)


def test_replace_keeps_the_order_of_columns():
    other = SCHEMA.replace(Categorical("job", ["u", "v", "w"]), Real("x", 0, 2))
    assert other.columns == ("n", "job=w", "x", "job=u", "job=v") and other["x"].upper == 2.0
    assert SCHEMA.replace(Categorical("job", ["u", "v"], encoding="code")).columns == ("n", "job", "x")
    assert SCHEMA.replace(Ordinal("job", ["u", "v"])).columns == ("n", "job>=u", "job>=v", "x")
    with pytest.raises(SchemaError, match="no feature 'y'"):
        SCHEMA.replace(Real("y", 0, 1))
    with pytest.raises(SchemaError, match="got 3"):
        SCHEMA.replace(3)


def test_drop_and_rename():
    assert SCHEMA.drop("job").columns == ("n", "x")
    assert SCHEMA.rename({"job": "work"}).columns == ("n", "work=c", "x", "work=a", "work=b")
    for wrong in (lambda: SCHEMA.drop("n"), lambda: SCHEMA.rename({"n": "m"})):
        with pytest.raises(SchemaError, match="the rule 'n only goes up' of this schema mentions it"):
            wrong()
    with pytest.raises(SchemaError, match="such as"):
        SCHEMA.rename(["n"])
    with pytest.raises(SchemaError, match="listed twice"):
        SCHEMA.rename({"job": "x"})


def test_with_rules_and_labels():
    assert SCHEMA.with_rules("x is fixed").rules == ("n only goes up", "x is fixed")
    worded = SCHEMA.labelled({"x": "share"}, {"x": "%"})
    assert (worded["x"].label, worded["x"].unit) == ("share", "%") and worded.columns == SCHEMA.columns
    assert worded.labelled({"n": "number"})["x"].label == "share"
    with pytest.raises(SchemaError, match="no feature"):
        SCHEMA.labelled({"y": "share"})
    with pytest.raises(SchemaError, match="'label' must be a printable text"):
        Real("x", 0, 1, label="a\nb")
    with pytest.raises(SchemaError, match="'unit' must be a printable text of at most 40"):
        Real("x", 0, 1, unit="m" * 41)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["s.json", "s.yaml", "s.yml"])
def test_files_of_both_kinds_are_read_back_equal(tmp_path, name):
    for schema in (SCHEMA.labelled({"x": "Anteil für ß"}, {"x": "€"}), datasets.load("credit", rules=False).schema):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    assert "features:" in SCHEMA.to_yaml() and SCHEMA.to_json().startswith("{")


def test_yaml_from_strangers(tmp_path):
    bomb = "a: &a [1, 1]\nb: &b [*a, *a]\nformat: ifonly-schema\n"
    for text, told in [(bomb, "references"), ("a: [", "not a YAML file"), ("!!python/object:os.system x", "has a tag"),
                       ("\xff\xfe", "no|not"), ("x: " + "[" * 5000, "more than 32 lists within lists")]:  # fmt: skip
        path = tmp_path / "s.yaml"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises((FileError, SchemaError), match=told):
            Schema.load(path)
