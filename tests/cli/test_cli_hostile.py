"""Every command with hostile words and files: an exit code and a printable sentence, never a traceback or a bug."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ifonly import Binary, Categorical, Integer, Network, Schema
from ifonly.cli import codes
from ifonly.model import save_network

WORDS = ["", " ", "0", "-1", "9" * 5000, "1e999", "-inf", "nan", "abc", "\x1b[31mred", "\u202eabc\u2028", "a,b", "z" * 5000,
         "/", ".", "nowhere/at.all", "x.csv", "x.json", "x.npz", "x.onnx", "x.cert", "\udc80", "--", "\u00e9", "\U0001d7d9", "\u00bd"]  # fmt: skip

COMMANDS: dict[str, list[str]] = {
    "demo": ["--dataset", "--rows", "--distance"],
    "explain": [
        "--dataset", "--model", "--schema", "--rows", "--data", "--classes", "--row", "--first", "--target",
        "--probability", "--one-of", "--top", "--at-least", "--at-most", "--margin", "--distance", "--scale", "--fix",
        "--only-up", "--only-down", "--rule", "--method", "--time-limit", "--node-limit", "--threads", "--output",
    ],
    "recourse": ["--causes", "--holding", "--rows", "--rule"],
    "diverse": ["--dataset", "--rows", "-k", "--differ", "--apart", "--apart-distance", "--rule"],
    "why": ["--rows", "-k", "--within", "--radius", "--distance", "--prefer", "--target", "--time-limit"],
    "notice": ["--form", "--codes", "--field", "--fields", "--template", "--ways", "--html", "--annex", "--certificate",
               "--output", "--pages"],
    "audit": ["--by", "--least", "--quantiles", "--seed", "--output", "--target", "--rows"],
    "certify": ["--row", "--output", "--target", "--rule"],
    "check": ["", "--time-limit"],
    "schema infer": ["", "--drop", "--step", "--output"],
    "schema show": [""],
    "model show": ["", "--schema", "--classes"],
    "model convert": ["", "--schema"],
    "datasets export": [""],
    "doctor": [""],
}  # fmt: skip
ONE_ROW = ["--dataset", "compas", "--row", "0", "--method", "enumerate"]


def words_for(command: str, option: str, word: str, few: Path) -> list[str]:
    base = {
        "explain": ONE_ROW, "recourse": [*ONE_ROW[:4], *(["--causes", "gone.json"] if option != "--causes" else [])], "diverse": ONE_ROW, "why": ONE_ROW, "notice": ONE_ROW, "audit": [*ONE_ROW], "certify": [*ONE_ROW, "--output", "out.cert"],
        "schema infer": [str(few)] if option else [], "model show": ["gone.npz"] if option else [],
        "model convert": ["gone.npz", "out.npz"] if option else ["gone.npz"], "check": ["gone.cert"] if option else [],
        "datasets export": ["mnist"],
    }.get(command, [])  # fmt: skip
    return [*command.split(), *base, *([option] if option else []), word]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("command", "option"), [(c, o) for c, options in COMMANDS.items() for o in options])
def test_hostile_words(run, compas, command, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for word in WORDS:
        if command == "demo" and word == "0":
            continue
        result = run(*words_for(command, option, word, compas.few))
        assert result.exit_code not in (codes.BUG, codes.CONTRADICTION), (word, result.stderr)
        assert result.stderr.replace("\n", "").isprintable(), (word, result.stderr)
        assert len(result.stderr) < 5000


VALUES = ["\x1b[31mred\x1b[0m", "\ud800", "\u202eabc", "\u2028", "\x00", "a\nb", "é", "<script>", "\x9b31m", "z" * 500]


@pytest.fixture
def hostile(tmp_path):
    """A schema with hostile options, a network for it, and rows that name them."""
    schema = Schema([Categorical("Job", VALUES), Integer("Age", 17, 20), Binary("Owner", ("\x1bno", "\ud800yes"))])
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    weight = [[0.0] * len(VALUES) + [1.0, 1.0]]
    save_network(Network.of([(weight, [-19.5])]), tmp_path / "net.npz", classes=("\x1b[2Jno", "\ud800yes"))
    rows = [{"Job": job, "Age": 17 + i % 4, "Owner": "\x1bno", "Group": job} for i, job in enumerate(VALUES)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    names = {"--model": "net.npz", "--schema": "schema.json", "--rows": "rows.jsonl"}
    return [word for option, name in names.items() for word in (option, str(tmp_path / name))]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_hostile_values_are_written(run, hostile, tmp_path, ending):
    output = tmp_path / f"answers.{ending}"
    output.write_bytes(b"an older file")
    result = run("explain", *hostile, "--method", "enumerate", "--output", output)
    assert result.exit_code == codes.WRONG_INPUT and "is there already" in result.stderr
    assert output.read_bytes() == b"an older file"
    result = run("explain", *hostile, "--method", "enumerate", "--output", output, "--force")
    assert result.exit_code == codes.PROVEN, result.stderr
    content = output.read_bytes()
    assert b"older" not in content and (ending == "parquet" or b"\x1b" not in content)
    if ending == "jsonl":
        told = [json.loads(line) for line in content.decode().splitlines()]
        assert [one["counterfactual"]["Job"] for one in told] == VALUES


@pytest.mark.parametrize("words", [["explain"], ["diverse", "-k", "2"], ["audit", "--target", "\ud800yes", "--by", "Group"]],
                         ids=lambda words: words[0])  # fmt: skip
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_hostile_values_are_shown(run, hostile, words, form):
    result = run(*words[:1], *hostile, *words[1:], "--method", "enumerate", *form)
    assert result.exit_code == codes.PROVEN, result.stderr
    assert result.stdout.replace("\n", "").isprintable() and result.stderr.replace("\n", "").isprintable()
    if form:
        json.loads(result.stdout)


@pytest.mark.parametrize("ending", ["svg", "html", "json", "csv"])
def test_hostile_labels_are_drawn(run, hostile, tmp_path, ending):
    from xml.etree import ElementTree

    path = tmp_path / f"audit.{ending}"
    words = ["audit", *hostile, "--target", "\ud800yes", "--by", "Group", "--method", "enumerate", "--output", path]
    assert run(*words).exit_code == codes.PROVEN
    content = path.read_text(encoding="utf-8")
    assert content.replace("\n", "").isprintable() and ("<script" not in content or ending in ("json", "csv"))
    if ending == "svg":
        ElementTree.fromstring(content)


def test_places_that_cannot_be_written(run, hostile, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for output in (tmp_path / "folder.csv", tmp_path / "none" / "x.csv", "\udc80.csv", "z" * 300 + ".csv"):
        result = run("explain", *hostile, "--method", "enumerate", "--output", output)
        assert result.exit_code in (codes.WRONG_INPUT, codes.PROVEN), result.stderr
        assert result.stderr.replace("\n", "").isprintable()
    for name in list(tmp_path.iterdir()):
        assert ".part" not in name.name
    for name in (b"\x80.csv", b"\x80.csv.manifest.json"):
        Path(os.fsdecode(name)).unlink(missing_ok=True)


def test_folders_for_files(run, tmp_path):
    for ending in ("csv", "jsonl", "parquet", "npz", "json", "onnx", "cert"):
        (tmp_path / f"x.{ending}").mkdir()
    for words in (
        ["schema", "infer", tmp_path / "x.csv"], ["schema", "infer", tmp_path / "x.jsonl"],
        ["schema", "infer", tmp_path / "x.parquet"], ["schema", "show", tmp_path / "x.json"],
        ["model", "show", tmp_path / "x.npz"], ["model", "show", tmp_path / "x.json"],
        ["model", "show", tmp_path / "x.onnx", "--schema", tmp_path / "x.json"], ["check", tmp_path / "x.cert"],
    ):  # fmt: skip
        result = run(*words)
        assert (result.exit_code, result.stdout) == (codes.WRONG_INPUT, "")
        assert "irectory" in result.stderr
