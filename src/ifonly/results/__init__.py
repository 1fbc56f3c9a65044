"""Results: the claim of a method, the check of its row, the answer, and how answers are presented."""

from ifonly.results.amounts import amount
from ifonly.results.answer import (
    Answer,
    Change,
    Failed,
    Nearest,
    NoneExists,
    Reasons,
    Relaxation,
    Unknown,
    Usualness,
    Within,
    show,
)
from ifonly.results.answers import Answers
from ifonly.results.claim import Claim, Limits, Listener, Method, Progress, Solver
from ifonly.results.claims import Claims
from ifonly.results.diverse_answers import DiverseAnswers
from ifonly.results.diverse_recourse import DiverseRecourse
from ifonly.results.plain_language import change_of, plain_language
from ifonly.results.recourse import Recourse
from ifonly.results.robustness import Robustness, TreeRobustness
from ifonly.results.sentences import sentence
from ifonly.results.shorten import shortened
from ifonly.results.stop import Stop, StoppedBy
from ifonly.results.sufficient import SufficientReason, SufficientReasons
from ifonly.results.witness import Witnesses, check_witnesses

__all__ = [
    "Answer",
    "Answers",
    "Change",
    "Claim",
    "Claims",
    "DiverseAnswers",
    "DiverseRecourse",
    "Failed",
    "Limits",
    "Listener",
    "Method",
    "Nearest",
    "NoneExists",
    "Progress",
    "Reasons",
    "Recourse",
    "Relaxation",
    "Robustness",
    "Solver",
    "Stop",
    "StoppedBy",
    "SufficientReason",
    "SufficientReasons",
    "TreeRobustness",
    "Unknown",
    "Usualness",
    "Within",
    "Witnesses",
    "amount",
    "change_of",
    "check_witnesses",
    "plain_language",
    "sentence",
    "shortened",
    "show",
]
