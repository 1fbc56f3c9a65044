"""ifonly: the nearest counterfactual, proven.

A model says no to a person: what is the smallest change that would have made it yes?
"""

from ifonly.audit import audit, flip_sets
from ifonly.errors import IfonlyError
from ifonly.explain import Explainer, explain
from ifonly.mip import MipInterval, MipObjective
from ifonly.model import Model, Network, load_network, save_network
from ifonly.model.importers import import_model, load_model
from ifonly.problem import (
    Allowed,
    AtMostChanges,
    ChangeAtMost,
    ClassTarget,
    Distance,
    Fixed,
    Free,
    OneOfTarget,
    OnlyDown,
    OnlyUp,
    OnlyWith,
    OtherTarget,
    ProbabilityTarget,
    Range,
    Rule,
    ScoreTarget,
    Steps,
    TopTarget,
    scales_from_data,
)
from ifonly.proof import Answer, Answers, Failed, Limits, Nearest, NoneExists, Reasons, Relaxation, Unknown, Within
from ifonly.proof.certificate import Certificate
from ifonly.proof.check import Checked, check
from ifonly.schema import Binary, Categorical, Integer, Ordinal, Real, Schema
from ifonly.search import Enumerate, Search
from ifonly.search.certify import certify, prove
from ifonly.smt import SmtPlain, SmtReduced
from ifonly.tolerances import Tolerances

__version__ = "0.1.0"

__all__ = [
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
