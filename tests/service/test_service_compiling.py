"""Kernels of a desk: all of them are known, compiled in the image, and ready or under way before the first request."""

from __future__ import annotations

import ast
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ifonly
from ifonly import compiling
from ifonly.certifying.compiled import FLOAT_CHECK
from ifonly.compiling import ALL_KERNELS, Kernels
from ifonly.service import ServiceLimits, worker
from ifonly.service.handler import Handler
from ifonly.solvers.search.compiled import KERNELS

SOURCE = Path(ifonly.__file__).parent
DOCKERFILE = Path(__file__).parents[2] / "Dockerfile"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """As on a machine where nothing is compiled: which kernels a process was started for, in the background."""
    for kernels in (KERNELS, FLOAT_CHECK):
        kernels.load()
    before, started = [(kernels, dict(vars(kernels))) for kernels in (KERNELS, FLOAT_CHECK)], list[str]()
    monkeypatch.delenv(compiling.SWITCH, raising=False)
    monkeypatch.setattr(Kernels, "cached", False)
    monkeypatch.setattr(Kernels, "being_compiled", True)
    monkeypatch.setattr(Kernels, "_compile_in_background", lambda self: started.append(self.where))
    for kernels in (KERNELS, FLOAT_CHECK):
        kernels.compiled, kernels.now, kernels._looked, kernels._announced = False, None, -math.inf, True
    yield started
    for kernels, fields in before:
        vars(kernels).clear()
        vars(kernels).update(fields)


def test_every_set_of_kernels_is_in_the_list() -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func).endswith("Kernels")
            ):
                module = ".".join(["ifonly", *file.relative_to(SOURCE).with_suffix("").parts])
                found.append(f"{module}:{ast.unparse(node.targets[0])}")
    assert sorted(found) == sorted(ALL_KERNELS)
    for where in found:
        module, name = where.split(":")
        assert getattr(importlib.import_module(module), name).where == where


def test_the_image_compiles_all_of_them(monkeypatch) -> None:
    (command,) = re.findall(r"^RUN python -m ifonly\.compiling (.*)$", DOCKERFILE.read_text(), re.MULTILINE)
    loaded: list[str] = []
    monkeypatch.setattr(Kernels, "load", lambda self: loaded.append(self.where))
    monkeypatch.setattr(compiling.os, "nice", lambda by: 0)
    compiling.main(*command.split())
    assert tuple(loaded) == ALL_KERNELS


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_to_be_compiled_first_is_compiled_before_it_is_ready(
    registry, people, begun, monkeypatch, slow
) -> None:
    monkeypatch.setenv(compiling.SWITCH, compiling.FIRST)
    handler = Handler(registry, ServiceLimits(), slow=slow)
    handler.warm_up()
    assert KERNELS.compiled and FLOAT_CHECK.compiled and not begun


def test_otherwise_it_is_begun_in_the_background_at_the_start(registry, begun, monkeypatch) -> None:
    for slow in (False, True):
        Handler(registry, ServiceLimits(), slow=slow).warm_up()
        assert {KERNELS.where, FLOAT_CHECK.where} <= set(begun)
        assert not KERNELS.compiled and not FLOAT_CHECK.compiled


def test_where_there_is_no_background_only_the_slow_lane_compiles_before_it_is_ready(
    registry, begun, monkeypatch
) -> None:
    monkeypatch.setattr(Kernels, "being_compiled", False)
    Handler(registry, ServiceLimits(), slow=False).warm_up()
    assert not KERNELS.compiled and not FLOAT_CHECK.compiled
    Handler(registry, ServiceLimits(), slow=True).warm_up()
    assert KERNELS.compiled and FLOAT_CHECK.compiled


def test_what_is_compiled_meanwhile_is_taken_up_between_two_requests(registry, begun, monkeypatch) -> None:
    handler = Handler(registry, ServiceLimits(), slow=True)
    handler.warm_up()
    monkeypatch.setattr(Kernels, "cached", True)
    handler._kernels_checked = -math.inf
    handler.load_compiled_kernels()
    assert KERNELS.compiled and FLOAT_CHECK.compiled


def test_what_waits_for_the_compiler_says_when_to_ask_again(registry, begun, monkeypatch) -> None:
    handler = Handler(registry, ServiceLimits(), slow=True)
    late = worker._timeout_reply(handler)
    assert late.status == 503 and late.retry == 10 and b"compiled" in late.body
    monkeypatch.setattr(Kernels, "being_compiled", False)  # and nobody compiles
    assert not worker._timeout_reply(handler).retry
