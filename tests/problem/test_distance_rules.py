"""Rules about distances: the parts that methods search with say what `allows_row` says."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Binary, Categorical, Distance, Integer, Ordinal, Real, Schema
from ifonly.errors import QuestionError
from ifonly.problem.distance_rules import AtLeastFar, AtMostFar, distance_in_hinges, unrolled
from ifonly.problem.parts import UnrolledColumns

WHOLE = Schema(
    [
        Integer("a", -3, 9, 3),
        Integer("b", 0, 7),
        Integer("c", 4, 4),
        Ordinal("d", ["x", "y", "z"]),
        Categorical("e", ["u", "v", "w"]),
        Binary("f"),
    ]
)
MIXED = Schema([Real("r", -1.5, 2.0), Real("s", 0.0, 1000.0), *WHOLE.features])
DISTANCES = (
    Distance("l1"),
    Distance("l1", weights={"b": 3.0, "e": 0.25}, scales={"a": 5.0}),
    Distance("l0"),
    Distance("l0", weights={"a": 0.7}),
    Distance({"l0": 0.3, "l1": 0.7}),
)


def value(schema: Schema, part, rows: np.ndarray) -> np.ndarray:
    return part.value(np.array([unrolled(schema, row) for row in rows]))


def exactly(part, values: np.ndarray) -> np.ndarray:
    return values + 0.5 >= 0.0 if part.whole else values >= 0.0


@pytest.mark.parametrize(
    ("schema", "distance"), [(WHOLE, d) for d in DISTANCES] + [(MIXED, d) for d in DISTANCES if not d.jump]
)
def test_a_distance_in_hinges_is_the_distance(schema: Schema, distance: Distance) -> None:
    rng = np.random.default_rng(0)
    columns, points = UnrolledColumns(schema), schema.sample(40, rng)
    points[0] = [getattr(f, "lower", 0.0) for f in schema.features]  # the ends of the ranges have no hinge
    points[1] = [getattr(f, "upper", 0.0) for f in schema.features]
    rows = np.vstack([schema.sample(200, rng), points])
    for point in points:
        measured = value(schema, distance_in_hinges(columns, point, distance).part(columns), rows)
        assert np.allclose(measured, distance.between(schema, point, rows), rtol=0, atol=1e-12)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("distance", DISTANCES, ids=lambda d: d.name)
def test_parts_agree_with_the_row_check(distance: Distance) -> None:
    rng = np.random.default_rng(1)
    rows = WHOLE.sample(100, rng)
    for point in WHOLE.sample(6, rng):
        for bound in (0.05, 1 / 6, 0.31, 0.5):
            for rule in (
                AtLeastFar(point=point.tolist(), at_least=bound * (1 - 1e-12), distance=distance),
                AtMostFar(point=point.tolist(), at_most=bound * (1 + 1e-12), distance=distance),
            ):
                (part,) = rule.parts(UnrolledColumns(WHOLE))
                allowed = [rule.allows_row(WHOLE, point, row) for row in rows]
                assert (exactly(part, value(WHOLE, part, rows)) == allowed).all()
                assert part.whole == isinstance(rule, AtLeastFar)


def test_a_known_side_has_no_hinge() -> None:
    schema = Schema([Real("r", 0.0, 1.0), Binary("f")])
    above = AtLeastFar(point=(0.5, 0.0), at_least=0.1, distance=Distance("l1"), sides=(("r", 1),))
    (part,) = above.parts(UnrolledColumns(schema))
    assert len(part.layers) == 1
    rows = np.array([[0.69, 0.0], [0.71, 0.0], [0.29, 0.0], [0.5, 1.0]])
    assert (value(schema, part, rows) >= 0).tolist() == [False, True, False, True]
    assert [above.allows_row(schema, row, row) for row in rows] == [False, True, False, True]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AtLeastFar(point=(0,), at_least=0.0, distance=Distance()), "must be a number > 0; it is 0.0"),
        (lambda: AtLeastFar(point=(0,), at_least="far", distance=Distance()), "must be a number > 0; it is 'far'"),
        (lambda: AtMostFar(point=(0,), at_most=-1, distance=Distance()), "must be a number >= 0; it is -1"),
        (lambda: _apart("l2").check(MIXED), "l2, which is not piecewise linear; measure it in l1: apart_distance='l1'"),
        (lambda: _apart("linf").check(MIXED), "which is no sum over features"),
        (lambda: _apart("l0").check(MIXED), "as soon as 'r', a real number, differs by arbitrarily little"),
        (lambda: _apart({"l0": 1, "l1": 1}).check(MIXED), "apart_distance='l1'"),
    ],
)
def test_what_cannot_be_asked_is_said(make, words: str) -> None:
    with pytest.raises(QuestionError) as error:
        make()
    assert words in str(error.value)


def _apart(norm) -> AtLeastFar:
    return AtLeastFar(point=tuple(range(8)), at_least=0.1, distance=Distance(norm))
