"""Functions that only tests compile, cached per version of all kernel files: numba looks only at the file of what it caches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit


def cached(sources: int, **options: Any) -> Callable[[Any], Any]:
    """`njit` with a cache of its own for this fingerprint of what the function calls."""

    def make(function: Any) -> Any:
        place, before = Path(__file__).parent / "__pycache__" / f"kernels-{sources:08x}", config.CACHE_DIR
        config.CACHE_DIR = str(place)
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no place that we may write to
            return njit(**options)(function)
        finally:
            config.CACHE_DIR = before

    return make
