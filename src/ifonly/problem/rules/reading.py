"""Parser of constraints: every constraint as text, in the command line, in files and on pages.

    Age is fixed                      Age only goes up            Age in [18, 65], Age between 18 and 65
    Income changes by at most 10 %    Income changes in steps of 100
    Job changes only with Income      at most 2 changes           Age is free
    only Income, Debt may change      Income < 500 (with a step)
    Income may be filled in           Income may be filled in at 0.5
    Overdue follows from TotalOverdueCounts > 0
    if Education >= Bachelors then Age >= 21                      (any rule, see `syntax`)

`describe()` of a constraint is such a sentence again, so words are also how constraints are kept in files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any, TypeAlias

from ifonly.caching import bytes_of, cached
from ifonly.errors import QuestionError, RuleError
from ifonly.printing import shown
from ifonly.problem.accepted import Accepted
from ifonly.problem.constraints import (
    Allowed,
    Constraint,
    Fixed,
    Imputable,
    MaxDelta,
    OnlyDown,
    OnlyUp,
    Range,
    Steps,
    Unconstrained,
)
from ifonly.problem.robust import RobustToWeights
from ifonly.problem.rule import RowRule
from ifonly.problem.rules import parser, syntax
from ifonly.problem.rules.derived import Derived, check_derived
from ifonly.problem.rules.formulas import Compare, Every, Formula, Member
from ifonly.problem.rules.normal import AtLeast
from ifonly.problem.rules.rule import Rule
from ifonly.problem.rules.spelling import side_by_side, spelled
from ifonly.problem.rules.unclear import unclear
from ifonly.problem.support import Actionable, MaxChanges, OnlyWith
from ifonly.problem.words import show_name, suggestion, tokens, wrong
from ifonly.schema import Choice, Integer, Real, Schema
from ifonly.schema.number_text import DecimalMark, other_reading

AnyConstraint: TypeAlias = Constraint | RowRule | Accepted | RobustToWeights
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Numbers of changes in words."""
_ACCEPTS = re.compile(
    r"(?:the )?'?((?!at least )[^'<>=,]+?)'?(?: model)? "
    r"(accepts?|approves?|rejects?|refuses?|denies|deny|declines?)(?: without any (?:\d+ )?trees?)?"
)
"""A decision of another model, which only those who know it by name can read."""
RULES_BYTES = 2**22
"""The rules of schemas, read."""
_ANYWHERE = ["in", "[", "-", "inf", ",", "inf", "]", ""]


def read_constraint(text: str, schema: Schema, mark: DecimalMark = DecimalMark.POINT) -> AnyConstraint:
    """The constraint that a sentence states; a QuestionError that points at what is wrong with it.

    `mark` is the decimal mark of whoever wrote it, as far as that is known: by any but the point, 10.000 may be ten
    thousand, and is refused. So it is by the point, where the feature speaks for it (see `unclear`).
    """
    if not isinstance(text, str):
        raise QuestionError(f"A constraint in words is a text such as 'Age is fixed'; got {shown(text)}.")
    text = spelled(text.strip(), schema)
    if mark is not DecimalMark.POINT:
        for token in tokens(text):
            if token.kind == "number" and other_reading(token.value) is not None:
                raise parser.two_ways(text, syntax.Node(token.start, token.end))
    if (asked := _ACCEPTS.fullmatch(text)) is not None and asked[1] not in schema.names:
        raise _unknown_model(asked[1], asked[2])
    stated = _Statement(text, schema).read()
    if stated is not None:
        stated.check(schema)
        return stated
    try:
        rule = Rule(text)
    except RuleError as error:
        raise side_by_side(text, schema) or error from None
    rule.check(schema)
    return _by_feature(rule, schema) or rule


