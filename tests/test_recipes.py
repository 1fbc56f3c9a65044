"""The recipes of docs/extending.md: a toy of each usual change, made through the seams that its recipe names.

A toy says which modules it touches (adds to, or replaces a part of); these are in the table of files of that page, so a
recipe that needs one file more fails here until the page says so. The last part says of a real change which of its places
have not been reached yet.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import ifonly
from ifonly import (
    Answer,
    Categorical,
    Explainer,
    Fixed,
    Integer,
    Model,
    Nearest,
    Network,
    NoneExists,
    Ordinal,
    Query,
    Range,
    Schema,
)
from ifonly.cli import doctor, query_arguments
from ifonly.cli import options as cli_options
from ifonly.methods import Enumerate
from ifonly.model import importers
from ifonly.model.kind import Kind
from ifonly.problem import plain_data, query, read_constraint
from ifonly.problem.constraints import Domains
from ifonly.problem.rules import reading
from ifonly.report.provenance import PACKAGES
from ifonly.results import answer, from_dict
from ifonly.schema import Feature
from ifonly.service import ModelRegistry, RegisteredModel, ServiceLimits, json_schemas, query_schemas, request_schemas
from ifonly.solvers.search import search

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
SOURCES = Path(query.__file__).parents[2]
SCHEMA = Schema([Integer("n", 0, 20), Integer("m", 0, 20)])
EXPLAINER = Explainer(Network.of([([[1.0, 0.5]], [-9.5])]), schema=SCHEMA, classes=["no", "yes"])
POOR = {"n": 3, "m": 2}


@cache
def table() -> dict[str, list[str]]:
    """The files of each change, by the table of the page."""
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {change: [count, *re.findall(r"`([^`]+)`", files)] for change, count, files in rows}


def touches(change: str, *modules: ModuleType) -> None:
    """These modules are among the files that the page names for the change."""
    names = {str(Path(str(one.__file__)).relative_to(SOURCES / "ifonly")) for one in modules}
    assert names <= set(table()[change]), f"docs/extending.md, {change}: {sorted(names - set(table()[change]))}"


def test_the_table_counts_files_that_exist() -> None:
    assert len(table()) >= 9
    for change, (count, *files) in table().items():
        assert int(count) == len(files), change
        for file in files:
            if "NAME" not in file:
                top = PAGE.parents[1] if file.startswith(("docs/", "pyproject", "README")) else SOURCES / "ifonly"
                assert (top / file).exists(), f"{change}: {file}"


# ---------------------------------------------------------------------- a kind of model


@dataclass(frozen=True, eq=False)
class Largest(Kind):
    """The larger of two numbers, less 9.5: a kind that brings its scores and its rounding bound, and no network."""

    name: str = "a maximum"
    inputs: int = 2
    outputs: int = 1
    fingerprint: str = "the larger of two, less 9.5"
    search: str = ""

    def scores(self, x: Any) -> Any:
        return np.asarray(x).max(axis=1)[:, None] - 9.5

    def error(self, lower: Any, upper: Any, precision: Any, exact: Any) -> Any:
        return np.zeros((len(lower), 1))


def explainer_of(kind: Kind) -> Explainer:
    def original(points: Any) -> Any:
        return kind.scores(SCHEMA.encode(points))

    return Explainer(Model(function=kind, schema=SCHEMA, original=original, classes=("no", "yes")))


def test_a_kind_of_model(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explainer_of(Largest()).using(Enumerate()).explain(POOR)
    assert isinstance(found, Nearest) and found.counterfactual == {"n": 10, "m": 2}
    own = search.KindSearch(
        module="ifonly.solvers.search.enumerate",
        kernels_at="ifonly.solvers.search.compiled:KERNELS",
        prepare=lambda method, question, tolerances: Enumerate().prepare(question, tolerances),
    )
    monkeypatch.setitem(search.SEARCHES, "maximum", own)
    searched = explainer_of(Largest(search="maximum")).explain(POOR)
    assert isinstance(searched, Nearest) and searched.counterfactual == found.counterfactual
    touches("a kind of model", search)


# ---------------------------------------------------------------------- an importer


class Rack:
    """A model of a framework that nobody else knows."""

    threshold = 7.5


def import_rack(model: Rack, schema: Schema, *, classes: tuple[Any, ...], regression: bool) -> Model:
    return importers.network_model(Network.of([([[1.0, 0.0]], [-model.threshold])]), schema, classes=classes)


def test_an_importer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rack, "__module__", "rack.models")
    monkeypatch.setattr(
        importers.import_module("ifonly.model.importers.trees"), "import_rack", import_rack, raising=False
    )
    monkeypatch.setitem(importers.IMPORTERS, "rack", ("trees", "import_rack"))
    found = Explainer(Rack(), schema=SCHEMA, classes=("no", "yes")).explain(POOR)
    assert isinstance(found, Nearest) and found.counterfactual == {"n": 8, "m": 2}
    touches("an importer", importers)


# ---------------------------------------------------------------------- a constraint


@dataclass(frozen=True)
class RisesBy:
    """A number ends at least so much above what it was."""

    feature: str
    by: float = 1.0

    def check(self, schema: Schema) -> None:
        schema.index(self.feature)

    def allows(self, feature: Feature, before: float, after: float) -> bool:
        return after >= before + self.by

    def restrict(self, feature: Feature, before: Any, domains: Domains) -> None:
        domains.lower = np.maximum(domains.lower, before + self.by)

    def describe(self) -> str:
        return f"{self.feature} rises by {self.by:g}"


@pytest.fixture
def rises(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy has JSON and a sentence."""
    plain = reading._Statement.read

    def read(self: Any) -> Any:
        if self.next.value != "rises":
            return plain(self)
        name = self.feature()
        assert self.takes("rises", "by")
        return self.finished(RisesBy(name, float(self.amount(name))))

    monkeypatch.setattr(reading._Statement, "read", read)
    monkeypatch.setitem(plain_data.CONSTRAINTS, "rises_by", RisesBy)
    yield
    touches("a constraint on one feature", plain_data, reading)


