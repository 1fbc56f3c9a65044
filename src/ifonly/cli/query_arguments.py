"""From the options of a command to the value objects of a query."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ifonly.cli.also import named_rules, read_also
from ifonly.errors import IfonlyError, QuestionError
from ifonly.problem import (
    Allowed,
    ClassTarget,
    Distance,
    Fixed,
    OneOfTarget,
    OnlyDown,
    OnlyUp,
    OpenTarget,
    OtherTarget,
    ProbabilityTarget,
    Query,
    Range,
    ScoreTarget,
    Target,
    TopTarget,
    scales_from_data,
)
from ifonly.problem.query import FLAGS
from ifonly.problem.query import read_constraints as read_all
from ifonly.problem.rules import AnyConstraint
from ifonly.problem.target import MARGIN
from ifonly.results import Method
from ifonly.results.languages import language_of
from ifonly.schema import Schema
from ifonly.schema.io import read_json
from ifonly.schema.number_text import DecimalMark, two_readings
from ifonly.solvers import mip, search, smt

MOST_BYTES = 16 * 2**20
"""Of a file with a query."""

METHODS = {
    "search": (search, "Search"),
    "mip-obj": (mip, "MipObj"),
    "mip-exp": (mip, "MipExp"),
    "mip-sat": (smt, "MipSat"),
    "mace": (smt, "Mace"),
    "enumerate": (search, "Enumerate"),
}
"""The name of a method on the command line, and where its class is."""


def read_norm(words: str) -> str | dict[str, float]:
    """`l1`, or a mixture `0.2*l0+0.8*l1`."""
    parts = [part.strip() for part in words.split("+")]
    if len(parts) == 1 and "*" not in words:
        return words.strip()
    mixture: dict[str, float] = {}
    for part in parts:
        share, star, norm = part.rpartition("*")
        if star and (readings := two_readings(share)):
            raise QuestionError(f"'{share}' in the distance '{words}' may be {readings}; write one of these.")
        try:
            number = float(share if "_" not in share else "") if star else 1.0
        except ValueError:
            raise QuestionError(f"'{part}' in the distance '{words}' should look like 0.2*l0.") from None
        if norm.strip() in mixture:
            raise QuestionError(f"The distance '{words}' names {norm.strip()} twice.")
        mixture[norm.strip()] = number
    return mixture


def read_distance(options: Mapping[str, Any], schema: Schema, data: Any) -> Distance:
    """The norm, the weights, and the scales: from `data` unless they are the ranges."""
    scale = options["scale"] or "range"
    if scale != "range" and data is None:
        raise QuestionError(f"--scale {scale} is computed from data: say which with --data FILE.")
    weights: dict[str, float] = dict(options["weights"])
    return Distance(
        read_norm(options["distance"] or "l1"),
        weights=weights,
        up=dict(options["up"]),
        down=dict(options["down"]),
        scales={} if scale == "range" else scales_from_data(schema, data, scale),
    )


def read_query(options: Mapping[str, Any], schema: Schema, data: Any) -> Query:
    """The query of a file, if one is given, with what the options state beside it."""
    base = Query() if options.get("query_file") is None else _query_file(options["query_file"])
    rules, also = named_rules((*base.constraints, *options["rules"]), read_also(options, schema))
    own = len(base.constraints)
    given = read_all(rules[:own], schema, _mark(options))
    about = ("distance", "scale", "weights", "up", "down")
    measured = any(options[name] not in (None, ()) for name in about)
    return replace(
        base,
        target=read_target(options, base.target),
        distance=read_distance(options, schema, data) if measured else base.distance,
        constraints=(*given, *read_constraints({**options, "rules": rules[own:]}, schema), *also),
        **{name: getattr(base, name) or bool(options.get(name)) for name in FLAGS},
    )


def _query_file(name: str) -> Query:
    data = read_json(name, "query", MOST_BYTES)
    try:
        return Query.from_dict(data)
    except QuestionError as error:
        raise QuestionError(f"In '{name}': {error}") from None


def read_target(options: Mapping[str, Any], base: Target | OpenTarget | None) -> Target | OpenTarget | None:
    """The target; where no option names one, that of the file, or the other of two classes (None)."""
    target, at_least, at_most = options["target"], options["at_least"], options["at_most"]
    margin = MARGIN if options["margin"] is None else options["margin"]
    score, one_of = at_least is not None or at_most is not None, options["one_of"]
    if target is not None and score:
        raise QuestionError("Ask for a class (--target) or for a score (--at-least, --at-most), not for both.")
    ways = {"--target": target is not None, "--one-of": one_of is not None, "--not": options["other"],
            "--at-least or --at-most": score}  # fmt: skip
    given = [name for name, there in ways.items() if there]
    if len(given) > 1:
        raise QuestionError(f"{given[0]} and {given[1]} ask for different things; give one of them.")
    for name in ("probability", "top"):
        if options[name] is not None and target is None:
            raise QuestionError(f"--{name} is about a class: say which with --target CLASS.")
    if options["probability"] is not None and options["top"] is not None:
        raise QuestionError("--probability and --top ask for different things; give one of them.")
    if options["probability"] is not None:
        return ProbabilityTarget(target, at_least=options["probability"], margin=margin)
    if options["top"] is not None:
        return TopTarget(target, options["top"], margin)
    if one_of is not None:
        return OneOfTarget(tuple(listed(one_of)), margin)
    if options["other"]:
        return OtherTarget(margin)
    if score:
        return ScoreTarget(at_least=at_least, at_most=at_most, margin=margin)
    if target is not None:
        return ClassTarget(target, margin)
    if options["margin"] is None:
        return base
    return OtherTarget(margin) if base is None else replace(base, margin=margin)


def read_constraints(options: Mapping[str, Any], schema: Schema) -> tuple[AnyConstraint, ...]:
    """What may change, in the order of the options."""
    constraints: list[tuple[str, Fixed | OnlyUp | OnlyDown | Range | Allowed]] = [
        *(("--fix", Fixed(name)) for name in named(options["fixed"], schema)),
        *(("--only-up", OnlyUp(name)) for name in named(options["only_up"], schema)),
        *(("--only-down", OnlyDown(name)) for name in named(options["only_down"], schema)),
        *(("--range", Range(name, low, high)) for name, low, high in options["ranges"]),
        *(("--allow", Allowed(name, tuple(listed(values)))) for name, values in options["allowed"]),
    ]
    for option, constraint in constraints:
        try:
            constraint.check(schema)
        except IfonlyError as error:
            raise QuestionError(f"{option} {constraint.feature}: {error}") from None
    return (*(one for _, one in constraints), *read_all(options["rules"], schema, _mark(options)))


def _mark(options: Mapping[str, Any]) -> DecimalMark:
    """The decimal mark of the user: that of the page's language, or else of the table."""
    if options.get("language"):
        spoken = language_of(options["language"]).style.decimal_mark
        if spoken is not DecimalMark.POINT:
            return spoken
    rows = options.get("rows")
    return DecimalMark.POINT if rows is None else rows.decimal_mark


