"""Checker of certificates: the one of ifonly, alone."""

from .certificate.check import CheckResult, check
from .certificate.format import Certificate

__all__ = ["Certificate", "CheckResult", "check"]
