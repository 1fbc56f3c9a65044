"""Who answers chunks: this process, processes of this machine, a Ray or a Dask cluster. One small seam.

An engine is begun with a task and gives a pool, to which chunks are submitted and from which they come back in any
order: answered, or lost with the process that had them. An error of the question itself is raised.
"""

from __future__ import annotations

from ifonly.population.engines.dask import Dask
from ifonly.population.engines.here import Here
from ifonly.population.engines.processes import Processes
from ifonly.population.engines.ray import Ray
from ifonly.population.engines.seam import Engine, Lost, WorkerPool

__all__ = ["Dask", "Engine", "Here", "Lost", "Processes", "Ray", "WorkerPool"]
