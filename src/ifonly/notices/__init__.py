"""Notices: principal reasons in the words of whoever decides, and the notice that is handed to the person"""

from ifonly.notices.letter import Letter
from ifonly.notices.one_notice import Notice, notice
from ifonly.notices.pages import example_template
from ifonly.notices.principal import PrincipalReason, PrincipalReasons, principal_reasons
from ifonly.notices.reason_codes import ReasonCodes, ReasonGroup

__all__ = [
    "Letter",
    "Notice",
    "PrincipalReason",
    "PrincipalReasons",
    "ReasonCodes",
    "ReasonGroup",
    "example_template",
    "notice",
    "principal_reasons",
]
