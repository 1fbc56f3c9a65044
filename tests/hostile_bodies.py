"""Bodies that a hostile client might send: every place of a question with every strange value, rules that explode, bombs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

SCRIPT = "<script>alert(1)</script>\x1b[31m\u202e"
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, -0.0, 1e308, 5e-324, 10**30, 10**400, -(2**63), "", " ", "0", "NaN", "1e999", SCRIPT, "\ud800", "\x00", "a" * 5000, "'" * 900,
    "__proto__", "constructor", "%s%n{0}", [], {}, [[]], [None], {"": {}}, {"__proto__": {}}, [1] * 3000, "AgeGroup is fixed", ["AgeGroup is fixed"],
    {"kind": "rule", "text": "1 <= 1"}, {"kind": "fixed"}, {"kind": []}, {"norm": {}}, {"class": []}, {"one_of": [[], {}]}, {"ahead_of": {}, "class": "deny"},
)  # fmt: skip
"""Values for every place."""
EXTREME: tuple[dict[str, Any], ...] = (
    {"distance": {"norm": "l1", "transitions": {"AgeGroup": [[[], {}, 1]]}}},
    {"distance": {"norm": "l1", "transitions": {"AgeGroup": [[1, 2, 3]] * 3000}}},
    {"distance": {"norm": "l1", "weights": {f"w{k}": 1 for k in range(5000)}}},
    {"distance": {"norm": "l1", "weights": {"AgeGroup": 1e308}}},
    {"distance": {"norm": "l1", "weights": {"AgeGroup": 5e-324}}},
    {"distance": {"norm": "l1", "scales": {"TotalMonthsOverdue": 1e-300}}},
    {"distance": {"norm": "l2", "weights": {"AgeGroup": 1e200}}},
    {"distance": {"norm": {"l0": 1e308, "l1": 1e308}}},
    {"distance": {"norm": "l1", "up": {"TotalMonthsOverdue": 1e308}, "down": {"TotalMonthsOverdue": 0}}},
    {"target": {"class": "approve", "margin": 1e308}},
    {"target": {"class": "approve", "margin": -1}},
    {"target": {"probability_of": "approve", "at_least": 1.0}},
    {"target": {"probability_of": "approve", "at_least": 1e-320}},
    {"target": {"class": "approve", "among_highest": 10**30}},
    {"target": {"at_least": 1e308, "at_most": -1e308}},
    {"target": {"one_of": ["approve"] * 20000}},
    {"constraints": [{"kind": "allowed", "feature": "AgeGroup", "values": list(range(50000))}]},
    {"constraints": [{"kind": "allowed", "feature": "AgeGroup", "values": [[], {}]}]},
    {"constraints": [{"kind": "range", "feature": "TotalMonthsOverdue", "lower": 1e308, "upper": -1e308}]},
    {"constraints": [{"kind": "steps", "feature": "TotalMonthsOverdue", "step": 5e-324}]},
    {"constraints": [{"kind": "max_delta", "feature": "TotalMonthsOverdue", "by": 1e-320}]},
    {"constraints": [{"kind": "max_changes", "most": 10**30}]},
    {"constraints": [{"kind": "only_with", "feature": "AgeGroup", "other": "AgeGroup"}]},
    {"constraints": [{"kind": "fixed", "feature": ["AgeGroup"]}]},
    {"constraints": [{"kind": "rule", "text": {"text": "AgeGroup is fixed"}}]},
    {"constraints": [{"kind": "fixed", "feature": "x" * 900_000}]},
    {"constraints": [["AgeGroup is fixed"]]},
    {"x" * 900_000: 1},
)  # fmt: skip
A, B = "TotalMonthsOverdue", "MostRecentPaymentAmount"
MOST = 900
"""Characters of a rule, of the 1,000 that it may have."""


def filled(joint: str, *parts: str) -> str:
    """As many parts, with their number in the place of #, as a rule may have characters."""
    text = parts[0].replace("#", "0")
    for k in range(1, MOST):
        longer = text + joint + parts[k % len(parts)].replace("#", str(k))
        if len(longer) > MOST:
            break
        text = longer
    return text


