"""A worker process that fails as it is told by a file: for tests of what the desk does meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

PHASE = "IFONLY_TEST_PHASE"
"""The environment variable that names the file. In it: hold (start, but never be ready), die, raise, ready (be ready,
then die), or work."""


def work(end: socket.socket) -> None:
    """In the place of `ifonly.service.worker.work`."""
    from ifonly.service import worker

    file = Path(os.environ[PHASE])
    while (phase := file.read_text()) == "hold":
        time.sleep(0.02)
    if phase == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if phase == "raise":
        worker.Handler.warm_up = failing  # type: ignore[method-assign]
    if phase == "ready":
        end.sendall(worker.framed(worker.WorkerReply(worker.READY, None)))
        os.kill(os.getpid(), signal.SIGKILL)
    worker.work(end)


def failing(handler: object) -> None:
    raise ValueError("Geheimnis-4711")
