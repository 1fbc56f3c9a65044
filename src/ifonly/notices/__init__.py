"""Notices: principal reasons in the words of whoever decides, and the notice that is handed to the person"""

from ifonly.notices.principal import PrincipalReason, PrincipalReasons, principal_reasons
from ifonly.notices.reason_codes import ReasonCodes, ReasonGroup

__all__ = ["PrincipalReason", "PrincipalReasons", "ReasonCodes", "ReasonGroup", "principal_reasons"]
