"""Who answers: one request after the other, in a process of its own.

A request is first tried with little time. What runs out of it is not answered (None), and asked again with all of its
time by a clerk for whom others do not have to wait.
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
from ifonly.certifying.certifier import certify
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.compiling import Kernels
from ifonly.diagnostics import score_path
from ifonly.diagnostics.paths import score_margin_of
from ifonly.errors import FileError, IfonlyError
from ifonly.explainer import Explainer
from ifonly.printing import json_text
from ifonly.problem.rules import read_constraint
from ifonly.results import Answer, DiverseAnswers, Limits, Nearest, NoneExists, Progress, Stop, StoppedBy
from ifonly.results import plain_language as plain_language
from ifonly.results.plain_language import guarantee
from ifonly.service.limits import GRACE_SECONDS, PLAIN_SECONDS, QUICK_SECONDS, ServiceLimits
from ifonly.service.registry import ModelRegistry, RegisteredModel
from ifonly.service.requests import (
    PLAIN,
    WRONG,
    HTTPError,
    QueryRequest,
    read_body,
    read_person,
    read_request,
    read_rule,
    refused_by,
    where_wrong,
)
from ifonly.service.suggestions import ways_out
from ifonly.solvers.search.search import SEARCHES

JSON, PAGE, FILE = "application/json", "text/html; charset=utf-8", "application/octet-stream"
EVENTS_SECONDS = 0.1
"""Between two events of a stream."""
UNDECIDED = "UNDECIDED"

Tell = Callable[[bytes], None]
"""Whoever hears the bounds of a search, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back: `ending` is what became of the search, if there was one; `filename` that of a download."""

    status: int
    body: bytes
    kind: str = JSON
    ending: str = ""
    filename: str = ""
    retry: int = 0
    """Seconds after which to come again."""
    bug: str = ""
    """The kind and the place of an error that should not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one try may take; `last`: what it has not found by then is the answer."""

    seconds: float
    last: bool
    tell: Tell | None = None


def refusal(refused: HTTPError) -> Reply:
    return Reply(status=refused.status, body=_json(refused.data), retry=refused.retry)


def _json(data: Any) -> bytes:
    return json_text(data).encode("utf-8")


def _nobody(event: Progress) -> None:
    """Without a listener, a terminal would show a bar."""


class Handler:
    """Answers requests about the models of a shelf. `slow`: each has all of its time."""

    def __init__(self, registry: ModelRegistry, terms: ServiceLimits, *, slow: bool) -> None:
        self.registry, self.terms, self.slow = registry, terms, slow
        self._explainers = {registered.name: registered.explainer.using(listen=_nobody) for registered in registry}
        self._searching = tuple({id(one): one for one in map(_kernels_of, registry)}.values())
        self._kernels = (
            *self._searching,
            *((FLOAT_CHECK,) if any(registered.certificates for registered in registry) else ()),
        )
        self._looked = time.monotonic()
        self._answers: dict[str, Callable[[bytes, Attempt], Reply | None]] = {
            "/v1/explain": self._explain,
            "/v1/explain/stream": self._explain,
            "/v1/diverse": self._diverse,
            "/v1/predict": self._predict,
            "/v1/rule": self._rule,
            "/v1/certify": self._certify,
            "/v1/check": self._check,
            "/v1/report": self._report,
        }

    def compile_kernels(self) -> None:
        """Load or begin to compile all kernels and ask about somebody, so that the first request waits for neither."""
        for kernels in self._kernels:
            kernels.prepare()
            if self.slow and not kernels.compiled and not kernels.being_compiled:
                kernels.load()  # no process can compile in the background, and a request has too little time for it
        for registered in self.registry:
            with contextlib.suppress(IfonlyError):  # a regression has to be asked for something
                self._explainers[registered.name].explain(registered.somebody, limits=Limits(seconds=PLAIN_SECONDS))

    @property
    def hard_seconds(self) -> float:
        """After so long a request is given up, whatever it is doing."""
        return self.terms.seconds + GRACE_SECONDS if self.slow else 2.0 * self._quick_seconds

    @property
    def _quick_seconds(self) -> float:
        return QUICK_SECONDS if all(kernels.compiled for kernels in self._searching) else PLAIN_SECONDS

    @property
    def being_compiled(self) -> bool:
        """Will a request that took too long be faster soon, since its kernels are compiled by then?"""
        return any(not kernels.compiled and (kernels.being_compiled or kernels.cached) for kernels in self._kernels)

    def look_for_kernels(self) -> None:
        """What has been compiled behind our back is taken up between two requests."""
        now = time.monotonic()
        if now - self._looked > 0.5:
            self._looked = now
            for kernels in self._kernels:
                if not kernels.compiled and kernels.cached:
                    kernels.load()

    def reply(self, path: str, body: bytes, tell: Tell | None = None) -> Reply | None:
        """The answer to a request; None where there was too little time."""
        seconds = self.terms.seconds if self.slow else self._quick_seconds
        try:
            return self._answers[path](body, Attempt(seconds=seconds, last=self.slow, tell=tell))
        except HTTPError as refused:
            return refusal(refused)

    # ------------------------------------------------------------------ questions

    def _explain(self, body: bytes, effort: Attempt) -> Reply | None:
        begun = time.perf_counter()
        ask, effort = self._asked(body, effort)
        answer = self._explained(ask, effort)
        if answer is None:
            return None
        told = {
            **self._told(ask, answer, str(answer)),
            "help": ways_out(ask.registered.explainer, ask.query, answer, ask.language),
            "seconds": round(time.perf_counter() - begun, 6),
        }
        return Reply(status=200, body=_json(told), ending=answer.status)

    def _diverse(self, body: bytes, effort: Attempt) -> Reply | None:
        begun = time.perf_counter()
        ask, effort = self._asked(body, effort, diverse=True)
        several = self._several(ask, effort)
        if several is None:
            return None
        exact = several.sentences
        told = {
            "answers": [self._told(ask, one, exact[k], further=k > 0) for k, one in enumerate(several)],
            "ending": several.ending,
            "proven": several.proven,
            "help": ways_out(ask.registered.explainer, ask.query, several.ended, ask.language),
            "seconds": round(time.perf_counter() - begun, 6),
        }
        return Reply(status=200, body=_json(told), ending=_ending(several))

    def _report(self, body: bytes, effort: Attempt) -> Reply | None:
        ask, effort = self._asked(body, effort, diverse=None)
        told = self._explained(ask, effort) if ask.diversity is None else self._several(ask, effort)
        if told is None:
            return None
        page = told.to_html(None, ask.language, subject=ask.registered.subject)
        return Reply(status=200, body=page.encode("utf-8"), kind=PAGE,
                     ending=told.status if isinstance(told, Answer) else _ending(told))  # fmt: skip

    def _certify(self, body: bytes, effort: Attempt) -> Reply | None:
        begun = time.perf_counter()
        ask, effort = self._asked(body, effort)
        try:
            certificate = _certified(self._using(ask, effort), ask)
        except HTTPError:
            if not effort.last and time.perf_counter() - begun >= effort.seconds:
                return None
            raise
        if not effort.last and time.perf_counter() - begun >= effort.seconds:
            return None
        return Reply(status=200, body=certificate.content, kind=FILE, filename="answer.cert", ending="certificate")

    def _check(self, body: bytes, effort: Attempt) -> Reply | None:
        try:
            certificate = Certificate(read_text(body)) if body[:1] == b"{" else Certificate.from_bytes(body)
        except FileError as error:
            sentence = str(error)
            raise HTTPError(WRONG, sentence[:1].upper() + sentence[1:]) from None
        checked = check(certificate, seconds=effort.seconds)
        if checked.verdict == UNDECIDED and not effort.last:
            return None
        return Reply(status=200, body=_json(checked.to_dict()), ending=checked.verdict)

    def _predict(self, body: bytes, effort: Attempt) -> Reply:
        registered, row = read_person(read_body(body), self.registry)
        schema, model = registered.explainer.schema, registered.explainer.model
        try:
            point = schema.read(row)
            if missing_names := schema.missing_names(point):
                model, point = model.with_missing(missing_names), np.nan_to_num(point, nan=0.0)
            many = point[None, :]
            scores = model.scores(many)
        except IfonlyError as error:
            feature = getattr(error, "feature", None)
            raise HTTPError(WRONG, str(error), f"row.{feature}" if feature else "row") from None
        told: dict[str, Any] = {
            "decision": None,
            "score_margin": None,
            "probabilities": None,
            "scores": scores[0].tolist(),
        }
        if model.classes:
            decided = int(model.decide(scores)[0])
            told |= {"decision": model.classes[decided], "score_margin": float(score_margin_of(scores, decided)[0])}
            if model.probabilities is not None:
                shares = np.asarray(model.probabilities(many))[0].tolist()
                told["probabilities"] = {str(name): share for name, share in zip(model.classes, shares, strict=True)}
        return Reply(status=200, body=_json(told))

    def _rule(self, body: bytes, effort: Attempt) -> Reply:
        registered, text, mark = read_rule(read_body(body), self.registry, self.terms)
        try:
            rule = read_constraint(text, registered.explainer.schema, mark)
            rule.check(registered.explainer.schema)
        except IfonlyError as error:
            raise refused_by(error, "text") from None
        return Reply(status=200, body=_json({"words": rule.describe()}))

    # ------------------------------------------------------------------ asking and telling

    def _asked(self, body: bytes, effort: Attempt, *, diverse: bool | None = False) -> tuple[QueryRequest, Attempt]:
        """The question, and the time that it has."""
        ask = read_request(read_body(body), self.registry, self.terms, diverse=diverse)
        if ask.seconds <= effort.seconds:
            effort = replace(effort, seconds=ask.seconds, last=True)
        return ask, effort

    def _using(self, ask: QueryRequest, effort: Attempt) -> Explainer:
        listen = None if effort.tell is None else _Events(effort.tell)
        limits = Limits(seconds=effort.seconds, memory_bytes=self.terms.memory_bytes)
        return self._explainers[ask.registered.name].using(limits=limits, listen=listen)

    def _explained(self, ask: QueryRequest, effort: Attempt) -> Answer | None:
        limits = Limits(seconds=effort.seconds, memory_bytes=self.terms.memory_bytes)
        explainer = self._explainers[ask.registered.name]  # keeps what it has read and prepared
        if effort.tell is not None:
            explainer = explainer.using(listen=_Events(effort.tell))
        try:
            answer = explainer.explain(ask.row, None if ask.query is PLAIN else ask.query, limits=limits)
        except IfonlyError as error:
            raise refused_by(error, where_wrong(error, ask)) from None
        return None if not effort.last and _unfinished(answer) else answer

    def _several(self, ask: QueryRequest, effort: Attempt) -> DiverseAnswers | None:
        """Limits are per answer, so each has its share of the time, and so has the proof that there is no other."""
        assert ask.diversity is not None
        share = replace(effort, seconds=effort.seconds / (ask.diversity.k + 1), tell=None)
        try:
            several = self._using(ask, share).explain_diverse(ask.row, ask.diversity, ask.query)
        except IfonlyError as error:
            raise refused_by(error, where_wrong(error, ask)) from None
        last = () if several.ended is None else (several.ended,)
        return None if not effort.last and any(map(_unfinished, (*several, *last))) else several

    def _told(self, ask: QueryRequest, answer: Answer, exact: str, *, further: bool = False) -> dict[str, Any]:
        return {
            "answer": answer.to_dict(),
            "sentence": plain_language(answer, ask.language, ask.registered.subject, further=further),
            "exact": exact,
            "guarantee": guarantee(answer, ask.language),
            "path": _path(ask.registered.explainer, answer) if ask.path else None,
        }


def _kernels_of(registered: RegisteredModel) -> Kernels:
    """What is compiled for the search in a model."""
    return SEARCHES[registered.explainer.model.function.search or "network"].kernels()


def _certified(explainer: Explainer, ask: QueryRequest) -> Certificate:
    try:
        return certify(explainer, ask.row, ask.query)
    except IfonlyError as error:
        raise refused_by(error, where_wrong(error, ask)) from None


def _path(explainer: Explainer, answer: Answer) -> dict[str, Any] | None:
    if answer.counterfactual is None or not answer.changes or answer.decision_after is None:
        return None
    if any(value is None for value in answer.factual.values()):  # the model of those who lack something is another one
        return None
    way = score_path(explainer, answer)
    return {
        "score_margin": list(way.score_margin),
        "changes": [list(one) for one in way.changes],
        "decision": way.decision,
    }


def _ending(several: DiverseAnswers) -> str:
    return "proven" if several.proven else "within"


def _unfinished(answer: Answer) -> bool:
    """Would more time tell more?"""
    if isinstance(answer, NoneExists):
        return answer.reasons is not None and bool(answer.reasons.note)
    return not isinstance(answer, Nearest) and _out_of_time(answer.stop)


def _out_of_time(stop: Stop | None) -> bool:
    return stop is not None and (stop.by is StoppedBy.SECONDS or _out_of_time(stop.cause))


class _Events:
    """Tells the bounds of a search as they improve, a few times a second."""

    def __init__(self, tell: Tell) -> None:
        self.tell, self.told = tell, 0.0

    def __call__(self, event: Progress) -> None:
        now = time.monotonic()
        if event.finished < event.people and now - self.told >= EVENTS_SECONDS:
            self.told = now
            upper = event.upper if event.upper < float("inf") else None
            self.tell(_json({"lower": event.lower, "upper": upper, "nodes": event.nodes, "seconds": event.seconds}))
