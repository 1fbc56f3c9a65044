"""The same records from a cluster, also when it loses a worker and a node."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ifonly.errors import MissingExtra
from population import on_a_cluster, streaming

COUNT = 12_000
SECONDS = 300


@pytest.mark.parametrize("kind", ["ray", "dask"])
def test_on_a_cluster(kind: str, tmp_path: Path) -> None:
    package = {"ray": "ray", "dask": "distributed"}[kind]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: it is large, and no part of the test extra")
    table = streaming.table(COUNT, tmp_path / "people.csv")
    output = tmp_path / "answers.jsonl"
    paths = os.pathsep.join([*map(str, sys.path), str(Path(on_a_cluster.__file__).parents[1])])
    words = [sys.executable, on_a_cluster.__file__, kind, str(table), str(output)]
    ran = subprocess.run(
        words, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "PYTHONPATH": paths}
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert str(COUNT) in ran.stdout.splitlines()  # Ray says something there too
    if kind == "ray":
        assert "worker killed; node removed" in ran.stdout
    streaming.explainer().explain_to(tmp_path / "meant.jsonl", table, keep=["Customer ID"])
    assert streaming.same(streaming.records(output), streaming.records(tmp_path / "meant.jsonl"))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("name", "package"), [("Ray", "ray"), ("Dask", "distributed")])
def test_a_cluster_that_is_not_installed(name: str, package: str, tmp_path: Path, monkeypatch) -> None:
    import ifonly

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"ifonly\[{name.lower()}\]"):
        streaming.explainer().explain_to(
            tmp_path / "answers.jsonl",
            streaming.table(5, tmp_path / "people.csv"),
            engine=getattr(ifonly.engines, name)(),
        )
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]
