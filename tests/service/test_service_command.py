"""`ifonly serve`: from options to a registry of models, and messages where that does not work."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ifonly import datasets
from ifonly.cli.app import app
from ifonly.model import save_network
from ifonly.schema import save_schema
from ifonly.service import server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shipped = datasets.network("compas", rules=False)
    save_network(shipped.network, tmp_path / "a.npz", classes=(0, 1))
    save_schema(shipped.schema, tmp_path / "a.json")
    row = datasets.load("compas", rules=False).row(0)
    (tmp_path / "people.csv").write_text(",".join(row) + "\n" + (",".join(map(str, row.values())) + "\n") * 7)
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would have been served."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(server, "serve", lambda *given: calls.append(given))
    return calls


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["serve", *map(str, words)])


def test_the_demonstration_has_three_people(opened) -> None:
    assert run("--demo").exit_code == 0
    ((registry, limits, place, _),) = opened
    assert [registered.name for registered in registry] == ["credit"] and len(registry[0].people) == 3
    assert place.host == "127.0.0.1" and limits.seconds == 10.0 and not place.access.key
    for row in registry[0].people.values():
        assert registry[0].explainer.explain(row).status == "nearest"
        assert registry[0].explainer.explain(row).decision_before == "deny"


def test_worker_processes_do_not_inherit_the_key(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(server, "serve", lambda _, __, config, ___: seen.append((config.access.key, dict(os.environ))))
    assert CliRunner().invoke(app, ["serve", "--demo"], env={"IFONLY_SERVICE_KEY": "secret"}).exit_code == 0
    ((key, environment),) = seen
    assert key == "secret" and "secret" not in environment.values()


def test_a_program_is_told_the_address_as_json(monkeypatch) -> None:
    monkeypatch.setattr(server, "serve", lambda registry, limits, place, announce: announce("http://127.0.0.1:1/"))
    assert json.loads(run("--demo", "--json").stdout) == {"address": "http://127.0.0.1:1/", "models": ["credit"]}


def test_one_model_needs_no_name(opened, folder) -> None:
    told = run("--model", folder / "a.npz", "--schema", folder / "a.json", "--classes", "low,high", "--people", folder / "people.csv",
               "--title", "Bail", "--subject", "the assessment", "--rule", "PriorsCount >= 0", "--key", "k", "--allow-host", "Desk.Example",
               "--workers", 3, "--slow-workers", 2, "--seconds", 2, "--memory", 64)  # fmt: skip
    assert told.exit_code == 0, told.output
    ((registry, limits, place, _),) = opened
    registered = registry[0]
    assert (registered.name, registered.display_name, registered.subject) == ("model", "Bail", "the assessment")
    assert registered.explainer.model.classes == ("low", "high") and len(registered.people) == 5
    assert [one.describe() for one in registered.explainer.constraints] == ["PriorsCount >= 0"]
    assert limits.seconds == 2.0 and limits.memory_bytes == 64 << 20
    assert (place.quick, place.slow, place.access.key) == (3, 2, "k") and "desk.example" in place.access.hosts


def test_people_and_outcomes_have_the_words_of_the_organisation(opened, folder) -> None:
    lines = (folder / "people.csv").read_text().splitlines()
    numbered = [f"Kunden-Nr.,{lines[0]}", *(f"0000{k},{line}" for k, line in enumerate(lines[1:]))]
    (folder / "numbered.csv").write_text("\n".join(numbered) + "\n")
    (folder / "outcomes.json").write_text(json.dumps({"high": {"de": "wäre das Risiko hoch gewesen"}}))
    given = ["--model", folder / "a.npz", "--schema", folder / "a.json", "--classes", "low,high"]
    words = ["--people", folder / "numbered.csv", "--keep", "Kunden-Nr.", "--outcomes", folder / "outcomes.json"]
    told = run(*given, *words, "--root-path", "/tools/desk", "--frame-ancestors", "self")
    assert told.exit_code == 0, told.output
    ((registry, _, place, _),) = opened
    assert list(registry[0].people) == ["00000", "00001", "00002", "00003", "00004"]
    assert registry[0].explainer.model.outcomes == {"high": {"de": "wäre das Risiko hoch gewesen"}}
    assert (place.access.root_path, place.access.frame_ancestors) == ("/tools/desk", ("'self'",))
    for wrong, why in ((["--keep", "Name"], "no column 'Name'"), (["--keep", lines[0].split(",")[0]], "the same '")):
        refused = run(*given, "--people", folder / "numbered.csv", *wrong)
        assert refused.exit_code == 2 and why in " ".join(refused.output.split()), refused.output
    for content, why in (('{"medium": "x"}', "the classes are low, high"), ("[1]", "must hold a clause"),
                         ('{"high": 3}', "The outcome of a class is a clause")):  # fmt: skip
        (folder / "outcomes.json").write_text(content)
        refused = run(*given, "--outcomes", folder / "outcomes.json")
        assert refused.exit_code == 2 and why in " ".join(refused.output.split()), refused.output


def test_several_models_have_names(opened, folder) -> None:
    words = [f"--model=b={folder}/a.npz", f"--schema=b={folder}/a.json", f"--model=a={folder}/a.npz", f"--schema=a={folder}/a.json",
             "--title=a=Second", "--rule=a=Sex is fixed", "--rule=Race is fixed"]  # fmt: skip
    assert run(*words).exit_code == 0
    ((registry, *_),) = opened
    assert [(registered.name, registered.display_name) for registered in registry] == [("b", "b"), ("a", "Second")]
    assert [len(registered.explainer.constraints) for registered in registry] == [1, 2]


def test_other_models_must_accept_too(opened, folder) -> None:
    """For everybody, unless a rule names them; requests can name them either way."""
    words = [f"--model={folder}/a.npz", f"--schema={folder}/a.json", f"--also=b={folder}/a.npz", "--also-target=b=1",
             f"--also=c={folder}/a.npz", "--also-target=c>=2"]  # fmt: skip
    for rules, described in (([], ["b accepts", "c accepts"]), (["--rule=b accepts"], ["b accepts", "c accepts"]),
                             (["--rule=at least 1 of b, c accept"], ["at least 1 of b, c accept"])):  # fmt: skip
        opened.clear()
        assert run(*words, *rules).exit_code == 0
        explainer = opened[0][0][0].explainer
        assert [one.describe() for one in explainer.constraints] == described
        assert set(explainer._common.models) == {"b", "c"} and not opened[0][0][0].certificates
    told = run(*words[:2], f"--also=b={folder}/none.npz")
    assert told.exit_code == 2 and "--also b: " in told.output


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("words", "said"), [
    ([], "--demo"),
    (["--model", "{}/a.npz"], "--schema model=FILE"),
    (["--model", "{}/a.npz", "--schema", "{}/none.json"], "Cannot read"),
    (["--model", "{}/none.npz", "--schema", "{}/a.json"], "none.npz"),
    (["--model", "{}/a.npz", "--model", "{}/a.npz", "--schema", "{}/a.json"], "given twice"),
    (["--model", "a={}/a.npz", "--schema", "a={}/a.json", "--rule", "Nothing is fixed"], "Nothing"),
    (["--demo", "--translations", "german.json"], "--demo has a model of its own; leave out --translations"),
    (["--demo", "--rule", "PriorsCount >= 0"], "--demo has a model of its own; leave out --rule"),
    (["--demo", "--regression"], "--demo has a model of its own; leave out --regression"),
    (["--demo", "--seconds", "0"], "must be positive"),
    (["--demo", "--seconds", "nan"], "must be positive"),
    (["--demo", "--workers", "0"], "--workers"),
])  # fmt: skip
def test_what_cannot_be_served_is_said(opened, folder, words, said) -> None:
    told = run(*(word.format(folder) for word in words))
    assert told.exit_code == 2 and said in told.output and not opened


def test_without_the_extra_the_sentence_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    told = run("--demo")
    assert told.exit_code == 2 and "pip install 'ifonly[serve]'" in told.output


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = run("--demo", "--port", taken.getsockname()[1])
    assert told.exit_code == 2 and "Cannot listen on 127.0.0.1" in told.output
