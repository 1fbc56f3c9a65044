"""Rules in words: what they mean (against a reading of their own), what they become, and what they refuse."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ifonly import Binary, Categorical, Explainer, Integer, Network, Ordinal, Real, Schema
from ifonly.errors import IfonlyError, QuestionError, RuleError
from ifonly.methods import Mace, Search
from ifonly.problem.constraints import Allowed, Fixed, MaxDelta, OnlyDown, OnlyUp, Range, Steps, Unconstrained
from ifonly.problem.parts import UnrolledColumns
from ifonly.problem.rules import Rule, merged, normal, read_constraint
from ifonly.problem.support import Actionable, MaxChanges, OnlyWith

PEOPLE = Schema(
    [
        Integer("Age", 18, 90),
        Integer("YearsEmployed", 0, 50),
        Real("Income", 0, 1000),
        Categorical("Job", ["none", "clerk", "civil-servant", "art & craft", None]),
        Ordinal("Education", ["HS", "Bachelors", "Masters"]),
        Binary("Owner"),
        Integer("Hours per week", 0, 80, 5),
        Real("MaxBill", 0, 100),
        Real("RecentBill", 0, 100),
        Ordinal("Grade", [1, 2, 3]),
    ]
)
ROW = {
    "Age": 30, "YearsEmployed": 5, "Income": 10.0, "Job": "clerk", "Education": "HS", "Owner": True,
    "Hours per week": 40, "MaxBill": 50.0, "RecentBill": 20.0, "Grade": 2,
}  # fmt: skip


def is_true(text: str, **changes: Any) -> bool:
    point = PEOPLE.read(ROW | changes)
    return Rule(text).allows_row(PEOPLE, point, point)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("Age >= 18 + YearsEmployed", {"YearsEmployed": 12}, {"YearsEmployed": 13}),
        ("if Education >= Bachelors then Age >= 21", {"Age": 18}, {"Age": 18, "Education": "Masters"}),
        ("MaxBill >= RecentBill", {"RecentBill": 50.0}, {"RecentBill": 50.1}),
        ("not (Job = none and Income > 0)", {"Job": "none", "Income": 0.0}, {"Job": "none"}),
        ("18 <= Age < 65", {"Age": 64}, {"Age": 65}),
        ("Age - YearsEmployed > 2 * (3 + 4) / 0.5", {"Age": 34}, {"Age": 33}),
        ("-Age + 31 = 1", {}, {"Age": 31}),
        ("Age != 31", {}, {"Age": 31}),
        ("Age in (30, 31, 33)", {"Age": 33}, {"Age": 32}),
        ("Age not in [31, 40]", {}, {"Age": 31}),
        ("Job in (none, clerk)", {}, {"Job": "civil-servant"}),
        ("Job not in (none, 'art & craft')", {}, {"Job": "art & craft"}),
        ("Job = civil-servant", {"Job": "civil-servant"}, {}),
        ("Job != missing", {}, {"Job": None}),
        ("Bachelors <= Education", {"Education": "Masters"}, {}),
        ("Education > HS", {"Education": "Bachelors"}, {}),
        ("Owner", {}, {"Owner": False}),
        ("Owner = false or Age >= 40", {"Owner": False}, {}),
        ("not Owner = true", {"Owner": False}, {}),
        ("\"Hours per week\" <= 40 and 'Hours per week' >= 40", {}, {"Hours per week": 45}),
        ("Grade >= 2", {}, {"Grade": 1}),
        ("Grade in (1, 3)", {"Grade": 3}, {}),
        ("Age >= 40 only if Owner", {"Age": 50}, {"Age": 50, "Owner": False}),
        ("if Owner then Age >= 30 else Age <= 20", {"Age": 19, "Owner": False}, {"Age": 19}),
        ("if Owner then if Grade = 2 then Age = 30", {"Age": 19, "Grade": 1}, {"Age": 19}),
        (
            "[Job = none] + [Education >= Bachelors] + [not Owner] <= 1",
            {"Job": "none"},
            {"Job": "none", "Owner": False},
        ),
        ("Age + 10 * [Job in (none, clerk)] ≤ 40", {}, {"Age": 31}),
        ("Age >= 40 or Age >= 20 and Owner", {}, {"Owner": False}),
        ("(Age >= 40 or Age >= 20) and not (Owner)", {"Owner": False}, {}),
        ("Income <= 0.3", {"Income": 0.3}, {"Income": np.nextafter(0.3, 1)}),
        ("Income >= 0.3", {"Income": 0.3}, {"Income": np.nextafter(0.3, 0)}),
        ("0.1 * Age <= 3", {}, {"Age": 31}),
        ("0.1 * Age + 0.2 * YearsEmployed = 4", {}, {"YearsEmployed": 6}),
        ("MaxBill <= 0.1 + RecentBill", {"MaxBill": 20.0}, {"MaxBill": 20.125}),
    ],
)
def test_what_rules_mean(text: str, yes: dict[str, Any], no: dict[str, Any]) -> None:
    assert is_true(text, **yes)
    assert not is_true(text, **no)
    constraint = read_constraint(text, PEOPLE) if "Income > 0" not in text else Rule(text)
    assert read_constraint(constraint.describe(), PEOPLE) == constraint
    for row, verdict in ((yes, True), (no, False)):
        assert judged(constraint, PEOPLE.read(ROW | row)) == verdict


def judged(constraint: Any, point: NDArray[np.float64]) -> bool:
    """The verdict of any constraint on a row that did not change."""
    if hasattr(constraint, "allows_row"):
        return bool(constraint.allows_row(PEOPLE, point, point))
    g = PEOPLE.index(constraint.feature)
    return bool(constraint.allows(PEOPLE.features[g], float(point[g]), float(point[g])))


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("at most 2 changes", MaxChanges(2)),
        ("at most 1 change", MaxChanges(1)),
        ("Job changes only with Age", OnlyWith("Job", "Age")),
        ("only Age, Job may change", Actionable(("Age", "Job"))),
        ("only Age and 'Hours per week' can change", Actionable(("Age", "Hours per week"))),
        ("only Hours per week may change", Actionable(("Hours per week",))),
        ("at most one change", MaxChanges(1)),
        ("at most three changes", MaxChanges(3)),
        ("Income >= $500", Range("Income", 500)),
        ("Income >= 1 000 €", Range("Income", 1000)),
        ("Income changes by at most $1 500", MaxDelta("Income", by=1500)),
        ("'Hours per week' changes only with Job", OnlyWith("Hours per week", "Job")),
        ("Age is fixed", Fixed("Age")),
        ("Age is free", Unconstrained("Age")),
        ("Age only goes up", OnlyUp("Age")),
        ("Age only up", OnlyUp("Age")),
        ("Education only goes down", OnlyDown("Education")),
        ("Age in [18, 65]", Range("Age", 18, 65)),
        ("Age between 18 and 65", Range("Age", 18, 65)),
        ("Income >= 1,000", Range("Income", 1000)),
        ("Hours per week <= 40", Range("Hours per week", upper=40)),
        ("Hours  per week is fixed", Fixed("Hours per week")),
        ("Income in [-inf, 0.1]", Range("Income", upper=0.1)),
        ("Income in [-inf, inf]", Range("Income")),
        ("Age in [30, 40.5]", Range("Age", 30, 40.5)),
        ("Age > 21", Range("Age", 22)),
        ("not Age > 21", Range("Age", upper=21)),
        ("3 * Age - 1 <= 100", Range("Age", upper=101 / 3)),
        ("Age >= 20.00000000000000000001", Rule("Age >= 20.00000000000000000001")),
        ("Age != 30", Rule("Age != 30")),
        ("Age >= 40 and Age <= 30", Rule("Age >= 40 and Age <= 30")),
        ("Job in (clerk, missing)", Allowed("Job", ["clerk", None])),
        ("Job != none", Allowed("Job", ["clerk", "civil-servant", "art & craft", None])),
        ("Job = none or Job = clerk", Allowed("Job", ["none", "clerk"])),
        ("Education >= Bachelors", Allowed("Education", ["Bachelors", "Masters"])),
        ("Age changes by at most 5", MaxDelta("Age", by=5)),
        ("Income changes by at most 12.5 %", MaxDelta("Income", share=0.125)),
        ("Income changes by at most 7%", MaxDelta("Income", share=0.07)),
        ("Income changes in steps of 0.1", Steps("Income", 0.1)),
    ],
)
def test_every_constraint_in_words(text: str, constraint: Any) -> None:
    assert read_constraint(text, PEOPLE) == constraint
    assert read_constraint(constraint.describe(), PEOPLE) == constraint
    assert hash(constraint) == hash(read_constraint(text, PEOPLE))
    assert pickle.loads(pickle.dumps(constraint)) == constraint


def test_odd_names_survive() -> None:
    names = [
        "and",
        "in",
        "a b",
        "it's",
        'a"b',
        'it\'s "x"',
        "-x",
        "1st",
        "x-1",
        "é",
        "a.b",
        "true",
        "Missing",
        "changes",
        "=",
    ]
    schema = Schema([Integer(name, 0, 9) for name in names])
    options = ["missing", None, "1", 1, "True", True and 2, -3, 0.5, "a, b", "", "x y", "inf", "(", 'q"', "in"]
    many = Schema([Categorical("c", options, "code")])
    for name in names:
        for constraint in (Fixed(name), OnlyUp(name), Range(name, 1, 3), Range(name, 2), MaxDelta(name, share=0.3)):
            assert read_constraint(constraint.describe(), schema) == constraint
    for option in options:
        constraint = Allowed("c", [option])
        assert [repr(v) for v in read_constraint(constraint.describe(), many).values] == [repr(option)]
    flags = Schema([Categorical("f", ["true", True, "False", False], "code")])
    for option in ("true", True, "False", False):
        assert read_constraint(Allowed("f", [option]).describe(), flags).values == (option,)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("Agee >= 18", "no feature 'Agee'; did you mean Age\\?", "Agee"),
        ("hours >= 18", "no feature 'hours'; did you mean 'Hours per week'\\?", "hours"),
        ("Age >= 18 + Years", "did you mean YearsEmployed", "Years"),
        ("Age-YearsEmployed >= 3", "put spaces around it: Age - YearsEmployed", "Age-YearsEmployed"),
        ("Job = clrk", "Job has no option clrk; did you mean clerk\\?", "clrk"),
        ("Job = art & craft", "'&' means nothing here", "&"),
        ("Job = 25-45", "no option 25-45; there are none.*stand in quotes", "25-45"),
        ("Education in (HS, Bach)", "did you mean Bachelors", "Bach"),
        ("Job > none", "Job have no order; use =, != or in", "Job"),
        ("Job = Education", "Two features with options cannot be compared", "Education"),
        ("Job + 1 >= 2", "\\[Job = none\\] is a number", "Job"),
        ("Job in [1, 2]", "use in \\(a, b\\)", "Job"),
        ("Age >=", "ends too early", None),
        ("", "ends too early", None),
        ("Age >= 18 18", "complete before this", "18"),
        ("Age >= 18)", "complete before this", ")"),
        ("(Age >= 18", "a bracket is opened and not closed", None),
        ("if Age >= 18", "comes 'then'", None),
        ("Age", "alone is no condition; compare it, such as Age >= 1", "Age"),
        ("Job", "such as Job = none", "Job"),
        ("Age + 1", "a number, not a condition", "Age + 1"),
        ("(Age >= 1) + 2 >= 3", "a condition, not a number; in \\[ \\]", "Age >= 1"),
        ("[Age >= 1] >= 3", "Only a condition on one feature with options", "[Age >= 1]"),
        ("Age * YearsEmployed >= 3", "multiplies features only by numbers", "YearsEmployed"),
        ("Age / 0 >= 3", "divides only by numbers other than 0", "0"),
        ("1 / Age >= 3", "divides only by numbers other than 0", "Age"),
        ("Age >= 1e9999999999", "too long or too large", "1e9999999999"),
        ("Age >= 2years", "neither a number nor a name", "2"),
        ("Age >= 'x", "opened here and never closed", "'"),
        ("Age >= 3 && Owner", "write and, or, not", "&"),
        ("and >= 3", "Unexpected 'and'.*stands in quotes", "and"),
        ("Age in 3", "after 'in' comes a list", "3"),
        ("Age in [3, 4", "a range looks like", None),
        ("Age in [65, 18]", "runs backwards; write \\[18, 65\\]", "65, 18"),
        ("Age between 65 and -18", "runs backwards; write \\[-18, 65\\]", "65 and -18"),
        ("Age in [-5, -18]", "runs backwards; write \\[-18, -5\\]", "-5, -18"),
        ("Age between 18", "looks like: between 18 and 65", None),
        ("Hours per wek <= 40", "no feature 'Hours per wek'; did you mean 'Hours per week'", "Hours per wek"),
        ("(Income + 3,000) >= 5", "without commas in brackets, such as 3000", ","),
        ("Age in (1,000, 2)", "write 1000 for 1,000", "000"),
        ("Age is fxed", "comes fixed or free", "fxed"),
        ("Agee is fixed", "did you mean Age", "Agee"),
        ("Age only goes sideways", "comes up or down", "sideways"),
        ("Age changes slowly", "'by at most', 'in steps of', or 'only with'", "slowly"),
        ("Age changes by at most five", "here a number should stand", "five"),
        ("at most 2 features", "counts changes", "features"),
        ("at most two features", "counts changes", "features"),
        ("only Age, Jobb may change", "did you mean Job", "Jobb"),
        ("only Age should change", "such as: only Income, Debt may change", "should"),
        ("at most 1.5 changes", "must be whole", "at most 1.5 changes"),
        ("Age is fixed and Owner", "complete before this", "and"),
        ("Owner and Age is fixed", "stands alone", "is"),
        ("not " * 40 + "Owner", "nested at most 30 deep", "not"),
        ("(" * 40 + "Age >= 3", "nested at most 30 deep", "("),
        ("-" * 40 + "Age >= 3", "nested at most 30 deep", "-"),
    ],
)  # fmt: skip
def test_errors_point_at_their_place(text: str, words: str, marked: str | None) -> None:
    with pytest.raises(QuestionError, match=words) as caught:
        read_constraint(text, PEOPLE)
    _, shown, marks = str(caught.value).split("\n")
    start, count = marks.index("^"), marks.count("^")
    assert shown[start : start + count] == (marked or "")[:count]
    assert marked is None or count == len(marked)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Income > 0", "^'Income > 0' has no nearest row since Income is a real number: write Income >= 0.01.$"),
        ("not Income <= 7", "'Income <= 7' has no nearest row.*: write Income >= 7.01"),
        ("3 > Income", "write Income <= 2.99"),
        ("Income = 0", "is one value, which rounding may miss since Income.*a range such as Income in \\[0, 0.01\\]"),
        ("MaxBill != RecentBill", "MaxBill is a real number: write by how much it must differ, with >= or <="),
        ("MaxBill = RecentBill", "write >= and <= with room between them"),
        ("MaxBill > RecentBill + Age", "write >= or <= with the least difference that counts"),
        ("MaxBill != 3", "write MaxBill <= 2.99 or MaxBill >= 3.01"),
        ("if Owner then Income > 3", "'Income > 3' has no nearest row"),
        ("Age >= " + "1" * 20_000, "at most 20000 characters"),
        ("1e15 * Age >= 3e16 + YearsEmployed", "whole numbers beyond 2\\^45"),
        (" or ".join(f"(Age >= {a} and YearsEmployed >= {50 - a})" for a in range(19, 45)), None),
        (
            " or ".join(f"(Age = {a} and YearsEmployed + {a} * Grade = 3)".replace("Grade", "[Grade = 2]") for a in range(19, 60)),
            "unfolds into more than 200 cases",
        ),
        ("Job is fixed to none", "complete before this"),
        ("Job only goes up", "without an order"),
        ("Job changes by at most 1", "without an order"),
        ("Education changes by at most 10 %", "levels, which have no share"),
        ("Job changes in steps of 2", "no steps"),
        ("'Hours per week' changes in steps of 7", "a multiple of 5; it is 7"),
        ("Income changes in steps of 0", "must be a number > 0"),
        ("Income changes in steps of 1e-20", "too fine"),
        ("Job changes only with Job", "together with itself"),
        ("Job changes only with Income", "is a real number"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused(text: str, words: str | None) -> None:
    if words is None:
        assert isinstance(read_constraint(text, PEOPLE), Rule)
        return
    with pytest.raises(QuestionError, match=words):
        read_constraint(text, PEOPLE)


def test_open_conditions_are_fine_where_the_rule_does_not_need_them() -> None:
    for text in ("not (Income > 0)", "if Income > 3 then Owner", "Income > -1", "Income != 2000", "not Income = 2000"):
        Rule(text).check(PEOPLE)
    assert normal.clauses(Rule("Income > -1").formula(PEOPLE), PEOPLE) == ()
    assert normal.clauses(Rule("Income = 2000").formula(PEOPLE), PEOPLE) == ((),)


def test_a_rule_is_a_text() -> None:
    with pytest.raises(QuestionError, match="A rule is a text"):
        Rule(3)
    with pytest.raises(QuestionError, match="stands alone"):
        Rule("Age is fixed")
    with pytest.raises(QuestionError, match="stands alone"):
        Rule("at most 2 changes")
    with pytest.raises(QuestionError, match="a text such as"):
        read_constraint(3, PEOPLE)
    assert Rule(" Age >= 3 ") == Rule("Age >= 3")
    rule = Rule("Age >= 3")
    rule.check(PEOPLE)
    assert pickle.loads(pickle.dumps(rule)) == rule


# ---------------------------------------------------------------------- random rules


Meaning = Callable[[dict[str, Any]], Any]
SMALL = Schema(
    [
        Integer("i", -3, 5),
        Integer("j", 1, 13, 4),
        Real("x", -2, 3),
        Real("y", 0, 4),
        Categorical("c", ["p", "q", "r"]),
        Ordinal("o", ["lo", "mid", "hi", "top"]),
        Binary("b"),
    ]
)
SIGNS = {">=": ge, "<=": le, ">": gt, "<": lt, "=": eq, "!=": ne}


class Grammar:
    """Random rules as text, each with its meaning written down apart from the text."""

    def __init__(self, seed: int, numbers: tuple[str, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.numbers = numbers

    def pick(self, *items: Any) -> Any:
        return items[self.rng.integers(len(items))]

    def constant(self) -> tuple[str, Fraction]:
        value = Fraction(int(self.rng.integers(-24, 25)), self.pick(1, 1, 1, 2, 4))
        return (str(float(value)) if value >= 0 else f"(0 - {float(-value)})"), value

    def number(self, depth: int) -> tuple[str, Meaning]:
        match self.pick("name", "name", "constant", "sum", "product", "indicator", "quotient") if depth else "name":
            case "name":
                name = self.pick(*self.numbers)
                return name, lambda row: Fraction(row[name])
            case "constant":
                text, value = self.constant()
                return text, lambda row: value
            case "sum":
                (left, a), (right, b) = self.number(depth - 1), self.number(depth - 1)
                if self.pick(True, False):
                    return f"({left} + {right})", lambda row: a(row) + b(row)
                return f"{left} - ({right})", lambda row: a(row) - b(row)
            case "product":
                (left, value), (right, r) = self.constant(), self.number(depth - 1)
                return f"{left} * ({right})", lambda row: value * r(row)
            case "quotient":
                (left, a), by = self.number(depth - 1), self.pick(2, 4, 0.5)
                return f"({left}) / {by}", lambda row: a(row) / Fraction(by)
            case _:
                text, is_so = self.options()
                return f"[{text}]", lambda row: Fraction(int(is_so(row)))

    def options(self) -> tuple[str, Meaning]:
        name, options = self.pick(("c", ["p", "q", "r"]), ("o", ["lo", "mid", "hi", "top"]), ("b", [False, True]))
        chosen = self.pick(*options)
        match self.pick("equal", "in", "order"):
            case "order" if name != "c":
                sign = self.pick(*SIGNS)
                at = options.index(chosen)
                return f"{name} {sign} {chosen}", lambda row: SIGNS[sign](options.index(row[name]), at)
            case "in":
                several = {chosen, self.pick(*options)}
                no = self.pick("", "not ")
                text = f"{name} {no}in ({', '.join(map(str, several))})"
                return text, lambda row: (row[name] in several) == (no == "")
            case _:
                sign = self.pick("=", "!=")
                return f"{name} {sign} {chosen}", lambda row: SIGNS[sign](row[name], chosen)

    def rule(self, depth: int) -> tuple[str, Meaning]:
        kinds = ("options", "compare", "compare", "and", "or", "not", "if", "between", "else")
        match self.pick(*kinds) if depth else self.pick("options", "compare"):
            case "options":
                return self.options()
            case "compare":
                (left, a), (right, b) = self.number(2), self.number(1)
                sign = self.pick(*SIGNS)
                return f"{left} {sign} {right}", lambda row: SIGNS[sign](a(row), b(row))
            case "between":
                text, value = self.number(1)
                (low, a), (high, b) = sorted((self.constant(), self.constant()), key=lambda end: end[1])
                words = self.pick(f"{text} in [{low}, {high}]", f"{text} between {low} and {high}")
                return words, lambda row: a <= value(row) <= b
            case "not":
                text, is_so = self.rule(depth - 1)
                return f"not ({text})", lambda row: not is_so(row)
            case "else":
                (a, p), (b, q), (c, r) = (self.rule(depth - 1) for _ in range(3))
                return f"(if {a} then ({b}) else {c})", lambda row: q(row) if p(row) else r(row)
            case kind:
                (a, p), (b, q) = self.rule(depth - 1), self.rule(depth - 1)
                if kind == "and":
                    return f"({a}) and ({b})", lambda row: p(row) and q(row)
                if kind == "or":
                    return f"(({a}) or ({b}))", lambda row: p(row) or q(row)
                return self.pick(
                    (f"(if {a} then {b})", lambda row: not p(row) or q(row)),
                    (f"({a} only if {b})", lambda row: not p(row) or q(row)),
                )


def unrolled(points: NDArray[np.float64], columns: UnrolledColumns) -> NDArray[np.float64]:
    blocks = [
        points[:, [g]] if not hasattr(f, "options") else np.eye(len(f.options))[points[:, g].astype(int)]
        for g, f in enumerate(columns.schema.features)
    ]
    return np.hstack(blocks)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("seed", "numbers", "count"), [(1, ("i", "j"), 400), (2, ("i", "j", "x", "y"), 400)])
def test_random_rules(seed: int, numbers: tuple[str, ...], count: int) -> None:
    """The parts of a rule, its verdict on rows, and its meaning written down apart from its text are the same thing."""
    grammar, columns = Grammar(seed, numbers), UnrolledColumns(SMALL)
    compared = {"whole": 0, "real": 0, "refused": 0, "held": 0}
    while compared["whole"] + compared["real"] < count:
        text, meaning = grammar.rule(int(grammar.rng.integers(4)))
        rule = Rule(text)
        points = SMALL.sample(40, grammar.rng)
        points[:, 2:4] = np.round(points[:, 2:4] * 4) / 4  # multiples of 1/4, so that rows meet the edges of rules
        expected = [bool(meaning(SMALL.row(point))) for point in points]
        assert [rule.allows_row(SMALL, point, point) for point in points] == expected, text
        try:
            rule.check(SMALL)
        except QuestionError as error:
            assert "real number" in str(error) or "cases" in str(error) or "a clause" in str(error), text
            compared["refused"] += 1
            continue
        found = np.ones(len(points), dtype=bool)
        whole = True
        for part in rule.parts(columns):
            value = part.value(unrolled(points, columns))
            found &= value >= 0
            whole &= part.whole
            assert not part.whole or (value == np.round(value)).all(), text
        assert found.tolist() == expected, text
        assert whole or not set(numbers) <= {"i", "j"}, text
        compared["whole" if whole else "real"] += 1
        compared["held"] += sum(expected)
    assert compared["held"] > count * 10  # neither always nor never
    assert compared["refused"] < 2 * count


def test_simplest_form() -> None:
    def clauses(text: str) -> tuple[Any, ...]:
        return normal.clauses(Rule(text).formula(SMALL), SMALL)

    assert clauses("i >= -3 or c = p") == ()
    assert clauses("i > 5") == ((),)
    assert clauses("i != i") == ((),)
    assert clauses("c = p or c in (q, r)") == ()
    assert clauses("i >= 2 or i <= 1") == ()
    assert clauses("i >= 2 or i >= 1") == clauses("i > 0") == clauses("2 * i >= 1")
    assert clauses("j > 5") == clauses("j >= 9")
    assert clauses("i >= 1 and i >= 2") == clauses("i >= 2")
    assert clauses("i >= 2 and (i >= 2 or c = p)") == clauses("i >= 2")
    assert len(clauses("i in (-2, 0, 2, 4)")) == 5
    assert clauses("[c = p] + [c = q] >= 1") == clauses("c != r")
    assert clauses("[b] - [b] + i >= 1") == clauses("i >= 1")


# ---------------------------------------------------------------------- defaults and persons


def test_personal_constraints_merge_over_the_defaults() -> None:
    rules = ["Age only goes up", "Age >= 18 + YearsEmployed", "Age >= 20", "Job is fixed", "at most 3 changes"]
    schema = Schema(PEOPLE.features, rules=rules)
    up, between, twenty, job, few = (read_constraint(text, PEOPLE) for text in rules)
    assert merged(PEOPLE) == ()
    assert merged(schema) == (up, between, twenty, job, few)
    assert merged(schema, [Fixed("Education"), "Age is fixed"]) == (
        up, between, twenty, job, few, Fixed("Education"), Fixed("Age"),
    )  # fmt: skip
    assert merged(schema, [Unconstrained("Age")]) == (between, job, few)
    assert merged(schema, ["Age is free", "Age in [30, 40]"]) == (between, job, few, Range("Age", 30, 40))
    assert merged(schema, ["Age is free", "YearsEmployed is free", Unconstrained("Job")]) == (few,)
    assert merged(schema, ["at most 3 changes"]) == merged(schema)
    assert merged(PEOPLE, ["Age is free"], everybody=[up, between, few]) == (between, few)
    with pytest.raises(QuestionError, match="schema's own rules: There is no feature 'Agee'"):
        merged(Schema(PEOPLE.features, rules=["Agee is fixed"]))
    with pytest.raises(ValueError, match="no feature 'Agee'"):
        merged(schema, [Unconstrained("Agee")])


@pytest.mark.parametrize(
    "rule", ["Age != 30", "if Age >= 30 then Age >= 40", "Age <= 29", "Age is fixed", "Age in (20, 25)"]
)
@pytest.mark.parametrize("where", ["schema", "everybody", "everybody over schema"])
def test_free_lifts_every_form_of_rule_about_the_feature_alone(rule: str, where: str) -> None:
    features = [Integer("Age", 18, 60), Integer("Years", 0, 40)]
    between = "Age >= 18 + Years"
    schema = Schema(features, rules=[rule, between] if "schema" in where else [])
    others = [rule, between] if where.startswith("everybody") else []
    network = Network.of([(np.array([[1.0, 0.0]]), np.array([-29.5]))])
    explainer = Explainer(network, schema=schema, classes=["no", "yes"], constraints=others)
    assert explainer.constraints_for(["Age is free"]) == (Rule(between),)
    assert explainer.explain({"Age": 20, "Years": 1}, constraints=["Age is free"]).counterfactual["Age"] == 30
    assert explainer.explain({"Age": 20, "Years": 1}).counterfactual != {"Age": 30, "Years": 1}
    lifted = Explainer(network, schema=schema, classes=["no", "yes"], constraints=["Age is free"])
    assert lifted.constraints_for([]) == lifted.constraints_for(["Years in [0, 40]"])[:-1]


def counted(work: Callable[[], Any]) -> tuple[Any, int]:
    """What comes of it, and how many functions were called for it: time that no machine stretches."""
    calls = 0

    def count(frame: Any, event: str, about: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return work(), calls
    finally:
        sys.setprofile(before)


def test_a_long_list_of_values_is_read_at_once_and_answered() -> None:
    """190 values of an integer: linear to read, and no tower of neurons to search."""
    schema = Schema([Integer("n", 0, 1000), Integer("m", 0, 10)])
    values = [5 * i for i in range(190)]
    text = f"n in ({', '.join(map(str, values))})"
    rule, calls = counted(lambda: read_constraint(text, schema))
    _, half = counted(lambda: read_constraint(f"n in ({', '.join(map(str, values[:95]))})", schema))
    assert calls < 2.5 * half
    for after in range(1001):
        assert rule.allows_row(schema, np.zeros(2), np.array([float(after), 0.0])) == (after in values)
    network = Network.of([(np.array([[1.0, 1.0]]), np.array([-101.5]))])
    explainer = Explainer(network, schema=schema, classes=["no", "yes"])
    for before in ({"n": 33, "m": 2}, {"n": 96, "m": 3}, {"n": 0, "m": 0}):
        scored = [(abs(n - before["n"]) / 1000 + abs(m - before["m"]) / 10, n, m)
                  for n in values for m in range(11) if n + m >= 102]  # fmt: skip
        answer = explainer.explain(before, constraints=[rule])
        assert answer.counterfactual["n"] in values
        assert answer.status == "nearest"
        assert answer.upper == pytest.approx(min(scored)[0] / 2)
    none = explainer.explain({"n": 33, "m": 2}, constraints=[rule, "n <= 94", "m <= 7"])
    assert none.status == "none exists"


@pytest.mark.parametrize(
    "text",
    [
        "n in (1, 2, 3, 7, 9) or n >= 15",
        "not (n in (1, 2, 3) or n in [5, 9]) and n != 12",
        "if n >= 10 then n >= 14 else n in (0, 4, 8)",
        "n = 3 or not (n != 5 and (n < 8 or n > 11))",
        "n > 30 or n in (2, 4)",
        "n in [0, 20]",
        "n in (1) and n in (2)",
    ],
)
@pytest.mark.parametrize("step", [1, 2])
def test_rules_about_one_number_unfold_into_its_gaps(text: str, step: int) -> None:
    schema = Schema([Integer("n", 0, 20, step), Binary("b")])
    rule = Rule(text)
    columns = UnrolledColumns(schema)
    for n in range(0, 21, step):
        point = np.array([float(n), 0.0])
        said = all(part.value(unrolled(point[None, :], columns))[0] > -0.5 for part in rule.parts(columns))
        assert said == rule.allows_row(schema, point, point), n


def test_decimals_add_up() -> None:
    schema = Schema([Real("x", 0, 1), Real("y", 0, 1)])
    row = np.array([0.1, 0.2])
    assert Rule("x + y <= 0.3").allows_row(schema, row, row)
    assert Rule("x + y >= 0.3").allows_row(schema, row, row)
    assert not Rule("x + y <= 0.2999999").allows_row(schema, row, row)
    network = Network.of([(np.array([[-1.0, -1.0]]), np.array([0.3001]))])
    explainer = Explainer(network, schema=schema, classes=["no", "yes"])
    held = ["x + y >= 0.3", "x <= 0.1", "y <= 0.2"]
    for method in (Search(), Mace()):
        answer = explainer.using(method, reasons=False).explain({"x": 0.5, "y": 0.5}, constraints=held)
        assert answer.status != "none exists", (method, answer)


def test_free_drops_a_rule_that_can_never_hold() -> None:
    """It looks at no value, since none makes a difference, and is about the feature that it names."""
    schema = Schema([Integer("n", 1, 5), Ordinal("single", ["alpha"])], rules=["[single = alpha] >= 2"])
    assert [c.describe() for c in merged(schema)] == ["[single = alpha] >= 2"]
    assert merged(schema, ["single is free"]) == ()


MONEY = Schema(
    [
        Real("Income", 0, 1000, step=0.01, label="Monthly income"),
        Real("Debt", 0, 1000),
        Real("Amount (EUR)", 0, 1000, step=0.5),
        Binary("rich"),
    ]
)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("Income < 500", Range("Income", upper=499.99)),
        ("Income > 500.005", Range("Income", 500.01)),
        ("Monthly income < 500", Range("Income", upper=499.99)),
        ("Amount (EUR) < 500", Range("Amount (EUR)", upper=499.5)),
        ("Amount (EUR) <= 1 000", Range("Amount (EUR)", upper=1000)),
        ("only Amount (EUR), Income may change", Actionable(("Amount (EUR)", "Income"))),
        ("Income in [1 00, 500]", None),
    ],
)
def test_amounts_as_people_write_them(text: str, constraint: Any) -> None:
    if constraint is None:
        with pytest.raises(QuestionError):
            read_constraint(text, MONEY)
        return
    assert read_constraint(text, MONEY) == constraint
    assert read_constraint(constraint.describe(), MONEY) == constraint
    with pytest.raises(QuestionError, match="write Debt <= 499.99"):
        read_constraint("Debt < 500", MONEY)
    with pytest.raises(QuestionError, match="Income has no value < this"):
        read_constraint("Income < 0", MONEY)


SHOWN = Schema(
    [
        Integer("inc", 0, 20000, step=50, label="income", unit="$"),
        Categorical("Job type", ["clerk", "cook (chef)"], label="occupation"),
        Integer("age", 18, 90),
        Real("share", 0, 1, label="free"),
        Real("other", 0, 1, label="twice"),
        Real("another", 0, 1, label="twice"),
    ]
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("At most one change", "at most 1 change"),
        ("Only income, occupation may change", "only inc, 'Job type' may change"),
        ("income <= $1'500", "inc <= 1500"),
        ("income < 500", "inc <= 450"),
        ("occupation is fixed", "'Job type' is fixed"),
        ("If age >= 50 then income >= 1 000", "if age >= 50 then inc >= 1000"),
        ("share is free", "share is free"),
    ],
)
def test_labels_of_one_word_and_sentences_as_people_begin_them(text: str, same: str) -> None:
    assert read_constraint(text, SHOWN).describe() == read_constraint(same, SHOWN).describe()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fraud accepts", r"No model called 'fraud' is known here: name its file with --also fraud=FILE"),
        ("the fraud check model accepts", r"No model called 'fraud check' .* --also 'fraud check=FILE'"),
        ("fraud rejects", "No model called 'fraud' .*The sentence is then: fraud accepts"),
        ("occupatoin is fixed", "did you mean occupation"),
        ("if incme >= 50 then age >= 20", "did you mean income"),
        ("'Job type' is clerk", "comes fixed or free; an option comes after 'Job type' ="),
        ("twice is fixed", "There is no feature 'twice'"),
    ],
)
def test_messages_name_models_and_labels(text: str, said: str) -> None:
    with pytest.raises(QuestionError, match=said):
        read_constraint(text, SHOWN)


def test_only_some_may_change() -> None:
    """All others are fixed, but for what follows from those."""
    found = merged(MONEY, ["only Income may change"])
    assert set(found) == {Fixed("Debt"), Fixed("Amount (EUR)"), Fixed("rich")}
    derived = merged(MONEY, ["only Income may change", "rich follows from Income >= 500"])
    assert Fixed("rich") not in derived and Fixed("Debt") in derived
    assert Actionable("Income").features == ("Income",)
    before, after = MONEY.read([1.0, 2.0, 3.0, False]), MONEY.read([9.0, 2.0, 3.0, False])
    assert Actionable(["Income"]).allows_row(MONEY, before, after)
    assert not Actionable(["Debt"]).allows_row(MONEY, before, after)
    for wrong in ((), 3, [1], None):
        with pytest.raises(QuestionError, match=r"Actionable\(\['Income', 'Debt'\]\)"):
            Actionable(wrong)  # type: ignore[arg-type]
    with pytest.raises(IfonlyError, match="Incme"):
        merged(MONEY, [Actionable(["Incme"])])


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("Alter ist fest", "after Alter comes a comparison, such as >=, or words in English, such as Alter is fixed", "ist"),
        ("Bestehende Schulden sinkt nur", "'Bestehende Schulden' is fixed", "sinkt"),
        ("if Alter fest then Alter >= 20", "after Alter comes", "fest"),
        ("Bestehende Schuld <= 500", "There is no feature 'Bestehende Schuld'; did you mean 'Bestehende Schulden'?", "Bestehende Schuld"),
    ],
)  # fmt: skip
def test_words_side_by_side_that_are_no_name(text: str, message: str, place: str) -> None:
    described = Schema([Integer("Alter", 18, 80), Real("Bestehende Schulden", 0, 9000)])
    with pytest.raises(RuleError) as caught:
        read_constraint(text, described)
    said, shown, marks = str(caught.value).split("\n")
    assert message in said and shown[marks.index("^") : marks.rindex("^") + 1] == place
