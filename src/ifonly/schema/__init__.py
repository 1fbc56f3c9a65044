"""Schemas: the features of a row, their types and bounds, and how models encode them."""

from ifonly.schema.features import Binary, Categorical, Choice, Feature, Integer, Missing, Numeric, Ordinal, Real
from ifonly.schema.infer import Guess, infer
from ifonly.schema.io import load_schema, save_schema, schema_from_json, schema_to_json, write_whole
from ifonly.schema.schema import Schema
from ifonly.schema.tables import frame_columns, index_of, read_points, to_frame
from ifonly.schema.values import Value
from ifonly.schema.wording import Translations, option_text

__all__ = [
    "Binary",
    "Categorical",
    "Choice",
    "Feature",
    "Guess",
    "Integer",
    "Missing",
    "Numeric",
    "Ordinal",
    "Real",
    "Schema",
    "Translations",
    "Value",
    "frame_columns",
    "index_of",
    "infer",
    "load_schema",
    "option_text",
    "read_points",
    "save_schema",
    "schema_from_json",
    "schema_to_json",
    "to_frame",
    "write_whole",
]
