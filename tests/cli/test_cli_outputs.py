"""Every option that writes a file: a file that is there stays as it is, unless --force is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ifonly.cli import codes

CREDIT = ("--dataset", "credit", "--row", "0")
OUTPUTS = {
    "explain": ("answers.csv", ["explain", "--dataset", "credit", "--first", "3", "--output"]),
    "explain, one row": ("answers.jsonl", ["explain", *CREDIT, "--output"]),
    "explain, a sheet": ("answers.xlsx", ["explain", *CREDIT, "--output"]),
    "explain, two methods": (
        "answers.parquet",
        ["explain", "--dataset", "compas", "--row", "0", "--method", "search,mip-exp", "--output"],
    ),
    "explain, a page": ("page.html", ["explain", *CREDIT, "--html"]),
    "diverse, a page": ("page.html", ["diverse", *CREDIT, "-k", "2", "--html"]),
    "diverse": ("several.csv", ["diverse", *CREDIT, "-k", "2", "--output"]),
    "audit": ("audit.html", ["audit", "--dataset", "credit", "--first", "3", "--no-why", "--output"]),
    "certify": ("answer.cert", ["certify", *CREDIT, "--without-rules", "--output"]),
    "schema": ("schema.json", ["schema", "infer", "TABLE", "--output"]),
    "model": ("model.json", ["model", "convert", "MODEL"]),
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "words"), OUTPUTS.values(), ids=OUTPUTS)
def test_a_file_that_is_there(run, compas, tmp_path: Path, name: str, words: list[str]) -> None:
    if name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    path = tmp_path / name
    words = [{"TABLE": str(compas.few), "MODEL": str(compas.model)}.get(word, word) for word in words]
    path.write_bytes(b"mine")
    result = run(*words, path)
    assert result.exit_code == codes.WRONG_INPUT and result.stdout == ""
    assert result.stderr.startswith(f"error: '{path}' is there already; to write over it, add --force")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(name, b"mine")]
    result = run(*words, path, "--force")
    assert result.exit_code == codes.PROVEN, result.stderr
    assert path.read_bytes() not in (b"mine", b"")
    path.unlink()
    path.mkdir()
    assert "it is a folder" in run(*words, path, "--force").stderr


def test_an_export_is_whole_or_not_begun(run, tmp_path: Path) -> None:
    (tmp_path / "compas.npz").write_bytes(b"mine")
    assert "compas.npz' is there already" in run("datasets", "export", "compas", tmp_path).stderr
    assert [one.name for one in tmp_path.iterdir()] == ["compas.npz"]
    assert run("datasets", "export", "compas", tmp_path, "--force").exit_code == 0
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.long
def test_a_finished_run_again(run, tmp_path: Path) -> None:
    words = ["explain", "--dataset", "credit", "--first", "3", "--output", tmp_path / "answers.csv"]
    assert run(*words).exit_code == codes.PROVEN
    before = (tmp_path / "answers.csv").read_bytes()
    assert "was finished already; nothing was done" in run(*words).stderr
    other = run(*words, "--fix", "isMale")
    assert other.exit_code == codes.WRONG_INPUT and "the question is not the one" in other.stderr
    assert (tmp_path / "answers.csv").read_bytes() == before
    assert "give one of them" in run(*words, "--resume", "--force").stderr
    assert "Written to" in run(*words, "--fix", "isMale", "--force").stderr
