"""Background compilation of numba kernels: once per machine, in a process of its own; plain Python until that is done.

Compiling takes a minute or more. The functions that numba was given are Python and give the same results, only slower,
which a small question does not notice. So a first answer need not wait; a question that is too large for plain Python
waits, and says so.

    not compiled yet   a process of low priority compiles into numba's cache, one per machine; plain Python answers
    compiled           loaded from the cache, in half a second, also in the middle of a search
    no such process    (a read-only cache, an embedded Python, Windows) compiled here, when plain Python takes too long

With IFONLY_COMPILE=first in the environment everything is compiled, here, before anything is answered.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CellType, FunctionType, MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from ifonly.caching import PREPARING, rare_gc
from ifonly.resources import check_limits, seconds_left

SWITCH = "IFONLY_COMPILE"
FIRST = "first"
LOCKED = "IFONLY_COMPILE_LOCKED"
"""Set for the process in the background, which has inherited the lock."""
PATIENCE_SECONDS = 2.0
"""After so long a message says what is waited for."""
LOOK_SECONDS = 0.2
LOAD_SECONDS = 1.0
"""More than it takes to load what is compiled: with less time than this left, it is not loaded."""
NICENESS = 10
ALL_KERNELS = (
    "ifonly.solvers.search.compiled:KERNELS",
    "ifonly.solvers.search.rounding_analysis:ROUNDING_KERNEL",
    "ifonly.certifying.compiled:FLOAT_CHECK",
    "ifonly.solvers.search.smooth.compiled:SMOOTH_KERNELS",
    "ifonly.solvers.search.trees.compiled:TREE_KERNELS",
)
"""Every set of kernels of the package, as "module:name": what `python -m ifonly.compiling --all` compiles. The first
three take as long as the last two, so that two processes that begin at either end are done together."""


class Kernels:
    """Functions of a module that numba compiles, called as `now.name(...)`: compiled, or plain Python until then.

    `where` is the name of this object, as "module:name"; `functions` imports what numba was given, with `SOURCES`, the
    fingerprint of all its files; `try_out` calls each of them once, which compiles it or loads it from the cache.
    `vectorised`: by kernel, what does the same in numpy, where plain Python would take too long.
    """

    def __init__(
        self,
        where: str,
        about: str,
        functions: Callable[[], tuple[Mapping[str, Any], int]],
        try_out: Callable[[Any], None],
        vectorised: Callable[[], Mapping[Any, Callable[..., Any]]] = dict,
    ) -> None:
        self.where, self.about = where, about
        self.compiled = False
        self.now: Any = None
        self.locked = False
        """Does this process hold the lock, so that others wait for it?"""
        self.compiler: int | None = None
        """The id of the process that this one has started."""
        self._functions, self._try_out, self._vectorised = functions, try_out, vectorised
        self._lock = threading.RLock()  # taken only inside the gate, so no fork copies it locked
        self._looked = -math.inf
        self._announced = False

    # ------------------------------------------------------------------ compiled, or plain Python

    def prepare(self) -> None:
        """Before the first question: make something ready that can answer it."""
        if self.now is not None:
            return
        with PREPARING, self._lock:
            if self.now is not None:
                return
            if os.environ.get(SWITCH) == FIRST or self.cached:
                self.load()
                return
            functions, _ = self._functions()
            self._compile_in_background()
            uncompiled = plain(functions, self._vectorised())
            self.now = SimpleNamespace(**{name: _quiet(function) for name, function in uncompiled.items()})

    def begin(self) -> None:
        """Begin to compile in the background, unless that is done or under way: they will be needed soon."""
        with PREPARING, self._lock:
            if not self.compiled and os.environ.get(SWITCH) != FIRST and not self.cached:
                self._compile_in_background()

    def look(self, begun: float, until: float = math.inf) -> None:
        """In the middle of plain work, which has lasted since `begun`: go on compiled, if that is possible by now."""
        now = time.perf_counter()
        if self.compiled or now - self._looked < LOOK_SECONDS or until - now < LOAD_SECONDS:
            return
        self._looked = now
        if self.cached:
            self.load()
        elif now - begun >= PATIENCE_SECONDS:
            if self.being_compiled:
                self._announce("; until then answers take longer")
            elif until == math.inf:
                self.load()

    def wait(self, until: float = math.inf) -> bool:
        """Plain Python would take too long: wait until it is compiled. False when there was no time for that."""
        begun = time.perf_counter()
        while not self.compiled:
            now = time.perf_counter()
            at_work = self.being_compiled
            if (self.cached and until - now >= LOAD_SECONDS) or (until == math.inf and not at_work):
                self.load()
                break
            if now >= until or not at_work:
                return False
            if now - begun >= PATIENCE_SECONDS:
                self._announce("; this question waits for it")
            time.sleep(min(0.05, max(until - now, 0.0)))
        return True

    def wait_within_limits(self) -> None:
        """Wait for as long as the limits around this call allow (`resources.limited`), and raise `LimitReached` where
        they do not. Where no process compiles and time is limited, plain Python goes on."""
        left = seconds_left()
        if not self.wait(math.inf if left is None else time.perf_counter() + left):
            check_limits()

    def load(self) -> None:
        """Compiled, now and here: from the cache, or else as long as it takes. Nothing happens the second time."""
        with PREPARING, self._lock:
            if self.compiled:
                return
            mark, (functions, _) = self._mark, self._functions()
            ready = SimpleNamespace(**functions)
            if self.cached:
                self._try_out_anew(ready, mark)
            else:
                self._announce("")
                with contextlib.nullcontext() if self.locked else _locked(mark):  # another may be about to finish it
                    self._try_out_anew(ready, mark)
                    if mark is not None:
                        with contextlib.suppress(OSError):  # read-only: then it is compiled, and said, each time
                            mark.touch()
            self.now, self.compiled = ready, True

    def _try_out_anew(self, ready: Any, mark: Path | None) -> None:
        """Try the functions out. What an older version of them has left in the cache may name what is no longer there,
        and numba then fails before it looks how old it is: such leavings are removed."""
        try:
            self._compile(ready)
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            left = [] if mark is None else list(mark.parent.glob("*.nbi"))
            if not left:
                raise
            for index in left:
                index.unlink(missing_ok=True)
            self._compile(ready)

    def _compile(self, ready: Any) -> None:
        """Try the functions out, which compiles what is not in the cache."""
        from ifonly.link_time import link_time_optimisation  # imports numba

        with link_time_optimisation(), rare_gc():
            self._try_out(ready)

    def _announce(self, words: str) -> None:
        """Print once what is waited for."""
        if self._announced or sys.stderr is None:
            return
        self._announced = True
        sys.stderr.write(f"Compiling {self.about} for this machine, once{words} ...\n")
        sys.stderr.flush()

    @property
    def functions(self) -> Mapping[str, Any]:
        """What numba was given, by name."""
        return self._functions()[0]

    # ------------------------------------------------------------------ what is in the cache

    @property
    def cached(self) -> bool:
        """Does numba's cache hold these very functions, compiled by this numba for this machine?"""
        mark = self._mark
        if mark is None or not mark.exists():
            return False
        functions, _ = self._functions()
        return all(any(Path(function.stats.cache_path).glob(f"*{name}*.nbc")) for name, function in functions.items())

    @property
    def _mark(self) -> Path | None:
        """A file beside numba's: it is compiled. Named after all that numba looks at before it believes its cache."""
        import numba
        from llvmlite import binding

        functions, sources = self._functions()
        first = next(iter(functions.values()))
        place = first.stats.cache_path if hasattr(first, "stats") else None
        if place is None:
            return None
        file = Path(first.py_func.__code__.co_filename).stat()
        key = (sources, numba.__version__, sys.implementation.cache_tag, binding.get_host_cpu_name(),
               file.st_mtime_ns, file.st_size)  # fmt: skip
        return Path(place) / f"ifonly-{zlib.crc32(repr(key).encode()):08x}.ready"

    # ------------------------------------------------------------------ the process in the background

    @property
    def being_compiled(self) -> bool:
        """Is a process at work that compiles them?"""
        mark = self._mark
        if mark is None or fcntl is None:
            return False
        try:
            file = os.open(mark.with_suffix(".lock"), os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(file)
        return False

    def _compile_in_background(self) -> None:
        """Begin to compile in another process, unless one does. It outlives this one, and prints nothing.

        It inherits the lock, which is free again when it ends, however it ends.
        """
        mark = self._mark
        if mark is None or fcntl is None or not _python():
            return
        try:
            file = os.open(mark.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # no place that we may write to
            return
        paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "ifonly.compiling", self.where],
                env={**os.environ, SWITCH: FIRST, LOCKED: "", "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(file,), start_new_session=True,
            )  # fmt: skip
            child.returncode = 0  # it is never waited for; without this, Popen would warn
            self.compiler = child.pid
        except OSError:  # one is at work, or no process may be started here
            pass
        finally:
            os.close(file)


def fingerprint(file: str, used: int = 0) -> int:
    """Of all kernel files beside this one, and of those that they use: numba looks only at the file of the function
    that it caches.
    """
    return zlib.crc32(b"".join(other.read_bytes() for other in sorted(Path(file).parent.glob("*.py"))), used)


def with_cache(sources: int = 0, /, **options: Any) -> Callable[[Any], Any]:
    """`njit` with numba's cache; without one where numba finds no place that it may write to.

    `sources`, the fingerprint of what the function calls, becomes a variable that it closes over: these are a part of
    what numba looks at before it believes its cache, and the files of the callees are not.
    """
    from numba import njit

    def make(function: Any) -> Any:
        if sources:
            code = function.__code__.replace(co_freevars=("sources",))
            function = FunctionType(
                code, function.__globals__, function.__name__, function.__defaults__, (CellType(sources),)
            )
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return make


@contextlib.contextmanager
def _locked(mark: Path | None) -> Iterator[None]:
    """Hold the lock on compiling, once another process has released it; without locks, go on without."""
    with contextlib.ExitStack() as stack:
        if mark is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                file = os.open(mark.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, file)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _python() -> bool:
    """Is there a Python to start? In a frozen program, `sys.executable` is the program."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith("python")


def plain(
    kernels: Mapping[str, Any], vectorised: Mapping[Any, Callable[..., Any]] = MappingProxyType({})
) -> dict[str, Callable[..., Any]]:
    """The Python functions that numba was given, which call one another instead of what numba makes of them; and in the
    place of some of them what is vectorised.
    """
    spaces: dict[int, dict[str, Any]] = {}
    made: dict[int, FunctionType] = {}

    def of(kernel: Any) -> Any:
        function = getattr(kernel, "py_func", None)
        if function is None:
            return kernel
        if kernel in vectorised:
            return vectorised[kernel]
        if id(kernel) not in made:
            names = function.__globals__
            space = spaces.get(id(names))
            known = space is not None
            space = spaces.setdefault(id(names), dict(names))
            made[id(kernel)] = FunctionType(
                function.__code__, space, function.__name__, function.__defaults__, function.__closure__
            )
            if not known:
                space.update({name: of(value) for name, value in names.items() if hasattr(value, "py_func")})
        return made[id(kernel)]

    return {name: of(kernel) for name, kernel in kernels.items()}


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Infinity and NaN are numbers like others, as they are to numba."""

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


def main(*names: str) -> None:
    """Compile these kernels, or every set of kernels (`--all`), in a process of its own."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    for where in ALL_KERNELS if names == ("--all",) else names:
        module, name = where.split(":")
        kernels = getattr(importlib.import_module(module), name)
        kernels.locked = LOCKED in os.environ
        kernels.load()


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if __name__ == "__main__":
    main(*sys.argv[1:])


__all__ = ["Kernels", "plain", "with_cache"]
