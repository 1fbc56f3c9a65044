"""Answers as pages of text: one answer, many answers, their summary. `text` renders either as plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ifonly.report.page import Facts, Heading, Page, Paragraph, TextTable, plain
from ifonly.report.summary import summary
from ifonly.results import (
    Answer,
    Answers,
    Change,
    Failed,
    NoneExists,
    Reasons,
    Relaxation,
    amount,
    sentence,
    show,
)
from ifonly.results.sentences import under
from ifonly.schema import Value

MOST_ROWS = 100


def text(answers: Answer | Answers | Sequence[Answer]) -> str:
    """One answer, or many with their summary, as plain text."""
    if isinstance(answers, Answer):
        return plain(answer_page(answers))
    many = answers if isinstance(answers, Answers) else Answers(answers)
    return plain((*answers_page(many), *summary_page(many)))


def answer_page(answer: Answer, language: str = "en", subject: str = "", *, own_sentence: str = "") -> Page:
    """The person, what would have to differ, the sentence (`own_sentence`, or else the answer's own), the guarantee."""
    if isinstance(answer, Failed):
        return (Heading(f"Row {answer.row}"), Paragraph(sentence(answer)))
    why = _reasons(answer.reasons) if isinstance(answer, NoneExists) and answer.reasons is not None else ()
    in_words = Paragraph(own_sentence or answer.sentence(language, subject=subject))
    return (Heading(_title(answer)), _comparison(answer), in_words, *why, _guarantee(answer))


def answers_page(answers: Answers, *, most: int | None = MOST_ROWS) -> Page:
    """One line per answer; the first `most` of them."""
    shown = answers if most is None else answers[:most]
    sheet = TextTable(
        header=("row", "decision", "status", "distance", "lower", "time", "changes"),
        rows=[_line(answer) for answer in shown],
        right=frozenset({0, 3, 4, 5}),
    )
    left = len(answers) - len(shown)
    return (sheet, Paragraph(f"... and {left:,} more", quiet=True)) if left else (sheet,)


def summary_page(answers: Answers) -> Page:
    """Counts and quantiles."""
    return figures_page(summary(answers), next((one.constraints for one in answers if one.constraints), ()))


def figures_page(figures: Mapping[str, Any], constraints: Sequence[str] = ()) -> Page:
    """The same, of what `summary` gives, and the constraints that hold for all."""
    rows, seconds = figures["rows"], figures["total_seconds"]
    pairs = [("rows", f"{rows:,} in {duration(seconds)}" if seconds else f"{rows:,}")]
    pairs += [
        (status, f"{count:,} ({share(count, rows)}) {_MEANING[status]}")
        for status, count in figures["counts"].items() if count
    ]  # fmt: skip
    if figures["stopped_by"]:
        pairs.append(("stopped by", ", ".join(f"{why} ({count:,})" for why, count in figures["stopped_by"].items())))
    if figures["unchanged"]:
        pairs.append(("no change", f"{figures['unchanged']:,} already decided as asked"))
    if figures["distance"]:
        pairs.append((f"distance ({figures['distance_name']})", _spread(figures["distance"], number)))
        pairs.append(("changes per row", _spread(figures["changed_features"], number)))
    if figures["changed_most"]:
        often = ", ".join(f"{name} ({count:,})" for name, count in figures["changed_most"].items())
        pairs.append(("changed most", often))
    if figures["seconds"]:
        pairs.append(("time per row", _spread(figures["seconds"], duration)))
    return (Facts(pairs + _constraints(constraints)),)


def _constraints(words: Sequence[str]) -> list[tuple[str, str]]:
    """The constraints as they were understood, so that a misunderstanding is seen."""
    return [("under", under(words))] if words else []


def duration(seconds: float) -> str:
    """A time as a person reads it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1.0:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120.0:
        return f"{seconds:.3g} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def share(count: int, total: int) -> str:
    """A percentage that is 0% or 100% only where that is exact."""
    percent = round(100 * count / total)
    if count and percent == 0:
        return "<1%"
    return ">99%" if percent == 100 and count < total else f"{percent}%"


def number(value: float) -> str:
    """A distance or a count."""
    return f"{value:.6g}" if math.isfinite(value) else "-"


_MEANING = {
    "nearest": "proven nearest",
    "none exists": "proven that no allowed change does it",
    "within": "a change, not proven nearest",
    "unknown": "nothing found, nothing ruled out",
    "error": "not readable",
}


def _title(answer: Answer) -> str:
    before = "" if answer.decision_before is None else f"decided {show(answer.decision_before)}, "
    return f"Row {answer.row}: {before}wanted {answer.target}"


def _reasons(reasons: Reasons) -> Page:
    """What would help. (The sentence says what rules it out.)"""
    if not reasons.relaxations:
        return ()
    sheet = TextTable(
        header=("possible if", "distance", "then"),
        rows=[_relaxation(relaxation) for relaxation in reasons.relaxations],
        right=frozenset({1}),
    )
    return (sheet,)


def _relaxation(relaxation: Relaxation) -> tuple[str, str, str]:
    most = "" if relaxation.proven else "<= "
    return relaxation.words, most + number(relaxation.distance), "; ".join(map(str, relaxation.changes))


def _comparison(answer: Answer) -> TextTable:
    """The person, and what would have to differ, under the names and in the units that people know."""
    if answer.counterfactual is None:
        own = [(answer.label(name), _value(answer, name, now)) for name, now in answer.factual.items()]
        return TextTable(header=("feature", "value"), rows=own)
    new = {change.feature: change for change in answer.changes}
    rows = [
        (answer.label(name), _value(answer, name, now, new.get(name)),
         _value(answer, name, new[name].after, new[name]) + " (follows)" * new[name].follows if name in new else "")
        for name, now in answer.factual.items()
    ]  # fmt: skip
    marked = frozenset(i for i, name in enumerate(answer.factual) if name in new)
    return TextTable(header=("feature", "now", "instead"), rows=rows, marked=marked)


def _value(answer: Answer, name: str, value: Value, change: Change | None = None) -> str:
    if unit := answer.unit(name):
        return amount(value, unit)
    return show(value) if change is None else change.shown(value)


def _guarantee(answer: Answer) -> Facts:
    pairs = [("score", _score(answer.score_before))]
    if answer.counterfactual is not None:
        pairs = [
            ("decision", f"{show(answer.decision_before)} -> {show(answer.decision_after)}"),
            ("score", f"{_score(answer.score_before)} -> {_score(answer.score_after)}"),
            ("distance", f"{number(answer.upper)} ({answer.distance_name})"),
        ][answer.decision_before is None :]
    pairs.append(("proven", _proven(answer)))
    nodes = f", {answer.nodes:,} nodes" if answer.nodes else ""
    pairs.append(("time", f"{duration(answer.seconds)} ({answer.method}{nodes})"))
    pairs += _constraints(answer.constraints)
    if answer.note:
        pairs.append(("note", answer.note))
    return Facts(pairs)


def _proven(answer: Answer) -> str:
    if isinstance(answer, NoneExists):
        return "no allowed row is decided so, at any distance"
    if answer.already:
        return "nothing is nearer than no change"
    if not answer.lower:
        return "nothing yet"
    gap = f" (gap {answer.upper - answer.lower:.2g})" if math.isfinite(answer.upper) else ""
    return f"nothing nearer than {number(answer.lower)} exists{gap}"


def _line(answer: Answer) -> tuple[str, ...]:
    if isinstance(answer, Failed):
        return (str(answer.row), "", answer.status, "-", "-", "-", answer.note)
    before = "" if answer.decision_before is None else show(answer.decision_before)
    after = show(answer.decision_after) if answer.decision_after is not None else answer.target
    arrow = f"{before} -> {after}" if before else after
    what = "; ".join(map(str, answer.changes)) or answer.note or ("none needed" if answer.already else "")
    if isinstance(answer, NoneExists) and answer.reasons is not None:
        what = f"ruled out by: {'; '.join(answer.reasons.blame)}" if answer.reasons.blame else "no row is decided so"
    bounds = (f"{bound:.4g}" if math.isfinite(bound) else "-" for bound in (answer.upper, answer.lower))
    return (str(answer.row), arrow, answer.status, *bounds, duration(answer.seconds), what)


def _score(score: float | tuple[float, ...]) -> str:
    return f"{score:.6g}" if isinstance(score, float) else "[" + ", ".join(f"{s:.4g}" for s in score) + "]"


def _spread(quantiles: dict[str, Any], shown: Any) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in quantiles.items())