def named(words: Sequence[str], schema: Schema) -> list[str]:
    """The features that an option names: each text is one, or several with commas between them; by name or by label."""
    found = (
        name
        for text in words
        for name in ([text] if _of_label(text, schema) in schema.names else listed(text) or [text])
    )
    return [_of_label(name, schema) for name in found]


def _of_label(text: str, schema: Schema) -> str:
    """The name of the only feature with this label; a name, and anything else, as it is."""
    behind = [f.name for f in schema.features if text in f.labels]
    return behind[0] if len(behind) == 1 and text not in schema.names else text


def read_methods(words: str | None) -> tuple[Method | None, ...]:
    """The methods named; None stands for the default one."""
    if words is None:
        return (None,)
    names = [name.strip() for name in words.split(",")]
    for name in names:
        if name not in METHODS:
            close = get_close_matches(name, METHODS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the methods are: {', '.join(METHODS)}."
            raise QuestionError(f"There is no method '{name}'; {hint}")
    if len(set(names)) != len(names):
        raise QuestionError(f"--method {words} names a method twice.")
    return tuple(getattr(*METHODS[name])() for name in names)


def listed(words: str) -> list[str]:
    """Values separated by commas; one that contains a comma stands in double quotes."""
    return [value.strip() for value in next(csv.reader([words], skipinitialspace=True), [])]
