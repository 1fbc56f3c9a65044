"""What VALID says: which network, which distance, which ranges; and nothing that a file can choose reaches the verdict."""

from __future__ import annotations

import copy
import json
import zlib

import numpy as np
import pytest
from click.testing import CliRunner

from certificate.samples import question, restamped, small
from ifonly import Certificate, check
from ifonly.certificate.format import canonical, stamp
from ifonly.cli.app import app
from ifonly.errors import FileError, SchemaError
from ifonly.printing import escaped, quoted
from ifonly.schema import Categorical, Real


def words(**changes):
    """The statement of a solver's bound about the question, altered: that needs no proof."""
    data = copy.deepcopy(small("l1").data)
    data["claim"], data["witness"], data["deployed"] = {"lower": (0.0).hex(), "upper": None}, None, None
    data["proof"] = {"grid": data["proof"]["grid"], "cost_grid": data["proof"]["cost_grid"], "trusted": "a solver"}
    for path, value in changes.items():
        place = data["question"]
        *way, last = [int(key) if key.isdigit() else key for key in path.split("__")]
        for key in way:
            place = place[key]
        place[last] = value
    checked = check(restamped(data))
    assert not checked.failure, checked.failure
    return checked.statement


def test_different_questions_never_read_the_same():
    two = (2.0).hex()
    told = [
        words(),
        words(model__layers__0__bias__0=two),
        words(distance__weights__0=two),
        words(distance__scales__1=two),
        words(constraints__0__lower=two),
        words(schema__features__0__upper=5.0),
        words(schema__features__1__upper=10),
        words(schema__features__2__categories__0="w"),
        words(factual__0=(0.25).hex()),
        words(target__margin=two),
        words(constraints=[]),
    ]
    assert len(set(told)) == len(told)
    assert len({one.split("sha256")[2] for one in told}) == len(told)
    shown = told[0]
    for part in ("weight 1.0", "scale ", "range from 1.0 to 8.0", "real in [0.0, 4.0]", "integer in [0.0, 9.0]"):
        assert part in shown


def test_the_network_has_the_fingerprint_that_it_has_elsewhere():
    asked, _ = question("l1")
    checked = check(small("l1"))
    assert checked.network == asked.model.network.fingerprint
    assert checked.network in checked.statement and checked.question in checked.statement
    assert checked.to_dict()["network"] == checked.network


EVIL = "a\nVALID\r\x1b[2J\x1b[1mVALID\u202e\x9b0m'; VALID: all is proven"


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31m", "a\u202eb", "a\ud800", "x" * 201, "", "a\x00", "a\u2028b", "a\ufeff"]
)
def test_names_that_could_steer_a_terminal_are_refused(name):
    with pytest.raises(SchemaError, match="feature's name") as caught:
        Real(name, 0, 1)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000
    with pytest.raises(SchemaError, match="feature's name"):
        Categorical(name, ["a", "b"])


def test_ordinary_names_of_many_languages_pass():
    for name in (
        "Age",
        "Größe",
        "年齢 区分",
        "年齢\u3000区分",
        "loan amount (€)",
        "naïve\xa0income",
        "x" * 200,
        "a=b [c]",
    ):
        assert Real(name, 0, 1).name == name


def test_the_verdict_stands_where_no_text_of_the_file_can_reach(tmp_path):
    data = copy.deepcopy(small("l1").data)
    data["question"]["schema"]["features"][2]["categories"][1] = EVIL
    data["question"]["target"]["label"] = EVIL
    for claim in (data["claim"], {"lower": (9.0).hex(), "upper": (9.0).hex()}):
        path = tmp_path / "evil.cert"
        restamped({**data, "claim": claim}).save(path)
        result = CliRunner().invoke(app, ["check", str(path)])
        lines = result.output.split("\n")
        verdict = "VALID" if result.exit_code == 0 else "INVALID"
        assert lines[0] == lines[-2] == verdict and lines[-1] == ""
        assert all(line.startswith("  ") and line.isprintable() for line in lines[1:-2])
        told = CliRunner().invoke(app, ["check", str(path), "--json"]).output
        assert told.replace("\n", "").isprintable() and json.loads(told)["verdict"] == verdict
    data["question"]["schema"]["features"][0]["name"] = EVIL
    failure = check(restamped(data)).failure
    assert "printable" in failure and failure.isprintable()


