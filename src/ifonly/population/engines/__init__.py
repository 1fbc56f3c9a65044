"""Who answers chunks: this process, processes of this machine, a Ray or a Dask cluster. One small seam.

An engine is begun with a task and gives a pool, to which chunks are submitted and from which they come back in any
order: answered, or lost with the process that had them. An error of the question itself is raised.
"""

from __future__ import annotations

from ifonly.population.engines.dask import Dask
from ifonly.population.engines.in_process import InProcess
from ifonly.population.engines.processes import Processes
from ifonly.population.engines.protocol import Engine, Lost, WorkerPool
from ifonly.population.engines.ray import Ray

__all__ = ["Dask", "Engine", "InProcess", "Lost", "Processes", "Ray", "WorkerPool"]
