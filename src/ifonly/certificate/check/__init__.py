"""Independent proof checker: redoes every step of a certificate in exact arithmetic. It imports no method."""

from .checker import CheckResult, check

__all__ = ["CheckResult", "check"]
