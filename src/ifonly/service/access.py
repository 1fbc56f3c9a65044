"""Who may send requests, under which names and prefix the service is reached, and the security headers of responses."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ifonly.errors import QuestionError
from ifonly.printing import shown
from ifonly.service.requests import HTTPError

Headers = list[tuple[bytes, bytes]]

NO_FRAMES = (b"x-frame-options", b"DENY")
SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    NO_FRAMES,
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
CSP_NONE = "default-src 'none'; frame-ancestors 'none'"
CSP_REPORT = f"{CSP_NONE}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
CSP_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors "
)
ORIGIN = re.compile(
    r"https?://(\*\.)?([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(:(\d{1,5}|\*))?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?"
)
SELF = "'self'"
ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
MAX_ROOT_PATH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """Who may send requests: with which key, to which host names. `frame_ancestors`: the origins whose pages may show
    the page in a frame. `root_path`: the path at which a reverse proxy serves the service."""

    key: str = ""
    hosts: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    root_path: str = ""

    def __post_init__(self) -> None:
        if not self.key.isascii() or not self.key.isprintable() or self.key != self.key.strip():
            raise QuestionError("A key has letters, digits and signs of ASCII, and no space at its ends.")
        ancestors = tuple(SELF if one == "self" else one for one in self.frame_ancestors)
        for one in ancestors:
            if one != SELF and not ORIGIN.fullmatch(one):
                example = "https://intranet.example.org"
                raise QuestionError(f"--frame-ancestors takes self, or an origin such as {example}; got {shown(one)}.")
        object.__setattr__(self, "frame_ancestors", ancestors)
        root = self.root_path.rstrip("/")
        dots = {".", ".."} & set(root.split("/"))
        if root and (dots or len(root) > MAX_ROOT_PATH or not ROOT_PATH.fullmatch(root)):
            raise QuestionError(f"--root-path takes a path such as /tools/desk; got {shown(self.root_path)}.")
        object.__setattr__(self, "root_path", root)

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Against DNS rebinding: a page of another site that resolves to our address sends its own host name."""
        name = headers.get(b"host", b"").decode("latin-1").lower()
        before, _, port = name.rpartition(":")
        bare = before if before and not port.strip("0123456789") else name
        if bare == "localhost" or bare.rstrip(".") in self.hosts or "*" in self.hosts:
            return
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(bare.strip("[]"))
            return
        raise HTTPError(421, f"This desk is not called {shown(name)}; start it with --allow-host to give it that name.")

    def check_key(self, headers: Mapping[bytes, bytes]) -> None:
        if not self.key:
            return
        given, expected = headers.get(b"authorization", b""), b"Bearer " + self.key.encode("utf-8")
        if not hmac.compare_digest(given, expected):
            raise HTTPError(401, "This desk needs a key: send the header 'Authorization: Bearer KEY'.")

    def local_path(self, path: str) -> str:
        """The path without the prefix, which a proxy may leave or remove; empty for the prefix without a slash."""
        return path[len(self.root_path) :] if f"{path}/".startswith(f"{self.root_path}/") else path

    @property
    def page_csp(self) -> str:
        """The content security policy of the page."""
        return CSP_PAGE + (" ".join(self.frame_ancestors) or "'none'")

    @property
    def page_headers(self) -> Headers:
        """The other headers of the page; the older one against frames cannot name origins."""
        return [one for one in SECURITY_HEADERS if one is not NO_FRAMES or not self.frame_ancestors]
