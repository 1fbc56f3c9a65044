"""The score along the path from a row to its counterfactual, one change after the other.

Every point of the path is a row of the schema: whole numbers stay whole, an option changes half-way. The score margin
is by how much the decision of the answer is ahead of the others, by the user's own model; above 0 it is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import QuestionError
from ifonly.explainer import Explainer
from ifonly.html.charts import curve
from ifonly.html.fragments import fragment, numbered
from ifonly.printing import shown
from ifonly.results import Answer, change_of
from ifonly.results.plots import INK, SOFT, bare, new_axes, plainly
from ifonly.schema import Numeric, Schema

Floats = NDArray[np.float64]
STEPS = 40
"""Points per change."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScorePath:
    """`score_margin[k]` is by how much `decision` is ahead at `rows[k]`; `changes` says which change begins where."""

    rows: tuple[dict[str, Any], ...]
    score_margin: tuple[float, ...]
    decision: Any
    changes: tuple[tuple[int, str], ...]

    def __repr__(self) -> str:
        ends = f"{self.score_margin[0]:.3g} to {self.score_margin[-1]:.3g}"
        return f"<ScorePath: {len(self.rows)} rows, {len(self.changes)} changes, {ends}>"

    def _repr_html_(self) -> str:
        first, last = self.score_margin[0], self.score_margin[-1]
        alternative = f"The score margin of {self.decision} from {first:.3g} to {last:.3g}; at 0 it is decided so."
        picture = curve(self.score_margin, 0.0, [at for at, _ in self.changes], alternative)
        return fragment(picture, numbered(words for _, words in self.changes))

    def plot(self, axes: Any = None) -> Any:
        """The score margin along the path, with the boundary, by matplotlib."""
        axes = new_axes(axes, height=2.8 + 0.2 * len(self.changes))
        axes.plot(range(len(self.score_margin)), self.score_margin, color=INK, linewidth=1.8)
        axes.axhline(0.0, color="black", linewidth=0.9, linestyle="--")
        for at, _ in self.changes:
            axes.axvline(at, color=SOFT, linewidth=0.6)
        axes.set_xticks([at for at, _ in self.changes], [f"{k}." for k in range(1, len(self.changes) + 1)])
        legend = "\n".join(plainly(f"{k}. {words}", 90) for k, (_, words) in enumerate(self.changes, 1))
        axes.set_xlabel(legend, ha="left", x=0.0, fontsize="small")
        axes.set_ylabel(plainly(f"score margin of {self.decision}"))
        bare(axes)
        axes.spines["bottom"].set_visible(False)
        return axes


def score_path(explainer: Explainer, answer: Answer, steps: int = STEPS) -> ScorePath:
    """The path to an answer's counterfactual, change by change."""
    if answer.counterfactual is None or not answer.changes or answer.decision_after is None:
        raise QuestionError("There is a path only to a row of another decision: this answer has none.")
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= 10_000:
        raise QuestionError(f"The number of steps must be a whole number from 1 to 10,000; it is {shown(steps)}.")
    schema, model = explainer.schema, explainer.model
    point, after = schema.read(answer.factual), schema.read(answer.counterfactual)
    points, changes = [point.copy()], []
    for change in answer.changes:
        changes.append((len(points) - 1, change_of(answer, change)))
        g = schema.index(change.feature)
        for value in _between(schema, g, float(point[g]), float(after[g]), steps):
            point[g] = value
            points.append(point.copy())
    many = np.array(points)
    decided = next(k for k, name in enumerate(model.classes) if name == answer.decision_after)
    score_margin = score_margin_of(model.scores(many), decided)
    return ScorePath(
        rows=tuple(schema.row(one) for one in many),
        score_margin=tuple(score_margin.tolist()),
        decision=answer.decision_after,
        changes=tuple(changes),
    )


def score_margin_of(scores: Floats, decided: int) -> Floats:
    """By how much the score of a class is ahead of the others."""
    if scores.shape[1] == 1:
        return scores[:, 0] if decided else -scores[:, 0]
    return np.asarray(scores[:, decided] - np.delete(scores, decided, axis=1).max(axis=1))


def _between(schema: Schema, g: int, before: float, after: float, steps: int) -> list[float]:
    """The values of a feature along the path; the last one is the new value."""
    feature, ways = schema.features[g], np.linspace(before, after, steps + 1)[1:]
    if not isinstance(feature, Numeric):
        ways = np.where(np.arange(steps) < steps // 2, before, after)
    elif schema.grid[2][g] > 0.0:
        low, step = schema.grid[0][g], schema.grid[2][g]
        ways = low + step * np.rint((ways - low) / step)
    elif g in schema.grids:
        ways = schema.grids[g].nearest_to(ways)
    ways[-1] = after
    return [float(value) for value in ways]