@pytest.mark.usefixtures("rises")
def test_a_constraint() -> None:
    toy = RisesBy("m", 4.0)
    assert read_constraint(toy.describe(), SCHEMA) == toy
    asked = Query(constraints=[toy])
    assert Query.from_dict(json.loads(asked.to_json())) == asked
    assert plain_data.constraint_from_dict({"kind": "rises_by", "feature": "m"}) == RisesBy("m")
    for given in ([toy], ["m rises by 4"]):
        found, known = (one.explain(POOR, constraints=given) for one in (EXPLAINER, EXPLAINER.using(Enumerate())))
        assert isinstance(found, Nearest) and found.upper == known.upper and (found.counterfactual or {})["m"] >= 6
        assert found.constraints == ("m rises by 4",)
    none = EXPLAINER.explain(POOR, constraints=[RisesBy("m", 19.0)])
    assert isinstance(none, NoneExists) and none.reasons is not None
    assert none.reasons.relaxations[0].words == "the rule 'm rises by 19' is dropped"
    assert EXPLAINER.explain(POOR, constraints=[toy, Range("m", upper=5.0)]).status == "none exists"


# ---------------------------------------------------------------------- a field of the answer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WithAdvice(Answer):
    """An answer with one field more."""

    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Told(Nearest):
    """A kind of answer with that field, since `Answer` itself is abstract."""

    status: ClassVar[str] = "told"
    advice: str = ""


def test_a_field_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EXPLAINER.explain(POOR)
    told = Told(**{one.name: getattr(found, one.name) for one in fields(found)}, advice="Save more.")
    assert list(told.to_dict()) == [*found.to_dict(), "advice"] and told.to_dict()["advice"] == "Save more."
    monkeypatch.setitem(from_dict.KINDS, "told", Told)
    assert Answer.from_dict(json.loads(told.to_json())) == told
    with pytest.raises(Exception, match="'advice' of an answer must be a text; got 3"):
        Answer.from_dict({**told.to_dict(), "advice": 3})
    monkeypatch.setattr(json_schemas, "Answer", WithAdvice)
    described = json_schemas.answer_schema()
    assert described["properties"]["advice"] == {"type": "string"} and "advice" in described["required"]
    touches("a field of the answer, only reported", answer)


# ---------------------------------------------------------------------- a field of the query


@dataclass(frozen=True, kw_only=True)
class Hasty(Query):
    """A query with one flag more."""

    hasty: bool = False


def test_a_field_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = tuple(one.name for one in fields(Hasty) if one.type == "bool")
    assert flags == (*query.FLAGS, "hasty")
    for module in (query, query_arguments, query_schemas, json_schemas):  # the others take them from `query`
        monkeypatch.setattr(module, "FLAGS", flags)
    asked = Hasty(hasty=True)
    assert Hasty.from_dict(json.loads(asked.to_json())) == asked
    with pytest.raises(Exception, match="'hasty' is True or False; got 1"):
        Hasty.from_dict({"hasty": 1})
    monkeypatch.setattr(query_arguments, "Query", Hasty)
    words = {param.name: param.default for param in _parameters()} | {"hasty": True}
    assert query_arguments.read_query(words, SCHEMA, None) == asked
    registered = RegisteredModel(name="one", explainer=EXPLAINER)
    (own,) = request_schemas.request_schemas(ModelRegistry([registered]), ServiceLimits()).values()
    for schemas in (own["$defs"], json_schemas.component_schemas(ServiceLimits())):
        assert schemas["Query"]["properties"]["hasty"] == {"type": "boolean"}
    touches("a flag of the query", query, cli_options)


@dataclass(frozen=True, kw_only=True)
class Noted(Query):
    """A query with one field more that is no flag."""

    note: str = ""


def test_a_field_of_a_query_file_is_kept_beside_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_arguments, "_query_file", lambda name: Noted(note="of the file"))
    words = {param.name: param.default for param in _parameters()} | {"query_file": "query.json", "fixed": ("m",)}
    assert query_arguments.read_query(words, SCHEMA, None) == Noted(note="of the file", constraints=[Fixed("m")])


