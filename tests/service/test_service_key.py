"""Without the key nothing is told of models or people: what a stranger gets is the same, whatever is served."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ifonly import Explainer, Integer, Network, Real, Schema
from ifonly.model import network_model
from ifonly.service import ModelRegistry, RegisteredModel, ServiceLimits
from ifonly.service.app import BATCH_PATH, AccessPolicy, Service
from ifonly.service.handler import Handler
from services import Inline, Visitor

KEY = "open sesame"
METHODS = ("GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")
ELSEWHERE = (
    "/favicon.ico",
    "/docs",
    "/v1",
    "/v1/",
    "/v1/none",
    "/openapi.yaml",
    "/openapi.json/",
    "/page/none.js",
    "/robots.txt",
    "/v1/schema/",
)
GIVEN = {"none": {}, "empty": {"authorization": "Bearer "}, "wrong": {"authorization": "Bearer sesame"}, "another kind": {"authorization": f"Basic {KEY}"},
         "in the address": {}, "another name": {"host": "evil.example"}}  # fmt: skip


def desk(secret: str, *others: str) -> tuple[Service, Inline]:
    """A desk all of whose words are secret, on which somebody with the key has asked."""

    def registered(word: str) -> RegisteredModel:
        schema = Schema([Integer(f"{word}Age", 17, 90), Real(f"{word}Debt", 0, 1, label=f"{word}debt")])
        model = network_model(Network.of([([[1.0, -1.0]], [-50.0])]), schema, classes=(f"{word}no", f"{word}yes"))
        person = {f"{word}Age": 17 + len(word), f"{word}Debt": 0.5}
        return RegisteredModel(name=word, title=f"{word}title", subject=f"{word}subject", explainer=Explainer(model, constraints=[f"{word}Age only goes up"]),
                     people={f"{word}person": person}, groups={f"{word}group": [f"{word}Age"]})  # fmt: skip

    registry = ModelRegistry([registered(word) for word in (secret, *others)])
    inline = Inline(Handler(registry, ServiceLimits(), slow=True))
    made = Service(registry, ServiceLimits(), inline, AccessPolicy(key=KEY))  # type: ignore[arg-type]
    visit = Visitor(made)
    key = {"authorization": f"Bearer {KEY}"}
    for _ in range(len(secret)):
        row = visit("GET", f"/v1/schema?model={secret}", headers=key).json()["people"][0]["row"]
        assert visit.post("/v1/explain", {"row": row}, headers=key).status_code == 200
    inline.asked.clear()
    return made, inline


@pytest.fixture(scope="module")
def desks() -> list[tuple[Service, Inline]]:
    return [desk("Zwiebel"), desk("Quitte", "Mispel")]


def told(made: Service, method: str, path: str, headers: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    content = b'{"row": {}, "text": "x"}' if method not in ("GET", "HEAD") else None
    type_of_body = "application/x-ndjson" if path == BATCH_PATH else "application/json"
    kind = {} if content is None else {"content-type": type_of_body}
    answer = Visitor(made)(method, path, content=content, headers={**kind, **headers})
    return answer.status_code, dict(answer.headers), answer.content


@pytest.mark.long
def test_no_route_tells_a_stranger_anything_of_models_or_people(desks) -> None:
    """Two desks with other models, other people and another past answer every request of a stranger alike."""
    (one, asked), (other, _) = desks
    paths = [*one.routes, *ELSEWHERE]
    assert list(one.routes) == list(other.routes) and {"/openapi.json", "/v1/schema", "/metrics", "/"} <= set(paths)
    for ready in (True, False):
        for _, inline in desks:
            inline.ready = ready
        for path in paths:
            for how, headers in GIVEN.items():
                query = (
                    f"?key={KEY}&model=Quitte&authorization=Bearer%20{KEY}"
                    if how == "in the address"
                    else "?model=Zwiebel"
                )
                for method in METHODS:
                    answers = [told(each, method, path + query, headers) for each in (one, other)]
                    assert answers[0] == answers[1], (method, path, how)
                    status, head, body = answers[0]
                    assert not re.search(rb"zwiebel|quitte|mispel", repr(head).encode().lower() + body.lower())
                    public = path in one.routes and one.routes[path].public
                    assert status in ((200, 405, 421, 503) if public else (401, 421)), (method, path, status)
    assert not asked.asked


def test_what_is_public_is_the_page_and_the_probes(desks) -> None:
    (made, _), _ = desks
    public = {path for path, route in made.routes.items() if route.public}
    assert {path for path in public if not path.startswith("/page/")} == {"/", "/livez", "/healthz", "/readyz"}


def test_with_the_key_every_route_is_there(desks) -> None:
    (made, inline), _ = desks
    inline.ready = True
    for path, route in made.routes.items():
        status, _, body = told(made, route.methods[0], path, {"authorization": f"Bearer {KEY}"})
        assert status in (200, 422), path
        assert status != 200 or path.startswith("/page") or body
    described = Visitor(made)("GET", "/openapi.json", headers={"authorization": f"Bearer {KEY}"}).json()
    for path, methods in described["paths"].items():
        (one,) = methods.values()
        assert ("security" in one) == (not made.routes[path].public) == ("401" in one["responses"]), path
