"""Cost against sparsity: the nearest row with at most one change, with at most two, and so on, each proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ifonly.errors import QuestionError
from ifonly.explainer import Explainer
from ifonly.html.charts import pins
from ifonly.html.fragments import fragment
from ifonly.problem import MaxChanges
from ifonly.problem.query import Query, query_of
from ifonly.results import Answer, Answers, Nearest, NoneExists
from ifonly.results.html import side_by_side
from ifonly.results.plots import INK, bare, new_axes, plainly


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CostByChanges:
    """`answers[k]` is the answer with at most k + 1 changes; the last is also that with any number of changes."""

    answers: Answers

    @property
    def costs(self) -> tuple[float, ...]:
        """The distance of each; infinity where there is no row, or none was found."""
        return tuple(answer.upper for answer in self.answers)

    def __repr__(self) -> str:
        return f"<CostByChanges: {self._summary()}>"

    def _repr_html_(self) -> str:
        bars = [(answer.lower, answer.upper, self._mark(k)) for k, answer in enumerate(self.answers)]
        alternative = f"Cost by the number of changes. {self._summary()}"
        return fragment(pins(bars, alternative, below="changes at most"), side_by_side(self.answers))

    def plot(self, axes: Any = None) -> Any:
        """The cost against the number of changes, by matplotlib; where it is not proven, from bound to bound."""
        axes = new_axes(axes, height=3.2, width=2.0 + 1.1 * max(len(self.answers), 3))
        for k, answer in enumerate(self.answers):
            if math.isfinite(answer.upper):
                axes.plot([k, k], [0.0, answer.upper], color=INK, linewidth=1.4)
                axes.plot([k], [answer.upper], "o", color=INK, markersize=8)
            if not isinstance(answer, Nearest | NoneExists):
                axes.plot([k], [answer.lower], "_", color=INK, markersize=12)
            axes.annotate(self._mark(k), (k, answer.upper if math.isfinite(answer.upper) else 0.0), xytext=(0, 8),
                          textcoords="offset points", ha="center", fontsize="small")  # fmt: skip
        axes.set_xticks(range(len(self.answers)), [str(k + 1) for k in range(len(self.answers))])
        axes.set_xlim(-0.6, len(self.answers) - 0.4)
        axes.set_ylim(0.0, 1.2 * max((cost for cost in self.costs if math.isfinite(cost)), default=1.0))
        axes.set_xlabel("changes at most")
        axes.set_ylabel(plainly(f"{self.answers[0].distance_name} distance"))
        bare(axes)
        return axes

    def to_frame(self) -> Any:
        """A flat pandas DataFrame like that of any answers, by the number of changes."""
        frame = self.answers.to_frame()
        return frame.set_index(frame.index.rename("changes at most"))

    def _summary(self) -> str:
        return "; ".join(f"{k + 1}: {self._mark(k)}" for k in range(len(self.answers)))

    def _mark(self, k: int) -> str:
        """The cost of one number of changes, in words where it is no number."""
        answer = self.answers[k]
        if isinstance(answer, NoneExists):
            return "none exists"
        return f"{answer.upper:.4g}" if math.isfinite(answer.upper) else "none found"


def cost_by_changes(
    explainer: Explainer,
    row: Any,
    query: Query | None = None,
    *,
    target: Any = None,
    distance: Any = None,
    constraints: Sequence[Any] = (),
) -> CostByChanges:
    """The nearest row with at most one change, two, and so on, until more changes do not help."""
    unlimited = replace(query_of(query, target, distance, constraints), fewest_first=False)
    explainer = explainer.using(reasons=False)
    best = explainer.explain(row, unlimited)
    if best.already:
        raise QuestionError("There is nothing to compare: the row is decided as asked already.")
    most = len(best.changes) if best.counterfactual is not None else 1
    answers: list[Answer] = []
    for k in range(1, most + 1):
        fewer = best if k == most else explainer.explain(row, unlimited, constraints=[MaxChanges(k)])
        answers.append(fewer)
        if fewer.counterfactual is not None and explainer.tolerances.close(best.lower, fewer.upper):  # as near as any
            break
    return CostByChanges(answers=Answers(answers, ids=range(1, len(answers) + 1)))
