"""Thread pool for chunks of people.

The kernels run without the interpreter's lock; reading rows and building answers does not. A thread takes a chunk all
the way, so one chunk's search overlaps with another's reading and checking. Where searching takes little of the time,
threads mostly wait for the lock, and for one another: then one of them is faster, and processes are what helps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
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
    worthwhile: Callable[[Result, float], bool] = lambda _first, _seconds: True,
) -> list[Result]:
    """The task's result for each chunk, in order. `sizes` are the people in each; progress counts all together.

    The first chunk is worked through here; so are the others with one thread, or where threads are not `worthwhile`,
    judging by the first result and the seconds that it took. When anything fails, or on Ctrl-C, the other threads stop
    at their next progress event.
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

    def here(numbers: Iterable[int]) -> list[Result]:
        return [task(chunks[k], None if listen is None else reporting_to(k)) for k in numbers]

    begun = time.perf_counter()
    first = here(range(len(chunks))[:1])
    others = range(len(chunks))[1:]
    if threads == 1 or not others or not worthwhile(first[0], time.perf_counter() - begun):
        return first + here(others)
    return first + _on_threads([partial(task, chunks[k], reporting_to(k)) for k in others], threads, cancelled)


def _on_threads(calls: Sequence[Callable[[], Result]], threads: int, cancelled: threading.Event) -> list[Result]:
    """The results, in order; the event is set once all are done or one has failed."""
    with ThreadPoolExecutor(max_workers=threads) as pool:
        futures = [pool.submit(call) for call in calls]
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