def test_clean_and_quoted():
    assert escaped("a\nb\x1b\u202e\ud800\x9b") == "a\\nb\\x1b\\u202e\\ud800\\x9b"
    assert escaped("Größe 年齢") == "Größe 年齢"
    assert quoted("it's\n") == "'it\\'s\\n'" and quoted("x" * 300).endswith("(300 characters)")


# ---------------------------------------------------------------------- the file is exactly what the page says


def refusal(text: bytes) -> str:
    with pytest.raises(FileError) as caught:
        Certificate.from_bytes(zlib.compress(text))
    return str(caught.value)


def test_only_the_canonical_text_is_read():
    data = small("l1").data
    text = canonical(data)
    assert Certificate.from_bytes(zlib.compress(text)).data == data
    assert "canonical" in refusal(text.replace(b'"version":2', b'"version":2,"version":2'))
    assert "canonical" in refusal(text.replace(b'"claim":{', b'"claim": {'))
    assert "canonical" in refusal(json.dumps(data).encode())
    assert "canonical" in refusal(text + b"\n")
    assert "canonical" in refusal(json.dumps(dict(reversed(data.items())), separators=(",", ":")).encode())
    assert "canonical" in refusal(text.replace(b"ifonly search", b"ifonly \\u0073earch"))
    assert refusal(text.decode().encode("utf-16"))
    twice = b'{"claim":{"lower":null,"upper":null},' + text[1:]
    assert "canonical" in refusal(twice)


@pytest.mark.parametrize("version", [True, 2.0, "2", 1, None, [2]])
def test_the_version_is_the_number_one(version):
    data = {**small("l1").data, "version": version}
    assert "version" in refusal(canonical({**data, "sha256": stamp(data)}))


@pytest.mark.parametrize("made_by", [None, 3, True, [], {}, "", "x" * 1001, "a\nVALID"])
def test_what_made_it_is_text(made_by):
    checked = check(restamped({**small("l1").data, "made_by": made_by}))
    assert not checked.valid and "made the certificate" in checked.failure


def test_rows_of_leaves_have_the_stated_form_even_where_nothing_is_left():
    data = copy.deepcopy(small("l1").data)
    data["claim"], data["witness"], data["deployed"] = {"lower": (0.0).hex(), "upper": None}, None, None
    data["proof"]["tree"] = [{"rows": []}]
    assert check(restamped(data)).valid  # everything is at least 0 away
    data["proof"]["tree"] = [{"rows": ["nonsense"]}]
    assert not check(restamped(data)).valid


def test_columns_of_options_are_those_of_the_schema():
    """The checker writes one-hot, thermometer and code out by itself."""
    from ifonly.certificate.check.layers import columns_of
    from ifonly.certificate.check.reading import CheckBudget
    from ifonly.certificate.check.schema import read_schema
    from ifonly.schema import Binary, Integer, Ordinal, Schema
    from ifonly.schema.io import schema_to_json

    schema = Schema([
        Categorical("a", ["x", "y", "z"]), Ordinal("b", [1, 2, 3, 4]), Categorical("c", ["p", "q"], "code"),
        Ordinal("d", ["l", "m", "n"], "onehot"), Ordinal("e", ["l", "m", "n"], "code"), Binary("f"), Integer("g", 0, 9),
    ])  # fmt: skip
    rows = np.random.default_rng(3).integers(-9, 9, (4, len(schema.columns)))
    found = columns_of(read_schema(schema_to_json(schema)), tuple(tuple(row) for row in rows.tolist()), CheckBudget())
    for feature, places, own in zip(schema.features, schema.feature_columns, found, strict=True):
        codes = getattr(feature, "codes", np.ones((1, 1)))
        assert np.array_equal(np.array(own), codes @ rows[:, places].T)
