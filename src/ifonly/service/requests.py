"""Reading requests: from the bytes of a body to the query in it. What is not known is refused with one sentence.

The parts have readers of their own (`Query.from_dict`, `Schema.read`, `Diversity`), whose errors say what is wrong and
where; this module adds what a request has beside them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ifonly.errors import Contradiction, IfonlyError, RowError, RuleError
from ifonly.notices.letter import Letter, NoticeForm
from ifonly.printing import escaped, shown
from ifonly.problem.diversity import Diversity
from ifonly.problem.plain_data import distance_from_dict, entries
from ifonly.problem.query import Query, read_constraints
from ifonly.results.languages import LANGUAGES
from ifonly.schema.number_text import DecimalMark, UnclearNumber, other_reading
from ifonly.service.limits import MAX_DEPTH, ServiceLimits
from ifonly.service.registry import ModelRegistry, RegisteredModel

BAD_REQUEST, UNPROCESSABLE = 400, 422
MIN_SECONDS = 1e-3
"""A request that asks for less has this."""
EXACT_INTEGERS = 2**53
"""Below this every whole number is a float64."""
QUERY_FIELDS = ("model", "row", "query", "seconds", "language", "path")


DEFAULT_QUERY = Query()
"""Of a request without a query."""


class HTTPError(Exception):
    """A request that is refused: the status, a sentence, and the part of the body that is wrong (`where`). `retry`: the
    seconds of Retry-After; `place`: the text of a rule, with marks under the fault."""

    def __init__(self, status: int, message: str, where: str | None = None, *, retry: int = 0, place: str = "") -> None:
        super().__init__(status, message, where)
        self.status, self.message, self.where, self.retry, self.place = status, message, where, retry, place

    def to_dict(self) -> dict[str, Any]:
        data = {"error": self.message, "where": self.where}
        return {**data, "place": self.place} if self.place else data


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """A request with a row and a query; `seconds` is its own limit, within the service's."""

    registered: RegisteredModel
    row: dict[str, Any]
    query: Query
    seconds: float
    language: str
    path: bool
    diversity: Diversity | None = None
    form: NoticeForm = "c-1"
    """Of a notice."""


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object in a body: no NaN, no infinity, not too deep."""
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise HTTPError(BAD_REQUEST, f"The body is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:
        raise HTTPError(BAD_REQUEST, f"The body is not JSON: {escaped(str(error))[:200]}.") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _too_deep(data):
        raise HTTPError(BAD_REQUEST, f"The body is nested more than {MAX_DEPTH} levels deep.")
    if not isinstance(data, dict):
        raise HTTPError(UNPROCESSABLE, f"The body must be a JSON object; it is {shown(data)}.")
    return data


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    """A finite number; 2.0 is the whole number 2, as in JSON Schema."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return int(number) if number.is_integer() and abs(number) < EXACT_INTEGERS else number


def _too_deep(data: Any) -> bool:
    level = [data]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level if isinstance(outer, dict | list)
                 for inner in (outer.values() if isinstance(outer, dict) else outer)]  # fmt: skip
        if not level:
            return False
    return True


def read_query_request(
    data: dict[str, Any],
    registry: ModelRegistry,
    limits: ServiceLimits,
    *,
    diverse: bool | None = False,
    notice: bool = False,
) -> QueryRequest:
    """The query of a body; `diverse`: must it say how several answers differ? None: it may. `notice`: it may say which
    form a notice has."""
    needed = ("row", "diversity") if diverse else ("row",)
    known = (*QUERY_FIELDS, *(("diversity",) if diverse is None else ()), *(("form",) if notice else ()))
    found = _entries(data, needed, tuple(name for name in known if name not in needed))
    registered = registered_model(found, registry)
    row = _row(found)
    given, language = found.get("query"), _language(found)
    mark = LANGUAGES[language].style.decimal_mark
    query = DEFAULT_QUERY if given is None else _query(given, limits)
    _check_marks(query, registered, mark)
    diversity = found.get("diversity")
    return QueryRequest(
        registered=registered,
        row={name: _cell(value, mark) for name, value in row.items()},
        query=query,
        seconds=_seconds(found.get("seconds"), limits),
        language=language,
        path=_flag(found.get("path", False), "path"),
        diversity=None if diversity is None and not diverse else _diversity(diversity, limits),
        form=_form(found),
    )


def _check_marks(query: Query, registered: RegisteredModel, mark: DecimalMark) -> None:
    """Refuse a number that is ambiguous in the language of the request, such as 1.500 in German."""
    if mark is not DecimalMark.POINT:
        with http_errors():
            read_constraints(query.constraints, registered.explainer.schema, mark)


def _cell(value: Any, mark: DecimalMark) -> Any:
    """A value of a row; a text that may be either of two numbers in the language of the request is marked as such."""
    unclear = isinstance(value, str) and mark is not DecimalMark.POINT and other_reading(value) is not None
    return UnclearNumber(value) if unclear else value