def _unknown_model(name: str, verb: str) -> QuestionError:
    """Of a sentence about the decision of a model that nobody has named."""
    option = f"{name}=FILE" if re.fullmatch(r"[\w.-]+", name) else f"'{name}=FILE'"
    said = "" if verb == "accepts" else f" The sentence is then: {name} accepts."
    return QuestionError(
        f"No model called '{name}' is known here: name its file with --also {option}, on a desk with serve --also; in "
        f"Python, give Accepted(model) as the constraint.{said}"
    )


def merged(
    schema: Schema, personal: Iterable[AnyConstraint | str] = (), everybody: Iterable[AnyConstraint | str] = ()
) -> tuple[AnyConstraint, ...]:
    """The schema's own rules, further ones for everybody, and a person's constraints: the one place that merges them.

    All apply; `Age is free` drops those of the levels before it that concern Age and nothing else, whatever their form,
    but not the permission to fill it in.
    """
    levels = (_own_rules(schema), everybody, personal)
    result: list[AnyConstraint] = []
    for level in levels:
        read = [read_constraint(c, schema) if isinstance(c, str) else c for c in level]
        freed = {c.feature for c in read if isinstance(c, Unconstrained)}
        for name in freed:
            schema.index(name)
        if freed:
            result = [c for c in result if not (about := _concerned(c, schema)) or not about <= freed]
        result += [c for c in read if not isinstance(c, Unconstrained)]
    whole = _without_actionable(dict.fromkeys(result), schema)
    check_derived(whole, schema)
    return whole


def _without_actionable(constraints: Iterable[AnyConstraint], schema: Schema) -> tuple[AnyConstraint, ...]:
    """With every other feature fixed where only some may change; what follows from others moves with them."""
    listed = list(constraints)
    derived = {c.feature for c in listed if isinstance(c, Derived)}
    fixed = []
    for some in (c for c in listed if isinstance(c, Actionable)):
        some.check(schema)
        fixed += [Fixed(name) for name in schema.names if name not in some.features and name not in derived]
    return tuple(dict.fromkeys([*(c for c in listed if not isinstance(c, Actionable)), *fixed]))


def facts_of(schema: Schema, own: Iterable[AnyConstraint] | None = None) -> tuple[Rule, ...]:
    """The schema's rules between features: how the world is, not what somebody asks for. `own`: `merged(schema)`, where
    that is known."""
    rules = (rule for rule in (merged(schema) if own is None else own) if isinstance(rule, Rule))
    return tuple(rule for rule in rules if len(rule.features(schema)) > 1)


@cached(RULES_BYTES)
def _own_rules(schema: Schema) -> tuple[AnyConstraint, ...]:
    """The schema's own rules, read once."""
    return tuple(_default(text, schema) for text in schema.rules)


def _default(text: str, schema: Schema) -> AnyConstraint:
    try:
        return read_constraint(text, schema)
    except QuestionError as error:
        raise type(error)(f"In the schema's own rules: {error}") from None


def bytes_beside(value: Any, schema: Schema, others: Iterable[Any] = ()) -> int:
    """About what a value takes beside a schema, its own rules and others that are kept anyway."""
    return bytes_of(value, (schema, *_own_rules(schema), *others))


def _named(text: str) -> frozenset[str]:
    return frozenset(token.value for token in tokens(text) if token.kind in ("word", "text"))


def _concerned(constraint: AnyConstraint, schema: Schema) -> frozenset[str]:
    """The features that a constraint speaks of; none if it speaks of no particular one."""
    if isinstance(constraint, Imputable | Derived):
        return frozenset()
    if isinstance(constraint, Rule):  # one that is always true, or never, looks at none, but it still names some
        return constraint.features(schema) or _named(constraint.text) & frozenset(schema.names)
    if isinstance(constraint, OnlyWith):
        return frozenset((constraint.feature, constraint.partner))
    return frozenset((constraint.feature,)) if isinstance(constraint, Constraint) else frozenset()


