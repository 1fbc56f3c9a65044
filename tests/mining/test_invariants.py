"""Invariants of tables: what is planted is found, what is chance or nearly so is not, and what is said can be asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ifonly
from benchmarks.suites.invariants import judged
from ifonly import Binary, Categorical, Integer, Ordinal, Real, Rule, Schema, datasets, mining
from ifonly.cli.app import app
from ifonly.errors import QuestionError, RowError
from ifonly.mining.edges import hard_edge, rows_expected_beyond
from ifonly.mining.invariants import poisson_at_most
from ifonly.problem.rule import rows_allowed
from ifonly.problem.rules import read_constraint
from ifonly.schema import read_points
from ifonly.schema.tables import user_columns

ROWS = 3000


def kinds(table: dict[str, Any], schema: Schema | None = None, **given: Any) -> dict[str, str]:
    return {rule: one.kind for one in ifonly.invariants(table, schema, **given) for rule in one.rules}


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.long
def test_planted_invariants_of_random_tables_are_found_and_no_false_ones() -> None:
    scores = [judged(number, 8, 3000) for number in range(8)]
    planted = [found for score in scores for _, found in score.planted]
    assert len(planted) >= 10
    assert sum(planted) >= 0.95 * len(planted)
    assert [words for score in scores for words in score.false] == []


@pytest.mark.long
def test_credit_says_what_makes_its_answers_impossible() -> None:
    data = datasets.load("credit", rules=False)
    rules = kinds(data.columns, data.schema)
    assert rules["MaxPaymentAmountOverLast6Months >= MostRecentPaymentAmount"] == "order"
    assert rules["MaxBillAmountOverLast6Months >= MostRecentBillAmount"] == "order"
    assert rules["TotalMonthsOverdue >= TotalOverdueCounts"] == "order"
    assert rules["if HasHistoryOfOverduePayments = 1 then TotalOverdueCounts >= 1"] == "equivalence"
    points = data.points()[:300]
    for rule in rules:  # through the rule language itself
        assert all(Rule(rule).allows_row(data.schema, point, point) for point in points)


def test_an_equation_and_an_affine_function_have_round_coefficients(chance: np.random.Generator) -> None:
    a, b = chance.integers(0, 500, ROWS), chance.integers(0, 90, ROWS)
    table = {"a": a, "b": b, "total": a + b, "fee": 3 * b + 20}
    schema = Schema([Integer(name, 0, 1000) for name in table])
    rules = kinds(table, schema)
    assert "equation" in rules.values()
    for rule, kind in rules.items():
        assert kind == "equation", rule
    row = schema.read({"a": 5, "b": 7, "total": 13, "fee": 41})
    assert not all(Rule(rule).allows_row(schema, row, row) for rule in rules)
    row = schema.read({"a": 5, "b": 7, "total": 12, "fee": 41})
    assert all(Rule(rule).allows_row(schema, row, row) for rule in rules)


def test_noise_alone_gives_nothing(chance: np.random.Generator) -> None:
    for _ in range(10):
        table = {
            "x": chance.normal(size=ROWS),
            "y": chance.lognormal(size=ROWS),
            "n": chance.poisson(3.0, ROWS),
            "m": chance.integers(0, 5, ROWS),
            "job": chance.choice(["a", "b", "c", "d"], ROWS, p=[0.7, 0.2, 0.08, 0.02]),
        }
        assert kinds(table) == {}


def test_correlated_numbers_have_no_invariant_although_none_is_far_from_the_other(chance: np.random.Generator) -> None:
    x = chance.normal(10.0, 1.0, ROWS)
    assert kinds({"x": x, "y": x + chance.normal(0.0, 0.1, ROWS)}) == {}


def test_a_near_miss_is_proposed_only_for_a_share_of_exceptions(chance: np.random.Generator) -> None:
    low = chance.integers(0, 100, ROWS)
    high = low + chance.integers(0, 30, ROWS)
    high[[5, 700]] = low[[5, 700]] - 3
    table, schema = {"high": high, "low": low}, Schema([Integer("high", -10, 200), Integer("low", 0, 100)])
    assert "high >= low" not in kinds(table, schema)
    (found,) = (one for one in ifonly.invariants(table, schema, share=0.002) if "low" in one.rules[0])
    assert found.exceptions >= 2
    assert found.examples[0] == 5
    assert found.upper > found.exceptions / found.rows


def test_units_that_differ_are_not_compared(chance: np.random.Generator) -> None:
    low = chance.uniform(0, 100, ROWS)
    table = {"high": low + chance.exponential(5.0, ROWS), "low": low}
    money = Schema([Real("high", 0, 500, unit="$"), Real("low", 0, 500, unit="$")])
    mixed = Schema([Real("high", 0, 500, unit="$"), Real("low", 0, 500, unit="years")])
    assert "high >= low" in kinds(table, money)
    assert "high >= low" not in kinds(table, mixed)


def test_missing_numbers_neither_hold_nor_break(chance: np.random.Generator) -> None:
    low = chance.integers(0, 100, ROWS).astype(float)
    high = low + chance.integers(0, 30, ROWS)
    low[::10], high[::7] = np.nan, np.nan
    schema = Schema([Integer("high", 0, 200, missing=True), Integer("low", 0, 100, missing=True)])
    found = list(ifonly.invariants({"high": high, "low": low}, schema))
    assert any("high" in rule and "low" in rule for one in found for rule in one.rules)
    assert all(one.exceptions == 0 and one.rows < ROWS for one in found)


def test_a_dependency_is_one_finding(chance: np.random.Generator) -> None:
    city = chance.integers(6, size=ROWS)
    schema = Schema([Categorical("city", [f"c{k}" for k in range(6)]), Categorical("state", ["s0", "s1", "s2"])])
    table = user_columns(schema, np.column_stack([city, city // 2]).astype(float))
    first = ifonly.invariants(table, schema)[0]
    assert first.kind == "dependency"
    assert "if city = c5 then state = s2" in first.rules
    assert len(first.rules) == 6


def test_a_flag_that_follows_an_amount_is_said_both_ways(chance: np.random.Generator) -> None:
    flag = chance.integers(2, size=ROWS)
    amount = flag * np.round(chance.uniform(5.0, 900.0, ROWS), 2)
    schema = Schema([Binary("owes", ("no", "yes")), Real("debt", 0, 1000, unit="$")])
    table = {"owes": np.where(flag, "yes", "no"), "debt": amount}
    rules = [Rule(rule) for rule in ifonly.invariants(table, schema).rules]
    for row, possible in (({"owes": "no", "debt": 10.0}, False), ({"owes": "yes", "debt": 0.0}, False),
                          ({"owes": "yes", "debt": 10.0}, True), ({"owes": "no", "debt": 0.0}, True)):  # fmt: skip
        point = schema.read(row)
        assert all(rule.allows_row(schema, point, point) for rule in rules) == possible


def test_an_edge_is_hard_where_rows_are_frequent_up_to_it(chance: np.random.Generator) -> None:
    assert hard_edge(np.sort(chance.exponential(1.0, 2000)), 15.0) is not None
    assert hard_edge(np.sort(np.abs(chance.normal(4.0, 1.0, 500))), 15.0) is None
    assert rows_expected_beyond(np.sort(chance.integers(0, 5, 1000)).astype(float), 0.0) > 100


def test_few_events_where_many_are_expected() -> None:
    assert poisson_at_most(0, 10.0) == pytest.approx(np.exp(-10.0))
    assert poisson_at_most(2, 3.0) == pytest.approx(np.exp(-3.0) * (1 + 3 + 4.5))
    assert poisson_at_most(4, 0.0) == 1.0


def test_rows_that_do_not_fit_are_counted_and_none_at_all_is_told(chance: np.random.Generator) -> None:
    schema = Schema([Integer("a", 0, 10), Integer("b", 0, 10)])
    a = chance.integers(0, 8, 400)
    found = ifonly.invariants({"a": [99, *a], "b": [1, *(a + 2)]}, schema)
    assert (found.rows, found.unread) == (400, 1)
    assert str(found).startswith(found.rules[0])
    with pytest.raises(QuestionError, match="no row that fits"):
        ifonly.invariants({"a": [99], "b": [99]}, schema)
    with pytest.raises(RowError, match="'b' is not a column"):
        ifonly.invariants({"a": [1]}, schema)


@pytest.mark.parametrize(("given", "words"), [({"share": 0.7}, "share of exceptions"), ({"alpha": 0}, "significance")])
def test_wrong_levels_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        ifonly.invariants({"a": [1, 2]}, **given)


def test_on_the_command_line(tmp_path: Path, chance: np.random.Generator) -> None:
    low = chance.integers(0, 100, 500)
    high = low + chance.integers(0, 30, 500)
    file, out = tmp_path / "people.csv", tmp_path / "schema.json"
    file.write_text("high,low\n" + "".join(f"{h},{n}\n" for h, n in zip(high, low, strict=True)), encoding="utf-8")
    result = CliRunner().invoke(app, ["schema", "invariants", str(file), "--output", str(out)])
    assert result.exit_code == 0, result.output
    assert "high - low <= 29" in result.output
    assert Schema.load(out).rules == ("0 <= high - low <= 29",)
    told = json.loads(CliRunner().invoke(app, ["schema", "invariants", str(file), "--json"]).stdout)
    assert told["rows"] == 500
    assert told["invariants"][0]["rules"] == ["0 <= high - low <= 29"]
    struck = CliRunner().invoke(
        app, ["schema", "invariants", str(file), "--output", str(out), "--force", "--strike", "1"]
    )
    assert struck.exit_code == 0
    assert Schema.load(out).rules == ()


@pytest.mark.long
def test_features_that_another_decides() -> None:
    credit = datasets.load("credit", rules=False)
    (one,) = mining.derivations(credit.columns, credit.schema)
    assert one.rule == "HasHistoryOfOverduePayments follows from TotalOverdueCounts > 0"
    adult = datasets.load("adult", rules=False)
    (level,) = mining.derivations(adult.columns, adult.schema)
    rule = read_constraint(level.rule, adult.schema)
    points = adult.points()
    assert (level.feature, level.base) == ("EducationLevel", "EducationNumber")
    assert rows_allowed(rule, adult.schema, points, points).all()
    points[:, adult.schema.index("EducationLevel")] = 0.0
    assert not rows_allowed(rule, adult.schema, points, points).all()


def test_noise_derives_nothing_and_functions_are_found() -> None:
    rng = np.random.default_rng(3)
    schema = Schema([
        Categorical("city", ["a", "b", "c", "d"]), Categorical("state", ["s", "t"]), Integer("age", 18, 40),
        Ordinal("group", ["young", "middle", "old"]), Binary("noise"), Integer("rooms", 1, 4), Integer("copy", 1, 4),
    ])  # fmt: skip
    city, age, rooms = rng.integers(0, 4, 4000), rng.integers(18, 41, 4000), rng.integers(1, 5, 4000)
    points = np.column_stack([
        city, city >= 2, age, np.digitize(age, [25, 33]), rng.integers(0, 2, 4000), rooms, rooms,
    ]).astype(float)  # fmt: skip
    found = {one.feature: one for one in mining.derivations(user_columns(schema, points), schema)}
    assert {name: one.base for name, one in found.items()} == {"state": "city", "group": "age", "copy": "rooms"}
    for one in found.values():
        rule, g = read_constraint(one.rule, schema), schema.index(one.feature)
        assert rows_allowed(rule, schema, points, points).all()
        other = points[:1].copy()
        other[0, g] = 1.0 if points[0, g] != 1.0 else 2.0 if one.feature != "state" else 0.0
        assert not rule.allows_row(schema, other[0], other[0])
    points[5, 1] = 1.0 - points[5, 1]  # one exception is enough
    assert "state" not in {one.feature for one in mining.derivations(user_columns(schema, points), schema)}


def test_infer_takes_rules(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    low = rng.integers(0, 50, 800)
    high = low + rng.integers(0, 20, 800)
    lines = ["low,high,over", *(f"{a},{b},{'yes' if a > 24 else 'no'}" for a, b in zip(low, high, strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    words = ["schema", "infer", str(tmp_path / "people.csv"), "--output", str(tmp_path / "schema.json")]
    assert "taken with --rules" in CliRunner().invoke(app, words).output
    told = CliRunner().invoke(app, [*words, "--rules", "--force"])
    rules = Schema.load(tmp_path / "schema.json").rules
    assert set(rules) == {"-19 <= low - high <= 0", "if over = yes then low >= 25", "if over = no then low <= 24"}
    assert all(f"In every row: {rule}" in told.output for rule in rules)


def test_a_flag_whose_yes_comes_first() -> None:
    """A condition stands for yes, whatever the order of the options."""
    rng = np.random.default_rng(7)
    count = rng.integers(0, 4, 500)
    table = {"count": count.tolist(), "flag": ["yes" if k > 1 else "no" for k in count]}
    schema = Schema([Integer("count", 0, 3), Categorical("flag", ["yes", "no"])])
    (one,) = mining.derivations(table, schema)
    assert one.rule == "flag follows from count > 1"
    points = read_points(schema, table)
    assert rows_allowed(read_constraint(one.rule, schema), schema, points, points).all()


def test_one_value_inside_the_range_of_a_real_number_is_no_rule() -> None:
    rng = np.random.default_rng(3)
    owner = rng.random(ROWS) < 0.4
    schema = Schema([Binary("Owner"), Real("Rent", 0, 1000)])
    rent = np.where(owner, 250.0, np.round(rng.uniform(0, 1000, ROWS), 2))
    assert kinds({"Owner": owner.tolist(), "Rent": rent.tolist()}, schema) == {}  # a rule cannot demand Rent = 250
    rent = np.where(owner, 0.0, rent)
    assert "if Rent > 0 then Owner = False" in kinds({"Owner": owner.tolist(), "Rent": rent.tolist()}, schema)
