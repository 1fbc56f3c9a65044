"""A runner for the commands, and COMPAS as files: a finite space, so every method can answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ifonly.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run a command in this process: `run("explain", "--dataset", "compas")`."""

    def invoke(*words: object, given: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words], input=given)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture(scope="session")
def _exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compas")
    assert CliRunner().invoke(app, ["datasets", "export", "compas", str(folder)]).exit_code == 0
    lines = (folder / "compas.csv").read_text(encoding="utf-8").splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:7]) + "\n", encoding="utf-8")
    return folder


class Files:
    """The exported files of COMPAS, and the words that name them to `explain`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model, self.schema = folder / "compas.npz", folder / "compas.schema.json"
        self.few, self.all = folder / "few.csv", folder / "compas.csv"

    def words(self, rows: Path | None = None) -> tuple[str, ...]:
        return ("explain", "--model", str(self.model), "--schema", str(self.schema), "--rows", str(rows or self.few))


@pytest.fixture
def compas(_exported: Path) -> Files:
    return Files(_exported)