def _by_feature(rule: Rule, schema: Schema) -> Constraint | None:
    """The range or the list of options that a rule about one feature amounts to, which every method honours at once."""
    formula, names = rule.formula(schema), rule.features(schema)
    if len(names) != 1:
        return None
    (name,) = names
    feature = schema[name]
    clauses = rule.clauses(schema)
    if any(len(clause) != 1 for clause in clauses):
        return None
    if isinstance(feature, Choice):
        left = [one.options for (one,) in clauses if isinstance(one, Member)]
        options = sorted(frozenset.intersection(*left)) if left else range(len(feature.options))
        return Allowed(name, tuple(feature.options[i] for i in options)) if options else None
    inequalities = _as_written(formula)
    if inequalities is None:
        inequalities = [(a, one.constant) for (one,) in clauses if isinstance(one, AtLeast) for _, a in one.numbers]
    ends = [(a, -constant / a) for a, constant in inequalities]
    if isinstance(feature, Integer) and any(
        whole(end) != whole(float(end)) for _, end in ends for whole in (floor, ceil)
    ):
        return None  # a number so close to a whole one that float64 cannot tell
    lower = max((float(end) for a, end in ends if a > 0), default=-inf)
    upper = min((float(end) for a, end in ends if a < 0), default=inf)
    return Range(name, lower, upper) if lower <= upper else None


def _as_written(formula: Formula) -> list[tuple[int, Fraction]] | None:
    """The inequalities on one number, with the ends that were written; None if there is more to it than >= and <=."""
    if isinstance(formula, Compare) and formula.sign == ">=":
        return [(a, Fraction(formula.linear.constant)) for _, a in formula.linear.numbers]
    if not isinstance(formula, Every):
        return None
    found = [_as_written(part) for part in formula.parts]
    return None if None in found else [pair for pairs in found if pairs for pair in pairs]


