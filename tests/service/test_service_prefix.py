"""The desk under a path of a reverse proxy, and in the frames of other sites: by option only."""

from __future__ import annotations

import pytest

from ifonly.errors import QuestionError
from ifonly.service import ServiceLimits
from ifonly.service.access import AccessPolicy
from ifonly.service.app import Service
from services import Visitor


def desk(registry, inline, **access) -> Visitor:
    return Visitor(Service(registry, ServiceLimits(), inline, AccessPolicy(**access)))  # type: ignore[arg-type]


def test_a_prefix_may_be_left_or_removed_by_the_proxy(registry, inline) -> None:
    visit = desk(registry, inline, root_path="/tools/desk/")
    for path in ("/", "/v1/models", "/page/desk.js", "/openapi.json"):
        with_it, without = visit("GET", f"/tools/desk{path}"), visit("GET", path)
        assert with_it.status_code == without.status_code == 200 and with_it.content == without.content
    assert visit("GET", "/openapi.json").json()["servers"] == [{"url": "/tools/desk"}]
    moved = visit("GET", "/tools/desk")
    assert moved.status_code == 308 and moved.headers["location"] == "/tools/desk/"
    for other in ("/tools", "/tools/deskx/v1/models", "/tools/desk/tools/desk/v1/models", "/tools/desk//"):
        assert visit("GET", other).status_code == 404, other
    assert b'="/' not in visit("GET", "/").content  # every link is relative
    plain = desk(registry, inline)
    assert plain("GET", "/tools/desk/v1/models").status_code == 404
    assert plain("GET", "/openapi.json").json()["servers"] == [{"url": "/"}]


def test_the_key_is_needed_under_the_prefix_too(registry, inline) -> None:
    visit = desk(registry, inline, root_path="/tools/desk", key="secret")
    for path in ("/tools/desk/v1/models", "/tools/desk/metrics", "/v1/models"):
        assert visit("GET", path).status_code == 401
    assert visit("GET", "/tools/desk/livez").status_code == visit("GET", "/tools/desk/").status_code == 200


def test_frames_are_refused_unless_their_origin_is_named(registry, inline) -> None:
    plain = desk(registry, inline)("GET", "/").headers
    assert plain["x-frame-options"] == "DENY" and "frame-ancestors 'none'" in plain["content-security-policy"]
    visit = desk(registry, inline, frame_ancestors=("self", "https://intranet.example.org"))
    page = visit("GET", "/").headers
    assert "x-frame-options" not in page and page["x-content-type-options"] == "nosniff"
    assert page["content-security-policy"].endswith("; frame-ancestors 'self' https://intranet.example.org")
    data = visit("GET", "/v1/models").headers  # only the page
    assert data["x-frame-options"] == "DENY" and "frame-ancestors 'none'" in data["content-security-policy"]


@pytest.mark.parametrize("origin", ["*", "https:", "https://a.example; script-src *", "example.org", "https://a b", "data:",
                                    "https://a.example/path", "", "'none'", "https://a.example\r\nx: y"])  # fmt: skip
def test_what_is_no_origin_is_refused(origin) -> None:
    with pytest.raises(QuestionError, match="--frame-ancestors takes self, or an origin such as https"):
        AccessPolicy(frame_ancestors=(origin,))


@pytest.mark.parametrize(
    "origin", ["https://a.example:8443", "http://localhost:*", "https://*.example.org", "http://[::1]:80"]
)
def test_origins(origin) -> None:
    assert AccessPolicy(frame_ancestors=(origin,)).frame_ancestors == (origin,)


@pytest.mark.parametrize("path", ["desk", "/a//b", "/a/../b", "/a b", "/ä", "/a?b", "//", "/a\r\nx", "/" + "a" * 201])
def test_what_is_no_prefix_is_refused(path) -> None:
    if path == "//":
        assert AccessPolicy(root_path=path).root_path == ""
    else:
        with pytest.raises(QuestionError, match="--root-path takes a path such as /tools/desk"):
            AccessPolicy(root_path=path)
