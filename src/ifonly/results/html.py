"""Answers as HTML: fragments for notebooks, and pages to print and hand over.

The words are those of `plain_language`, with the schema's labels and units; what is proven stands below in plain
words, the figures last. A page has no script and loads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ifonly.html.charts import arrow
from ifonly.html.fragments import document, facts, fragment, paragraph, table, words
from ifonly.results.amounts import amount
from ifonly.results.answer import Answer, Change, Failed, Nearest, NoneExists
from ifonly.results.answers import Answers
from ifonly.results.diverse_answers import DiverseAnswers
from ifonly.results.languages import Language, language_of
from ifonly.results.localised import localised, naming
from ifonly.results.plain_language import change_of, guarantee, plain_language
from ifonly.results.rule_language import rules_in
from ifonly.results.sentences import under

MOST_ROWS = 20
"""Answers in a fragment."""
MOST_PAGES = 200
"""People in a page, each with a section of their own."""


# ---------------------------------------------------------------------- one answer


def answer_fragment(answer: Answer) -> str:
    """For a notebook."""
    return fragment(*_answer(answer, "en", ""))


def answer_document(
    answer: Answer, language: str = "en", subject: str = "", *, own_sentence: str = "", who: str = ""
) -> str:
    """A page about one answer. `own_sentence`: instead of the sentence of the answer, and of its guarantee;
    `who`: what the person is called in the title, if not by the number of the row.
    """
    say = language_of(language)
    parts = _answer(answer, language, subject, whole=True, own_sentence=own_sentence)
    return document(say.title.format(who or say.row.format(answer.row)), *parts, language=language)


def _answer(answer: Answer, language: str, subject: str, *, whole: bool = False, own_sentence: str = "") -> list[str]:
    say = language_of(language)
    parts = [paragraph(own_sentence or plain_language(answer, language, subject), "sentence")]
    given, answer = answer, localised(answer, language)
    if answer.changes:
        parts.append(_changes(answer, language))
        others = len(answer.factual) - len(answer.changes)
        stay = say.stay_one if others == 1 else say.stay.format(others)
        parts.append(paragraph(stay, "soft") if others and not whole else "")
    if whole and not isinstance(answer, Failed):
        parts.append(_person(answer, language))
    parts.append(paragraph(guarantee(answer, language)) if whole and not own_sentence else "")
    parts.append(_figures(given, say) if whole else paragraph(_short(answer, say), "soft"))
    return [part for part in parts if part]


def _changes(answer: Answer, language: str) -> str:
    say = language_of(language)
    rows = []
    for change in answer.changes:
        before, after = (
            _value(answer, change.feature, v, language, change.counted) for v in (change.before, change.after)
        )
        after += f" {say.follows}" if change.follows else ""
        rows.append((answer.label(change.feature), before, after, _mark(change)))
    return table((say.feature, say.now, say.instead, ""), rows, drawn=frozenset({3}))


def _person(answer: Answer, language: str) -> str:
    """All that was known of the person, as it was."""
    say = language_of(language)
    rows = [(answer.label(name), _value(answer, name, value, language)) for name, value in answer.factual.items()]
    return table((say.feature, say.now), rows, caption=say.person)


def _value(answer: Answer, name: str, value: object, language: str, counted: bool = True) -> str:
    return amount(value, answer.unit(name), language, counted=counted)  # type: ignore[arg-type]


def _mark(change: Change) -> str:
    """From one number to another; nothing for options, whose names say it."""
    if change.amounts is None:
        return ""
    before, after = change.amounts
    least, most = min(0.0, before, after), max(0.0, before, after)
    return arrow(before, after, least, most + 0.05 * (most - least))


def _figures(answer: Answer, say: Language) -> str:
    if isinstance(answer, Failed):
        return ""
    after = "" if answer.counterfactual is None else f" \N{RIGHTWARDS ARROW} {_score(answer.score_after, say)}"
    pairs = [
        (say.status, say.statuses[answer.status]),
        (say.measured.format(answer.distance_name), _number(answer.upper, say)),
        (say.nearer, _number(answer.lower, say)),
        (say.score, _score(answer.score_before, say) + after),
    ]
    pairs.append((say.method, _effort(answer, say)))
    pairs += _under(answer, say)
    return facts([*pairs, (say.note, answer.note)] if answer.note else pairs)


def _under(answer: Answer, say: Language) -> list[tuple[str, str]]:
    """The constraints, as they were understood."""
    return [(say.under, under(rules_in(answer.constraints, naming(answer, say.code))))] if answer.constraints else []


def _short(answer: Answer, say: Language) -> str:
    """The expert's line."""
    status = say.statuses[answer.status]
    if isinstance(answer, Failed):
        return status
    proven = isinstance(answer, Nearest | NoneExists)
    parts = [say.is_proven.format(status) if proven else status]
    if math.isfinite(answer.upper):
        parts.append(f"{say.measured.format(answer.distance_name)} {_number(answer.upper, say)}")
    parts += [] if proven else [f"{say.nearer} {_number(answer.lower, say)}"]
    return f"{', '.join(parts)}; {_effort(answer, say)}"


