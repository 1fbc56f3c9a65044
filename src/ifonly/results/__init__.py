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
from ifonly.results.plain_language import change_of, plain_language
from ifonly.results.sentences import sentence
from ifonly.results.shorten import shortened
from ifonly.results.stop import Stop, StoppedBy
from ifonly.results.witness import Witnesses, check_witnesses

__all__ = [
    "Answer",
    "Answers",
    "Change",
    "Claim",
    "Claims",
    "DiverseAnswers",
    "Failed",
    "Limits",
    "Listener",
    "Method",
    "Nearest",
    "NoneExists",
    "Progress",
    "Reasons",
    "Relaxation",
    "Solver",
    "Stop",
    "StoppedBy",
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
