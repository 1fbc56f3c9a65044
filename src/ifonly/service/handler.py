"""Request handler: from the path and the body of a request to its reply, one request at a time, in a worker process.

A request is first tried with little time. If that is not enough there is no reply (None), and a handler of the slow
lane tries again with all of the request's time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ifonly.certificate.check import check
from ifonly.certificate.format import Certificate, read_text
from ifonly.certifying.certificates import certify
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.compiling import Kernels
from ifonly.errors import FileError, IfonlyError, MissingExtra
from ifonly.explainer import Explainer
from ifonly.notices import Letter, notice
from ifonly.notices.one_notice import WAYS
from ifonly.printing import capitalised, json_text
from ifonly.problem.rules import read_constraint
from ifonly.problem.sufficiency import Sufficiency
from ifonly.results import Answer, DiverseAnswers, Limits, Progress
from ifonly.service.answer_json import answer_json, decision_json, diverse_outcome, unfinished
from ifonly.service.limits import GRACE_SECONDS, PLAIN_SECONDS, QUICK_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry, RegisteredModel
from ifonly.service.requests import (
    DEFAULT_QUERY,
    UNPROCESSABLE,
    HTTPError,
    QueryRequest,
    as_http_error,
    http_errors,
    read_body,
    read_predict_request,
    read_query_request,
    read_rule_request,
)
from ifonly.service.suggestions import blamed, suggestions
from ifonly.solvers.search.search import SEARCHES

JSON, HTML, BINARY = "application/json", "text/html; charset=utf-8", "application/octet-stream"
EVENT_SECONDS = 0.1
"""Between two events of a stream."""
UNDECIDED = "UNDECIDED"

OnEvent = Callable[[bytes], None]
"""Called with the bounds of a search, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response on its way from a worker: `outcome` is how the search ended, if there was one, for the metrics;
    `filename` that of a download; `retry` the seconds of Retry-After."""

    status: int
    body: bytes
    content_type: str = JSON
    outcome: str = ""
    filename: str = ""
    retry: int = 0
    bug: str = ""
    """The type and the place of an error that should not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The time of one attempt at a request; after the `last` one, what is found by then is the answer."""

    seconds: float
    last: bool
    on_event: OnEvent | None = None


def error_reply(error: HTTPError) -> Reply:
    return Reply(status=error.status, body=json_bytes(error.to_dict()), retry=error.retry)


def json_bytes(data: Any) -> bytes:
    return json_text(data).encode("utf-8")


def _ignore_progress(event: Progress) -> None:
    """Without any listener, a terminal would show a progress bar."""


class Handler:
    """Answers requests about the models of a registry. `slow`: each request has all of its time."""

    def __init__(self, registry: ModelRegistry, limits: ServiceLimits, *, slow: bool) -> None:
        self.registry, self.limits, self.slow = registry, limits, slow
        self._explainers = {
            registered.name: registered.explainer.using(listen=_ignore_progress) for registered in registry
        }
        self._search_kernels = tuple({id(one): one for one in map(kernels_of, registry)}.values())
        self._kernels = (
            *self._search_kernels,
            *((FLOAT_CHECK,) if any(registered.certificates for registered in registry) else ()),
        )
        self._kernels_checked = time.monotonic()
        self._endpoints: dict[str, Callable[[bytes, Attempt], Reply | None]] = {
            "/v1/explain": self._explain,
            "/v1/explain/stream": self._explain,
            "/v1/diverse": self._diverse,
            "/v1/predict": self._predict,
            "/v1/rule": self._rule,
            "/v1/certify": self._certify,
            "/v1/check": self._check,
            "/v1/report": self._report,
            "/v1/notice": self._notice,
            "/v1/why": self._why,
            "/v1/recourse": self._recourse,
        }

    def warm_up(self) -> None:
        """Load all kernels, or start to compile them, and prepare each model, so that the first request need not wait
        for that."""
        for kernels in self._kernels:
            kernels.prepare()
            if self.slow and not kernels.compiled and not kernels.being_compiled:
                kernels.load()  # no process can compile in the background, and a request has too little time for it
        for explainer in self._explainers.values():
            with contextlib.suppress(IfonlyError):  # a regression needs a target
                explainer.using(limits=Limits(seconds=PLAIN_SECONDS)).prepare(wait=False)

    @property
    def hard_seconds(self) -> float:
        """After so long a request is interrupted."""
        return self.limits.seconds + GRACE_SECONDS if self.slow else 2.0 * self._quick_seconds

    @property
    def _quick_seconds(self) -> float:
        return QUICK_SECONDS if all(kernels.compiled for kernels in self._search_kernels) else PLAIN_SECONDS

    @property
    def being_compiled(self) -> bool:
        """Will requests soon be faster, since kernels are being compiled?"""
        return any(not kernels.compiled and (kernels.being_compiled or kernels.cached) for kernels in self._kernels)

    def load_compiled_kernels(self) -> None:
        """Between two requests, load the kernels that another process has compiled meanwhile."""
        now = time.monotonic()
        if now - self._kernels_checked > 0.5:
            self._kernels_checked = now
            for kernels in self._kernels:
                if not kernels.compiled and kernels.cached:
                    kernels.load()

    def reply(self, path: str, body: bytes, on_event: OnEvent | None = None) -> Reply | None:
        """The reply to a request; None where there was too little time."""
        seconds = self.limits.seconds if self.slow else self._quick_seconds
        try:
            return self._endpoints[path](body, Attempt(seconds=seconds, last=self.slow, on_event=on_event))
        except HTTPError as error:
            return error_reply(error)

    # ------------------------------------------------------------------ endpoints

    def _explain(self, body: bytes, attempt: Attempt) -> Reply | None:
        started = time.perf_counter()
        request, attempt = self._read(body, attempt)
        answer = self._run_explain(request, attempt)
        if answer is None:
            return None
        data = {
            **answer_json(request, answer, str(answer)),
            "blame": blamed(answer, request.language),
            "help": suggestions(request.registered.explainer, request.query, answer, request.language),
            "seconds": round(time.perf_counter() - started, 6),
        }
        return Reply(status=200, body=json_bytes(data), outcome=answer.status)

    def _diverse(self, body: bytes, attempt: Attempt) -> Reply | None:
        started = time.perf_counter()
        request, attempt = self._read(body, attempt, diverse=True)
        answers = self._run_diverse(request, attempt)
        if answers is None:
            return None
        exact = answers.sentences
        data = {
            "answers": [answer_json(request, one, exact[k], further=k > 0) for k, one in enumerate(answers)],
            "ending": answers.ending,
            "proven": answers.proven,
            "blame": blamed(answers.ended, request.language),
            "help": suggestions(request.registered.explainer, request.query, answers.ended, request.language),
            "seconds": round(time.perf_counter() - started, 6),
        }
        return Reply(status=200, body=json_bytes(data), outcome=diverse_outcome(answers))

    def _report(self, body: bytes, attempt: Attempt) -> Reply | None:
        request, attempt = self._read(body, attempt, diverse=None)
        diverse = request.diversity is not None
        result = self._run_diverse(request, attempt) if diverse else self._run_explain(request, attempt)
        if result is None:
            return None
        page = result.to_html(None, request.language, subject=request.registered.subject)
        outcome = result.status if isinstance(result, Answer) else diverse_outcome(result)
        return Reply(status=200, body=page.encode("utf-8"), content_type=HTML, outcome=outcome)

    def _why(self, body: bytes, attempt: Attempt) -> Reply | None:
        request, attempt = self._read(body, attempt)
        if not self.slow:
            return None  # a reason takes many searches
        asked = Sufficiency(target=request.query.target, within=request.query.constraints)
        with http_errors():
            reasons = self._explainer(request, attempt).why(request.row, asked)
        sentence = reasons.sentence(request.language, subject=request.registered.subject)
        data = {"reasons": reasons.to_dict(), "sentence": sentence, "seconds": round(reasons.seconds, 6)}
        return Reply(status=200, body=json_bytes(data), outcome=reasons.status)

    def _recourse(self, body: bytes, attempt: Attempt) -> Reply | None:
        request, attempt = self._read(body, attempt)
        registered = request.registered
        if registered.causes is None:
            raise HTTPError(UNPROCESSABLE, f"The model '{registered.name}' has no causes here: start the desk with "
                                           f"--causes {registered.name}=FILE.", where="model")  # fmt: skip
        if not self.slow:
            return None  # an action takes several searches
        with http_errors():
            recourse = self._explainer(request, attempt).recourse(request.row, registered.causes, request.query)
        data = {
            "recourse": recourse.to_dict(),
            "sentence": recourse.sentence(request.language, subject=registered.subject),
            "exact": str(recourse),
            "seconds": round(recourse.answer.seconds, 6),
        }
        return Reply(status=200, body=json_bytes(data), outcome=recourse.status)

    def _notice(self, body: bytes, attempt: Attempt) -> Reply | None:
        request = read_query_request(read_body(body), self.registry, self.limits, notice=True)
        if not self.slow:
            return None  # a notice takes many searches
        registered, seconds = request.registered, min(request.seconds, attempt.seconds)
        each = replace(attempt, seconds=seconds / (len(registered.explainer.schema) + WAYS + 2))
        letter = Letter(form=request.form, language=request.language, subject=registered.subject)
        try:
            explainer = self._explainer(request, each)
            made = notice(explainer, request.row, letter, codes=registered.codes, query=request.query)
            page = made.to_html()
        except MissingExtra as error:
            raise HTTPError(503, str(error)) from None
        except IfonlyError as error:
            raise as_http_error(error) from None
        outcome = "proven" if made.proven else "within"
        return Reply(status=200, body=page.encode("utf-8"), content_type=HTML, outcome=outcome, filename="notice.html")

    def _certify(self, body: bytes, attempt: Attempt) -> Reply | None:
        started = time.perf_counter()
        request, attempt = self._read(body, attempt)

        def out_of_time() -> bool:
            return not attempt.last and time.perf_counter() - started >= attempt.seconds

        try:
            certificate = certify(self._explainer(request, attempt), request.row, request.query)
        except IfonlyError as error:
            if out_of_time():
                return None
            raise as_http_error(error) from None
        if out_of_time():
            return None
        return Reply(
            status=200, body=certificate.content, content_type=BINARY, filename="answer.cert", outcome="certificate"
        )

    def _check(self, body: bytes, attempt: Attempt) -> Reply | None:
        try:
            certificate = Certificate(read_text(body)) if body[:1] == b"{" else Certificate.from_bytes(body)
        except FileError as error:
            raise HTTPError(UNPROCESSABLE, capitalised(str(error))) from None
        result = check(certificate, seconds=attempt.seconds)
        if result.verdict == UNDECIDED and not attempt.last:
            return None
        return Reply(status=200, body=json_bytes(result.to_dict()), outcome=result.verdict)

    def _predict(self, body: bytes, attempt: Attempt) -> Reply:
        registered, row = read_predict_request(read_body(body), self.registry)
        schema, model = registered.explainer.schema, registered.explainer.model
        with http_errors("row"):
            point = schema.read(row)
            if missing_names := schema.missing_names(point):
                model, point = model.with_missing(missing_names), np.nan_to_num(point, nan=0.0)
            points = point[None, :]
            scores = model.scores(points)
        return Reply(status=200, body=json_bytes(decision_json(model, points, scores)))

    def _rule(self, body: bytes, attempt: Attempt) -> Reply:
        registered, text, mark = read_rule_request(read_body(body), self.registry, self.limits)
        with http_errors("text"):
            rule = read_constraint(text, registered.explainer.schema, mark)
            rule.check(registered.explainer.schema)
        return Reply(status=200, body=json_bytes({"words": rule.describe()}))

    # ------------------------------------------------------------------ from a body to answers

    def _read(self, body: bytes, attempt: Attempt, *, diverse: bool | None = False) -> tuple[QueryRequest, Attempt]:
        """The request of a body, and the attempt within the request's own time limit."""
        request = read_query_request(read_body(body), self.registry, self.limits, diverse=diverse)
        if request.seconds <= attempt.seconds:
            attempt = replace(attempt, seconds=request.seconds, last=True)
        return request, attempt

    def _explainer(self, request: QueryRequest, attempt: Attempt) -> Explainer:
        listen = None if attempt.on_event is None else _ProgressEvents(attempt.on_event)
        return self._explainers[request.registered.name].using(limits=self._search_limits(attempt), listen=listen)

    def _search_limits(self, attempt: Attempt) -> Limits:
        return Limits(seconds=attempt.seconds, memory_bytes=self.limits.memory_bytes)

    def _run_explain(self, request: QueryRequest, attempt: Attempt) -> Answer | None:
        explainer = self._explainers[request.registered.name]  # not `using`: this one has a cache of prepared queries
        if attempt.on_event is not None:
            explainer = explainer.using(listen=_ProgressEvents(attempt.on_event))
        query = None if request.query is DEFAULT_QUERY else request.query
        with http_errors():
            answer = explainer.explain(request.row, query, limits=self._search_limits(attempt))
        return None if not attempt.last and unfinished(answer) else answer

    def _run_diverse(self, request: QueryRequest, attempt: Attempt) -> DiverseAnswers | None:
        """Limits are per answer, so each has a share of the time, and so has the proof that there is no other."""
        assert request.diversity is not None
        each = replace(attempt, seconds=attempt.seconds / (request.diversity.k + 1), on_event=None)
        with http_errors():
            answers = self._explainer(request, each).explain_diverse(request.row, request.diversity, request.query)
        last = () if answers.ended is None else (answers.ended,)
        return None if not attempt.last and any(map(unfinished, (*answers, *last))) else answers


def kernels_of(registered: RegisteredModel) -> Kernels:
    """The kernels of the search in a model."""
    return SEARCHES[registered.explainer.model.function.search or "network"].kernels()


class _ProgressEvents:
    """A listener that passes on the bounds of a search as they improve, a few times a second."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event, self._last = on_event, 0.0

    def __call__(self, event: Progress) -> None:
        now = time.monotonic()
        if event.finished < event.people and now - self._last >= EVENT_SECONDS:
            self._last = now
            upper = event.upper if event.upper < float("inf") else None
            bounds = {"lower": event.lower, "upper": upper, "nodes": event.nodes, "seconds": event.seconds}
            self._on_event(json_bytes(bounds))
