"""What is asked for, by docs/answers.md and docs/recourse.md: plain judgements of a row of scores.

A target is plain data: {"class": c}, {"score": [low, high], "output": o}, {"probability": c, "at_least": p},
{"one_of": [...]}, {"other": true}, {"top": c, "k": k}; each with a "margin". Classes are 0, 1, ...
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Target = dict[str, Any]
MARGIN = 1e-6
"""The margin where none is named."""


def decision(scores: Sequence[Any]) -> int:
    """One score: the second class iff it is positive; several: the largest, the first on ties."""
    if len(scores) == 1:
        return int(scores[0] > 0)
    return max(range(len(scores)), key=lambda i: (scores[i], -i))


def score_margin(scores: Sequence[Any], c: int, other: int) -> Any:
    """By how much class c is ahead of another."""
    if len(scores) == 1:
        return scores[0] if c == 1 else -scores[0]
    return scores[c] - scores[other]


def stands(target: Target, scores: Sequence[Any], decided: int) -> bool:
    """Is a row with these scores decided as asked already, as it is? The default margin is for changes only."""
    if target["margin"] > MARGIN:
        return met(target, scores, decided)
    if "probability" in target:
        c = target["probability"]
        odds = score_margin(scores, c, 1 - c)
        small = math.exp(-abs(odds))
        return bool((1.0 if odds > 0 else small) / (1.0 + small) >= target["at_least"])
    return met({**target, "margin": 0.0}, scores, decided)


def met(target: Target, scores: Sequence[Any], decided: int, slack: Any = 0) -> bool:
    """Does a model that gives these scores decide as asked, by the margin and `slack` more?

    `decided` is the class of the person as they are.
    """
    if any(isinstance(s, float) and not math.isfinite(s) for s in scores):
        return False
    margin, classes = target["margin"] + slack, max(2, len(scores))
    now = decision(scores)
    if "score" in target:
        low, high = target["score"]
        s = scores[target["output"]]
        return (low is None or s - low >= margin) and (high is None or high - s >= margin)
    if "class" in target:
        c = target["class"]
        return now == c and all(score_margin(scores, c, o) >= margin for o in range(classes) if o != c)
    if "probability" in target:
        c, p = target["probability"], target["at_least"]
        room = 0.0 if p == 0.5 else 1e-12 if slack else -1e-12  # of the logarithm
        return bool(score_margin(scores, c, 1 - c) - math.log(p / (1 - p)) >= margin + room)
    if "one_of" in target:
        resolved = target["one_of"]
        rest = [o for o in range(classes) if o not in resolved]
        return now in resolved and any(all(score_margin(scores, c, o) >= margin for o in rest) for c in resolved)
    if "other" in target:
        return now != decided and any(
            score_margin(scores, c, decided) >= margin for c in range(classes) if c != decided
        )
    c, k = target["top"], target["k"]
    before = sum(
        score_margin(scores, o, c) > 0 or (score_margin(scores, o, c) == 0 and o < c) for o in range(classes) if o != c
    )
    return before < k and sum(score_margin(scores, c, o) >= margin for o in range(classes) if o != c) >= classes - k