RULES: tuple[str, ...] = (
    filled(" or ", f"{A} > #"), filled(" and ", f"{A} < #"), filled(" and ", f"({A} > # or {A} < 2)"), filled(" or ", f"({A} > # and {A} < 9)"),
    filled(" and ", f"({A} = # or {B} >= #)", "(isMale or isMarried)"), filled(" or ", f"({A} = # and {B} >= #)", "(isMale and isMarried)"),
    filled(" and ", f"({A} != # or isMale)"), filled(" and ", "(isMale or isMarried)", "(not isMale or not isMarried)"), filled(" + ", "[isMale]") + " <= 1",
    filled(" and ", f"(if {A} > # then {B} >= # else isMale)"), filled(" != ", A), filled(" - ", f"1000000 * {A}", f"0.000001 * {B}") + " <= 1",
    f"{A} not in ({filled(', ', '#')})", f"{A} in ({filled(', ', '#')})", f"{B} not in [0.5, 7] and {B} not in [9, 1000]",
    "not " * 240 + f"{A} > 1", "(" * 480 + f"{A} > 1" + ")" * 480, "((" * 200 + f"{A} > 1", f"{A} > " + "9" * 900, f"{A} > 1e308 * 1e308", f"{A} > 1e99999",
    f"{A} > " + "+".join(["1"] * 450), f"{A} > " + "-" * 900 + "1", f"{A} * {A} > 1", f"{A} / 0 > 1", f"{A} > 0x10", f"{A} >= NaN", f"{A} <= inf",
    "if " * 200, f"if {A} > 1 then " * 30, "a" * 1000, "a+" * 500, "(a+)+$" * 100, "\x00" * 100, "\u202e" * 100, "'" * 1000, '"' * 999, "\\" * 1000, "\n" * 1000,
    SCRIPT * 20, "{0.__class__}", "__import__('os').system('id')", f"{A} is one of " + ", ".join(["1"] * 300), f"{A} in [" + "1," * 400, "%s" * 400, "\uff11 \uff1e \uff10",
    f"{A} > 1 " + "or " * 300, f"{A} > \u0661", "=" * 1000, f"{A} >= {A} >= {A} >= {A}", f"at most {10**300} changes", f"at most {'9' * 900} changes", "at most -1 changes",
    f"{A} changes only with {A}", f"{A} only goes up and {A} only goes down", " implies ".join([f"{A} > 1"] * 40), f"1000000000000000000000 * {A} <= 1e-300",
    " + ".join([f"1e300 * {A}"] * 30) + " <= 1", f"{A} = " + "0." + "1" * 900,
)  # fmt: skip
"""Rules in words that are long, deep, wide, or look like something else."""


def whole(row: dict[str, Any]) -> dict[str, Any]:
    """A question that uses everything."""
    limits = [{"kind": "range", "feature": A, "lower": 0, "upper": 4}, "AgeGroup only goes up"]
    distance = {"norm": "l1", "weights": {"AgeGroup": 2.0}}
    query = {"target": "approve", "distance": distance, "constraints": limits, "fewest_first": False}
    several = {"count": 2, "apart": 0.1, "differ": "values"}
    return {
        "row": row,
        "query": query,
        "seconds": 0.5,
        "language": "en",
        "path": True,
        "model": "credit",
        "diversity": several,
    }


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in JSON."""
    if at:
        yield at
    if isinstance(data, dict | list):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*at, key))


def altered(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    """A copy of JSON with another value at a place."""
    copy = deepcopy(data)
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = deepcopy(value)
    return copy


def questions(row: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Paths and bodies; every one is to be answered, or refused by a sentence."""
    question = whole(row)
    for k, at in enumerate(places(question)):
        for j, value in enumerate(STRANGE):
            path = ("/v1/report", "/v1/explain", "/v1/certify", "/v1/diverse")[(k + j) % 4]
            body = altered(question, at, value)
            if path in ("/v1/explain", "/v1/certify"):
                body.pop("diversity")
            yield path, json.dumps(body).encode()
    for query in EXTREME:
        yield "/v1/explain", json.dumps({"row": row, "query": query, "seconds": 0.5}).encode()
    for text in RULES:
        yield "/v1/rule", json.dumps({"text": text}).encode()
        many = [text, *(f"{text} and {B} >= {k}" for k in range(49))]
        for rules in ([text], many):
            yield "/v1/explain", json.dumps({"row": row, "query": {"constraints": rules}, "seconds": 0.5}).encode()
    for value in STRANGE:
        yield "/v1/predict", json.dumps({"row": value}).encode()
        yield "/v1/rule", json.dumps({"text": value, "model": value}).encode()
    yield from ((path, text) for path in ("/v1/explain", "/v1/rule") for text in texts())


