"""Tables of people: rows as streams, runs on processes and clusters that can be resumed, audits of groups."""

from ifonly.population.actions import ChangeEvaluator
from ifonly.population.auditing import Audit, audit
from ifonly.population.differences import Difference
from ifonly.population.group import Group
from ifonly.population.labels import Grouping
from ifonly.population.moves import FlipSet, flip_sets
from ifonly.population.output_paths import Output
from ifonly.population.run import RunResult

__all__ = [
    "Audit",
    "ChangeEvaluator",
    "Difference",
    "FlipSet",
    "Group",
    "Grouping",
    "Output",
    "RunResult",
    "audit",
    "flip_sets",
]
