"""Supervised worker processes: how they are spawned, how they ended, when another is started (back-off).

Used by the engine `Processes` and by the service. A worker is a fresh interpreter with one thread for linear algebra.
It ends when its parent does, because a thread in it waits for the parent's end of the pipe to close.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

from ifonly.errors import QuestionError
from ifonly.printing import shown

JOBS_PER_WORKER = 2
"""The job that a worker works on, and the next one: so that no worker waits for its parent."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""There are as many workers as cores."""
GC_THRESHOLD = 50_000
"""New objects between two garbage collections of a worker: its work makes many objects, and hardly any cycle."""


class MessagePipe(Protocol):
    """An end of a pipe."""

    def recv_bytes(self) -> bytes:
        """The next message; EOFError or OSError when the other end is closed."""


def spawn(target: Callable[..., None], *args: Any) -> SpawnProcess:
    """A new process that runs the function, which has to be importable."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=args, daemon=True)
    with _environment(ONE_THREAD):
        process.start()
    return process


def exit_reason(process: SpawnProcess) -> str:
    """By which exit code or signal a process ended that has ended or is about to."""
    process.join()
    code = process.exitcode or 0
    if code >= 0:
        return f"with the exit code {code}"
    with contextlib.suppress(ValueError):
        return f"by the signal {signal.Signals(-code).name}"
    return f"by the signal {-code}"


def backoff(failures: int, first: float, longest: float) -> float:
    """Exponential back-off: the seconds before the next start, after so many failures in a row before this one."""
    return float(min(first * 2.0 ** min(failures, 60), longest))


def pickled(value: Any, remedy: str) -> bytes:
    """What workers are sent; a QuestionError with a remedy where a model cannot be pickled."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # pickle, and whatever a model's own __reduce__ raises
        why = f"{type(error).__name__}: {shown(str(error), 120)}"
        raise QuestionError(f"This model cannot be sent to other processes ({why}); {remedy}.") from None


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started inside."""
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


# ---------------------------------------------------------------------- in the worker


def read_messages(pipe: MessagePipe, receive: Callable[[bytes], None]) -> None:
    """Pass on every message at once, so that the parent never waits for a full pipe; end the process when the parent's
    end is closed."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            receive(pipe.recv_bytes())
    os._exit(0)


def freeze_heap() -> None:
    """What is loaded by now stays: the garbage collector need not look at it."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
