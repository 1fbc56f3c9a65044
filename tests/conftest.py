"""Settings shared by all tests: hypothesis draws the same examples every time, on every machine; kernels are compiled first."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("IFONLY_COMPILE", "first")  # what is tested is what is compiled, in every process of a test

settings.register_profile(
    "ifonly",
    derandomize=True,
    deadline=None,  # a first call may compile
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ifonly")
