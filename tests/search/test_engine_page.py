"""The engine's page tells the truth: its worked example runs, and prints what it says."""

from pathlib import Path

import pytest

import test_docs


def test_the_worked_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test_docs.test_examples("docs/engine.md", tmp_path, monkeypatch)
