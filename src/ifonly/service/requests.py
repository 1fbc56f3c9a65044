"""From the bytes of a request to what is asked. Reading is strict: what is not known is refused by a sentence.

The parts have readers of their own (`Query.from_dict`, `Schema.read`, `Diversity`), which say what is wrong with them;
here is what a request adds, and where in it the fault lies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ifonly.errors import Contradiction, IfonlyError, RowError, RuleError
from ifonly.printing import escaped, shown
from ifonly.problem.diversity import Diversity
from ifonly.problem.plain_data import constraint_from_dict, distance_from_dict, entries, target_from_dict
from ifonly.problem.query import Query, read_constraints
from ifonly.results.plain_language import LANGUAGES
from ifonly.schema.number_text import DecimalMark, UnclearNumber, other_reading
from ifonly.service.limits import DEEPEST, ServiceLimits
from ifonly.service.registry import ModelRegistry, RegisteredModel

BAD_JSON, WRONG = 400, 422
LEAST_SECONDS = 1e-3
"""Whoever asks for less has this."""
WHOLE = 2**53
"""Below this every whole number is a float64."""
QUESTION = ("model", "row", "query", "seconds", "language", "path")


PLAIN = Query()
"""Of a request that has none of its own."""


class HTTPError(Exception):
    """A request that is not answered: the status, a sentence, and the place in the body that it is about. `retry`: the
    seconds of Retry-After, if there is to be one; `place`: the text of a rule, with marks under the fault."""

    def __init__(
        self, status: int, sentence: str, where: str | None = None, *, retry: int = 0, place: str = ""
    ) -> None:
        super().__init__(status, sentence, where)
        self.status, self.sentence, self.where, self.retry, self.place = status, sentence, where, retry, place

    @property
    def data(self) -> dict[str, Any]:
        told = {"error": self.sentence, "where": self.where}
        return {**told, "place": self.place} if self.place else told


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """What one request asks; `seconds` is its own limit, within the desk's."""

    registered: RegisteredModel
    row: dict[str, Any]
    query: Query
    seconds: float
    language: str
    path: bool
    diversity: Diversity | None = None


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object in a body: no NaN, no infinity, not too deep."""
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise HTTPError(BAD_JSON, f"The body is nested more than {DEEPEST} levels deep.") from None
    except ValueError as error:
        raise HTTPError(BAD_JSON, f"The body is not JSON: {escaped(str(error))[:200]}.") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _too_deep(data):
        raise HTTPError(BAD_JSON, f"The body is nested more than {DEEPEST} levels deep.")
    if not isinstance(data, dict):
        raise HTTPError(WRONG, f"The body must be a JSON object; it is {shown(data)}.")
    return data


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    """A number of JSON, which has no other numbers than these: 2.0 is the whole number 2, as JSON Schema says."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return int(number) if number.is_integer() and abs(number) < WHOLE else number


def _too_deep(data: Any) -> bool:
    level = [data]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level if isinstance(outer, dict | list)
                 for inner in (outer.values() if isinstance(outer, dict) else outer)]  # fmt: skip
        if not level:
            return False
    return True


def read_request(
    data: dict[str, Any], registry: ModelRegistry, terms: ServiceLimits, *, diverse: bool | None = False
) -> QueryRequest:
    """The question of a body; `diverse`: must it say how several answers differ? None: it may."""
    needed = ("row", "diversity") if diverse else ("row",)
    known = (*QUESTION, "diversity") if diverse is None else QUESTION
    found = _entries(data, needed, tuple(name for name in known if name not in needed))
    registered = registered_model(found, registry)
    row = found["row"]
    if not isinstance(row, dict):
        raise HTTPError(WRONG, f"A row is an object with a value per feature; got {shown(row)}.", "row")
    given, mark = found.get("query"), LANGUAGES[language_of(found)].mark
    query = PLAIN if given is None else _query(given, terms)
    _check_marks(query, registered, mark)
    several = found.get("diversity")
    return QueryRequest(
        registered=registered,
        row={name: _cell(value, mark) for name, value in row.items()},
        query=query,
        seconds=_seconds(found.get("seconds"), terms),
        language=language_of(found),
        path=_flag(found.get("path", False), "path"),
        diversity=None if several is None and not diverse else _diversity(several, terms),
    )


def _check_marks(query: Query, registered: RegisteredModel, mark: DecimalMark) -> None:
    """Refuse a number that may be meant by the decimal mark of the language; whatever else is wrong is told later."""
    for i, one in enumerate(query.constraints if mark is not DecimalMark.POINT else ()):
        try:
            read_constraints([one], registered.explainer.schema, mark)
        except IfonlyError as error:
            raise refused_by(error, f"query.constraints[{i}]") from None


def _cell(value: Any, mark: DecimalMark) -> Any:
    """A value of a row; a text that may be two numbers in the language of the request, as such."""
    unclear = isinstance(value, str) and mark is not DecimalMark.POINT and other_reading(value) is not None
    return UnclearNumber(value) if unclear else value


