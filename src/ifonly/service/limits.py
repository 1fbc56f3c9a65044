"""Every limit of the service: what one request may contain and spend, and how many requests may wait."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ifonly.certificate.format import MAX_BYTES
from ifonly.errors import QuestionError
from ifonly.printing import json_object, shown

MAX_DEPTH = 32
"""Of lists and objects inside one another in a body: a query has 5 at most."""
QUICK_SECONDS = 0.1
"""Of search for a request in the quick lane; one that takes longer goes to the slow lane."""
PLAIN_SECONDS = 1.0
"""The same, as long as the kernels are not compiled."""
GRACE_SECONDS = 2.0
"""For reading, preparing and writing, beside the search; then the request is given up."""
BODY_SECONDS = 10.0
"""How long a body may take to arrive."""
BATCH_BODY_SECONDS = 60.0
"""The same of a batch."""
HEADER_SECONDS = 10.0
"""How long the header of a request may take to arrive."""
READ_SECONDS = 30.0
"""How long a client may leave a response unread."""
HEADER_BYTES = 16 * 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits of the service. `seconds`, `answers`, `constraints` and `text` (characters of a rule) are per request."""

    seconds: float = 10.0
    answers: int = 5
    constraints: int = 50
    text: int = 1000
    body_bytes: int = 2**20
    certificate_bytes: int = 4 * 2**20
    memory_bytes: int = 2**28
    """Memory of a search."""
    waiting: int = 1000
    waiting_long: int = 16
    """Requests that may wait in the quick lane and in the slow one; one more is refused."""
    held_bytes: int = 2**26
    """Bodies of all requests together."""
    connections: int = 2000
    batch_bytes: int = 2**24
    batch_lines: int = 10_000
    batch_seconds: float = 600.0
    """Of a batch as a whole; each of its lines has the limits of a request, too."""
    batches: int = 4
    """Under way at a time; one more is refused."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds = (int, float) if field.name.endswith("seconds") else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 2**62:
                raise QuestionError(f"The limit '{field.name}' of the desk must be positive; it is {shown(value)}.")
        if self.certificate_bytes > MAX_BYTES:
            raise QuestionError(f"A certificate has at most {MAX_BYTES >> 20} MiB; the limit cannot be larger.")

    def to_dict(self) -> dict[str, Any]:
        """The limits that a client can keep to."""
        return json_object(self, CLIENT_LIMITS)


CLIENT_LIMITS = (
    "seconds", "answers", "constraints", "text", "body_bytes", "certificate_bytes", "batch_bytes", "batch_lines",
    "batch_seconds",
)  # fmt: skip
