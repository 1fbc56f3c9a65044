"""Other models that must accept the row: `--also`, `--also-target` and `--also-least`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ifonly.errors import IfonlyError, QuestionError
from ifonly.problem import Accepted, AcceptedBySome, RobustToTrees, ScoreTarget
from ifonly.problem.chains import named_models
from ifonly.schema import Schema


def read_also(options: Mapping[str, Any], schema: Schema) -> tuple[Accepted | AcceptedBySome, ...]:
    """The models that the options name, each with its target."""
    from ifonly.cli.source import load_any

    files = dict(_pair(text, "--also", "=", "fraud=fraud.onnx") for text in options.get("also") or ())
    targets = dict(_target(text) for text in options.get("also_target") or ())
    for name in targets:
        if name not in files:
            raise QuestionError(f"--also-target {name}: no model has that name; give it with --also {name}=FILE.")
    found = []
    for name, file in files.items():
        try:
            model = load_any(file, schema, unsafe_pickle=bool(options.get("unsafe_pickle")))
            found.append(Accepted(by=model, target=targets.get(name), name=name))
            found[-1].check(schema)
        except IfonlyError as error:
            message = str(error).replace("target=...", f"--also-target {name}=CLASS")
            raise type(error)(f"--also {name}: {message}") from None
    least = options.get("also_least")
    if least is None:
        return tuple(found)
    if not found:
        raise QuestionError("--also-least counts the models of --also; give some with --also NAME=FILE.")
    return (AcceptedBySome(least, found),)


def named_rules(rules: Sequence[str], also: Sequence[Accepted | AcceptedBySome]) -> tuple[list[Any], list[Any]]:
    """The rules with the models that they name ("fraud check accepts"), and the models that no rule names."""
    known = {one.name: one for one in also if isinstance(one, Accepted)}
    found = list(named_models(rules, known)) if known else list(rules)
    named = {one for rule in found for one in _models(rule)}
    return found, [one for one in also if one not in named]


def _models(constraint: Any) -> Sequence[Accepted]:
    if isinstance(constraint, AcceptedBySome):
        return constraint.of
    if isinstance(constraint, RobustToTrees):
        return (constraint.of,)
    return (constraint,) if isinstance(constraint, Accepted) else ()


def _pair(text: str, option: str, sign: str, example: str) -> tuple[str, str]:
    name, there, rest = text.partition(sign)
    if not there or not name.strip() or not rest.strip():
        raise QuestionError(f"{option} {text}: write a name and what belongs to it, such as {example}.")
    return " ".join(name.split()), rest.strip()


def _target(text: str) -> tuple[str, Any]:
    """NAME=CLASS, or a score: NAME>=S, NAME<=S."""
    for sign in (">=", "<="):
        if sign in text:
            name, score = _pair(text, "--also-target", sign, "fraud<=0.5")
            try:
                end = float(score)
            except ValueError:
                raise QuestionError(f"--also-target {text}: '{score}' is not a number.") from None
            return name, ScoreTarget(at_least=end) if sign == ">=" else ScoreTarget(at_most=end)
    return _pair(text, "--also-target", "=", "fraud=fine")
