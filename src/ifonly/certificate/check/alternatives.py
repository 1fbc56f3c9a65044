"""All questions of a certificate: one for each alternative of its target, and for each set of features with causes that
is acted on.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from .causes import ActionSet, action_sets
from .distance import MAXIMUM, SQUARED
from .layers import longest_number
from .models import deepened_curves, side_by_side
from .reading import CheckBudget, Refusal, entries, listed
from .rule_reading import MAX_LITERALS
from .rules import Rules, rooms
from .statement import MAX_NUMBER, Statement, read_statement, with_literals

MAX_ALTERNATIVES = 64


def read_statements(
    question: Any, grid: int, cost_grid: int, meter: CheckBudget | None = None, planes: Any = None
) -> tuple[Statement, ...]:
    """The question of a certificate, once for each alternative of its target, and of these for each set of features
    with causes to act on; the first one has all alternatives in words."""
    target = question.get("target") if isinstance(question, dict) else None
    if not isinstance(target, dict) or "any" not in target:
        return _acting((read_statement(question, grid, cost_grid, meter, planes=planes),))
    given = listed(entries(target, "the target", "any")["any"], "the alternatives of the target")
    if not 0 < len(given) <= MAX_ALTERNATIVES:
        raise Refusal(f"a target has at most {MAX_ALTERNATIVES} alternatives, and at least one")
    found = [read_statement(question, grid, cost_grid, meter, one, planes=planes) for one in given]
    if any(len({one.margins[k] for one in found} - {None}) > 1 for k in range(len(found[0].margins))):
        raise Refusal("the alternatives of the target have different margins")
    words = " or ".join(one.wanted for one in found)
    return _acting(tuple(replace(one, wanted=words) for one in found))


def _acting(found: tuple[Statement, ...]) -> tuple[Statement, ...]:
    if not found[0].equations:
        return found
    sets = sets_of(found[0])
    if len(found) * len(sets) > MAX_ALTERNATIVES:
        raise Refusal(f"there are more than {MAX_ALTERNATIVES} alternatives and sets of features to act on, together")
    return tuple(acting_on(one, some) for one in found for some in sets)


def sets_of(statement: Statement) -> list[ActionSet]:
    """The sets of features with causes to act on."""
    return action_sets(statement.equations, statement.constraints, statement.schema.positions.__getitem__)


def acting_on(statement: Statement, actions: ActionSet) -> Statement:
    """The question about the row that follows from actions on a set of features with causes."""
    schema, meter = statement.schema, statement.meter
    rules = _rules_of(statement, actions)
    more = actions.networks(schema, statement.factual, statement.grid, meter)
    assert statement.bare is not None
    own = side_by_side(schema, [statement.bare, *more], statement.grid, meter) if more else statement.bare
    exponents, weight_rows, biases, columns = with_literals(schema, rules.literals, own, statement.grid, meter)
    longest = longest_number(weight_rows, biases, columns, schema, statement.grid)
    if longest > MAX_NUMBER:
        raise Refusal(f"the equations lead to numbers of {longest} bits; at most {MAX_NUMBER} are checked")
    sizes = tuple(map(len, biases))
    rates, rates_down, jumps = (
        tuple(0 if g in actions.follows else cost for g, cost in enumerate(costs))
        for costs in (statement.rates, statement.rates_down, statement.jumps)
    )
    made = replace(
        statement, actions=actions, fee=_fee(statement, actions), rules=rules, exponents=exponents,
        weight_rows=weight_rows, weight_columns=tuple(tuple(zip(*rows, strict=True)) for rows in weight_rows),
        biases=biases, columns=columns, sizes=sizes, starts=tuple(accumulate(sizes, initial=0)),
        first_literal=sizes[0] - len(rules.literals), rooms=rooms(schema, rules.literals, statement.grid, meter),
        curved=deepened_curves(statement.curved, len(exponents) - 1),
        rates=rates, rates_down=rates_down, jumps=jumps,
    )  # fmt: skip
    return made.about(statement.factual)


def _rules_of(statement: Statement, actions: ActionSet) -> Rules:
    """The rules, with what follows; and of changes those of features without causes count, beside the set itself."""
    rules, literals, clauses = statement.rules, list(statement.rules.literals), list(statement.rules.clauses)
    for clause in actions.clauses(statement.schema, statement.factual, statement.meter):
        clauses.append(tuple(range(len(literals), len(literals) + len(clause))))
        literals += clause
        if len(literals) > MAX_LITERALS:
            raise Refusal(f"there are more than {MAX_LITERALS} literals")
    caused = actions.acted | actions.follows
    limits = tuple(
        (most - len(actions.acted), tuple(c and g not in caused for g, c in enumerate(counted)))
        for most, counted in rules.limits
    )
    features = tuple(frozenset(g for g, _ in (*one.numbers, *one.options)) for one in literals)
    return replace(rules, literals=tuple(literals), clauses=tuple(clauses), limits=limits, features=features)


def _fee(statement: Statement, actions: ActionSet) -> Fraction:
    """What acting against causes costs (l2: squared): each counts like a change of this size."""
    fees = [statement.weights[one.feature] * one.holding for one in actions.equations if one.feature in actions.acted]
    if statement.norm == MAXIMUM:
        return max(fees, default=Fraction(0)) / len(statement.schema)
    if statement.norm == SQUARED:
        return sum((fee * fee for fee in fees), Fraction(0)) / len(statement.schema)
    return (statement.jump + statement.rate) * sum(fees, Fraction(0)) / len(statement.schema)
