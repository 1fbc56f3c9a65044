"""Engines: where chunks of rows are answered. This process, processes of this machine, a Ray or a Dask cluster.

An engine is started with a task and gives a pool. Chunks are submitted to the pool and come back in any order:
answered, or lost with their worker. An error of the query itself is raised.
"""

from __future__ import annotations

from ifonly.population.engines.dask import Dask
from ifonly.population.engines.in_process import InProcess
from ifonly.population.engines.processes import Processes
from ifonly.population.engines.protocol import Engine, Lost, WorkerPool
from ifonly.population.engines.ray import Ray

__all__ = ["Dask", "Engine", "InProcess", "Lost", "Processes", "Ray", "WorkerPool"]
