"""A look at what one has: how data fits, how the score goes to an answer, what fewer changes cost, how a search went"""

from ifonly.looking.bounds import BoundsOverTime, bounds_over_time
from ifonly.looking.doubts import doubts
from ifonly.looking.fewer import CostByChanges, cost_by_changes
from ifonly.looking.paths import ScorePath, score_path

__all__ = [
    "BoundsOverTime",
    "CostByChanges",
    "ScorePath",
    "bounds_over_time",
    "cost_by_changes",
    "doubts",
    "score_path",
]
