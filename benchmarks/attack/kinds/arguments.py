"""Hostile arguments: features, rows, rules in words, questions, names. Only sentences may come out."""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.attack.asking import Outcome, ask

JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    "nan",
    "inf",
    "-inf",
    1e308,
    -1e308,
    5e-324,
    "big",
    "-big",
    "",
    "a",
    "'",
    "x\n",
    "[",
    "0x10",
    "1_0",
    " 1 ",
    "\x1b[31mVALID\x1b[0m",
    "\ud800",
    "é" * 500,
    [],
    [1],
    {},
    {"a": 1},
    [None],
    [[1, 2]],
    "1e999",
    2**53,
    2**63,
    10**30,
)
WORDS = (
    "Age",
    "'Age'",
    "Job",
    "Owner",
    "is",
    "fixed",
    "free",
    "only",
    "goes",
    "up",
    "down",
    "changes",
    "by",
    "at",
    "most",
    "in",
    "not",
    "and",
    "or",
    "if",
    "then",
    "else",
    "(",
    ")",
    "[",
    "]",
    ",",
    ">=",
    "<=",
    ">",
    "<",
    "=",
    "!=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "steps",
    "of",
    "with",
    "1",
    "0",
    "0.1",
    "1e999",
    "9" * 400,
    "1e-400",
    "inf",
    "missing",
    "clerk",
    "True",
    "'",
    '"',
    "\x1b",
    "\ud800",
    "\u00a0",
    "@",
)


def opened(x: Any) -> Any:
    """Values that JSON cannot hold stand as words."""
    named = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "big": 10**4000, "-big": -(10**4000)}
    if isinstance(x, list):
        return [opened(item) for item in x]
    if isinstance(x, dict):
        return {key: opened(value) for key, value in x.items()}
    return named.get(x, x) if isinstance(x, str) else x


