"""The claim, the check, the answer."""

from ifonly.proof.answer import (
    Answer,
    Answers,
    Change,
    Failed,
    Nearest,
    NoneExists,
    Reasons,
    Relaxation,
    Unknown,
    Within,
    show,
)
from ifonly.proof.claim import Claim, Limits, Listener, Method, Progress, Solver
from ifonly.proof.claims import Claims
from ifonly.proof.diverse_answers import DiverseAnswers
from ifonly.proof.sentences import sentence
from ifonly.proof.speech import amount, change_of, speech
from ifonly.proof.stop import Stop, StoppedBy
from ifonly.proof.tidy import tidied
from ifonly.proof.witness import Witness, Witnesses, check_witnesses

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
    "Within",
    "Witness",
    "Witnesses",
    "amount",
    "change_of",
    "check_witnesses",
    "sentence",
    "show",
    "speech",
    "tidied",
]
