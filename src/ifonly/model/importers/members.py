"""Members of composed scikit-learn estimators: the score of each as a form, what it is, and the same by its methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.model.flow import Flow
from ifonly.model.importers.column_flow import flow_of
from ifonly.model.importers.column_kinds import Column
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.detect import SURROGATE
from ifonly.model.importers.forms import Floats, Form, outputs_of, second_column, sigmoids
from ifonly.model.importers.sklearn_estimators import LOGISTIC, reader_of
from ifonly.model.importers.sklearn_original import answering, raised
from ifonly.model.importers.sklearn_parts import Front, best_of, parts_of
from ifonly.model.importers.sklearn_sources import Source
from ifonly.model.importers.transformers import sklearn_name, transformed
from ifonly.model.trees import Ensemble

Kind: TypeAlias = Literal["log-odds", "margin", "probability", "prediction"]
"""What a score is: the log-odds of the second class, only positive for it, its probability, or a prediction."""
Call: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ScoredMember:
    """A fitted estimator: its score as a form, what it is, and the same by its own methods: points to scores."""

    form: Form
    kind: Kind
    call: Call
    name: str
    decides: bool = True
    """It has a decision_function, which is the score."""
    tie: float = 0.0

    @property
    def threshold(self) -> float:
        return 0.5 if self.kind == "probability" else 0.0


@dataclass(frozen=True)
class InnerCall:
    """A method of a fitted estimator after these transformers, for points; the last column of what it gives."""

    source: Source
    steps: tuple[Any, ...]
    estimator: Any
    method: str
    all_columns: bool = False

    def __call__(self, points: Floats) -> Floats:
        with warnings.catch_warnings(), answering():
            warnings.simplefilter("ignore")
            table = _transformed(self.source.table(points), self.steps)
            given = np.asarray(getattr(self.estimator, self.method)(table), dtype=np.float64).reshape(len(points), -1)
        return given if self.all_columns else given[:, -1:]


@dataclass(frozen=True)
class Combined:
    """A function of the scores of several members, side by side."""

    calls: tuple[Call, ...]
    function: Callable[[Floats], Floats]

    def __call__(self, points: Floats) -> Floats:
        return self.function(np.column_stack([call(points) for call in self.calls]))


@dataclass(frozen=True)
class MemberReader:
    """Reads fitted estimators that stand behind the same transformers."""

    source: Source
    arithmetic: Columns
    encoded: Flow
    trees: Callable[[Any, Front], tuple[Any, Ensemble] | None]
    """The trees of an estimator behind transformers, over the features; None where it has none."""
    composed: Mapping[str, Callable[[MemberReader, Any, Front], ScoredMember]]
    """How to read composed estimators, by the names of their classes."""

    def read(self, estimator: Any, front: Front) -> ScoredMember:
        """The estimator behind these transformers."""
        more, inner = parts_of(best_of(estimator))
        front = [*front, *more]
        known = sklearn_name(inner, self.composed)
        if known is not None and not is_forest(inner):
            return self.composed[known](self, inner, front)
        found = self.trees(inner, front)
        return self._of_trees(inner, front, *found) if found is not None else self._of_flow(inner, front)

    def columns(self, front: Front) -> list[Column]:
        columns = self.source.columns()
        for where, step in front:
            columns = transformed(step, columns, self.arithmetic, where)
        return columns

    def call(self, estimator: Any, front: Front, method: str, *, all_columns: bool = False) -> InnerCall:
        return InnerCall(self.source, tuple(step for _, step in front), estimator, method, all_columns)

    def _of_flow(self, estimator: Any, front: Front) -> ScoredMember:
        name = type(estimator).__name__
        flow = flow_of(self.columns(front), self.arithmetic, self.encoded, name)
        read = reader_of(estimator)(estimator, flow)
        if read.answer == "predict":
            return ScoredMember(read.flow, "prediction", self.call(estimator, front, "predict"), name)
        several = read.flow.width > 1
        if read.answer == "logits":
            call = self.call(raised(estimator), front, "predict_proba", all_columns=several)
            return ScoredMember(read.flow, "log-odds", call, name, decides=False)
        logistic = sklearn_name(estimator, LOGISTIC) or getattr(estimator, "loss", None) == "log_loss"
        call = self.call(estimator, front, "decision_function", all_columns=several)
        return ScoredMember(read.flow, "log-odds" if logistic else "margin", call, name)

    def _of_trees(self, estimator: Any, front: Front, trees: Any, ensemble: Ensemble) -> ScoredMember:
        name, several = type(estimator).__name__, ensemble.outputs > 2
        source, steps = self.source, tuple(step for _, step in front)
        call = TreesCall(source, steps, estimator, trees.scores, several)
        if not trees.classes:
            return ScoredMember(ensemble, "prediction", call, name)
        if trees.probabilities == "fractions":
            form = ensemble if several else second_column(ensemble)
            return ScoredMember(form, "probability", call, name, decides=False)
        has_scores = hasattr(estimator, "decision_function")
        kind: Kind = "log-odds" if trees.probabilities == "log-odds" else "margin"
        return ScoredMember(ensemble, kind, call, name, decides=has_scores, tie=trees.tie)

    # ------------------------------------------------------------------ what members are read as

    def probabilities(self, members: Sequence[ScoredMember], name: str) -> list[Form]:
        """The probability of the second class by each member."""
        for member in members:
            check_two_classes(member, name)
            if member.kind not in ("log-odds", "probability"):
                raise UnsupportedModel(
                    f"{name} takes probabilities of {member.name}, which are no sigmoid of its score; {SURROGATE}.",
                    operation=f"probabilities of {member.name}",
                )
        curved = [i for i, member in enumerate(members) if member.kind == "log-odds"]
        forms = [member.form for member in members]
        for i, form in zip(curved, sigmoids([forms[i] for i in curved], name=name), strict=True):
            forms[i] = form
        return forms


@dataclass(frozen=True)
class TreesCall:
    """The scores of a fitted ensemble, as its importer calls it, behind transformers."""

    source: Source
    steps: tuple[Any, ...]
    estimator: Any
    scores: Callable[[Any, Any, Floats], Floats]
    all_columns: bool

    def __call__(self, points: Floats) -> Floats:
        given = self.scores(self.estimator, self, points)
        return given if self.all_columns else given[:, -1:]

    def table(self, points: Floats) -> Any:
        """What the estimator reads."""
        with answering():
            return _transformed(self.source.table(points), self.steps)


def _transformed(table: Any, steps: Sequence[Any]) -> Any:
    for step in steps:
        table = step.transform(table)
    return table


def check_two_classes(member: ScoredMember, name: str) -> None:
    if outputs_of(member.form) != 1:
        raise UnsupportedModel(
            f"{name} composes {member.name} with more than two classes, which has no exact form here; explain the "
            f"{member.name} itself, or train one {name} per class (one against the rest).",
            operation=f"{name} with several classes",
        )


def is_forest(estimator: Any) -> bool:
    """Votes and averages of trees and forests alone are read as one ensemble."""
    if sklearn_name(estimator, ("VotingClassifier", "VotingRegressor")) is None:
        return False
    known = ("BaseDecisionTree", "BaseForest", "BaggingClassifier", "BaggingRegressor")
    members = estimator.estimators_
    hard = getattr(estimator, "voting", "soft") == "hard"
    trees = ("BaseDecisionTree",) if hard and len(estimator.classes_) == 2 else known
    return all(sklearn_name(member, trees) or is_forest(member) for member in members)