class _Statement(parser.Parser):
    """Reads the sentences that are no conditions on a row."""

    def __init__(self, text: str, schema: Schema) -> None:
        super().__init__(text)
        self.schema = schema

    def read(self) -> AnyConstraint | None:
        """What is stated; None if the text is a rule."""
        if self.takes("at", "most"):
            return self.finished(self.changes())
        if self.takes("robust", "to", "weights", "within"):
            return self.finished(self.robust())
        if self.takes("only"):
            return self.finished(self.actionable())
        below = self.strict()
        if below is not None:
            return below
        if self.here.kind in ("word", "text") and self.next.kind == "word":
            match self.next.value:
                case "is":
                    return self.finished(self.state())
                case "only" if self.tokens[self.place + 2].value != "if":
                    return self.finished(self.direction())
                case "changes":
                    return self.finished(self.change())
                case "may":
                    return self.finished(self.filling())
                case "follows":
                    return self.derived()
                case "in" if [token.value for token in self.tokens[self.place + 1 :]] == _ANYWHERE:
                    return Range(self.feature())
        return None

    def actionable(self) -> Actionable:
        names = [self.feature()]
        while self.takes(",") or self.takes("and"):
            names.append(self.feature())
        if not (self.takes("may", "change") or self.takes("can", "change") or self.takes("change")):
            raise self.unexpected("after 'only' come features and 'may change', such as: only Income, Debt may change")
        return Actionable(tuple(names))

    def strict(self) -> Range | None:
        """Below or above a number, of a feature with a step: the next number that it may have."""
        ahead = self.tokens[self.place : self.place + 4]
        kinds, sign = [token.kind for token in ahead], ahead[1].value if len(ahead) > 1 else ""
        if kinds[1:] != ["sign", "number", "end"] or kinds[0] == "number" or sign not in ("<", ">"):
            return None
        feature = self.schema[ahead[0].value] if ahead[0].value in self.schema.names else None
        grid = feature.grid if isinstance(feature, Real) else None
        if grid is None:
            return None
        name = self.feature()
        self.takes(sign)
        limit = self.amount(name)
        whole = (limit - Fraction(grid.first, grid.parts)) / grid.step
        place = ceil(whole) - 1 if sign == "<" else floor(whole) + 1
        if not 0 <= place <= grid.steps:
            raise wrong(self.text, ahead[2].start, ahead[2].end, f"{show_name(name)} has no value {sign} this")
        return Range(name, upper=grid.value(place)) if sign == "<" else Range(name, grid.value(place))

    def counted(self, most: MaxChanges) -> MaxChanges:
        if not (self.takes("changes") or self.takes("change")):
            raise self.unexpected("'at most' counts changes, such as: at most 2 changes")
        return most

    def changes(self) -> MaxChanges:
        if self.here.kind == "word" and self.here.value in COUNTS:
            return self.counted(MaxChanges(COUNTS.index(self.advance().value)))
        most = self.amount(whole=True)
        self.counted(MaxChanges(0))
        if most.denominator != 1:
            raise wrong(self.text, 0, len(self.text), "The number of changes must be whole")
        return MaxChanges(int(most))

    def robust(self) -> RobustToWeights:
        delta = self.amount()
        return RobustToWeights(float(delta / 100), True) if self.takes("%") else RobustToWeights(float(delta))

    def state(self) -> Fixed | Unconstrained:
        name = self.feature()
        self.takes("is")
        if self.takes("fixed"):
            return Fixed(name)
        option = "" if not isinstance(self.schema[name], Choice) else f"; an option comes after {show_name(name)} ="
        self.needs("free", f"after '{show_name(name)} is' comes fixed or free{option}")
        return Unconstrained(name)

    def direction(self) -> OnlyUp | OnlyDown:
        name = self.feature()
        self.takes("only")
        self.takes("goes")
        if self.takes("up"):
            return OnlyUp(name)
        self.needs("down", f"after '{show_name(name)} only goes' comes up or down")
        return OnlyDown(name)

    def change(self) -> OnlyWith | Steps | MaxDelta:
        name = self.feature()
        self.takes("changes")
        if self.takes("only", "with"):
            return OnlyWith(name, self.feature())
        if self.takes("in", "steps", "of"):
            return Steps(name, float(self.amount(name)))
        if not self.takes("by", "at", "most"):
            raise self.unexpected("a feature changes 'by at most', 'in steps of', or 'only with' another")
        most = self.amount(name)
        return MaxDelta(name, share=float(most / 100)) if self.takes("%") else MaxDelta(name, by=float(most))

    def filling(self) -> Imputable:
        name = self.feature()
        if not self.takes("may", "be", "filled", "in"):
            raise self.unexpected(f"after '{show_name(name)} may' comes: be filled in")
        return Imputable(name, float(self.amount())) if self.takes("at") else Imputable(name)

    def derived(self) -> Derived:
        name = self.feature()
        if not self.takes("follows", "from"):
            raise self.unexpected(f"after '{show_name(name)} follows' comes 'from' and its definition")
        return Derived(name, self.text[self.here.start :])

    def feature(self) -> str:
        token = self.here
        if token.kind not in ("word", "text"):
            raise self.unexpected("here the name of a feature should stand")
        if token.value not in self.schema.names:
            labels = [feature.label or feature.name for feature in self.schema.features]
            message = f"There is no feature '{token.value}'; {suggestion(token.value, labels, self.schema.names)}"
            raise wrong(self.text, token.start, token.end, message)
        return self.advance().value

    def amount(self, name: str = "", *, whole: bool = False) -> Fraction:
        """A number: of changes of the feature of this name, of `whole` things, or a share."""
        if self.here.kind != "number":
            raise self.unexpected("here a number should stand")
        one = parser.number(self.text, self.advance())
        beside = {self.schema[name]: Fraction(1)} if name else {}
        if one.other is not None and self.here.value != "%" and (whole or unclear(beside, one)):
            raise parser.two_ways(self.text, one)
        return one.value

    def finished(self, constraint: AnyConstraint) -> AnyConstraint:
        if self.here.kind != "end":
            raise self.unexpected("the sentence is complete before this; it stands alone, not in a rule")
        return constraint
