"""HTML representation of a schema, for notebooks."""

from __future__ import annotations

from fractions import Fraction

from ifonly.html.fragments import fragment, paragraph, table
from ifonly.schema.features import Choice, Feature, Integer, Numeric
from ifonly.schema.schema import Schema
from ifonly.schema.values import show_number, show_step

MOST_OPTIONS = 12


def schema_fragment(schema: Schema) -> str:
    """One line per feature, and the rules."""
    worded = any(feature.label or feature.unit for feature in schema.features)
    header = ("feature", "kind", "values", *(("label", "unit") if worded else ()))
    rows = [
        (f.name, f.kind, values(f), *((f.label, f.unit) if worded else ())) for f in schema.features
    ]  # fmt: skip
    about = f"{len(schema)} features, {len(schema.columns)} columns of the model"
    rules = [paragraph(rule, "soft") for rule in schema.rules]
    return fragment(table(header, rows, caption=about), *rules)


def values(feature: Feature) -> str:
    """The values of a feature, in words."""
    if isinstance(feature, Choice):
        shown = ["missing" if option is None else str(option) for option in feature.options[:MOST_OPTIONS]]
        return ", ".join(shown) + (", ..." if len(feature.options) > MOST_OPTIONS else "")
    assert isinstance(feature, Numeric)
    step = feature.step if isinstance(feature, Integer) else getattr(feature, "step", None)
    by = f" in steps of {show_step(Fraction(step))}" if step not in (None, 1) else ""
    ends = f"{show_number(feature.lower)} to {show_number(feature.upper)}"
    return ends + by + (", or missing" if feature.missing else "")
