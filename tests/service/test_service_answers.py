"""What the desk answers is what the library answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ifonly import Certificate, Diversity, Query, certify, check, datasets
from ifonly.diagnostics import score_path
from ifonly.results.plain_language import guarantee
from ifonly.results.rule_language import Naming, rule_in

QUERY = {"distance": {"norm": "l1", "weights": {"MostRecentPaymentAmount": 3.0}}, "constraints": [
    {"kind": "only_up", "feature": "EducationLevel"}, "TotalMonthsOverdue in [1, 36]"]}  # fmt: skip


def timeless(data: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(data, dict):
        return {key: timeless(value) for key, value in data.items() if key != "seconds"}
    return [timeless(one) for one in data] if isinstance(data, list) else data


@pytest.mark.parametrize("query", [None, QUERY], ids=["plain", "asked"])
@pytest.mark.parametrize("who", [3, 4, 5])
def test_an_explanation_is_the_librarys(visit, registry, people, who, query) -> None:
    told = visit.post("/v1/explain", {"row": people[who], "query": query, "path": True, "language": "de"})
    assert told.status_code == 200
    explainer = registry[0].explainer
    answer = explainer.explain(people[who], None if query is None else Query.from_dict(query))
    data = told.json()
    assert timeless(data["answer"]) == timeless(json.loads(json.dumps(answer.to_dict())))
    assert data["sentence"] == answer.sentence("de")
    assert data["exact"] == str(answer)
    assert data["guarantee"] == guarantee(answer, "de")
    assert data["help"] == []
    if answer.changes:
        way = score_path(explainer, answer)
        assert data["path"] == {
            "score_margin": list(way.score_margin),
            "changes": [list(c) for c in way.changes],
            "decision": way.decision,
        }
    else:
        assert data["path"] is None


def test_several_answers_are_the_librarys(visit, registry, people) -> None:
    body = {"row": people[3], "diversity": {"count": 3, "differ": "features"}}
    told = visit.post("/v1/diverse", body).json()
    several = registry[0].explainer.explain_diverse(people[3], Diversity(3, differ="features"))
    assert [timeless(one["answer"]) for one in told["answers"]] == timeless(several.to_dict()["answers"])
    assert [one["exact"] for one in told["answers"]] == several.sentences
    assert (told["ending"], told["proven"]) == (several.ending, several.proven)
    assert len({one["sentence"] for one in told["answers"]}) == 3


def test_a_prediction_is_the_models(visit, registry, people) -> None:
    told = visit.post("/v1/predict", {"row": people[3]}).json()
    answer = registry[0].explainer.explain(people[3])
    assert told["decision"] == answer.decision_before
    assert told["score_margin"] == abs(answer.score_before)
    assert sum(told["probabilities"].values()) == pytest.approx(1.0)
    assert max(told["probabilities"], key=told["probabilities"].get) == told["decision"]


def test_a_certificate_is_valid_and_stays_so(visit, registry, people) -> None:
    told = visit.post("/v1/certify", {"row": people[3]})
    assert told.status_code == 200
    assert told.headers["content-disposition"] == 'attachment; filename="answer.cert"'
    certificate = Certificate.from_bytes(told.content)
    assert certificate == certify(registry[0].explainer, people[3])
    for body, kind in ((told.content, "application/octet-stream"), (_text(certificate), "application/json")):
        checked = visit("POST", "/v1/check", content=body, headers={"content-type": kind})
        assert checked.json() == check(certificate).to_dict()
        assert checked.json()["verdict"] == "VALID"


def _text(certificate: Certificate) -> bytes:
    from ifonly.certificate.format import canonical

    return canonical(certificate.data)


def test_an_altered_certificate_is_not_valid(visit, registry, people) -> None:
    certificate = certify(registry[0].explainer, people[3])
    content = bytearray(certificate.content)
    content[len(content) // 2] ^= 1
    told = visit("POST", "/v1/check", content=bytes(content), headers={"content-type": "application/octet-stream"})
    assert told.status_code == 422 or told.json()["verdict"] == "INVALID"
    data = {**certificate.data, "claim": {**certificate.data["claim"], "upper": (0.0).hex()}}
    from ifonly.certificate.format import stamp

    forged = Certificate({**data, "sha256": stamp(data)}).content
    told = visit("POST", "/v1/check", content=forged, headers={"content-type": "application/octet-stream"})
    assert told.json()["verdict"] == "INVALID"


def test_a_report_is_the_page_to_print(visit, registry, people) -> None:
    told = visit.post("/v1/report", {"row": people[3], "language": "de"})
    page = registry[0].explainer.explain(people[3]).to_html(None, "de")
    assert told.headers["content-type"].startswith("text/html")
    assert "script" not in told.headers["content-security-policy"]
    assert told.text[:500] == page[:500]
    several = visit.post("/v1/report", {"row": people[3], "diversity": {"count": 2}}).text
    assert several.startswith("<!doctype html>") and several != told.text


def test_a_notice_is_a_page_to_save(visit, registry, people) -> None:
    told = visit.post("/v1/notice", {"row": people[3], "language": "de", "form": "gdpr", "query": {"target": "deny"}})
    assert told.status_code == 200, told.text
    assert told.headers["content-disposition"] == 'attachment; filename="notice.html"'
    assert "Auskunft über eine automatisierte Entscheidung" in told.text and "[R1]" in told.text
    assert "to be filled in: date" in visit.post("/v1/notice", {"row": people[3]}).text
    for body, where in (
        ({"form": "c-2"}, "form"),
        ({"query": {"target": "approve"}}, None),
        ({"diversity": {}}, "diversity"),
    ):
        refused = visit.post("/v1/notice", {"row": people[3], **body})
        assert refused.status_code == 422 and refused.json()["where"] == where, refused.text


def test_why_is_a_reason_with_its_status(visit, registry, people) -> None:
    told = visit.post("/v1/why", {"row": people[3], "language": "de"})
    assert told.status_code == 200, told.text
    own = registry[0].explainer.why(people[3])
    assert told.json()["reasons"]["reasons"] == own.to_dict()["reasons"]
    assert told.json()["sentence"] == own.sentence("de", subject=registry[0].subject)
    fixed = {"constraints": [{"kind": "fixed", "feature": own.features[0]}]}
    assert (
        own.features[0] not in visit.post("/v1/why", {"row": people[3], "query": fixed}).json()["reasons"]["necessary"]
    )
    refused = visit.post("/v1/why", {"row": people[3], "query": {"target": "approve"}})
    assert refused.status_code == 422 and "decided as asked already" in refused.json()["error"]


def test_sentences_in_a_query(visit, people) -> None:
    """As the page sends them."""
    query = {"constraints": ["Only MostRecentPaymentAmount, MaxPaymentAmountOverLast6Months may change"]}
    told = visit.post("/v1/explain", {"row": people[3], "query": query}).json()["answer"]
    assert {change["feature"] for change in told["changes"]} <= set(query["constraints"][0].replace(",", "").split())
    refused = visit.post("/v1/explain", {"row": people[3], "query": {"constraints": ["fraud rejects"]}})
    assert refused.status_code == 422 and "No model called 'fraud' is known here" in refused.json()["error"]


def test_recourse_is_the_cheapest_action_under_the_causes_of_the_desk(visit, registry, people) -> None:
    query = {"constraints": [{"kind": "fixed", "feature": "MostRecentBillAmount"}]}
    told = visit.post("/v1/recourse", {"row": people[3], "query": query, "language": "de"})
    assert told.status_code == 200, told.text
    own = registry[0].explainer.recourse(people[3], registry[0].causes, constraints=["MostRecentBillAmount is fixed"])
    assert told.json()["recourse"]["actions"] == own.to_dict()["actions"] and told.json()["exact"] == str(own)
    assert told.json()["sentence"] == own.sentence("de", subject=registry[0].subject)
    about = visit("GET", "/v1/schema").json()["causes"]
    assert about == {"MostRecentBillAmount": ["MaxBillAmountOverLast6Months"]}
    refused = visit.post("/v1/recourse", {"model": "ruled", "row": people[3]})
    assert refused.status_code == 422 and "--causes ruled=FILE" in refused.json()["error"]
    refused = visit.post("/v1/recourse", {"row": people[3], "query": {"target": "maybe"}})
    assert refused.status_code == 422 and "maybe" in refused.json()["error"]


def test_what_would_help_is_a_query_that_helps(visit, people) -> None:
    fixed = [{"kind": "fixed", "feature": name} for name in people[3] if name != "AgeGroup"]
    told = visit.post("/v1/explain", {"model": "ruled", "row": people[3], "query": {"constraints": fixed}}).json()
    assert told["answer"]["status"] == "none exists"
    assert told["help"]
    labels = {f.name: (f.label, f.unit) for f in datasets.load("credit").schema.features}
    for way in told["help"]:
        assert way["said"] == rule_in(way["words"], Naming("en", labels)) and way["said"] in way["sentence"]
        if way["query"] is None:
            assert "AgeGroup" in way["words"]
            continue
        assert len(way["query"]["constraints"]) < len(fixed)
        assert visit.post("/v1/explain", {"model": "ruled", "row": people[3], "query": way["query"]}).json()["answer"][
            "status"] == "nearest"  # fmt: skip
    assert any(way["query"] for way in told["help"])
    german = {"model": "ruled", "row": people[3], "query": {"constraints": fixed}, "language": "de"}
    data = visit.post("/v1/explain", german).json()
    said = [way["said"] for way in data["help"]]
    assert len(data["blame"]) == len(data["answer"]["reasons"]["blame"]) > 0
    assert any("bleibt, wie es ist" in one for one in data["blame"]) and not any(
        "fixed" in one for one in data["blame"]
    )
    assert said and all("darf" in one and " may " not in one for one in said)


def test_a_rule_of_the_organisation_is_not_lifted_by_a_query(visit, registry, people) -> None:
    schema = visit("GET", "/v1/schema?model=ruled").json()
    assert schema["rules"][0] == "AgeGroup is fixed" and schema["subject"] == "the application"
    body = {"model": "ruled", "row": people[3], "query": {"constraints": [{"kind": "fixed", "feature": name}
            for name in people[3]]}}  # fmt: skip
    for way in visit.post("/v1/explain", body).json()["help"]:
        assert (way["query"] is None) == ("AgeGroup" in way["words"] or "EducationLevel" in way["words"])


def test_a_rule_in_words_is_read(visit) -> None:
    assert visit.post("/v1/rule", {"text": "AgeGroup only goes up"}).json() == {"words": "AgeGroup only goes up"}
    told = visit.post("/v1/rule", {"text": "AgeGroup only gos up"})
    assert told.status_code == 422
    assert told.json()["where"] == "text" and "gos" in told.json()["error"] and "^^^" in told.json()["place"]
    assert "\n" not in told.json()["error"]


def test_a_number_that_the_language_makes_ambiguous_is_refused(visit, people) -> None:
    text, both = "MostRecentPaymentAmount <= 1.250", "'1.250' may be 1.25 or 1250"
    rule = "MostRecentPaymentAmount <= 1.25"
    assert visit.post("/v1/rule", {"text": rule, "language": "de"}).json() == {"words": rule}
    for where, path, body in (
        ("text", "/v1/rule", {"text": "at most 1.250 changes", "language": "en"}),
        ("text", "/v1/rule", {"text": text, "language": "de"}),
        ("query.constraints[0]", "/v1/explain", {"row": people[3], "query": {"constraints": [text]}, "language": "de"}),
        (
            "query.constraints[0]",
            "/v1/explain",
            {"row": people[3], "query": {"constraints": [{"kind": "rule", "text": text}]}, "language": "de"},
        ),
    ):
        told = visit.post(path, body)
        assert told.status_code == 422 and told.json()["where"] == where and both in told.json()["error"]
    row = {**people[3], "MostRecentPaymentAmount": "1.250"}
    told = visit.post("/v1/explain", {"row": row, "language": "de"})
    assert told.status_code == 422 and told.json()["where"] == "row.MostRecentPaymentAmount"
    told = visit.post("/v1/explain", {"row": people[3], "query": {"constraints": [rule]}}).json()
    assert rule in told["answer"]["constraints"]


def test_what_there_is_to_ask_about(visit, registry) -> None:
    models = visit("GET", "/v1/models").json()
    assert [one["name"] for one in models["models"]] == ["credit", "ruled"]
    assert models["languages"] == ["en", "de"]
    schema = visit("GET", "/v1/schema").json()
    assert schema["classes"] == ["deny", "approve"] and schema["kind"] == "network" and schema["certificates"]
    assert [one["title"] for one in schema["people"]] == ["First", "Second"]
    assert schema["people"][0]["row"] == registry[0].people["First"]
    assert visit("GET", "/v1/schema?model=none").status_code == 404
