"""Independent proof checker: redoes every step of a certificate in exact arithmetic. It imports no method."""

from ifonly.certificate.check.checker import CheckResult, check

__all__ = ["CheckResult", "check"]
