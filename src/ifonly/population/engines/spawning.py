"""Processes that work for this one: started anew, with one thread each, and gone when we are."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""One thread for each worker: there are as many workers as cores."""
GARBAGE = 50_000
"""New objects after which a worker looks for circles of them: work makes many, and hardly any circle."""


class Messages(Protocol):
    """An end of a pipe."""

    def recv_bytes(self) -> bytes:
        """The next message; EOFError or OSError when the other end is closed."""


def spawned(target: Callable[..., None], *args: Any) -> SpawnProcess:
    """A process that runs the function, which has to be importable."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=args, daemon=True)
    with _environment(ALONE):
        process.start()
    return process


def how_it_ended(process: SpawnProcess) -> str:
    """Of a process that has ended, or is about to: with which code, by which signal."""
    process.join()
    code = process.exitcode or 0
    if code >= 0:
        return f"with the exit code {code}"
    with contextlib.suppress(ValueError):
        return f"by the signal {signal.Signals(-code).name}"
    return f"by the signal {-code}"


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """These variables, for processes that start meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---------------------------------------------------------------------- in the process


def listen(pipe: Messages, take: Callable[[bytes], None]) -> None:
    """Take messages out of the pipe, so that nobody waits for a full one; when it is closed, there is nobody left."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            take(pipe.recv_bytes())
    os._exit(0)


def settle() -> None:
    """What is loaded by now stays: it need not be looked through for garbage."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
