"""The public surface, locked: a change here is a change for users, and belongs in the changelog."""

from __future__ import annotations

import inspect

import ifonly

PUBLIC = [
    "Allowed",
    "Answer",
    "Answers",
    "AtMostChanges",
    "Binary",
    "Categorical",
    "Certificate",
    "ChangeAtMost",
    "Checked",
    "ClassTarget",
    "Distance",
    "Enumerate",
    "Explainer",
    "Failed",
    "Fixed",
    "Free",
    "IfonlyError",
    "Integer",
    "Limits",
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
    "Tolerances",
    "TopTarget",
    "Unknown",
    "Within",
    "audit",
    "certify",
    "check",
    "explain",
    "flip_sets",
    "import_model",
    "load_model",
    "load_network",
    "prove",
    "save_network",
    "scales_from_data",
]


def test_names() -> None:
    assert ifonly.__all__ == PUBLIC
    assert all(hasattr(ifonly, name) for name in PUBLIC)


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
