"""Cells of csv that stand for no value."""

from __future__ import annotations

import json

from ifonly.cli import codes

TABLE = "age,gender,income\n30,m,-999\n41,f,2000\n52,N/A,3100\n23,m,1500\n64,f,-999.0\n"


def test_a_mark_is_a_missing_value_where_somebody_says_so(run, tmp_path):
    table, schema = tmp_path / "people.csv", tmp_path / "schema.json"
    table.write_text(TABLE, encoding="utf-8")
    plain = run("schema", "infer", table)
    assert plain.exit_code == codes.PROVEN and "'N/A' may mean missing" in " ".join(plain.stdout.split())
    result = run("schema", "infer", table, "--missing", "N/A", "--missing", "-999", "--output", schema)
    assert result.exit_code == codes.PROVEN, result.stderr
    features = {one["name"]: one for one in json.loads(schema.read_text())["features"]}
    assert features["gender"]["categories"] == ["f", "m", None]
    assert features["income"]["missing"] is True and features["income"]["lower"] == 1500
    assert "missing" not in features["age"]
