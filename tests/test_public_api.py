"""The public surface, locked: a change here is a change for users, and belongs in the changelog."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from pathlib import Path

import ifonly

PUBLIC = [
    "Allowed",
    "Answer",
    "Answers",
    "AtMostChanges",
    "Audit",
    "Binary",
    "Categorical",
    "Certificate",
    "Change",
    "ChangeAtMost",
    "Checked",
    "ClassTarget",
    "Distance",
    "DiverseAnswers",
    "Diversity",
    "Enumerate",
    "Explainer",
    "Failed",
    "Fixed",
    "FlipSet",
    "Free",
    "Group",
    "IfonlyError",
    "Integer",
    "Limits",
    "Method",
    "MipInterval",
    "MipObjective",
    "Model",
    "Nearest",
    "Network",
    "NoneExists",
    "OneOfTarget",
    "OnlyDown",
    "OnlyUp",
    "OnlyWith",
    "Ordinal",
    "OtherTarget",
    "ProbabilityTarget",
    "Progress",
    "Query",
    "Question",
    "Range",
    "Real",
    "Reasons",
    "Relaxation",
    "Rule",
    "Schema",
    "ScoreTarget",
    "Search",
    "SmtPlain",
    "SmtReduced",
    "Steps",
    "Stop",
    "StoppedBy",
    "Tolerances",
    "TopTarget",
    "Unknown",
    "Within",
    "audit",
    "certify",
    "check",
    "datasets",
    "explain",
    "flip_sets",
    "import_model",
    "load_model",
    "load_network",
    "plausibility",
    "prove",
    "save_network",
    "scales_from_data",
]


def test_names() -> None:
    assert ifonly.__all__ == PUBLIC
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
    shared = {name for name in PUBLIC if f"ifonly.{name}" in modules} - {"datasets", "plausibility"}
    assert not shared


def test_everything_says_what_it_is() -> None:
    for name in set(PUBLIC) - {"Answer"}:  # a union of types
        assert (getattr(ifonly, name).__doc__ or "").strip(), name


def test_the_verbs() -> None:
    def parameters(verb: object) -> list[str]:
        return [name for name in inspect.signature(verb).parameters if name != "self"]  # type: ignore[arg-type]

    asked = ["target", "distance", "constraints", "fewest_first", "method", "limits", "reasons"]
    made = ["model", "schema", "classes", "constraints", "threads", "tolerances"]
    assert parameters(ifonly.Explainer.__init__) == made
    assert parameters(ifonly.Explainer.explain) == ["row", *asked]
    assert parameters(ifonly.Explainer.explain_many) == ["table", *asked, "listen"]


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert version("ifonly") == ifonly.__version__