def _entries(data: dict[str, Any], needed: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    try:
        return entries(data, "The body", needed, optional)
    except IfonlyError as error:
        unknown = next((name for name in data if name not in (*needed, *optional)), None)
        raise HTTPError(UNPROCESSABLE, str(error), None if unknown is None else escaped(unknown)[:60]) from None


def read_rule_request(
    data: dict[str, Any], registry: ModelRegistry, limits: ServiceLimits
) -> tuple[RegisteredModel, str, DecimalMark]:
    """A rule in words, the model that it is for, and the decimal mark of its language."""
    found = _entries(data, ("text",), ("model", "language"))
    text = found["text"]
    if not isinstance(text, str):
        raise HTTPError(UNPROCESSABLE, f"A rule is a text such as 'Age only goes up'; got {shown(text)}.", "text")
    _check_text(text, limits, "text")
    return registered_model(found, registry), text, LANGUAGES[_language(found)].style.decimal_mark


def read_predict_request(data: dict[str, Any], registry: ModelRegistry) -> tuple[RegisteredModel, dict[str, Any]]:
    """A row, and the model that it is for."""
    found = _entries(data, ("row",), ("model",))
    row = _row(found)
    return registered_model(found, registry), row


def _row(found: dict[str, Any]) -> dict[str, Any]:
    row = found["row"]
    if not isinstance(row, dict):
        raise HTTPError(UNPROCESSABLE, f"A row is an object with a value per feature; got {shown(row)}.", "row")
    return row


def _check_text(text: str, limits: ServiceLimits, where: str) -> None:
    if len(text) > limits.text:
        message = f"A rule has at most {limits.text:,} characters; this one has {len(text):,}."
        raise HTTPError(UNPROCESSABLE, message, where)


def registered_model(found: dict[str, Any], registry: ModelRegistry) -> RegisteredModel:
    """The model that the body names; the first where it names none."""
    registered = registry.named(found.get("model"))
    if registered is None:
        raise unknown_model(found["model"], registry.names)
    return registered


def unknown_model(name: Any, names: Sequence[str]) -> HTTPError:
    return HTTPError(404, f"There is no model {shown(name)}; the models are: {', '.join(names[:20])}.", "model")


def _language(found: dict[str, Any]) -> str:
    language = found.get("language", "en")
    if not isinstance(language, str) or language not in LANGUAGES:
        raise HTTPError(UNPROCESSABLE, f"There are words in {', '.join(LANGUAGES)}; got {shown(language)}.", "language")
    return language


def _form(found: dict[str, Any]) -> NoticeForm:
    try:
        return Letter(form=found.get("form", "c-1")).form
    except IfonlyError as error:
        raise HTTPError(UNPROCESSABLE, str(error), "form") from None


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise HTTPError(UNPROCESSABLE, f"'{name}' is true or false; got {shown(value)}.", name)
    return value


def _seconds(value: Any, limits: ServiceLimits) -> float:
    """The time limit: the request's own, at most the service's."""
    if value is None:
        return limits.seconds
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise HTTPError(UNPROCESSABLE, f"'seconds' is a positive number; got {shown(value)}.", "seconds")
    return max(MIN_SECONDS, float(value)) if value < limits.seconds else limits.seconds


def _query(data: Any, limits: ServiceLimits) -> Query:
    given = data.get("constraints", ()) if isinstance(data, dict) else ()
    if isinstance(given, list):
        if len(given) > limits.constraints:
            raise HTTPError(
                UNPROCESSABLE,
                f"A query has at most {limits.constraints} constraints here; this one has {len(given):,}.",
                "query.constraints",
            )  # fmt: skip
        for i, one in enumerate(given):
            words = one.get("text") if isinstance(one, dict) else one
            if isinstance(words, str):
                _check_text(words, limits, f"query.constraints[{i}]")
    with http_errors("query"):
        return Query.from_dict(data)


def _diversity(data: Any, limits: ServiceLimits) -> Diversity:
    try:
        found = entries(data, "'diversity'", ("count",), ("apart", "differ", "apart_distance"))
        count, own = found.pop("count"), found.pop("apart_distance", None)
        diversity = Diversity(count, **found, apart_distance=None if own is None else distance_from_dict(own))
    except IfonlyError as error:
        raise HTTPError(UNPROCESSABLE, str(error), "diversity") from None
    if diversity.k > limits.answers:
        raise HTTPError(
            UNPROCESSABLE,
            f"At most {limits.answers} answers are given here; {diversity.k:,} were asked for.",
            "diversity.count",
        )
    return diversity


@contextmanager
def http_errors(otherwise: str | None = None) -> Iterator[None]:
    """Errors of the library inside it are raised as responses."""
    try:
        yield
    except IfonlyError as error:
        raise as_http_error(error, otherwise=otherwise) from None


def as_http_error(error: IfonlyError, *, otherwise: str | None = None) -> HTTPError:
    """An error of the library as a response; `otherwise` is where it belongs if the error itself does not say. That the
    library contradicts itself is no fault of the request."""
    if isinstance(error, Contradiction):
        raise error
    message, _, place = str(error).partition("\n")
    return HTTPError(
        UNPROCESSABLE, message, _where(error) or otherwise, place=place if isinstance(error, RuleError) else ""
    )


def _where(error: IfonlyError) -> str:
    """The part of the body that an error is about, such as `query.constraints[2]` or `row.Age`; empty if unknown."""
    if error.where:
        return "query" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.where)
    if isinstance(error, RowError):
        return f"row.{error.feature}" if error.feature else "row"
    return ""
