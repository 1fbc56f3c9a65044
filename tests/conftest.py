"""Settings shared by all tests: hypothesis draws the same examples every time, on every machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ifonly",
    derandomize=True,
    deadline=None,  # a first call may compile
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ifonly")
