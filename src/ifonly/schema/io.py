"""Serialisation of schemas as JSON or YAML, versioned and safe to load."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ifonly.errors import FileError, MissingExtra, SchemaError
from ifonly.files import check_writable as check_writable
from ifonly.files import file_errors, path_of
from ifonly.files import move as move
from ifonly.files import replacing as replacing
from ifonly.files import write_whole as write_whole
from ifonly.printing import json_text, printable, shown
from ifonly.schema.features import Binary, Categorical, Feature, Integer, Ordinal, Real
from ifonly.schema.schema import Schema
from ifonly.schema.values import same_value

FORMAT = "ifonly-schema"
VERSION = 1
MAX_BYTES = 64 * 2**20
READ_BYTES = 2**20
MAX_YAML = 2**20
"""Of a YAML file, which is read slowly."""
MAX_DEPTH, MAX_NUMBER = 32, 1000
"""Of a YAML file: lists within lists, and characters of a number. More takes quadratic time to read."""
_ODD_NUMBER = re.compile(
    r"[-+]?(?:0[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[0-9][0-9.]*_[0-9._]*)"
)
"""What YAML 1.1 reads as a number that is not the one written: 01067 (octal), 12:30 (base 60), 1_000, 0x10."""

_KINDS: dict[str, tuple[type[Any], tuple[str, ...], tuple[str, ...]]] = {  # kind: class, required, optional
    "real": (Real, ("lower", "upper"), ("step", "missing")),
    "integer": (Integer, ("lower", "upper"), ("step", "missing")),
    "binary": (Binary, (), ("values",)),
    "ordinal": (Ordinal, ("levels",), ("encoding", "columns")),
    "categorical": (Categorical, ("categories",), ("encoding", "columns")),
}


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The schema as plain data; `columns` only where the order is not the natural one, `rules` only if it has any."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "features": [feature.to_dict() for feature in schema.features],
    }
    if tuple(schema.columns) != Schema(schema.features).columns:
        data["columns"] = list(schema.columns)
    if schema.rules:
        data["rules"] = list(schema.rules)
    return data


def schema_fingerprint(schema: Schema) -> str:
    """The sha256 of a schema as JSON."""
    return hashlib.sha256(json_text(schema_to_json(schema)).encode("utf-8")).hexdigest()


def schema_from_json(data: Any) -> Schema:
    """The inverse of `schema_to_json`; says what is wrong with anything else."""
    if not isinstance(data, dict) or not same_value(data.get("format"), FORMAT):
        raise SchemaError(f'A schema is a JSON object with "format": "{FORMAT}"; this is not one.')
    if not same_value(data.get("version"), VERSION):
        raise SchemaError(f"This schema has version {shown(data.get('version'))}; this ifonly reads version {VERSION}.")
    listed = data.get("features")
    if not isinstance(listed, list):
        raise SchemaError('A schema needs a list "features".')
    columns = data.get("columns", [])
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise SchemaError('"columns" of a schema must be a list of column names.')
    rules = data.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise SchemaError('"rules" of a schema must be a list of texts such as "Age only goes up".')
    return Schema(tuple(_feature(i, item) for i, item in enumerate(listed)), tuple(columns), tuple(rules))


def _feature(position: int, item: Any) -> Feature:
    where = f"Feature number {position}"
    kind = item.get("kind") if isinstance(item, dict) else item
    if not isinstance(item, dict) or not isinstance(kind, str) or kind not in _KINDS:
        raise SchemaError(f'{where}: "kind" must be one of {", ".join(_KINDS)}; it is {shown(kind)}.')
    cls, required, optional = _KINDS[kind]
    where = f"Feature {shown(item.get('name', position))}"
    for key in ("name", *required):
        if key not in item:
            raise SchemaError(f'{where}: a feature of kind "{kind}" needs "{key}".')
    unknown = set(item) - {"kind", "name", "label", "unit", "translations", *required, *optional}
    if unknown:
        raise SchemaError(f"{where}: unknown entries {sorted(map(str, unknown))}.")
    feature: Feature = cls(**{key: value for key, value in item.items() if key != "kind"})
    return feature


def read_json(path: str | Path, what: str, most: int = MAX_BYTES) -> Any:
    """The data of a JSON file that should hold a `what` of at most so many bytes."""
    text = _read_text(path, what, most)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path_of(path)}' is not a JSON file: {error}.") from None


def _read_text(path: str | Path, what: str, most: int) -> str:
    path = path_of(path)
    try:
        content = bytearray()
        with file_errors(f"read the {what} '{path}'"), path.open("rb") as file:
            while len(content) <= most and (piece := file.read(READ_BYTES)):  # whatever its size is said to be
                content += piece
        if len(content) > most:
            raise FileError(f"'{path}' is larger than {most // 2**20} MiB; that is no {what}.")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(
            f"'{path}' is not a {'YAML' if _is_yaml(path) else 'JSON'} file: it is not UTF-8 text."
        ) from None


def _read_yaml(path: str | Path) -> Any:
    """The data of a YAML file: plain values only, in a time that grows with its length and not faster."""
    yaml, text = _yaml(), _read_text(path, "schema", MAX_YAML)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where PyYAML has it
    try:
        _check_yaml(yaml, yaml.parse(text, Loader=loader), path)
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"'{path}' is not a YAML file: {printable(' '.join(str(error).split()))}.") from None


def _check_yaml(yaml: Any, events: Iterable[Any], path: str | Path) -> None:
    """Refuse what a schema does not need and what makes a small file huge, slow to read, or more than plain values."""
    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise FileError(f"'{path}' has references (*name), which a schema does not need; write them out.")
        if getattr(event, "tag", None) is not None:
            raise FileError(f"'{path}' has a tag ({shown(event.tag)}), which a schema does not need; leave it out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise FileError(f"'{path}' has more than {MAX_DEPTH} lists within lists; that is no schema.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            _check_plain(event.value, event.start_mark.line + 1, path)


def _check_plain(value: str, line: int, path: str | Path) -> None:
    """A value without quotes, which may be read as a number, a date or a reference."""
    if len(value) > MAX_NUMBER and value[0] in "+-.0123456789":
        raise FileError(
            f"'{path}' has a number of more than {MAX_NUMBER:,} characters; put it in quotes if it is a text."
        )
    if _ODD_NUMBER.fullmatch(value):
        raise FileError(
            f"'{path}' has {shown(value)} in line {line}, which YAML reads as a number of other digits; put a code in "
            f"quotes, and write numbers plainly."
        )
    if value == "<<":
        raise FileError(f"'{path}' merges mappings (<<), which a schema does not need; write them out.")


def load_schema(path: str | Path) -> Schema:
    """Read a schema file."""
    data = _read_yaml(path) if _is_yaml(path) else read_json(path, "schema")
    try:
        return schema_from_json(data)
    except SchemaError as error:
        raise SchemaError(f"In '{path}': {error}") from None


def schema_text(schema: Schema, *, yaml: bool = False) -> str:
    """The text of a schema file: JSON, or YAML."""
    data = schema_to_json(schema)
    if not yaml:
        return json_text(data, indent=1) + "\n"
    return str(_yaml().safe_dump(data, sort_keys=False, allow_unicode=True, width=120))


def save_schema(schema: Schema, path: str | Path) -> None:
    """Write a schema file, all of it or nothing; YAML where the path ends so."""
    write_whole(path, schema_text(schema, yaml=_is_yaml(path)).encode("utf-8"))


def _is_yaml(path: str | Path) -> bool:
    return path_of(path).suffix.lower() in (".yaml", ".yml")


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("PyYAML", extra="yaml", needed_for="A schema as YAML") from None
    return yaml
