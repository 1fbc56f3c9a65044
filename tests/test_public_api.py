"""The public surface, locked: a change here is a change for users, and belongs in the changelog."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import ifonly
from ifonly import certifying, model, problem, results

PUBLIC = [
    "Accepted",
    "AcceptedBySome",
    "Actionable",
    "Allowed",
    "Answer",
    "Answers",
    "Binary",
    "Categorical",
    "CausalModel",
    "Certificate",
    "Change",
    "CheckResult",
    "ClassTarget",
    "Derived",
    "Distance",
    "DiverseAnswers",
    "Diversity",
    "Explainer",
    "Failed",
    "Fixed",
    "IfonlyError",
    "Imputable",
    "Integer",
    "Limits",
    "MaxChanges",
    "MaxDelta",
    "Model",
    "Nearest",
    "Neighbourhood",
    "Network",
    "NoneExists",
    "OneOfTarget",
    "OnlyDown",
    "OnlyUp",
    "OnlyWith",
    "Ordinal",
    "OtherTarget",
    "ProbabilityTarget",
    "Query",
    "Range",
    "Real",
    "Reasons",
    "RobustToTrees",
    "RobustToWeights",
    "Rule",
    "Schema",
    "ScoreTarget",
    "Scorecard",
    "Steps",
    "Stop",
    "StoppedBy",
    "Sufficiency",
    "TopTarget",
    "Unconstrained",
    "Unknown",
    "Within",
    "audit",
    "causes",
    "certify",
    "check",
    "datasets",
    "diagnostics",
    "engines",
    "errors",
    "explain",
    "import_model",
    "invariants",
    "load_model",
    "methods",
    "mining",
    "notices",
    "plausibility",
    "population",
    "surrogates",
]


def test_names() -> None:
    differing = set(ifonly.__all__) ^ set(PUBLIC)
    assert not differing, f"in only one of ifonly.__all__ and PUBLIC above: {', '.join(sorted(differing))}"
    assert ifonly.__all__ == PUBLIC  # in the same order
    assert all(hasattr(ifonly, name) for name in PUBLIC)


def test_names_are_imported_where_type_checkers_see_them() -> None:
    tree = ast.parse(Path(ifonly.__file__).read_text())
    seen = {
        name.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "ifonly"
        for name in node.names
    }
    assert seen == ifonly._HOME


def test_modules_and_functions_do_not_share_names() -> None:
    modules = {module.name for module in pkgutil.walk_packages(ifonly.__path__, "ifonly.")}
    shared = {name for name in PUBLIC if f"ifonly.{name}" in modules} - set(ifonly._MODULES)
    assert not shared


def test_everything_says_what_it_is() -> None:
    for name in PUBLIC:
        assert (getattr(ifonly, name).__doc__ or "").strip(), name


def test_the_verbs() -> None:
    def parameters(verb: object) -> list[str]:
        return [name for name in inspect.signature(verb).parameters if name != "self"]  # type: ignore[arg-type]

    asked = ["query", "target", "distance", "constraints"]
    made = ["model", "schema", "classes", "constraints", "threads", "tolerances"]
    assert parameters(ifonly.Explainer.__init__) == made
    assert parameters(ifonly.Explainer.using) == ["method", "limits", "threads", "listen", "reasons", "data"]
    assert parameters(ifonly.Explainer.prepare) == [*asked, "wait"]
    assert parameters(ifonly.Explainer.explain) == ["row", *asked, "limits"]
    assert parameters(ifonly.Explainer.explain_many) == ["table", *asked, "limits"]
    assert parameters(ifonly.Explainer.explain_to) == ["path", "table", "query", "keep", "existing", "engine"]
    assert parameters(ifonly.Explainer.explain_diverse) == ["row", "several", *asked]
    assert parameters(ifonly.Explainer.recourse) == ["row", "causes", *asked]
    assert parameters(ifonly.Explainer.why) == ["row", "sufficiency", "target", "within", "several", "limits"]
    assert parameters(ifonly.certify) == ["explainer", "row", *asked]


def public_objects() -> list[Any]:
    """Everything that has a public name, in the package, its public modules, and what people look up in three others."""
    modules = [getattr(ifonly, name) for name in ifonly._MODULES if name != "errors"]
    found = [getattr(ifonly, name) for name in PUBLIC if name not in ifonly._MODULES]
    found += [getattr(module, name) for module in modules for name in module.__all__]
    others = (certifying.prove, certifying.certified_query, model.load_network, model.save_network)
    told = (results.Progress, results.Relaxation, results.Recourse, results.DiverseRecourse, results.Robustness,
            results.TreeRobustness, results.SufficientReason, results.SufficientReasons)  # fmt: skip
    return [*found, *others, *told, problem.Question, problem.scales_from_data]


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method. Fields of a value, of which a dataclass makes its `__init__`, are no call."""
    for thing in public_objects():
        if inspect.isfunction(thing):
            yield thing.__name__, thing
        elif inspect.isclass(thing):
            for name, member in inspect.getmembers(thing):
                made = name == "__init__" and not is_dataclass(thing) and not getattr(thing, "_is_protocol", False)
                if (inspect.isfunction(member) or inspect.ismethod(member)) and (made or not name.startswith("_")):
                    yield f"{thing.__name__}.{name}", member


def test_no_call_takes_more_than_six_things_or_anything_at_all() -> None:
    calls = dict(public_calls())
    assert len(calls) > 100
    for name, call in calls.items():
        taken = [p for p in inspect.signature(call).parameters.values() if p.name not in ("self", "cls")]
        assert len(taken) <= 6, name
        assert not [p for p in taken if p.kind is inspect.Parameter.VAR_KEYWORD], name


def test_what_a_call_takes_or_gives_has_a_public_name() -> None:
    """Also what is in a value that is given. A protocol asks for a shape, not for a name."""
    public = {thing for thing in public_objects() if isinstance(thing, type)}
    given = [thing for thing in public if thing in VALUES]
    assert len(given) == len(VALUES)
    calls = [call for name, call in public_calls() if "." not in name or name.startswith("Explainer.")]
    hints = [hint for thing in [*calls, *given] for hint in get_type_hints(thing, localns=NAMES).values()]
    named = {found for hint in hints for found in own_types(hint) if not getattr(found, "_is_protocol", False)}
    assert {ifonly.Query, ifonly.Stop, ifonly.StoppedBy, ifonly.Diversity, ifonly.population.Group} <= named
    nameless = sorted(one.__qualname__ for one in named - public)
    assert not nameless, f"types of public calls that no public module exports: {', '.join(nameless)}"


VALUES = {
    ifonly.population.Audit,
    ifonly.DiverseAnswers,
    ifonly.Failed,
    ifonly.population.FlipSet,
    ifonly.Limits,
    ifonly.Nearest,
    ifonly.NoneExists,
    ifonly.results.Progress,
    ifonly.Query,
    ifonly.Reasons,
    ifonly.results.Relaxation,
    ifonly.Stop,
    ifonly.Unknown,
    ifonly.Within,
}
NAMES = {**vars(typing), **vars(collections.abc), "Schema": ifonly.Schema}  # what is imported for types only


def own_types(hint: Any) -> set[type]:
    """The classes of this package in a type."""
    own = {hint} if isinstance(hint, type) and hint.__module__.startswith("ifonly") else set()
    return own.union(*(own_types(part) for part in get_args(hint)))


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert version("ifonly") == ifonly.__version__