class Arguments:
    """Junk in any place."""

    def make(self, chance: random.Random) -> dict[str, Any]:
        call = chance.choice(sorted(CALLS))
        if call in ("rule", "schema rule"):
            junk: list[Any] = [" ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 12)))]
        elif call == "names":
            junk = [
                chance.choice(
                    ["\x1b[2Jgone", "a\nVALID: proven", "\ud800", "<b>x</b>", "x" * 2000, "\r\x08\x7f", "\u202eabc"]
                )
            ]
        else:
            junk = [chance.choice(JUNK) for _ in range(4)]
        return {"call": call, "junk": junk, "at": chance.randrange(1000)}

    def run(self, case: dict[str, Any]) -> Outcome:
        ask(CALLS[case["call"]], opened(case["junk"]), case["at"])
        return Outcome(f"{case['call']} taken")


def _explainer() -> Any:
    import ifonly

    schema = ifonly.Schema(
        [ifonly.Integer("Age", 18, 90), ifonly.Categorical("Job", ["clerk", "nurse", None]), ifonly.Binary("Owner")]
    )
    net = ifonly.Network.of([([[0.1, 1.0, -1.0, 0.0, 0.5]], [-5.0])])
    return ifonly.Explainer(net, schema=schema)


def _feature(junk: list[Any], at: int) -> None:
    import ifonly

    makers: list[Callable[[], Any]] = [
        lambda: ifonly.Integer("x", junk[0], junk[1]),
        lambda: ifonly.Integer("x", 0, 10, junk[0]),
        lambda: ifonly.Real("x", junk[0], junk[1]),
        lambda: ifonly.Real(junk[0], 0, 1),
        lambda: ifonly.Categorical("x", junk[0]),
        lambda: ifonly.Ordinal("x", junk[:3]),
        lambda: ifonly.Ordinal("x", ["a", "b"], junk[0]),
        lambda: ifonly.Binary("x", junk[:2]),
        lambda: ifonly.Schema([ifonly.Real("x", 0, 1)], junk[0]),
        lambda: ifonly.Schema([ifonly.Real("x", 0, 1)], rules=junk[:1]),
    ]
    schema = makers[at % len(makers)]()
    if not isinstance(schema, ifonly.Schema):
        schema = ifonly.Schema([schema])
    for value in junk:
        try:
            schema.read([value])
        except ifonly.IfonlyError:
            continue


def _row(junk: list[Any], at: int) -> None:
    explainer = _explainer()
    rows: list[Any] = [
        junk[:3],
        {"Age": junk[0], "Job": "clerk", "Owner": True},
        {"Age": 30, "Job": junk[0], "Owner": junk[1]},
        junk[0],
    ]
    tables: list[Any] = [[row] for row in rows[:3]] + [{"Age": [junk[0]], "Job": [junk[1]], "Owner": [True]}, junk[0]]
    if at % 2:
        explainer.using(reasons=False).explain(rows[at % len(rows)])
    else:
        json.loads(json.dumps(explainer.explain_many(tables[at % len(tables)]).to_dicts(), default=str))


def _question(junk: list[Any], at: int) -> None:
    import ifonly

    row: list[Any] = [30, "clerk", True]
    calls: list[Callable[[], Any]] = [
        lambda: {"target": junk[0]},
        lambda: {"target": ifonly.ClassTarget(1, junk[0])},
        lambda: {"target": ifonly.ScoreTarget(at_least=junk[0], at_most=junk[1])},
        lambda: {"target": ifonly.TopTarget(junk[0], junk[1])},
        lambda: {"target": ifonly.OneOfTarget(junk[0])},
        lambda: {"target": ifonly.ProbabilityTarget(1, at_least=junk[0])},
        lambda: {"distance": junk[0]},
        lambda: {"distance": ifonly.Distance("l1", weights={"Age": junk[0]}, scales={"Age": junk[1]})},
        lambda: {"distance": ifonly.Distance("l1", transitions={"Job": {("clerk", str(junk[0])): junk[1]}})},
        lambda: {"distance": ifonly.Distance({"l0": junk[0], "l1": junk[1]})},
        lambda: {"constraints": junk[:2]},
        lambda: {"constraints": [ifonly.Range("Age", junk[0], junk[1])]},
        lambda: {"constraints": [ifonly.Steps("Age", junk[0])]},
        lambda: {"constraints": [ifonly.MaxDelta("Age", by=junk[0])]},
        lambda: {"constraints": [ifonly.MaxDelta("Age", share=junk[0])]},
        lambda: {"constraints": [ifonly.MaxChanges(junk[0])]},
        lambda: {"constraints": [ifonly.Allowed("Job", junk[0])]},
        lambda: {"constraints": [ifonly.Fixed(junk[0])]},
        lambda: {"limits": ifonly.Limits(nodes=junk[0], seconds=junk[1])},
        lambda: {"query": ifonly.Query(target=junk[0], distance=junk[1])},
        lambda: {"query": ifonly.Query.from_dict(junk[0])},
        lambda: {"query": ifonly.Query.from_dict({"target": junk[0], "distance": junk[1], "constraints": junk[2:]})},
        lambda: {"query": junk[0]},
        lambda: {"method": junk[0]},
    ]
    asked = calls[at % len(calls)]()
    explainer = _explainer().using(asked.pop("method", None))
    str(explainer.explain(row, **{"limits": ifonly.Limits(nodes=1000), **asked}))


def _several(junk: list[Any], at: int) -> None:
    import ifonly

    few = junk[0] if not isinstance(junk[0], int) or junk[0] < 20 else 20  # a thousand answers may take their time
    calls: list[Callable[[], Any]] = [
        lambda: few,
        lambda: ifonly.Diversity(2, apart=junk[0]),
        lambda: ifonly.Diversity(2, differ=junk[0]),
        lambda: ifonly.Diversity(2, apart_distance=junk[0]),
    ]
    explainer = _explainer().using(limits=ifonly.Limits(nodes=1000))
    answers = explainer.explain_diverse([30, "clerk", True], calls[at % len(calls)]())
    ifonly.audit(list(answers), by=junk[3])


def _rule(junk: list[Any], at: int) -> None:
    import ifonly

    str(_explainer().explain([30, "clerk", True], constraints=[junk[0]], limits=ifonly.Limits(nodes=1000)))


def _schema_rule(junk: list[Any], at: int) -> None:
    import ifonly

    ifonly.Schema([ifonly.Integer("Age", 18, 90), ifonly.Categorical("Job", ["clerk", "nurse"])], rules=[junk[0]])


def _names(junk: list[Any], at: int) -> None:
    """A name or an option with escapes, line ends and sentences: nothing of it may reach a terminal or a page raw."""
    import ifonly
    from ifonly import report
    from ifonly.report.page import plain

    name = junk[0]
    schema = ifonly.Schema([ifonly.Integer(name, 0, 9), ifonly.Categorical("Job", ["clerk", name])])
    net = ifonly.Network.of([([[1.0, 0.0, 1.0]], [-5.0])])
    explainer = ifonly.Explainer(net, schema=schema, classes=["no", name])
    answers = explainer.explain_many([[1, "clerk"], [9, name]], constraints=[ifonly.Range(name, 0, 7)])
    told = ifonly.audit(answers, by="Job")
    made = ifonly.certify(explainer, [1, "clerk"])
    pages = [plain(report.audit_page(told)), report.audit_svg(told), report.audit_html(told), str(ifonly.check(made))]
    pages += [str(answer) for answer in answers]
    for page in pages:
        if any(ord(c) < 32 and c not in "\n\t" for c in page) or "\x7f" in page:
            raise AssertionError(f"a control character of a name is printed raw: {page[:80]!r}")
        page.encode("utf-8")
    if "<b>x" in pages[1] + pages[2]:
        raise AssertionError("a name is markup in a picture")
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "a.cert")
        schema.save(Path(folder) / "s.json")
        ifonly.check(ifonly.Certificate.load(Path(folder) / "a.cert"))


CALLS: dict[str, Callable[[list[Any], int], None]] = {
    "feature": _feature,
    "row": _row,
    "question": _question,
    "several": _several,
    "rule": _rule,
    "schema rule": _schema_rule,
    "names": _names,
}
