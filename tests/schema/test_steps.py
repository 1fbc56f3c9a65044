"""Real numbers with a step: exact grids, read and written as people write numbers."""

from fractions import Fraction

import numpy as np
import pytest

from ifonly import Real, Schema
from ifonly.errors import QuestionError, SchemaError
from ifonly.problem import OnlyWith, Steps
from ifonly.schema import infer, schema_from_json, schema_to_json
from ifonly.schema.decimals import Grid

PRICE = Real("price", 0, 1000, step=0.01)


def test_every_value_is_the_number_that_is_written():
    assert PRICE.grid is not None
    cents = np.arange(100_001)
    values = PRICE.grid.values(cents)
    assert values.tolist() == [float(f"{k // 100}.{k % 100:02}") for k in cents.tolist()]
    assert (PRICE.grid.nearest_to(values) == values).all()
    assert [PRICE.grid.value(k) for k in (0, 7, 12_074, 100_000)] == [0.0, 0.07, 120.74, 1000.0]


def test_columns_with_different_grids_are_rounded_as_each_alone():
    features = [PRICE, Real("x", -3, 7), Real("years", 1 / 12, 5, step="1/12"), Real("rate", -0.7, 0.5, step="0.3")]
    schema, rng = Schema(features), np.random.default_rng(0)
    places, grids = schema.on_grids
    assert places.tolist() == [0, 2, 3]
    points = rng.uniform(-20.0, 1020.0, (500, 4)) * rng.choice([1.0, 1e-3], (500, 4))
    points[::5] = schema.sample(100, rng)
    alone = [features[g].grid.nearest_to(points[:, g]) for g in places]
    assert (grids.nearest_to(points[:, places]) == np.stack(alone, axis=1)).all()
    assert grids.ends.T.tolist() == [[grid.value(0), grid.value(grid.steps)] for grid in schema.grids.values()]
    inside = [bool(schema.admits(point)) for point in points]
    assert schema.admits(points).tolist() == inside and 100 <= sum(inside) < 500
    moved = np.where(rng.random(points.shape) < 0.3, schema.sample(500, rng), points)
    kept = schema.admits(moved, points)
    assert kept.tolist() == [bool(schema.admits(*pair)) for pair in zip(moved, points, strict=True)]
    assert kept.sum() > schema.admits(moved).sum(), "what a value was before is admitted"


@pytest.mark.parametrize("step", [0.01, "0.01", Fraction(1, 100)])
def test_a_step_is_a_number_a_text_or_a_fraction(step):
    assert Real("price", 0, 1000, step) == PRICE


def test_twelfths_are_exact():
    years = Real("years", 1 / 12, 5, step="1/12")
    assert years.grid == Grid(first=1, by=1, parts=12, steps=59)
    assert [years.grid.value(k) for k in range(60)] == [k / 12 for k in range(1, 61)]


def test_what_lies_between():
    assert PRICE.grid is not None
    assert PRICE.grid.between(0.005, 0.02) == (1, 2)
    assert PRICE.grid.between(0.011, 0.019) == (2, 1)
    assert PRICE.grid.between(-5.0, 2000.0) == (0, 100_000)
    assert PRICE.grid.place(0.015) == Fraction(3, 2)


def test_a_row_may_be_off_the_grid_and_what_all_but_is_on_it_is_read_so():
    assert PRICE.read(120.74000000000001) == 120.74
    assert PRICE.read("120.745") == 120.745
    schema = Schema([PRICE])
    before = np.array([[120.745], [120.745]])
    after = np.array([[120.745], [120.755]])
    assert schema.admits(after).tolist() == [False, False]
    assert schema.admits(after, before).tolist() == [True, False]  # it may stay there, and go nowhere else off the grid
    assert schema.admits(np.array([120.75]))


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (0, "step must be a number > 0"),
        (-0.01, "step must be a number > 0"),
        (float("nan"), "step must be a number > 0"),
        (float("inf"), "step must be a number > 0"),
        (True, "step must be a number > 0"),
        ("a cent", "step must be a number > 0"),
        ("1/0", "step must be a number > 0"),
        ("1e999999999", "step must be a number > 0"),
        (2000, "a step of 2000 is larger than its range"),
        (0.3, "upper bound 1000 is no whole number of steps of 0.3 above 0; make it 999.9 or 1000.2"),
        (1e-14, "too fine for float64"),
    ],
)
def test_wrong_steps_get_sentences(step, why):
    with pytest.raises(SchemaError, match=why.replace("(", r"\(")):
        Real("price", 0, 1000, step=step)


def test_files_hold_steps():
    schema = Schema([PRICE, Real("years", 0, 5, "1/12"), Real("plain", 0, 1)])
    data = schema_to_json(schema)
    assert [feature.get("step") for feature in data["features"]] == [0.01, "1/12", None]
    assert schema_from_json(data) == schema


def test_steps_are_proposed_from_the_decimals():
    schema, guesses = infer({"rent": [310.5, 299.99, 450.0], "share": [0.123456, 0.5, 0.75], "same": [0.5, 0.5, 0.5]})
    assert [feature.step for feature in schema.features] == [Fraction(1, 100), None, None]
    assert "money, so it moves in cents" in guesses[0].why
    assert not any("step" in guess.why for guess in guesses[1:])
    schema, (guess,) = infer({"width": [310.5, 299.99, 450.0]})
    assert schema["width"].step is None  # to be taken up, or not
    assert "step=0.01 would keep answers to the data's decimals" in guess.why


def test_steps_from_the_own_value_fit_the_grid_or_say_so():
    Steps("price", 0.05).check(Schema([PRICE]))
    with pytest.raises(QuestionError, match="a multiple of"):
        Steps("price", 0.015).check(Schema([PRICE]))
    with pytest.raises(QuestionError, match="leave it out"):
        Steps("years", 1.0).check(Schema([Real("years", 0, 5, "1/12")]))


def test_a_number_with_a_step_can_be_a_partner():
    plain = Real("plain", 0, 1)
    OnlyWith("plain", "price").check(Schema([PRICE, plain]))
    with pytest.raises(QuestionError, match="give 'plain' a step"):
        OnlyWith("price", "plain").check(Schema([PRICE, plain]))
