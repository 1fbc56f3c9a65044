"""Notices: principal reasons in the decision maker's words, and the notice that is handed to the person"""

from ifonly.notices.bulk import notices_to, write_mail_merge, write_pages, write_printout
from ifonly.notices.letter import Letter
from ifonly.notices.one_notice import Notice, NoticeRequest, notice
from ifonly.notices.pages import example_template
from ifonly.notices.principal import PrincipalReason, PrincipalReasons, principal_reasons
from ifonly.notices.reason_codes import ReasonCodes, ReasonGroup

__all__ = [
    "Letter",
    "Notice",
    "NoticeRequest",
    "PrincipalReason",
    "PrincipalReasons",
    "ReasonCodes",
    "ReasonGroup",
    "example_template",
    "notice",
    "notices_to",
    "principal_reasons",
    "write_mail_merge",
    "write_pages",
    "write_printout",
]
