"""Features that a page shows together, and what it calls titles and classes in a language."""

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


def compas(**more: object) -> RegisteredModel:
    explainer = Explainer(datasets.network("compas", rules=False), classes=["low risk", "high risk"])
    groups = {"Past": ["PriorsCount"]}
    return RegisteredModel(name="compas", explainer=explainer, groups=groups, **more)  # type: ignore[arg-type]


def test_titles_and_classes_have_names_in_a_language() -> None:
    german = {"high risk": "hohes Risiko", "Past": "Vorgeschichte", "compas": "Rückfall"}
    assert compas(translations={"de": german}).to_dict(ServiceLimits())["translations"] == {"de": german}


@pytest.mark.parametrize("translations, said", [
    ({"fr": {}}, "there is no language 'fr'"),
    ({"de": {"Sex": "Geschlecht"}}, "neither a class nor a title of the model 'compas'; these are compas, low risk"),
    ({"de": {"Past": ""}}, "1 to 200 printable characters"),
    ({"de": {"Past": 3}}, "1 to 200 printable characters"),
    ({"de": "Past"}, "texts by language"),
    ([], "texts by language"),
])  # fmt: skip
def test_translations_that_are_none(translations: object, said: str) -> None:
    with pytest.raises(IfonlyError, match=said):
        compas(translations=translations)
