"""`why`: smallest sufficient reasons, and whether the features that a peer names suffice.

Shipped networks and forests of 100 trees, people in the order of the data. A peer's features are checked like ours:
with these fixed, is there a row that the model decides otherwise? Each person and way is a record, written at once, so
that a run that was stopped goes on (`records.py`).

    reason     ours: CPU time, status, features
    shap       SHAP's attributions (`attributions.py`): the four largest, and as many as our reason has features
    anchors    the features of alibi's anchor (`anchors.py`), in an environment of its own
"""

from benchmarks.suites.why.command import command

__all__ = ["command"]
