"""Diagnostics: data against its schema, the score along the path to an answer, cost by changes, bounds over time"""

from ifonly.diagnostics.conflicts import schema_conflicts
from ifonly.diagnostics.convergence import BoundsOverTime, bounds_over_time
from ifonly.diagnostics.paths import ScorePath, score_path
from ifonly.diagnostics.sparsity import CostByChanges, cost_by_changes

__all__ = [
    "BoundsOverTime",
    "CostByChanges",
    "ScorePath",
    "bounds_over_time",
    "cost_by_changes",
    "schema_conflicts",
    "score_path",
]
