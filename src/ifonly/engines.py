"""Engines: where the rows of a table are answered. Processes of this machine, a Ray or a Dask cluster."""

from __future__ import annotations

from ifonly.population.engines import Dask, Processes, Ray

__all__ = ["Dask", "Processes", "Ray"]
