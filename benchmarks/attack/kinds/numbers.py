"""Numbers as people of several countries write them, in rules and in rows: an own reader lists what each may mean.

    10.000      ten, or ten thousand        1.234,50    1234.5
    10,000      ten thousand (docs/rules)   1'000       a thousand
    1e3         a thousand                  57 %        57 of a hundred

A rule with a bound is asked so that the nearest row sits on the bound: what was understood is read off the answer.
Where both readings are within the feature's range the rule must be refused, with both; anything that is answered must
be one of the readings, and what the answer repeats of the rule must be the bound that was kept.
"""

from __future__ import annotations

import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from benchmarks.attack.asking import Outcome, Refused, ask

FORMS = ("plain", "points", "commas", "spaces", "apostrophes", "decimal comma", "decimal point", "both", "both turned",
         "exponent", "percent")  # fmt: skip
RANGES = ((0, 20), (0, 100), (0, 5_000), (0, 20_000), (0, 2_000_000), (5_000, 50_000))


class Numbers:
    """One number, one rule; the model wants it as far as the rule makes it go."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        low, high = chance.choice(RANGES)
        whole = chance.random() < 0.5
        form = chance.choice(FORMS)
        where = "share" if form == "percent" else chance.choice(["up", "down", "range", "between", "row"])
        return {
            "lower": low, "upper": high, "whole": whole, "where": where, "form": form,
            "name": chance.choice(["Kreditbetrag", "amount", "importo"]),
            "text": written(chance, form, low, high),
        }  # fmt: skip

    def run(self, case: dict[str, Any]) -> Outcome:
        import ifonly

        made = ifonly.Integer if case["whole"] else ifonly.Real
        schema = ifonly.Schema([made(case["name"], case["lower"], case["upper"])])
        up = case["where"] in ("up", "range", "between", "share")
        start = case["lower"] if up else case["upper"]
        if case["where"] == "share":
            start = case["lower"] + (case["upper"] - case["lower"]) // 3
        sign = 1.0 if up else -1.0
        network = ifonly.Network.of([([[sign]], [-sign * (start + sign * 0.25)])])
        explainer = ifonly.Explainer(network, schema=schema, classes=("no", "yes")).using(reasons=False)
        if case["where"] == "row":
            return read_row(case, explainer)
        if case["where"] == "share":
            return share(case, schema, explainer, start)
        try:
            answer = ask(explainer.explain, [start], target="yes", constraints=[rule(case)])
        except Refused as refused:
            return Outcome("refused", list(silent(case, str(refused))))
        return Outcome(answer.status, list(misread(case, answer, start)))


def written(chance: random.Random, form: str, low: int, high: int) -> str:
    """A number of about the range, by one convention."""
    n = chance.choice([chance.randint(low, high), chance.choice([1, 2, 5, 10, 12, 50, 100]) * chance.choice([1, 1000])])
    tail = f"{chance.randint(0, 99):02d}"
    match form:
        case "points":
            return f"{n:,}".replace(",", ".")
        case "commas":
            return f"{n:,}"
        case "spaces":
            return f"{n:,}".replace(",", chance.choice([" ", "\u00a0", "\u202f"]))
        case "apostrophes":
            return f"{n:,}".replace(",", "'")
        case "decimal comma":
            return f"{n},{tail}"
        case "decimal point":
            return f"{n}.{chance.choice([tail, tail + str(chance.randint(0, 9))])}"
        case "both":
            return f"{n:,}.{tail}"
        case "both turned":
            return f"{n:,}".replace(",", ".") + f",{tail}"
        case "exponent":
            return chance.choice(["1e3", "1E3", "2.5e2", "1e+1", "5e0"])
        case "percent":
            return chance.choice(["57 %", "57%", "12.5 %", "12,5 %", "0.5 %", "100 %", "1.000 %"])
        case _:
            return str(n)


def readings(text: str) -> set[Fraction]:
    """Every number that somebody may mean by the text."""
    bare = re.sub(r"[\s\u00a0\u202f']", "", text.removesuffix("%"))
    found = set()
    for decimal, grouping in ((".", ","), (",", ".")):
        if re.fullmatch(
            rf"[+-]?(\d+|[1-9]\d{{0,2}}({re.escape(grouping)}\d{{3}})+)({re.escape(decimal)}\d+)?([eE][+-]?\d+)?", bare
        ):
            found.add(Fraction(Decimal(bare.replace(grouping, "").replace(decimal, "."))))
    return {max(found)} if len(found) > 1 and "," in bare else found  # 3,000 is three thousand, as documented


def rule(case: dict[str, Any]) -> str:
    """A rule whose bound is the number."""
    name, text = case["name"], case["text"]
    match case["where"]:
        case "up":
            return f"{name} >= {text}"
        case "down":
            return f"{name} <= {text}"
        case "range":
            return f"{name} in [{text}, {case['upper']}]"
        case _:
            return f"{name} between {text} and {case['upper']}"


def inside(case: dict[str, Any]) -> list[Fraction]:
    return sorted(r for r in readings(case["text"]) if case["lower"] <= r <= case["upper"])


def in_doubt(case: dict[str, Any]) -> bool:
    """May its points begin decimals or group thousands, with a number that the feature can be in either case?"""
    return "." in case["text"] and len(inside(case)) > 1


def silent(case: dict[str, Any], said: str) -> list[str]:
    """A refusal for two readings must say both."""
    if not in_doubt(case):
        return []
    bare = re.sub(r"[,\s]", "", said)
    lost = [r for r in inside(case) if not re.search(rf"(?<!\d){re.escape(short(r))}0*(?!\d)", bare)]
    return [f"refused {rule(case)!r} without the reading {short(lost[0])}: {said!r}"] if lost else []


def short(number: Fraction) -> str:
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def misread(case: dict[str, Any], answer: Any, start: float) -> list[str]:
    """Is the bound that was kept one that the text can mean, and the only one?"""
    if in_doubt(case):
        return [f"{rule(case)!r} may mean {' or '.join(map(short, inside(case)))}, but is answered: {answer.status}"]
    every = readings(case["text"])
    if answer.counterfactual is None:
        if any(r in inside(case) and not beyond(case, r, start) for r in every):
            return [f"{rule(case)!r} leaves {case['lower']} to {case['upper']} room, but {answer.status}"]
        return []
    kept = Fraction(Decimal(repr(answer.counterfactual[case["name"]])))
    bounds = {nearest(case, r, start) for r in every}
    gap = Fraction(answer.upper - answer.lower) * (Fraction(case["upper"]) - Fraction(case["lower"]))  # shorter numbers
    near = any(abs(kept - bound) <= gap + Fraction(1, 10**6) * max(1, abs(bound)) for bound in bounds)
    faults = [] if near else [f"{rule(case)!r} was kept at {short(kept)}, and means {sorted(map(short, every))}"]
    return faults + repeated(case, answer, kept, start, gap)


def repeated(case: dict[str, Any], answer: Any, kept: Fraction, start: float, gap: Fraction) -> list[str]:
    """What the answer repeats of the rule, where it does, is what was kept."""
    for sentence in getattr(answer, "constraints", ()):
        said = [
            Fraction(Decimal(n.replace(",", ""))) for n in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", sentence)
        ]
        if said and not any(
            abs(nearest(case, r, start) - kept) <= gap + Fraction(1, 10**6) * max(1, abs(kept)) for r in said
        ):
            return [f"{rule(case)!r} was kept at {short(kept)}, but the answer says {sentence!r}"]
    return []


def beyond(case: dict[str, Any], bound: Fraction, start: float) -> bool:
    """Does the bound leave nothing, since whole numbers or the start are on the other side of it?"""
    if case["where"] == "down":
        return bound < case["lower"] or (case["whole"] and int(bound) < case["lower"])
    return bound > case["upper"] or (case["whole"] and -(-bound.numerator // bound.denominator) > case["upper"])


def nearest(case: dict[str, Any], bound: Fraction, start: float) -> Fraction:
    """The nearest number that keeps to the bound and is wanted: a little beyond the start, or the bound itself."""
    down = case["where"] == "down"
    if case["whole"]:
        rounded = bound.numerator // bound.denominator if down else -(-bound.numerator // bound.denominator)
        return min(Fraction(rounded), Fraction(start) - 1) if down else max(Fraction(rounded), Fraction(start) + 1)
    edge = Fraction(start) + Fraction(-1 if down else 1, 4) * (1 + Fraction(4, 10**6))
    return min(bound, edge) if down else max(bound, edge)


def share(case: dict[str, Any], schema: Any, explainer: Any, start: int) -> Outcome:
    """`changes by at most 57 %`: one step beyond the share must be refused, the share itself allowed."""
    from ifonly.problem.rules import read_constraint

    try:
        read = ask(read_constraint, f"{case['name']} changes by at most {case['text']}", schema)
    except Refused as refused:
        return Outcome("refused", list(silent(case, str(refused))))
    kept = Fraction(Decimal(repr(read.share))) * 100
    said = re.findall(r"[\d.]+(?= ?%)", read.describe())
    good = kept in readings(case["text"]) and [Fraction(n) for n in said] == [kept]
    return Outcome("read", [] if good else [f"{case['text']!r} is read as {short(kept)} %: {read.describe()}"])


def read_row(case: dict[str, Any], explainer: Any) -> Outcome:
    """A number in a row, as text: refused, or one of its readings."""
    try:
        point = ask(explainer.schema.read, {case["name"]: case["text"]})
    except Refused:
        return Outcome("refused")
    value, every = Fraction(Decimal(repr(float(point[0])))), readings(case["text"])
    near = any(abs(value - r) <= Fraction(1, 10**9) * max(1, abs(r)) for r in every)
    return Outcome("read", [] if near else [f"the cell {case['text']!r} is read as {short(value)}"])
