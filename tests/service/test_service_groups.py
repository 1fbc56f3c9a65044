"""Features that a page shows together."""

from __future__ import annotations

import pytest

from ifonly import Explainer, IfonlyError, datasets
from ifonly.service import RegisteredModel, ServiceLimits


def test_groups_are_told_in_their_order() -> None:
    registered = RegisteredModel(
        name="compas",
        explainer=Explainer(datasets.network("compas", rules=False)),
        groups={"Past": ["PriorsCount"], "Self": ("Sex", "Race")},
    )
    assert registered.to_dict(ServiceLimits())["groups"] == [
        {"title": "Past", "features": ["PriorsCount"]},
        {"title": "Self", "features": ["Sex", "Race"]},
    ]


@pytest.mark.parametrize("groups, said", [
    ({"Past": ["Priors"]}, "no feature"),
    ({"Past": ["Sex"], "Self": ["Sex"]}, "twice"),
    ({"Past": "Sex"}, "lists of features"),
    (["Sex"], "lists of features"),
])  # fmt: skip
def test_groups_that_are_none(groups: object, said: str) -> None:
    with pytest.raises(IfonlyError, match=said):
        RegisteredModel(name="compas", explainer=Explainer(datasets.network("compas", rules=False)), groups=groups)  # type: ignore[arg-type]
