"""ifonly: the nearest counterfactual, proven.

A model says no to a person: what is the smallest change that would have made it yes?

Names are imported when they are first used, so that a part of the package (the checker of certificates, say) can be
loaded without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ifonly import (
        causes,
        datasets,
        diagnostics,
        engines,
        errors,
        methods,
        mining,
        plausibility,
        population,
        surrogates,
    )
    from ifonly.causes import CausalModel
    from ifonly.certificate.check import CheckResult, check
    from ifonly.certificate.format import Certificate
    from ifonly.certifying.certificates import certify
    from ifonly.errors import IfonlyError
    from ifonly.explainer import Explainer, explain
    from ifonly.mining import invariants
    from ifonly.model import Model, Network, Scorecard
    from ifonly.model.importers import import_model, load_model
    from ifonly.population.auditing import audit
    from ifonly.problem import (
        Accepted,
        AcceptedBySome,
        Actionable,
        Allowed,
        ClassTarget,
        Derived,
        Distance,
        Fixed,
        Imputable,
        MaxChanges,
        MaxDelta,
        OneOfTarget,
        OnlyDown,
        OnlyUp,
        OnlyWith,
        OtherTarget,
        ProbabilityTarget,
        Range,
        RobustToTrees,
        RobustToWeights,
        Rule,
        ScoreTarget,
        Steps,
        TopTarget,
        Unconstrained,
    )
    from ifonly.problem.diversity import Diversity
    from ifonly.problem.query import Query
    from ifonly.problem.sufficiency import Neighbourhood, Sufficiency
    from ifonly.results import (
        Answer,
        Answers,
        Change,
        DiverseAnswers,
        Failed,
        Limits,
        Nearest,
        NoneExists,
        Reasons,
        Stop,
        StoppedBy,
        Unknown,
        Within,
    )
    from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema

__version__ = "0.1.0"

_HOME = {
    "Accepted": "ifonly.problem",
    "AcceptedBySome": "ifonly.problem",
    "Actionable": "ifonly.problem",
    "Allowed": "ifonly.problem",
    "Answer": "ifonly.results",
    "Answers": "ifonly.results",
    "Binary": "ifonly.schema",
    "Categorical": "ifonly.schema",
    "CausalModel": "ifonly.causes",
    "Certificate": "ifonly.certificate.format",
    "Change": "ifonly.results",
    "CheckResult": "ifonly.certificate.check",
    "ClassTarget": "ifonly.problem",
    "Distance": "ifonly.problem",
    "Derived": "ifonly.problem",
    "DiverseAnswers": "ifonly.results",
    "Diversity": "ifonly.problem.diversity",
    "Explainer": "ifonly.explainer",
    "Failed": "ifonly.results",
    "Fixed": "ifonly.problem",
    "IfonlyError": "ifonly.errors",
    "Imputable": "ifonly.problem",
    "Integer": "ifonly.schema",
    "Limits": "ifonly.results",
    "MaxChanges": "ifonly.problem",
    "MaxDelta": "ifonly.problem",
    "Model": "ifonly.model",
    "Nearest": "ifonly.results",
    "Neighbourhood": "ifonly.problem.sufficiency",
    "Network": "ifonly.model",
    "NoneExists": "ifonly.results",
    "OneOfTarget": "ifonly.problem",
    "OnlyDown": "ifonly.problem",
    "OnlyUp": "ifonly.problem",
    "OnlyWith": "ifonly.problem",
    "Ordinal": "ifonly.schema",
    "OtherTarget": "ifonly.problem",
    "ProbabilityTarget": "ifonly.problem",
    "Query": "ifonly.problem.query",
    "Range": "ifonly.problem",
    "Real": "ifonly.schema",
    "Reasons": "ifonly.results",
    "RobustToTrees": "ifonly.problem",
    "RobustToWeights": "ifonly.problem",
    "Rule": "ifonly.problem",
    "Schema": "ifonly.schema",
    "ScoreTarget": "ifonly.problem",
    "Scorecard": "ifonly.model",
    "Steps": "ifonly.problem",
    "Stop": "ifonly.results",
    "StoppedBy": "ifonly.results",
    "Sufficiency": "ifonly.problem.sufficiency",
    "TopTarget": "ifonly.problem",
    "Unconstrained": "ifonly.problem",
    "Unknown": "ifonly.results",
    "Within": "ifonly.results",
    "audit": "ifonly.population.auditing",
    "certify": "ifonly.certifying.certificates",
    "check": "ifonly.certificate.check",
    "explain": "ifonly.explainer",
    "import_model": "ifonly.model.importers",
    "invariants": "ifonly.mining",
    "load_model": "ifonly.model.importers",
}
"""Where each public name is at home."""

_MODULES = (
    "causes",
    "datasets",
    "diagnostics",
    "engines",
    "errors",
    "methods",
    "mining",
    "notices",
    "plausibility",
    "population",
    "surrogates",
)

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ifonly.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'ifonly' has no attribute {name!r}{_moved(name)}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _moved(name: str) -> str:
    """Where a class is that is public, but not here. (A name in lower case may be a module that is looked for.)"""
    for module in _MODULES if name[:1].isupper() else ():
        if name in getattr(import_module(f"ifonly.{module}"), "__all__", ()):
            return f"; it is ifonly.{module}.{name}"
    return ""
