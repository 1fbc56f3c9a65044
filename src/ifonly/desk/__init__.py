"""The recourse desk: a service and a page where a person asks what would have to be different"""

from ifonly.desk.shelf import Offer, Shelf
from ifonly.desk.terms import Terms

__all__ = ["Offer", "Shelf", "Terms"]