def _effort(answer: Answer, say: Language) -> str:
    return say.effort.format(
        method=answer.method, nodes=answer.nodes, took=f"{1e3 * answer.seconds:.3g} ms".replace(".", say.style.decimal)
    )


def _number(value: float, say: Language) -> str:
    return f"{value:.6g}".replace(".", say.style.decimal) if math.isfinite(value) else "\N{EM DASH}"


def _score(score: float | tuple[float, ...], say: Language) -> str:
    several = (score,) if isinstance(score, float) else score
    return "; ".join(f"{one:.4g}".replace(".", say.style.decimal) for one in several)


# ---------------------------------------------------------------------- many answers


def answers_fragment(answers: Answers) -> str:
    """For a notebook: how many of each kind, and the first of them."""
    return fragment(_tiles(answers), _list(answers[:MOST_ROWS]), _more(len(answers) - MOST_ROWS, language_of("en")))


def answers_document(answers: Answers, language: str = "en", subject: str = "") -> str:
    """A page with a section per person, for at most so many people."""
    say = language_of(language)
    asked = next((_under(answer, say) for answer in answers if answer.constraints), [])
    parts = [_tiles(answers, language), facts(asked) if asked else ""]
    for place, answer in enumerate(answers[:MOST_PAGES]):
        who = answer.row if answers.ids is None else answers.ids[place]
        who = who if isinstance(who, str) else say.row.format(who)
        parts.append(
            f"<section><h2>{words(say.title.format(who))}</h2>{''.join(_answer(answer, language, subject))}</section>"
        )
    return document(say.many.format(len(answers)), *parts, _more(len(answers) - MOST_PAGES, say), language=language)


def _tiles(answers: Answers, language: str = "en") -> str:
    counted = ((language_of(language).statuses[status], count) for status, count in answers.counts().items() if count)
    tiles = "".join(f"<li><b>{count:,}</b>{words(status)}</li>" for status, count in counted)
    return f'<ul class="ifonly-tiles">{tiles}</ul>'


def _list(answers: Answers) -> str:
    rows = []
    for place, answer in enumerate(answers):
        who = str(answer.row if answers.ids is None else answers.ids[place])
        lines = (
            "; ".join(change_of(answer, change) for change in answer.changes)
            or answer.note
            or ("already so" if answer.already else "")
        )
        rows.append((who, answer.status, _number(answer.upper, language_of("en")), lines))
    return table(("row", "status", "distance", "changes"), rows, right=frozenset({2}))


def _more(left: int, say: Language) -> str:
    return paragraph(say.more.format(left), "soft") if left > 0 else ""


# ---------------------------------------------------------------------- several answers of one person


def diverse_fragment(several: DiverseAnswers) -> str:
    """For a notebook: the alternatives side by side."""
    return fragment(side_by_side(list(several)), paragraph(several.ending, "soft") if several.ending else "")


def diverse_document(several: DiverseAnswers, language: str = "en", subject: str = "") -> str:
    """A page about several answers of one person."""
    say = language_of(language)
    lines = [
        paragraph(f"{k}. {plain_language(one, language, subject, further=k > 1)}") for k, one in enumerate(several, 1)
    ]
    return document(say.several.format(len(several)), side_by_side(list(several), language), *lines,
                    paragraph(several.ending) if several.ending else "",
                    *(facts(_under(one, say)) for one in several[:1] if one.constraints),
                    language=language)  # fmt: skip


def side_by_side(answers: Sequence[Answer], language: str = "en") -> str:
    """A table with a column per answer of one person, and a row per feature that some answer changes."""
    if not answers:
        return ""
    answers = [localised(answer, language) for answer in answers]
    say, first = language_of(language), answers[0]
    moved = {change.feature for answer in answers for change in answer.changes}
    rows = []
    for name in (name for name in first.factual if name in moved):
        new = [{c.feature: c for c in answer.changes}.get(name) for answer in answers]
        cells = ["" if c is None else _value(first, name, c.after, language, c.counted) for c in new]
        rows.append((first.label(name), _value(first, name, first.factual[name], language), *cells))
    rows.append((say.distance, "", *(_number(answer.upper, say) for answer in answers)))
    return table((say.feature, say.now, *(f"{k}." for k in range(1, len(answers) + 1))), rows)
