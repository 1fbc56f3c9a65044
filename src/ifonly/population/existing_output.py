"""What is at the output path of a run: nothing, a run to resume, a finished run, or a file of somebody else.

A file that no run of the same query has written is never overwritten unless asked for: that is checked before the work,
and again when the finished file is moved to its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from ifonly.errors import FileError, QuestionError
from ifonly.population.output import FINISHED, fingerprint, manifest_of
from ifonly.population.output_paths import OutputPaths, read_place
from ifonly.printing import json_text, shown

Existing: TypeAlias = Literal["refuse", "resume", "replace"]
"""What to do with what is there: leave it, go on with it, or write over it."""

COMPARED = {
    "input": "the table is not the one",
    "model": "the model is not the one",
    "schema": "the schema is not the one",
    "query": "the question is not the one",
    "method": "the method, the limits or the tolerances are not those",
    "columns": "the columns to keep are not those",
    "escape_formulas": "the way in which formulas are written is not the one",
    "partition_by": "the columns of its folders are not those",
    "ifonly": "this ifonly is not the version",
}
"""What must be the same when a run is resumed, and the message where it is not."""
OVER = 'to write over it, add --force (existing="replace")'


def earlier_run(place: OutputPaths, about: Mapping[str, Any], existing: Existing) -> dict[str, Any] | None:
    """The manifest of the run to go on with, or of one that is done already; None where a new one is begun."""
    if not isinstance(existing, str) or existing not in get_args(Existing):
        raise QuestionError(f"'existing' is one of {', '.join(map(repr, get_args(Existing)))}; got {shown(existing)}.")
    found = manifest_of(place)
    if existing == "replace":
        return None
    if found is None or _left_nothing(found, place, existing):
        if place.is_file:
            _check_free(place)
        return None
    why = difference(found, about, COMPARED)
    if existing == "resume":
        if why:
            raise QuestionError(f"The run at '{place.path}' cannot be resumed: {why} that it was begun with.")
    elif found["state"] != FINISHED:
        raise FileError(
            f"'{place.path}' is an unfinished run with {found['rows']:,} rows answered: go on with --resume "
            f'(existing="resume"), or begin anew with --force (existing="replace").'
        )
    elif why:
        raise FileError(f"'{place.path}' holds a finished run, and {why} that it was made with; {OVER}.")
    if place.is_file:
        _check_own(place, found)
    return found


def difference(found: Mapping[str, Any], about: Mapping[str, Any], compared: Mapping[str, str]) -> str:
    """What is not as the manifest says; empty where all is."""
    return next((what for name, what in compared.items() if found.get(name) != about[name]), "")


def _left_nothing(found: Mapping[str, Any], place: OutputPaths, existing: Existing) -> bool:
    """Is nothing lost when the run is begun anew?"""
    if existing == "resume":
        return False
    return not (place.path.exists() if found["state"] == FINISHED and place.is_file else found["rows"])


def _check_own(place: OutputPaths, found: Mapping[str, Any]) -> None:
    """Is the file what the manifest says: the finished one, or one that may be written over?"""
    there = fingerprint(place.path)
    if found["state"] != FINISHED:
        if there not in ("", found.get("replaces"), found.get("sha256")):
            raise FileError(
                f"'{place.path}' is there already, and not of this run; move it away, or begin anew with --force."
            )
    elif there != found.get("sha256"):
        how = "with --force" if there else "without --resume"
        raise FileError(f"'{place.path}' was finished, and is missing or changed since; begin anew, {how}.")


def _check_free(place: OutputPaths) -> None:
    if place.path.exists():
        raise FileError(f"'{place.path}' is there already; {OVER}.")


QUERY_PARTS = ("input", "model", "schema", "query", "method")
"""What must be the same for answers to be those of a query."""


def check_answers(given: Any, about: Mapping[str, Any]) -> None:
    """Is this the output of a finished run of this query? (`input` is compared only where the rows are known.)"""
    place = read_place(given)
    found = manifest_of(place)
    if found is None:
        if not place.path.exists():
            raise FileError(f"Cannot read the answers '{place.path}': they are not there.")
        raise FileError(
            f"Which question '{place.path}' answers is not known: its manifest '{place.manifest.name}' is not there."
        )
    if found["state"] != FINISHED:
        raise FileError(f"'{place.path}' is an unfinished run: go on with it first, ifonly explain ... --resume.")
    named = {"": found.get("sha256")} if place.is_file else {part["name"]: part["sha256"] for part in found["parts"]}
    for name, sha256 in named.items():
        file = place.folder / name if name else place.path
        if fingerprint(file) != sha256:
            raise FileError(f"'{file}' is missing, or not what the run has written.")
    plain = json.loads(json_text(dict(about)))
    compared = {name: COMPARED[name] for name in QUERY_PARTS if name in plain}
    if why := difference(found, plain, compared):
        raise QuestionError(f"'{place.path}' holds other answers: {why} that it was made with.")
