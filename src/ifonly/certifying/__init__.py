"""Certifying algorithm: from the records of the search to certificates that the checker accepts."""

from ifonly.certifying.answers import certify_diverse
from ifonly.certifying.certificates import certify, prove
from ifonly.certifying.filled import certify_filled
from ifonly.certifying.none_exists import certify_none
from ifonly.certifying.read_back import certified_query
from ifonly.certifying.reason import certify_reason
from ifonly.certifying.recourse import certify_recourse

__all__ = [
    "certified_query",
    "certify",
    "certify_diverse",
    "certify_filled",
    "certify_none",
    "certify_reason",
    "certify_recourse",
    "prove",
]
