"""Edits of a schema: features replaced, dropped, renamed, labelled; rules added. Columns keep their order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ifonly.errors import SchemaError
from ifonly.printing import shown
from ifonly.schema.features import Choice, Feature, Numeric
from ifonly.schema.schema import Schema
from ifonly.schema.wording import LANGUAGE_CODES


def replaced(schema: Schema, features: Sequence[Feature]) -> Schema:
    """With these features in the places of those that have their names."""
    others: dict[str, Feature] = {}
    for feature in features:
        if not isinstance(feature, Numeric | Choice):
            raise SchemaError(f"A feature is replaced by a feature such as Real or Categorical; got {shown(feature)}.")
        schema.index(feature.name)
        others[feature.name] = feature
    return _rebuilt(schema, [others.get(feature.name, feature) for feature in schema.features])


def dropped(schema: Schema, names: Sequence[str]) -> Schema:
    """Without these features."""
    gone = {schema.features[schema.index(name)].name for name in names}
    _check_rules(schema, gone, "dropped")
    return _rebuilt(schema, [None if feature.name in gone else feature for feature in schema.features])


def renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """With other names for some features."""
    new = {schema.features[schema.index(old)].name: name for old, name in _mapping(names, "new name").items()}
    _check_rules(schema, new, "renamed")
    return _rebuilt(schema, [replace(f, name=new[f.name]) if f.name in new else f for f in schema.features])


def labelled(schema: Schema, labels: Mapping[str, str], units: Mapping[str, str]) -> Schema:
    """With labels and units for display."""
    given = {"label": _mapping(labels, "label"), "unit": _mapping(units, "unit")}
    for name in (name for some in given.values() for name in some):
        schema.index(name)
    features = (
        replace(f, label=given["label"].get(f.name, f.label), unit=given["unit"].get(f.name, f.unit))
        for f in schema.features
    )
    return Schema(tuple(features), schema.columns, schema.rules)


def translated(schema: Schema, language: str, given: Mapping[str, Mapping[str, Any]]) -> Schema:
    """With labels, units and names of options in one language, besides those that are there."""
    if language not in LANGUAGE_CODES:
        raise SchemaError(
            f"Names of options are in a language: language='en' or 'de'; got {shown(language)}."
            if given["options"] else f"There are words in {', '.join(LANGUAGE_CODES)}; got {shown(language)}."
        )  # fmt: skip
    by_feature: dict[str, dict[str, Any]] = {}
    for key, own in given.items():
        for name, words in _mapping(own, "label" if key == "options" else key).items():
            by_feature.setdefault(schema.features[schema.index(name)].name, {})[key] = words
    features = []
    for f in schema.features:
        there = f.translations.get(language, {})
        both = {**there, **by_feature.get(f.name, {})}
        if isinstance(both.get("options"), Mapping):
            both["options"] = {**there.get("options", {}), **both["options"]}
        features.append(replace(f, translations={**f.translations, language: both}))
    return Schema(tuple(features), schema.columns, schema.rules)


def with_rules(schema: Schema, rules: Sequence[str]) -> Schema:
    """With these rules besides its own."""
    return Schema(schema.features, schema.columns, (*schema.rules, *rules))


def unlabelled(schema: Schema) -> Schema:
    """Without labels, units and translations: two schemas that are the same so decide the same."""
    features = tuple(replace(f, label="", unit="", translations={}) for f in schema.features)
    return Schema(features, schema.columns, schema.rules)


def _rebuilt(schema: Schema, features: Sequence[Feature | None]) -> Schema:
    """The schema with other features, each in the place of an old one (None: of none). Its columns take the position of
    the old one's first column, or its positions one by one where there are as many."""
    at: dict[str, list[str]] = {}
    for old, new in zip(schema.features, features, strict=True):
        before = sorted(old.column_names, key=schema.columns.index)
        after = list(new.column_names) if new is not None else []
        if len(before) == len(after):
            name = dict(zip(old.column_names, after, strict=True))
            at.update({column: [name[column]] for column in before})
        else:
            at.update({column: after if k == 0 else [] for k, column in enumerate(before)})
    columns = [column for old in schema.columns for column in at[old]]
    return Schema(tuple(f for f in features if f is not None), tuple(columns), schema.rules)


def _check_rules(schema: Schema, names: Collection[str], how: str) -> None:
    for rule in schema.rules:
        for name in names:
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", rule):
                raise SchemaError(
                    f"'{name}' cannot be {how}: the rule {shown(rule)} of this schema mentions it. Leave the rule out "
                    f"first: Schema(schema.features, schema.columns, rules=[...])."
                )


def _mapping(value: Any, what: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise SchemaError(f"Give each feature's {what} by name, such as {{'Age': 'age'}}; got {shown(value)}.")
    return value
