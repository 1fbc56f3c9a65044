"""Link-time optimisation: the same results, one optimisation for all callees, and a cache that follows its sources."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.registry import cpu_target

from ifonly.compiling import with_cache
from ifonly.link_time import link_time_optimisation

INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


CODEGEN = cpu_target.target_context.codegen()


@pytest.fixture(autouse=True)
def as_numba_does(monkeypatch):
    """Outside of the context, in the other tests' as well (conftest.py)."""
    monkeypatch.setattr(CODEGEN, "_library_class", JITCodeLibrary)


def family():
    """A function that Python calls, and its callees: two levels, one of them called twice."""

    @njit(**INNER)
    def square(x):
        return x * x

    @njit(**INNER)
    def norm(values):
        total = 0.0
        for value in values:
            total += square(value)
        return np.sqrt(total)

    @njit
    def both(values):
        return norm(values) + square(values[0])

    return square, norm, both


def test_callees_are_optimised_once_with_their_caller(monkeypatch):
    optimised, original = [], CPUCodeLibrary._optimize_final_module
    monkeypatch.setattr(
        CPUCodeLibrary, "_optimize_final_module", lambda self: optimised.append(self.name) or original(self)
    )
    _, _, both = family()
    with link_time_optimisation():
        assert both(np.array([3.0, 4.0])) == 14.0
    assert [name for name in optimised if "family" in name] == ["family.<locals>.both"]


def test_what_waits_for_its_caller_can_be_called_by_what_numba_compiles_in_its_own_way():
    _, norm, both = family()
    with link_time_optimisation():
        assert both(np.array([3.0, 4.0])) == 14.0

    @njit
    def later(values):
        return 2.0 * norm(values)

    assert later(np.array([3.0, 4.0])) == 10.0


def test_errors_leave_compiled_functions_as_ever():
    @njit(**INNER)
    def refuse(x):
        if x < 0:
            raise ValueError("negative")
        return x

    @njit
    def ask(x):
        return refuse(x) + 1

    with link_time_optimisation():
        assert ask(1) == 2
    with pytest.raises(ValueError, match="negative"):
        ask(-1)


def test_afterwards_numba_compiles_in_its_own_way():
    with pytest.raises(KeyError), link_time_optimisation():
        assert CODEGEN._library_class is not JITCodeLibrary
        raise KeyError
    assert CODEGEN._library_class is JITCodeLibrary


def test_with_another_numba_nothing_is_done(monkeypatch):
    monkeypatch.delattr(CPUCodeLibrary, "_optimize_final_module")
    with link_time_optimisation():
        assert CODEGEN._library_class is JITCodeLibrary


def test_the_cache_follows_the_sources(tmp_path, monkeypatch):
    """A kernel whose own file is as it was, and whose callee has another: compiled anew, not loaded."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def kernel(x):
        return x + 1

    def compiled(sources):
        made = with_cache(sources)(kernel)
        assert made(1) == 2
        return sum(made.stats.cache_misses.values()) == 1

    assert [compiled(1), compiled(1), compiled(2), compiled(2)] == [True, False, True, False]