def _entries(data: dict[str, Any], needed: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    try:
        return entries(data, "The body", needed, optional)
    except IfonlyError as error:
        unknown = next((name for name in data if name not in (*needed, *optional)), None)
        raise HTTPError(WRONG, str(error), None if unknown is None else escaped(unknown)[:60]) from None


def read_rule(
    data: dict[str, Any], registry: ModelRegistry, terms: ServiceLimits
) -> tuple[RegisteredModel, str, DecimalMark]:
    """A rule in words, the model that it is for, and the decimal mark of its language."""
    found = _entries(data, ("text",), ("model", "language"))
    text = found["text"]
    if not isinstance(text, str):
        raise HTTPError(WRONG, f"A rule is a text such as 'Age only goes up'; got {shown(text)}.", "text")
    if len(text) > terms.text:
        raise HTTPError(WRONG, f"A rule has at most {terms.text:,} characters; this one has {len(text):,}.", "text")
    return registered_model(found, registry), text, LANGUAGES[language_of(found)].mark


def read_person(data: dict[str, Any], registry: ModelRegistry) -> tuple[RegisteredModel, dict[str, Any]]:
    """A row, and the model that it is for."""
    found = _entries(data, ("row",), ("model",))
    if not isinstance(found["row"], dict):
        raise HTTPError(WRONG, f"A row is an object with a value per feature; got {shown(found['row'])}.", "row")
    return registered_model(found, registry), found["row"]


def registered_model(found: dict[str, Any], registry: ModelRegistry) -> RegisteredModel:
    """The model that is asked for."""
    registered = registry.named(found.get("model"))
    if registered is None:
        named = ", ".join(registry.names[:20])
        raise HTTPError(404, f"There is no model {shown(found['model'])}; the models are: {named}.", "model")
    return registered


def language_of(found: dict[str, Any]) -> str:
    language = found.get("language", "en")
    if not isinstance(language, str) or language not in LANGUAGES:
        raise HTTPError(WRONG, f"There are words in {', '.join(LANGUAGES)}; got {shown(language)}.", "language")
    return language


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise HTTPError(WRONG, f"'{name}' is true or false; got {shown(value)}.", name)
    return value


def _seconds(value: Any, terms: ServiceLimits) -> float:
    """The time limit: what is asked for, at most what the desk allows."""
    if value is None:
        return terms.seconds
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise HTTPError(WRONG, f"'seconds' is a positive number; got {shown(value)}.", "seconds")
    return max(LEAST_SECONDS, float(value)) if value < terms.seconds else terms.seconds


def _query(data: Any, terms: ServiceLimits) -> Query:
    given = data.get("constraints", ()) if isinstance(data, dict) else ()
    if isinstance(given, list):
        if len(given) > terms.constraints:
            raise HTTPError(
                WRONG, f"A query has at most {terms.constraints} constraints here; this one has {len(given):,}.",
                "query.constraints",
            )  # fmt: skip
        for i, one in enumerate(given):
            words = one.get("text") if isinstance(one, dict) else one
            if isinstance(words, str) and len(words) > terms.text:
                raise HTTPError(
                    WRONG, f"A rule has at most {terms.text:,} characters; this one has {len(words):,}.",
                    f"query.constraints[{i}]",
                )  # fmt: skip
    try:
        return Query.from_dict(data)
    except IfonlyError as error:
        raise refused_by(error, _in_query(data)) from None


def _in_query(data: Any) -> str:
    """Which part of a query cannot be read."""
    if isinstance(data, dict):
        readers: list[tuple[str, Callable[[Any], Any]]] = [
            ("target", target_from_dict),
            ("distance", distance_from_dict),
        ]
        for name, read in readers:
            if data.get(name) is not None and _fails(read, data[name]):
                return f"query.{name}"
        given = data.get("constraints")
        for i, one in enumerate(given if isinstance(given, list) else ()):
            if _fails(constraint_from_dict, one):
                return f"query.constraints[{i}]"
        if given is not None and not isinstance(given, list):
            return "query.constraints"
    return "query"


def _diversity(data: Any, terms: ServiceLimits) -> Diversity:
    try:
        found = entries(data, "'diversity'", ("count",), ("apart", "differ", "apart_distance"))
        count, own = found.pop("count"), found.pop("apart_distance", None)
        several = Diversity(count, **found, apart_distance=None if own is None else distance_from_dict(own))
    except IfonlyError as error:
        raise HTTPError(WRONG, str(error), "diversity") from None
    if several.k > terms.answers:
        raise HTTPError(
            WRONG, f"At most {terms.answers} answers are given here; {several.k:,} were asked for.", "diversity.count"
        )
    return several


def refused_by(error: IfonlyError, where: str | None) -> HTTPError:
    """What the library refuses, as a reply; that it contradicts itself is no fault of the request."""
    if isinstance(error, Contradiction):
        raise error
    sentence, _, place = str(error).partition("\n")
    return HTTPError(WRONG, sentence, where, place=place if isinstance(error, RuleError) else "")


def where_wrong(error: IfonlyError, ask: QueryRequest) -> str | None:
    """The part of a question that an error is about, as far as it can be told by asking the parts one by one."""
    if isinstance(error, RowError):
        return f"row.{error.feature}" if error.feature else "row"
    schema = ask.registered.explainer.schema
    for i, one in enumerate(ask.query.constraints):
        if _fails(lambda c: read_constraints([c], schema)[0].check(schema), one):
            return f"query.constraints[{i}]"
    if _fails(ask.query.measure.check, schema):
        return "query.distance"
    if _fails(ask.registered.explainer.check, Query(target=ask.query.target)):
        return "query.target"
    return None


def _fails(read: Callable[[Any], Any], value: Any) -> bool:
    try:
        read(value)
    except IfonlyError:
        return True
    return False