def texts() -> Iterator[bytes]:
    """JSON that is strange as text."""
    yield b'{"row": {' + b",".join(b'"k%d": 1' % k for k in range(60_000)) + b"}}"
    yield b'{"row": {"a": 1, "a": 2}, "row": {}}'
    yield b'\xef\xbb\xbf{"row": {}}'
    yield '{"row": {}}'.encode("utf-16")
    yield b'{"row": {"AgeGroup": 1' + b"0" * 100_000 + b"}}"
    yield b'{"row": {"AgeGroup": 0.' + b"1" * 100_000 + b"}}"
    yield b'{"row": {"AgeGroup": -Infinity}}'
    yield b'{"row": "' + b"\\u0000" * 100_000 + b'"}'
    yield b'{"row": "\\ud800\\udc"}'
    yield b"{" * 500_000
    yield b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield b"[" * 30 + b"]" * 30
    yield b" " * 1_000_000
    yield b"0" * 1_000_000
    yield b'{"row": {}} {"row": {}}'
    yield b"{'row': {}}"
    yield b'{"row": {},}'
    yield b'// comment\n{"row": {}}'


def certificates(good: bytes) -> Iterator[bytes]:
    """What a check might be sent in the place of a certificate."""
    text = zlib.decompress(good)
    said = json.loads(text)
    for size in (2, 11, 50):
        yield zlib.compress(b"0" * (size << 20), 9)  # a bomb
        yield zlib.compress(zlib.compress(b"0" * (size << 20), 9), 9)
    for depth in (100, 900, 990, 1500, 3000, 30_000, 400_000):  # deep
        yield b'{"format":"ifonly-certificate","version":1,"x":' + b"[" * depth + b"]" * depth + b"}"
        yield b'{"format":"ifonly-certificate","version":1,"x":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    yield b'{"format":"ifonly-certificate","version":1,"x":[' + b"[]," * 1_300_000 + b"[]]}"
    yield zlib.compress(b'{"format":"ifonly-certificate","version":1,"x":[' + b"123456," * 1_000_000 + b"1]}", 1)
    yield b'{"format":"ifonly-certificate","version":1' + b"0" * 1_000_000 + b"}"
    yield b'{"format":"ifonly-certificate","version":1e999}'
    yield b'{"format":"ifonly-certificate","version":NaN}'
    yield from (good[:-1], good + b"x", good[: len(good) // 2], good[::-1], text[:-1], text + b" ", text.upper())
    yield from _forged(said)


def _forged(said: dict[str, Any]) -> Iterator[bytes]:
    """Stamped as if they were right, but something in them is another thing."""
    from ifonly.certificate.format import canonical, stamp

    for key in sorted({*said} - {"made_by", "deployed"}):  # without these two the statement is the same
        for value in (None, 0, 10**300, "", "x" * 1000, "0x1p9999", [], {}, [[]], [0] * 100_000, {"a": {"a": {}}}):
            forged = {**said, key: value}
            if key != "sha256":
                forged["sha256"] = stamp(forged)
            yield canonical(forged)
