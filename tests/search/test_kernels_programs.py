"""The dual simplex, and the programs over several planes at once, against other solvers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import reference_kernels
from harness import Node, compiled, random_node

from ifonly.solvers.search.kernels import layout, planes, simplex
from ifonly.solvers.search.kernels.layout import CHOICE, LP_COLUMN, MAXIMUM, MULTIPLIER, PLANE, RHS, Cut, Y
from ifonly.solvers.search.kernels.node import farthest_cost
from ifonly.solvers.search.kernels.simplex import INFEASIBLE, OPTIMAL

# ---------------------------------------------------------------------------------------------- the simplex alone


class Tableau:
    """min c.x  subject to  A x >= b,  0 <= x <= u, in the kernel's arrays; rows are added one by one."""

    def __init__(self, c: np.ndarray, u: np.ndarray, most_rows: int) -> None:
        self.columns, self.rows = len(c), 0
        self.LF = np.zeros((layout.PROGRAM_FLOATS, self.columns + most_rows))
        self.LI = np.zeros((layout.PROGRAM_INTS, self.columns + most_rows), dtype=np.int64)
        self.T = np.zeros((most_rows, self.columns))
        self.LF[layout.REDUCED, : self.columns] = c
        self.LF[layout.UPPER, : self.columns] = u
        self.LI[layout.NONBASIC, : self.columns] = np.arange(self.columns)

    def add(self, row: np.ndarray, b: float) -> None:
        self.LF[layout.ROW, : self.columns] = row
        compiled(simplex.add_row)(b, self.rows, self.columns, self.LF, self.LI, self.T)
        self.rows += 1

    def solve(self) -> tuple[int, int]:
        return compiled(simplex.reoptimise)(self.rows, self.columns, self.LF, self.LI, self.T, 500)

    def solution(self) -> np.ndarray:
        compiled(planes._read_solution)(self.rows, self.columns, self.LF, self.LI)
        return self.LF[layout.VALUE, : self.columns].copy()

    def multipliers(self, failed: int = -1) -> np.ndarray:
        compiled(planes._read_multipliers)(self.rows, self.columns, failed, self.LF, self.LI, self.T)
        return self.LF[MULTIPLIER, : self.rows].copy()


