"""ifonly: the nearest counterfactual, proven.

A model says no to a person: what is the smallest change that would have made it yes?

Names are imported when they are first used, so that a part of the package (the checker of certificates, say) can be
loaded without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ifonly import datasets, plausibility
    from ifonly.certificate.check import Checked, check
    from ifonly.certificate.format import Certificate
    from ifonly.certifying.certify import certify, prove
    from ifonly.certifying.stating import certified_query
    from ifonly.errors import IfonlyError
    from ifonly.explainer import Explainer, explain
    from ifonly.looking import (
        BoundsOverTime,
        CostByChanges,
        ScorePath,
        bounds_over_time,
        cost_by_changes,
        doubts,
        score_path,
    )
    from ifonly.mining import Invariant, Invariants, invariants
    from ifonly.mip import MipInterval, MipObjective
    from ifonly.model import Model, Network, Scorecard, load_network, save_network
    from ifonly.model.importers import import_model, load_model
    from ifonly.population.actions import Judge
    from ifonly.population.audit import Audit, audit
    from ifonly.population.differences import Difference
    from ifonly.population.engines import Dask, Processes, Ray
    from ifonly.population.group import Group
    from ifonly.population.labels import Grouping
    from ifonly.population.parts import CsvOutput
    from ifonly.population.run import Written
    from ifonly.population.ways import FlipSet, flip_sets
    from ifonly.problem import (
        Allowed,
        AtMostChanges,
        ChangeAtMost,
        ClassTarget,
        Distance,
        FillIn,
        Fixed,
        Free,
        OneOfTarget,
        OnlyDown,
        OnlyUp,
        OnlyWith,
        OtherTarget,
        ProbabilityTarget,
        Question,
        Range,
        Rule,
        ScoreTarget,
        Steps,
        TopTarget,
        scales_from_data,
    )
    from ifonly.problem.different import Diversity
    from ifonly.problem.query import Query
    from ifonly.proof import (
        Answer,
        Answers,
        Change,
        DiverseAnswers,
        Failed,
        Limits,
        Method,
        Nearest,
        NoneExists,
        Progress,
        Reasons,
        Relaxation,
        Stop,
        StoppedBy,
        Unknown,
        Within,
    )
    from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema
    from ifonly.search import Enumerate, Search
    from ifonly.smt import SmtPlain, SmtReduced
    from ifonly.tolerances import Tolerances

__version__ = "0.1.0"

_HOME = {
    "Allowed": "ifonly.problem",
    "Answer": "ifonly.proof",
    "Answers": "ifonly.proof",
    "AtMostChanges": "ifonly.problem",
    "Audit": "ifonly.population.audit",
    "Binary": "ifonly.schema",
    "BoundsOverTime": "ifonly.looking",
    "Categorical": "ifonly.schema",
    "Certificate": "ifonly.certificate.format",
    "Change": "ifonly.proof",
    "ChangeAtMost": "ifonly.problem",
    "Checked": "ifonly.certificate.check",
    "ClassTarget": "ifonly.problem",
    "CostByChanges": "ifonly.looking",
    "CsvOutput": "ifonly.population.parts",
    "Dask": "ifonly.population.engines",
    "Difference": "ifonly.population.differences",
    "Distance": "ifonly.problem",
    "DiverseAnswers": "ifonly.proof",
    "Diversity": "ifonly.problem.different",
    "Enumerate": "ifonly.search",
    "Explainer": "ifonly.explainer",
    "Failed": "ifonly.proof",
    "FillIn": "ifonly.problem",
    "Fixed": "ifonly.problem",
    "FlipSet": "ifonly.population.ways",
    "Free": "ifonly.problem",
    "Group": "ifonly.population.group",
    "Grouping": "ifonly.population.labels",
    "IfonlyError": "ifonly.errors",
    "Integer": "ifonly.schema",
    "Invariant": "ifonly.mining",
    "Invariants": "ifonly.mining",
    "Judge": "ifonly.population.actions",
    "Limits": "ifonly.proof",
    "Method": "ifonly.proof",
    "MipInterval": "ifonly.mip",
    "MipObjective": "ifonly.mip",
    "Model": "ifonly.model",
    "Nearest": "ifonly.proof",
    "Network": "ifonly.model",
    "NoneExists": "ifonly.proof",
    "OneOfTarget": "ifonly.problem",
    "OnlyDown": "ifonly.problem",
    "OnlyUp": "ifonly.problem",
    "OnlyWith": "ifonly.problem",
    "Ordinal": "ifonly.schema",
    "OtherTarget": "ifonly.problem",
    "ProbabilityTarget": "ifonly.problem",
    "Processes": "ifonly.population.engines",
    "Progress": "ifonly.proof",
    "Query": "ifonly.problem.query",
    "Question": "ifonly.problem",
    "Range": "ifonly.problem",
    "Ray": "ifonly.population.engines",
    "Real": "ifonly.schema",
    "Reasons": "ifonly.proof",
    "Relaxation": "ifonly.proof",
    "Rule": "ifonly.problem",
    "Schema": "ifonly.schema",
    "ScorePath": "ifonly.looking",
    "ScoreTarget": "ifonly.problem",
    "Scorecard": "ifonly.model",
    "Search": "ifonly.search",
    "SmtPlain": "ifonly.smt",
    "SmtReduced": "ifonly.smt",
    "Steps": "ifonly.problem",
    "Stop": "ifonly.proof",
    "StoppedBy": "ifonly.proof",
    "Tolerances": "ifonly.tolerances",
    "TopTarget": "ifonly.problem",
    "Unknown": "ifonly.proof",
    "Within": "ifonly.proof",
    "Written": "ifonly.population.run",
    "audit": "ifonly.population.audit",
    "bounds_over_time": "ifonly.looking",
    "certified_query": "ifonly.certifying.stating",
    "certify": "ifonly.certifying.certify",
    "check": "ifonly.certificate.check",
    "cost_by_changes": "ifonly.looking",
    "doubts": "ifonly.looking",
    "explain": "ifonly.explainer",
    "flip_sets": "ifonly.population.ways",
    "import_model": "ifonly.model.importers",
    "invariants": "ifonly.mining",
    "load_model": "ifonly.model.importers",
    "load_network": "ifonly.model",
    "prove": "ifonly.certifying.certify",
    "save_network": "ifonly.model",
    "score_path": "ifonly.looking",
    "scales_from_data": "ifonly.problem",
}
"""Where each public name is at home."""

_MODULES = ("datasets", "plausibility")

__all__ = [
    "Allowed",
    "Answer",
    "Answers",
    "AtMostChanges",
    "Audit",
    "Binary",
    "BoundsOverTime",
    "Categorical",
    "Certificate",
    "Change",
    "ChangeAtMost",
    "Checked",
    "ClassTarget",
    "CostByChanges",
    "CsvOutput",
    "Dask",
    "Difference",
    "Distance",
    "DiverseAnswers",
    "Diversity",
    "Enumerate",
    "Explainer",
    "Failed",
    "FillIn",
    "Fixed",
    "FlipSet",
    "Free",
    "Group",
    "Grouping",
    "IfonlyError",
    "Integer",
    "Invariant",
    "Invariants",
    "Judge",
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
    "Processes",
    "Progress",
    "Query",
    "Question",
    "Range",
    "Ray",
    "Real",
    "Reasons",
    "Relaxation",
    "Rule",
    "Schema",
    "ScorePath",
    "ScoreTarget",
    "Scorecard",
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
    "Written",
    "audit",
    "bounds_over_time",
    "certified_query",
    "certify",
    "check",
    "cost_by_changes",
    "datasets",
    "doubts",
    "explain",
    "flip_sets",
    "import_model",
    "invariants",
    "load_model",
    "load_network",
    "plausibility",
    "prove",
    "save_network",
    "scales_from_data",
    "score_path",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ifonly.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'ifonly' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
