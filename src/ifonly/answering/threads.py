"""Thread pool for chunks of people.

The kernels run without the interpreter's lock; reading rows and building answers does not. A thread takes a chunk all
the way, so one chunk's search overlaps with another's reading and checking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from ifonly.results import Listener, Progress

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def run_chunks(
    task: Callable[[Chunk, Listener | None], Result],
    chunks: Sequence[Chunk],
    sizes: Sequence[int],
    threads: int,
    listen: Listener | None,
) -> list[Result]:
    """The task's result for each chunk, in order. `sizes` are the people in each; progress counts all together.

    With one thread, they are worked through here. When anything fails, or on Ctrl-C, the other threads stop at their
    next progress event.
    """
    lock, cancelled = threading.Lock(), threading.Event()
    finished = [0] * len(chunks)

    def reporting_to(k: int) -> Listener:
        def report(progress: Progress) -> None:
            if cancelled.is_set():
                raise KeyboardInterrupt
            with lock:
                finished[k] = progress.finished
                if listen is not None:
                    listen(replace(progress, finished=sum(finished), people=sum(sizes)))

        return report

    if threads == 1:
        return [task(chunk, None if listen is None else reporting_to(k)) for k, chunk in enumerate(chunks)]
    with ThreadPoolExecutor(max_workers=threads) as pool:
        futures = [pool.submit(task, chunk, reporting_to(k)) for k, chunk in enumerate(chunks)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            cancelled.set()
            for future in futures:
                future.cancel()
        failures = [error for future in futures if not future.cancelled() and (error := future.exception())]
        for error in sorted(failures, key=lambda error: isinstance(error, KeyboardInterrupt)):
            raise error
        return [future.result() for future in futures]