def random_program(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    c, u = rng.choice([0.0, 1.0, 0.5], size=n) * rng.random(n), rng.choice([1.0, 1.0, 3.0], size=n)
    rows = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
    if m > 2 and rng.random() < 0.3:
        rows[1] = rows[0]  # parallel rows, ties
    feasible = rows @ (u * rng.random(n))
    b = feasible - rng.choice([0.0, 0.1, -0.3], size=m) * rng.random(m)
    return c, u, rows, b


@pytest.mark.long
@pytest.mark.parametrize("at_once", [True, False], ids=["all rows", "row by row"])
def test_simplex_against_another_solver(at_once: bool) -> None:
    kinds = set()
    for seed in range(300):
        c, u, rows, b = random_program(seed)
        tableau = Tableau(c, u, len(b))
        status, failed = OPTIMAL, -1
        for row, right in zip(rows, b, strict=True):
            tableau.add(row, right)
            if not at_once and status == OPTIMAL:
                status, failed = tableau.solve()
        if status == OPTIMAL:
            status, failed = tableau.solve()
        other = reference_kernels.solve_lp(c, A_ub=-rows, b_ub=-b, bounds=list(zip(np.zeros(len(u)), u, strict=True)))
        kinds.add(other.status)
        assert status == (OPTIMAL if other.status == 0 else INFEASIBLE), seed
        m = tableau.multipliers(failed if status == INFEASIBLE else -1)
        assert (m >= 0.0).all()
        combined = m @ rows
        if status == OPTIMAL:
            x = tableau.solution()
            assert (x >= -1e-9).all()
            assert (x <= u + 1e-9).all()
            assert (rows @ x >= b - 1e-9).all()
            assert c @ x == pytest.approx(other.fun, abs=1e-9)
            # the multipliers prove it: m.b + min over the box of (c - m A).x
            assert m @ b + np.minimum((c - combined) * u, 0.0).sum() == pytest.approx(other.fun, abs=1e-9)
        else:  # and they prove that there is no point: the combined row is out of reach of the whole box
            assert m @ b > np.maximum(combined * u, 0.0).sum() - 1e-9
    assert kinds == {0, 2}


def test_a_program_without_room_or_rows() -> None:
    assert Tableau(np.ones(3), np.ones(3), 1).solve()[0] == OPTIMAL
    tableau = Tableau(np.ones(2), np.ones(2), 2)
    tableau.add(np.array([1.0, 1.0]), 2.0)  # only the corner is left
    assert tableau.solve()[0] == OPTIMAL
    assert tableau.solution() == pytest.approx([1.0, 1.0])
    tableau.add(np.array([-1.0, 0.0]), -0.5)
    status, failed = tableau.solve()
    assert status == INFEASIBLE
    assert tableau.multipliers(failed) == pytest.approx([1.0, 1.0])


# ---------------------------------------------------------------------------------------------- programs over planes


class Program:
    """A node's program: planes  constant + a.y >= 0  over its compact columns."""

    def __init__(self, node: Node) -> None:
        self.node, self.rows = node, 0
        s = node.scratch
        self.columns = compiled(planes.begin_program)(node.norm, node.items, node.F, node.I, s.LF, s.LI)

    def add(self, a: np.ndarray, constant: float, shift: float = 0.0, robust_shift: float = 0.0) -> None:
        node, s = self.node, self.node.scratch
        node.F[PLANE, : node.width] = a
        compiled(planes.add_plane)(
            node.norm, constant, shift, robust_shift, True, self.rows, self.columns, node.width, s
        )
        self.rows += 1

    def solve(self) -> tuple[float, int, int]:
        node, s = self.node, self.node.scratch
        ceiling = compiled(farthest_cost)(node.items, node.F, node.I) if node.norm == MAXIMUM else node.budget
        cut = Cut(node.items, node.width, node.base_cost, max(ceiling, node.base_cost))
        bound, rows, found = compiled(planes.solve_program)(node.norm, cut, self.rows, self.columns, s)
        return bound, rows, found


def random_planes(node: Node, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Planes that some point of the box satisfies (usually), but not its base."""
    a = rng.normal(size=(count, node.width))
    for item in reference_kernels.items_of(node):
        if item.kind != CHOICE:
            a[:, item.columns] /= item.up + item.down
    y = node.compact_columns(node.sample(1, rng, inside=False))[0]
    reached = a @ y
    a *= np.where(reached >= 0.0, 1.0, -1.0)[:, None]
    return a, -1e-6 - np.abs(reached) * rng.choice([0.3, 0.8, 1.0 - 1e-9, 1.3], p=[0.3, 0.4, 0.2, 0.1], size=count)


def solved(seed: int, norm, *, count: int | None = None, **options):
    node = random_node(seed, norm, hidden=(3,), ball=False, **options).make_compact()
    rng = np.random.default_rng([seed, 2])
    a, constants = random_planes(node, rng, count or int(rng.integers(1, 5)))
    program = Program(node)
    for row, constant in zip(a, constants, strict=True):
        program.add(row, constant)
    return node, a, constants, program.solve(), rng


def usable(seed: int, norm, **options) -> bool:
    return random_node(seed, norm, hidden=(3,), ball=False, **options).make_compact().items > 0


@pytest.mark.long
@pytest.mark.parametrize("norm", ["l0", "l1", "linf", {"l0": 0.3, "l1": 0.7}], ids=["l0", "l1", "linf", "mixture"])
def test_linear_programs_against_another_solver(norm) -> None:
    kinds = set()
    for seed in filter(lambda seed: usable(seed, norm), range(40)):
        node, a, constants, (bound, _, found), rng = solved(seed, norm)
        best = reference_kernels.program_l1_linf(node, a, -constants)
        kinds.add(found)
        assert found == (INFEASIBLE if math.isinf(best) else OPTIMAL), seed
        if found == INFEASIBLE:
            continue
        y = node.F[Y, : node.width]
        assert (constants + a @ y >= -1e-9 * (1.0 + np.abs(constants))).all()
        if (node.kinds()[node.I[layout.FEATURE, : node.items]] == layout.REAL).all():
            assert bound == pytest.approx(best, rel=1e-8, abs=1e-12)  # the program's own optimum, ...
        elif norm != "linf":  # ... or below it: options are cheaper in the closed form (linf: whole steps are dearer)
            assert bound <= best * (1.0 + 1e-9) + 1e-12
        x = node.sample(300, rng, inside=False)  # nor beyond any real point that satisfies all planes
        good = (constants + node.compact_columns(x) @ a.T >= 0.0).all(axis=1)
        assert bound <= node.cost(x)[good].min(initial=math.inf) * (1.0 + 1e-9) + 1e-12
    assert kinds == {OPTIMAL, INFEASIBLE}


def squares(seeds: range) -> Iterator[tuple[int, float, float, int]]:
    """Small l2 programs over numbers: seed, the kernel's bound, the optimum by enumeration, what the kernel says it found."""
    for seed in seeds:
        node = random_node(seed, "l2", hidden=(3,), ball=False, numbers=True).make_compact()
        if 1 <= node.items <= 3:
            node, a, constants, (bound, _, found), _ = solved(seed, "l2", count=1 + seed % 3, numbers=True)
            best = node.base_cost + reference_kernels.program_l2(reference_kernels.items_of(node), a, -constants)
            if found == OPTIMAL:
                y = node.F[Y, : node.width]
                assert (constants + a @ y >= -1e-8 * (1.0 + np.abs(constants))).all()
            yield seed, bound, best, found


@pytest.mark.long
def test_squares_against_an_enumeration() -> None:
    tight = []
    for seed, bound, best, found in squares(range(60)):
        assert bound <= best * (1.0 + 1e-8) + 1e-12, seed
        assert math.isinf(best) == (found == INFEASIBLE), seed
        if found == OPTIMAL:
            assert bound == pytest.approx(best, rel=1e-7), seed
        if math.isfinite(best):
            tight.append(bound >= best * (1.0 - 1e-6))
    assert len(tight) > 15
    assert np.mean(tight) >= 0.8


@pytest.mark.long
def test_squares_are_solved() -> None:
    loose = [
        (seed, bound / best)
        for seed, bound, best, _ in squares(range(120))
        if math.isfinite(best) and bound < best * (1.0 - 1e-6)
    ]
    assert not loose, loose


def test_squares_with_options_stay_below_every_point() -> None:
    for seed in filter(lambda seed: usable(seed, "l2"), range(60)):
        node, a, constants, (bound, rows, _), rng = solved(seed, "l2")
        assert rows == len(a)
        assert (node.scratch.LF[MULTIPLIER, :rows] >= 0.0).all()
        x = node.sample(500, rng, inside=False)
        good = (constants + node.compact_columns(x) @ a.T >= 0.0).all(axis=1)
        assert bound <= node.cost(x)[good].min(initial=math.inf) * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_more_planes_never_lower_the_bound(norm) -> None:
    for seed in filter(lambda seed: usable(seed, norm, numbers=True), range(30)):
        node, a, constants, _, _ = solved(seed, norm, count=4, numbers=True)
        program, last = Program(node), 0.0
        for row, constant in zip(a, constants, strict=True):
            program.add(row, constant)
            bound, program.rows, found = program.solve()
            if found != OPTIMAL:
                break
            assert bound >= last * (1.0 - 1e-6)
            last = bound


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_combinations(norm) -> None:
    """PLANE is the sum of multiplier times plane, over planes only; `combine_robust` takes `robust_shift` off each constant."""
    for seed in filter(lambda seed: usable(seed, norm), range(20)):
        node = random_node(seed, norm, hidden=(3,), ball=False).make_compact()
        rng = np.random.default_rng(seed)
        a, constants = random_planes(node, rng, 3)
        program = Program(node)
        for row, constant in zip(a, constants, strict=True):
            program.add(row, constant, 0.0, 0.25)
        _, rows, _ = program.solve()
        s = node.scratch
        m = s.LF[MULTIPLIER, :rows].copy()
        plane = s.LI[layout.IS_PLANE, :rows] == 1
        assert plane[:3].all()
        scale = s.LF[layout.CONSTANT, :3] / constants
        assert s.A[:3, : node.width] == pytest.approx(a * scale[:, None], rel=1e-12)
        assert s.LF[RHS, :3] == pytest.approx(-constants * scale, rel=1e-12, abs=1e-8)  # l2: a little more
        expected, weight = (m[:3] * scale) @ constants, (m[:3] * scale) @ a
        constant = compiled(planes.combine)(rows, node.width, node.F, s.LF, s.LI, s.A)
        assert constant == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert node.F[PLANE, : node.width] == pytest.approx(weight, rel=1e-9, abs=1e-12)
        robust_shift = compiled(planes.combine_robust)(rows, node.width, node.F, s.LF, s.LI, s.A)
        assert robust_shift == pytest.approx(expected - 0.25 * (m[:3] * scale).sum(), rel=1e-9, abs=1e-12)


def test_a_program_is_solved_for_a_little_more() -> None:
    """The solution has `shift` to spare; the bound does not: it is that of the planes as they are."""
    for norm, seed in itertools.product(["l1", "l2", "linf"], range(15)):
        if not usable(seed, norm, numbers=True):
            continue
        node, a, constants, (plain, _, found), _ = solved(seed, norm, count=2, numbers=True)
        if found != OPTIMAL:
            continue
        program = Program(node)
        for row, constant in zip(a, constants, strict=True):
            program.add(row, constant, 1e-4)
        bound, _, found = program.solve()
        if found == OPTIMAL:
            assert bound == pytest.approx(plain, rel=1e-2)
            assert bound <= plain * (1.0 + 1e-7)
            assert (constants + a @ node.F[Y, : node.width] >= 1e-4 * (1.0 - 1e-4)).all()


def test_variables_of_a_program() -> None:
    """A direction of a number is one variable, an option is one, linf has the distance as one more."""
    for norm, seed in itertools.product(["l1", "l2", "linf"], range(10)):
        node = random_node(seed, norm, hidden=(3,)).make_compact()
        program = Program(node)
        items = reference_kernels.items_of(node)
        expected = [(item.up > 0.0) + (item.down > 0.0) if item.kind != CHOICE else len(item.prices) for item in items]
        assert program.columns == sum(expected) + (norm == "linf")
        columns = node.scratch.LI[LP_COLUMN, : program.columns]
        assert columns[columns < 0].tolist() == [-1] * (norm == "linf")
        if norm != "linf":
            reach = node.scratch.LF[layout.REACH, : program.columns]
            price = node.scratch.LF[layout.REDUCED, : program.columns]
            for k, item in enumerate(items):
                mine = node.scratch.LI[layout.LP_ITEM, : program.columns] == k
                if item.kind == CHOICE:
                    assert price[mine] == pytest.approx(item.prices)
                else:
                    assert price[mine] == pytest.approx(item.jump + item.rate * np.abs(reach[mine]))
