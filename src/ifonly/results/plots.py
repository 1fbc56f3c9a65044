"""Answers as pictures by matplotlib (extra `plot`): what would change, alternatives side by side, costs of many.

Nothing depends on colour: rings are before, dots are after, and every value stands beside its mark. Each function
draws into the axes that it is given, or into new ones, and returns them. New ones belong to no window and to nobody's
pyplot, but in a notebook, whose cell shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ifonly.errors import MissingExtra, QuestionError
from ifonly.html.notebook import in_notebook
from ifonly.printing import MOST, printable, shown
from ifonly.results.amounts import amount
from ifonly.results.answer import Answer, Change
from ifonly.results.answers import Answers
from ifonly.results.diverse_answers import DiverseAnswers
from ifonly.schema.arguments import is_listed

INK, SOFT = "#1f4e79", "#9a9a9a"
MOST_LETTERS = 40


def plot_answer(answer: Answer, axes: Any = None) -> Any:
    """What would change: from the ring to the dot, each feature on a scale of its own."""
    if not answer.changes:
        raise QuestionError("There is nothing to draw: nothing changes in this answer.")
    axes = new_axes(axes, height=0.7 + 0.55 * len(answer.changes))
    for k, change in enumerate(answer.changes):
        start, end = _places(change)
        axes.plot([0, 1], [k, k], color=SOFT, linewidth=0.8, zorder=1)
        axes.annotate("", (end, k), (start, k), arrowprops={"arrowstyle": "->", "color": INK, "lw": 1.6}, zorder=2)
        axes.plot([start], [k], "o", markerfacecolor="white", markeredgecolor=INK, markersize=8, zorder=3)
        axes.plot([end], [k], "o", color=INK, markersize=8, zorder=3)
        axes.text(1.06, k, f"{_value(answer, change, change.before)} \N{RIGHTWARDS ARROW} "
                  f"{_value(answer, change, change.after)}", va="center")  # fmt: skip
    axes.set_yticks(range(len(answer.changes)), [_label(answer, change.feature) for change in answer.changes])
    axes.set_ylim(len(answer.changes) - 0.4, -0.6)
    axes.set_xlim(-0.05, 1.05)
    axes.set_xticks([])
    bare(axes)
    axes.spines["bottom"].set_visible(False)
    axes.set_title(plainly(f"{answer.status}: {answer.state or answer.target}"), loc="left")
    return axes


def plot_diverse(several: DiverseAnswers, axes: Any = None) -> Any:
    """Alternatives side by side: which features each changes, and to what; its distance below."""
    if not len(several):
        raise QuestionError("There is nothing to draw: the set is empty.")
    names = list(dict.fromkeys(change.feature for answer in several for change in answer.changes))
    axes = new_axes(axes, height=1.2 + 0.5 * len(names), width=2.5 + 1.6 * len(several))
    for j, answer in enumerate(several):
        for change in answer.changes:
            k = names.index(change.feature)
            axes.plot([j], [k], "o", color=INK, markersize=7)
            axes.text(j, k - 0.18, _value(answer, change, change.after), ha="center", va="bottom", fontsize="small")
    for k in range(len(names)):
        axes.axhline(k, color=SOFT, linewidth=0.6, zorder=0)
    axes.set_yticks(range(len(names)), [_label(several[0], name) for name in names])
    axes.set_xticks(range(len(several)), [f"{j}.\n{answer.upper:.3g}" for j, answer in enumerate(several, 1)])
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.set_xlim(-0.6, len(several) - 0.4)
    axes.set_xlabel(f"alternative, and its {plainly(several[0].distance_name)} distance")
    bare(axes)
    return axes


def plot_answers(answers: Answers, axes: Any = None, *, by: Sequence[Any] | None = None) -> Any:
    """The costs of many people: how many need no more than so much; one line per group of the labels `by` row."""
    if by is not None and not is_listed(by):
        raise QuestionError(f"Give one label per row to group people by, such as a column; got {shown(by)}.")
    labels = ["everybody"] * len(answers) if by is None else [str(label) for label in by]
    if len(labels) != len(answers):
        raise QuestionError(f"There are {len(answers)} answers, but {len(labels)} labels to group them by.")
    groups: dict[str, list[float]] = {}
    asked: Counter[str] = Counter()
    for label, answer in zip(labels, answers, strict=True):
        if answer.status == "error" or answer.already:
            continue
        asked[label] += 1
        groups.setdefault(label, [])
        if answer.counterfactual is not None:
            groups[label].append(answer.upper)
    if not groups:
        raise QuestionError("There is nothing to draw: nobody here needs a change.")
    axes = new_axes(axes, height=3.6)
    for label, style in zip(groups, ("-", "--", ":", "-.") * len(groups), strict=False):
        costs = sorted(groups[label])
        shares = [100 * (k + 1) / asked[label] for k in range(len(costs))]
        name = f"{plainly(label, MOST_LETTERS)} ({asked[label]:,})"
        axes.step([0.0, *costs], [0.0, *shares], style, where="post", label=name, color=INK if by is None else None)
    distance = next((answer.distance_name for answer in answers if answer.distance_name), "")
    axes.set_xlabel(f"cost ({plainly(distance)} distance)")
    axes.set_ylabel("% with an answer at no more than this cost")
    axes.set_ylim(0, 102)
    axes.legend(frameon=False)
    bare(axes)
    return axes


def new_axes(axes: Any, *, height: float, width: float = 7.0) -> Any:
    """The axes that were given, or new ones of that size in inches; in a notebook, of a figure that the cell shows."""
    if axes is not None:
        return axes
    try:
        figure = (
            import_module("matplotlib.pyplot").figure if in_notebook() else import_module("matplotlib.figure").Figure
        )
    except ImportError:
        raise MissingExtra("matplotlib", extra="plot", needed_for="A picture") from None
    return figure(figsize=(width, max(height, 1.6)), layout="constrained").add_subplot()


def _places(change: Change) -> tuple[float, float]:
    """Where both values stand on a line from 0 to 1: numbers by size, options at its ends."""
    if change.amounts is None:
        return 0.0, 1.0
    before, after = change.amounts
    least, most = min(0.0, before, after), max(0.0, before, after)
    return ((before - least) / (most - least), (after - least) / (most - least)) if most > least else (0.0, 1.0)


def _label(answer: Answer, name: str) -> str:
    return plainly(answer.label(name), MOST_LETTERS)


def _value(answer: Answer, change: Change, value: Any) -> str:
    return plainly(amount(value, answer.unit(change.feature), counted=change.counted), MOST_LETTERS)


def bare(axes: Any) -> None:
    """Only the axis below stays."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)


def plainly(text: str, most: int = MOST) -> str:
    """Any text as it may stand in a picture, in which matplotlib takes what is between two $ for a formula."""
    return printable(text, most).replace("$", r"\$")
