"""The recourse desk: a web service, and a page where a person asks what would have to be different"""

from ifonly.service.limits import ServiceLimits
from ifonly.service.registry import ModelRegistry, RegisteredModel

__all__ = ["ModelRegistry", "RegisteredModel", "ServiceLimits"]
