"""Recourse over a group: counts that add up, costs by subgroup, sets of features, the page and the picture."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ifonly import Explainer, Failed, Fixed, Integer, Nearest, Network, NoneExists, Query, Schema, Unknown, Within
from ifonly.errors import FileError, QuestionError
from ifonly.population.auditing import audit
from ifonly.population.moves import NumberedItems, flip_sets
from ifonly.population.reading import read_answers
from ifonly.report import audit_page, audit_svg, flip_sets_page, plain
from ifonly.report.audit_svg import COLOURS
from ifonly.results import Change, Stop, StoppedBy
from ifonly.results.records import COLUMNS


def common(row: int, group: Any, **more: Any) -> dict[str, Any]:
    return {"row": row, "factual": {"g": group, "n": row}, "target": "yes", "distance_name": "l1", **more}


def found(row: int, group: Any, cost: float, *features: str, proven: bool = True) -> Any:
    kind = Nearest if proven else Within
    changes = tuple(Change(name, 0, 1) for name in features)
    lower = cost if proven else 0.0
    return kind(lower=lower, upper=cost, counterfactual={"g": group}, changes=changes, **common(row, group))


def none(row: int, group: Any) -> NoneExists:
    return NoneExists(lower=math.inf, **common(row, group))


def unknown(row: int, group: Any) -> Unknown:
    return Unknown(lower=0.0, stop=Stop(StoppedBy.SECONDS, 1.0), **common(row, group))


ANSWERS = [
    found(0, "a", 0.1, "n"),
    found(1, "a", 0.3, "n", "m"),
    found(2, "b", 0.4, "n", proven=False),
    none(3, "b"),
    unknown(4, "b"),
    found(5, "a", 0.0),  # decided as asked
    Failed(row=6, factual={}, target="", distance_name="", lower=0.0, error="no"),
    found(7, "a", 0.2, "n"),
    none(8, None),
]


def test_counts_and_costs() -> None:
    result = audit(ANSWERS, by="g")
    a, b, missing = result.groups
    assert (a.name, a.people, a.needing, a.recourse, a.without, a.unknown, a.unneeded) == ("a", 4, 3, 3, 0, 0, 1)
    assert (b.name, b.people, b.needing, b.recourse, b.without, b.unknown, b.unproven) == ("b", 3, 3, 1, 1, 1, 1)
    assert (missing.name, missing.share, missing.recourse) == ("missing", 0.0, 0)
    assert (a.share, b.share) == (1.0, pytest.approx(1 / 3))
    assert (a.costs.tolist(), a.median, a.mean) == ([0.1, 0.2, 0.3], 0.2, pytest.approx(0.2))
    assert a.quantile(0.25) == pytest.approx(0.15)
    assert math.isnan(missing.median)
    assert (result.failed, result.everybody.people, result.everybody.needing) == (1, 8, 7)
    assert (result.by, result.target, result.distance_name) == ("g", "yes", "l1")
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["groups"][0]["p50"] == 0.2
    assert data["groups"][2]["mean"] is None


def test_groups_add_up_to_everybody() -> None:
    result = audit(ANSWERS, by="g")
    for what in ("people", "needing", "recourse", "without", "unknown", "unneeded", "unproven"):
        assert sum(getattr(group, what) for group in result.groups) == getattr(result.everybody, what), what
    assert sorted(c for group in result.groups for c in group.costs) == list(result.everybody.costs)


def test_other_ways_to_group() -> None:
    labels = ["x"] * 4 + ["y"] * 5
    assert [group.people for group in audit(ANSWERS, by=labels).groups] == [4, 4]  # one row failed
    odd = audit(ANSWERS, by=lambda row: row["n"] % 2 == 1)
    assert {group.name: group.people for group in odd.groups} == {"False": 4, "True": 4}
    assert audit(ANSWERS).groups == ()
    with pytest.raises(QuestionError, match="no feature 'h'.*'g', 'n'"):
        audit(ANSWERS, by="h")
    with pytest.raises(QuestionError, match="9 answers, but 2 labels"):
        audit(ANSWERS, by=["x", "y"])


def test_numbers_with_many_values_are_grouped_by_quarters() -> None:
    answers = [found(i, i % 20, 0.1, "n") for i in range(100)]
    groups = audit(answers, by="g").groups
    assert [group.name for group in groups] == ["0 to 4", "5 to 9", "10 to 14", "15 to 19"]
    assert [group.people for group in groups] == [25, 25, 25, 25]
    few = audit([found(i, i % 3, 0.1, "n") for i in range(9)], by="g").groups
    assert [group.name for group in few] == ["0", "1", "2"]
    skewed = [found(i, max(0, i - 80), 0.1, "n") for i in range(100)]  # most are 0: fewer quarters than four
    assert sum(group.people for group in audit(skewed, by="g").groups) == 100


def test_sets_of_features() -> None:
    first, second = flip_sets(ANSWERS)
    assert (first.features, first.count, first.costs.tolist()) == (("n",), 3, [0.1, 0.2, 0.4])
    assert (second.features, second.count) == (("n", "m"), 1)
    assert first.to_dict() == {"features": ["n"], "count": 3, "least": 0.1, "median": 0.2, "most": 0.4}
    assert flip_sets([none(0, "a")]) == ()
    assert plain(flip_sets_page(flip_sets(ANSWERS))) == (
        "changed together  answers  least cost  median\nn                       3         0.1     0.2\n"
        "n, m                    1         0.3     0.3"
    )
    assert "1 more sets" in plain(flip_sets_page(flip_sets(ANSWERS), most=1))
    assert plain(flip_sets_page(())) == "No answer changes anything."


def test_the_page() -> None:
    text = plain(audit_page(audit(ANSWERS, by="g")))
    assert text.startswith("Recourse to yes: of those who need it")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "a 4 3 3 (100%) 29.2% to 100% 0 (0%) 0 (0%) 0.2 - 0.28" in lines
    assert "* everybody 8 7 4 (57.1%) 18.4% to 90.1% 2 (28.6%) 1 (14.3%) 0.25 - 0.37" in lines
    assert "No group is compared: that takes two with 30 people or more who need recourse." in text
    assert "fewer than 30 of them need recourse: a (3), b (3), missing (1)." in text
    assert "1 of the rows are not proven to be the nearest" in text
    assert "1 are open" in text
    assert "1 rows could not be read" in text


def test_the_picture() -> None:
    root = ET.fromstring(audit_svg(audit(ANSWERS, by="g")))
    name = "{http://www.w3.org/2000/svg}"
    curves = root.findall(f"{name}path")
    assert len(curves) == 3
    assert len({curve.get("stroke") for curve in curves}) == 3
    assert len({curve.get("stroke-dasharray") for curve in curves}) == 3
    words = "".join(root.itertext())
    assert "Recourse to yes, by g" in words
    assert "b: 33.3% of 3" in words
    # the curve of b ends at a third of the height, that of a at the top
    bottom, top = (float(line.get("y1") or "") for line in (root.findall(f"{name}line")[k] for k in (0, 4)))
    ends = [float((curve.get("d") or "").rpartition("V")[2].partition("H")[0]) for curve in curves[:2]]
    assert ends[0] == top
    assert ends[1] == pytest.approx(bottom - (bottom - top) / 3, abs=0.01)
    many = [found(i, f"<{i % 12}>", 0.1, "n") for i in range(60)]
    assert len(ET.fromstring(audit_svg(audit(many, by="g"))).findall(f"{name}path")) == len(COLOURS)
    assert "everybody" in audit_svg(audit(ANSWERS))
    assert "Recourse" in audit_svg(audit([]))


def test_long_names_are_whole_in_the_picture() -> None:
    long = "people whose name of a region goes on and on until it fills more than a line of the picture, and then some"
    root = ET.fromstring(audit_svg(audit([found(0, long, 0.1, "n")], by="g")))
    assert long in " ".join(" ".join(root.itertext()).split())


def test_answers_are_read_once_from_anywhere() -> None:
    whole, streamed = audit(ANSWERS, by="g"), audit(iter(ANSWERS), by=iter([a.factual.get("g") for a in ANSWERS]))
    assert {**streamed.to_dict(), "by": "g"} == whole.to_dict()
    with pytest.raises(QuestionError, match="not as many labels"):
        audit(iter(ANSWERS), by=iter("xy"))
    for wrong in (None, 3, "answers", [1]):
        with pytest.raises(QuestionError, match="An audit is made from answers"):
            audit(wrong)  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="A judge is what"):
        audit(ANSWERS, judge=3)  # type: ignore[arg-type]


def test_answers_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    answers = real_answers()
    file.write_text("\n".join(answer.to_json() for answer in answers) + "\n\n", encoding="utf-8")
    told, same = audit(read_answers(file), by="group"), audit(answers, by="group")
    for one, other in zip((*told.groups, told.everybody), (*same.groups, same.everybody), strict=True):
        assert {**one.to_dict(), "changes": 0} == {**other.to_dict(), "changes": 0}
    for content, said in ((b"[", "line 1 is not JSON"), (b"{}", "line 1: The entry"), (b"\xff", "not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(FileError, match=said):
            list(read_answers(file))
    (tmp_path / "parts").mkdir()
    with pytest.raises(FileError, match="no answers"):
        list(read_answers(tmp_path / "parts"))
    for k, part in enumerate((answers[:7], answers[7:])):
        text = "".join(answer.to_json() + "\n" for answer in part)
        (tmp_path / "parts" / f"{k}.jsonl").write_text(text, encoding="utf-8")
    assert [answer.row for answer in read_answers(tmp_path / "parts")] == [answer.row for answer in answers]
    with pytest.raises(FileError, match="Cannot read the answers"):
        list(read_answers(tmp_path / "nowhere.jsonl"))


def test_records_are_read_from_a_file(tmp_path: Path) -> None:
    """What a table of answers keeps of them, with columns beside: enough for all but reasons."""
    answers, file = real_answers(), tmp_path / "records.jsonl"
    records = [{**{name: data[name] for name in (*COLUMNS, "note")}, "Region": "NS"[i % 2]}
               for i, data in enumerate(answers.to_dicts())]  # fmt: skip
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    told = audit(read_answers(file, Query(target=1)), by="Region")
    same = audit(answers, by=["NS"[i % 2] for i in range(len(answers))])
    assert (told.target, told.distance_name) == ("1", "l1")
    for one, other in zip((*told.groups, told.everybody), (*same.groups, same.everybody), strict=True):
        assert {**one.to_dict(), "changes": 0} == {**other.to_dict(), "changes": 0}
    judged = audit(read_answers(file), judge=real_explainer().judge(Query(target=1, constraints=[Fixed("group")])))
    cover = judged.everybody.details.cover
    assert cover is not None and cover.helped == judged.everybody.recourse
    assert [one.move for one in judged.everybody.details.moves] == [("n", "up")]
    for wrong in ({"status": "maybe"}, {"row": "x"}, {"changes": 1}, {"distance": -1.0}, {"counterfactual": None},
                  {"changes": [{}]}):  # fmt: skip
        file.write_text(json.dumps({**records[0], **wrong}), encoding="utf-8")
        with pytest.raises(FileError, match="line 1: "):
            list(read_answers(file))


def test_what_changes_and_what_stops() -> None:
    details = audit(ANSWERS).everybody.details
    assert [(one.move.feature, one.move.direction, one.count) for one in details.moves] == [
        ("n", "0 -> 1", 4), ("m", "0 -> 1", 1),
    ]  # fmt: skip
    assert [one.features for one in details.together] == [("n",), ("n", "m")]
    assert [count for _, count in details.stops] == [1]
    up = replace(found(0, "a", 0.1), changes=(Change("x", 1.5, 1.0), Change("k", 3, 9, True), Change("d", None, 2)))
    assert [one.move.direction for one in audit([up]).everybody.details.moves] == ["filled in", "up", "down"]


def test_ways_are_counted_in_bounded_memory() -> None:
    numbered = NumberedItems(most=2)
    assert [numbered((k,)) for k in "abcab"] == [0, 1, -1, 0, 1]
    assert numbered.counts(np.array([0, 1, -1, 0, 1])) == {("a",): 2, ("b",): 2}


def real_explainer() -> Explainer:
    """Where the answer is known: group 1 cannot change the one feature that counts."""
    schema = Schema([Integer("group", 0, 1), Integer("n", 0, 10), Integer("fee", 0, 10)])
    network = Network.of([([[-6.0, 1.0, 0.0]], [-4.5])])  # yes iff n - 6 group >= 5
    return Explainer(network, schema=schema)


def real_answers() -> Any:
    rows = [{"group": g, "n": n, "fee": 0} for g in (0, 1) for n in range(11)]
    return real_explainer().explain_many(rows, target=1, constraints=[Fixed("group")])


def test_an_audit_of_real_answers() -> None:
    answers = real_answers()
    zero, one = audit(answers, by="group").groups
    assert (zero.unneeded, zero.needing, zero.share) == (6, 5, 1.0)
    assert (one.unneeded, one.needing, one.without) == (0, 11, 11)
    assert np.allclose(zero.costs, np.arange(1, 6) / 10 / 3)
    (only,) = flip_sets(answers)
    assert only.features == ("n",)