def _parameters() -> list[Any]:
    """The options of a question, as a command declares them."""

    @cli_options.with_options(cli_options.QUESTION, cli_options.FEWEST)
    def command() -> None: ...

    made = [one() if isinstance(one, type) else one for one in command.__click_params__]  # type: ignore[attr-defined]
    for one in made:
        if one.multiple:
            one.default = ()
        elif one.is_flag:
            one.default = False
        else:
            one.default = None
    return made


# ---------------------------------------------------------------------- what a change has not reached yet

ROOT = PAGE.parents[1]
MIXED = Schema([Integer("n", 0, 20, missing=True), Ordinal("level", ["low", "high"]), Categorical("job", ["a", "b"])])
OF_OTHER_MODELS = ("accepted", "accepted_by_some", "robust_to_weights", "robust_to_trees", "derived")
"""Constraints that the description of one model's requests leaves out."""
NOT_FIELDS_OF_THE_PAGE = ("subject", "state", "outcome", "record")
"""Parts of an answer's sentences, and the record of the search."""


def missing_in(file: str, wanted: dict[str, str], text: str | None = None) -> list[str]:
    """A sentence for each name whose text (a regular expression) a file does not have."""
    content = (ROOT / file).read_text(encoding="utf-8") if text is None else text
    return [f"{name} is missing in {file}" for name, form in wanted.items() if not re.search(form, content)]


def of_one_model() -> dict[str, Any]:
    """The definitions of the requests about a model with features of several kinds."""
    columns = len(MIXED.columns)
    explainer = Explainer(Network.of([([[1.0] * columns], [-3.0])]), schema=MIXED, classes=["no", "yes"])
    registry = ModelRegistry([RegisteredModel(name="mixed", explainer=explainer)])
    (document,) = request_schemas.request_schemas(registry, ServiceLimits()).values()
    definitions: dict[str, Any] = document["$defs"]
    return definitions


def test_every_constraint_is_described() -> None:
    described = json.dumps(of_one_model()["Constraint"])
    asked = {kind: f'"const": "{kind}"' for kind in plain_data.CONSTRAINTS if kind not in OF_OTHER_MODELS}
    by_class = {one.__name__: rf"{one.__name__}\(" for one in plain_data.CONSTRAINTS.values()}
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("rules.md", "chains.md"))
    found = [
        *missing_in("src/ifonly/service/query_schemas.py", asked, described),
        *missing_in("docs/query.md", {kind: f"`{kind}`" for kind in plain_data.CONSTRAINTS}),
        *missing_in("docs/rules.md", by_class, pages),
        *(f"{name} is missing in ifonly.__all__" for name in by_class if name not in ifonly.__all__),
    ]
    assert not found, "\n".join(found)


def test_every_field_of_the_query_is_described() -> None:
    names = [one.name for one in fields(Query)]
    general = json_schemas.component_schemas(ServiceLimits())["Query"]["properties"]
    found = [
        *missing_in("docs/query.md", {name: rf"\| `{name}` \|(?s:.+)\| `{name}` \|" for name in names}),
        *(f"{name} is missing in service/json_schemas.py" for name in names if name not in general),
        *(
            f"{name} is missing in service/query_schemas.py"
            for name in names
            if name not in of_one_model()["Query"]["properties"]
        ),
    ]
    assert not found, "\n".join(found)


def test_every_field_of_an_answer_is_described() -> None:
    names = {one.name: f"`{one.name}`" for one in fields(Nearest) if one.name not in NOT_FIELDS_OF_THE_PAGE}
    found = missing_in("docs/answers.md", names)
    assert not found, "\n".join(found)


def test_every_option_of_a_query_is_described() -> None:
    options = {option: rf"{option}(?![\w-])" for one in _parameters() for option in one.opts}
    found = missing_in("docs/cli.md", options)
    assert not found, "\n".join(found)


TITLES = {"sklearn": "scikit-learn"}
"""What people call a package, where that is not its name."""


def test_every_framework_is_named() -> None:
    """By the name of its package, in capitals or not."""
    packages = list(importers.IMPORTERS)
    called = {name: rf"(?i)\b{TITLES.get(name, name)}\b" for name in packages}
    refusal = str(importers._refused(object()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["project"]["optional-dependencies"]
    ignored = str(project["tool"]["mypy"]["overrides"])
    found = [
        *(f"pyproject.toml has no extra {name}" for name in packages if name not in declared),
        *missing_in("pyproject.toml: all", {name: rf"\b{name}\b" for name in packages}, str(declared["all"])),
        *missing_in("pyproject.toml: mypy overrides", {name: rf"'{name}\." for name in packages}, ignored),
        *(f"{name} is missing in cli/doctor.py" for name in packages if name not in doctor.EXTRAS),
        *missing_in("report/provenance.py", called, " ".join(PACKAGES)),
        *missing_in("_refused of model/importers/__init__.py", called, refusal),
        *missing_in("the docstring of import_model", called, importers.import_model.__doc__ or ""),
        *missing_in("docs/models.md", called),
        *missing_in("docs/dependencies.md", {name: f"`{name}`" for name in packages}),
        *missing_in("README.md", called),
    ]
    assert not found, "\n".join(found)
