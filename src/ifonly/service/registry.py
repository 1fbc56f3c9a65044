"""Model registry: the models of a service by name, each with its explainer and what the page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ifonly.causes import CausalModel, check_causes
from ifonly.errors import QuestionError
from ifonly.explainer import Explainer
from ifonly.notices import ReasonCodes
from ifonly.printing import is_printable, shown, some_of
from ifonly.problem import Accepted, AcceptedBySome, RobustToTrees, RobustToWeights
from ifonly.results.languages import ENGLISH, LANGUAGES
from ifonly.results.rule_language import Naming, rules_in
from ifonly.schema import Numeric, schema_to_json
from ifonly.service.limits import ServiceLimits

MAX_NAME = 60
MOST_TEXT = 200
"""Characters of a translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """A model that can be queried. `people` are example rows by title; `groups` are the features that the page shows
    together, by title; `translations` are texts by language: {"de": {"deny": "Ablehnung"}} for titles and classes."""

    name: str
    explainer: Explainer
    title: str = ""
    subject: str = ""
    people: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    translations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    codes: ReasonCodes | None = None
    """The words of reasons in a notice."""
    causes: CausalModel | None = None
    """What follows from what, for the cheapest action."""

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > MAX_NAME or not is_printable(self.name):
            raise QuestionError(f"A model's name has 1 to {MAX_NAME} printable characters; got {shown(self.name)}.")
        read = {title: self._normalised(row) for title, row in self.people.items()}
        object.__setattr__(self, "people", read)
        _check_groups(self.groups, self.explainer.schema.names)
        self._check_translations()
        if self.codes is not None:
            self.codes.complete(self.explainer.schema, ())
        if self.causes is not None:
            check_causes(self.causes, self.explainer.schema)

    def _normalised(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row in the schema's own values."""
        schema = self.explainer.schema
        values = schema.row(schema.read(row))
        return {name: None if value != value else value for name, value in values.items()}

    def _check_translations(self) -> None:
        """Texts of this model by language, each with its translation."""
        given, texts = self.translations, self._texts()
        if not isinstance(given, Mapping) or not all(isinstance(own, Mapping) for own in given.values()):
            raise QuestionError(
                f'Translations are texts by language, such as {{"de": {{"deny": "Ablehnung"}}}}; got {shown(given)}.'
            )
        for language, own in given.items():
            if language not in LANGUAGES:
                raise QuestionError(f"Pages are in {', '.join(LANGUAGES)}; there is no language {shown(language)}.")
            for text, said in own.items():
                if text not in texts:
                    raise QuestionError(
                        f"The translations into '{language}' name {shown(text)}, which is neither a class nor a title "
                        f"of the model '{self.name}'; these are {some_of(texts)}."
                    )
                if not isinstance(said, str) or not said or len(said) > MOST_TEXT or not is_printable(said):
                    raise QuestionError(
                        f"The translation of {shown(text)} into '{language}' has 1 to {MOST_TEXT} printable "
                        f"characters; got {shown(said)}."
                    )

    def _texts(self) -> list[str]:
        """What the page shows of it beside features and options: titles, and names of classes."""
        return [self.display_name, *map(str, self.explainer.model.classes), *self.people, *self.groups]

    @property
    def display_name(self) -> str:
        return self.title or self.name

    @property
    def example_row(self) -> Mapping[str, Any]:
        """One of the people; where there are none, the row of the lower bounds and first options."""
        features = self.explainer.schema.features
        lowest = {f.name: f.lower if isinstance(f, Numeric) else f.options[0] for f in features}
        return next(iter(self.people.values()), lowest)

    @property
    def certificates(self) -> bool:
        """Are answers offered with certificates? Those of networks and of trees, where no other model decides too."""
        function, rules = self.explainer.model.function, self.explainer.constraints_for(())
        others = any(isinstance(one, Accepted | AcceptedBySome | RobustToTrees | RobustToWeights) for one in rules)
        return (function.as_network() is not None or function.as_trees() is not None) and not others

    def _naming(self, language: str) -> Naming:
        """What features and options are called in rules."""
        features = self.explainer.schema.features
        words = {f.name: (f.label, f.unit) for f in features}
        return Naming(language, words, {f.name: f.translations for f in features})

    def to_dict(self, limits: ServiceLimits) -> dict[str, Any]:
        """What a client needs to know to write requests."""
        explainer = self.explainer
        rules = [one.describe() for one in explainer.constraints_for(())]
        return {
            "model": self.name,
            "title": self.display_name,
            "subject": self.subject or ENGLISH.decision,
            "classes": list(explainer.model.classes),
            "kind": explainer.model.function.name.removeprefix("an ").removeprefix("a "),
            "certificates": self.certificates,
            "causes": {} if self.causes is None else {name: list(some) for name, some in self.causes.graph.items()},
            "schema": schema_to_json(explainer.schema),
            "groups": [{"title": title, "features": list(names)} for title, names in self.groups.items()],
            "rules": rules,
            "rules_in": {code: rules_in(rules, self._naming(code)) for code in LANGUAGES},
            "people": [{"title": title, "row": row} for title, row in self.people.items()],
            "translations": {language: dict(own) for language, own in self.translations.items()},
            "limits": limits.to_dict(),
        }


def _check_groups(groups: Any, known: Sequence[str]) -> None:
    """A table of features by title, each feature once."""
    if not isinstance(groups, Mapping) or not all(isinstance(names, list | tuple) for names in groups.values()):
        raise QuestionError(f"Groups are lists of features by their titles; got {shown(groups)}.")
    seen: set[str] = set()
    for title, names in groups.items():
        for name in names:
            if name not in known:
                raise QuestionError(f"The group {shown(title)} names {shown(name)}, which is no feature of the schema.")
            if name in seen:
                raise QuestionError(f"The feature {shown(name)} is in the groups twice.")
            seen.add(name)


class ModelRegistry(Sequence[RegisteredModel]):
    """Models by name; the first is that of requests that name none."""

    def __init__(self, registered_models: Sequence[RegisteredModel]) -> None:
        self._models = {registered.name: registered for registered in registered_models}
        if not registered_models:
            raise QuestionError("A desk needs a model: give --model FILE --schema FILE, or --demo.")
        if len(self._models) < len(registered_models):
            raise QuestionError("Two models of the desk have the same name; name them: --model name=FILE.")

    def __getitem__(self, index: Any) -> Any:
        return list(self._models.values())[index]

    def __len__(self) -> int:
        return len(self._models)

    def __iter__(self) -> Iterator[RegisteredModel]:
        return iter(self._models.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._models)

    def named(self, name: Any) -> RegisteredModel | None:
        """The model of this name; the first one for None; None where there is no such model."""
        if name is None:
            return next(iter(self))
        return self._models.get(name) if isinstance(name, str) else None

    def to_dict(self, version: str) -> dict[str, Any]:
        return {
            "models": [{"name": registered.name, "title": registered.display_name} for registered in self],
            "languages": list(LANGUAGES),
            "version": version,
        }
