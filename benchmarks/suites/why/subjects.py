"""The models that are asked: shipped networks, and forests of 100 trees of depth 6."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, Sufficiency, datasets
from ifonly.answering.sufficient import decides_alone

SUBJECTS = ("credit", "adult", "credit-forest", "adult-forest")


class Subject(NamedTuple):
    """A model, its data, and the fitted forest, if it is one."""

    name: str
    explainer: Explainer
    data: Any
    forest: Any = None


def make(name: str) -> Subject:
    """One of SUBJECTS."""
    data = datasets.load(name.removesuffix("-forest"))
    if not name.endswith("-forest"):
        return Subject(name, Explainer(datasets.network(name)), data)
    fitted = RandomForestClassifier(100, max_depth=6, random_state=0).fit(data.encoded(), data.labels)
    return Subject(name, Explainer(fitted, schema=data.schema), data, fitted)


def suffices(explainer: Explainer, row: Any, names: list[str]) -> bool | None:
    """Do these features suffice? True: proven that no row with these values is decided otherwise; False: there is such
    a row, and the model itself decided it; None: not found out within the limits."""
    point, settings = explainer.schema.read(row), explainer._settings(events=False)
    return decides_alone(explainer._answerer, point, names, Sufficiency(), settings)
