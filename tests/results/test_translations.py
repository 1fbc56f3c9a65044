"""Labels, units and names of options by language: in schemas, sentences, pages, reasons, notices and rules."""

import json
import pickle

import pytest

from ifonly import Answer, Answers, Binary, Categorical, Explainer, Integer, Network, Real, Schema
from ifonly.errors import QuestionError, SchemaError
from ifonly.model import network_model
from ifonly.notices import Letter, notice
from ifonly.results.languages import LANGUAGES
from ifonly.results.sufficient import SufficientReasons
from ifonly.schema import schema_from_json
from ifonly.schema.wording import LANGUAGE_CODES

PLAIN = Schema(
    [
        Real("income", 0, 10, step=1, label="yearly income", unit="k$"),
        Categorical("job", ["A1", "A2", None]),
        Binary("owner"),
        Integer("age", 18, 90, label="age"),
    ]
)
SCHEMA = PLAIN.labelled(
    {"income": "Jahreseinkommen", "job": "Beruf", "owner": "Wohnen"},
    {"income": "Tsd. €"},
    options={"job": {"A1": "Aushilfe", "A2": "Fachkraft", None: "ohne"}, "owner": {True: "Eigentum", False: "Miete"}},
    language="de",
).labelled({}, options={"job": {"A1": "temporary", "A2": "skilled"}}, language="en")
ROW = {"income": 1, "job": "A1", "owner": False, "age": 40}


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    """Approved only if A2 and an owner and an income of at least 3."""
    weights = [[0.5, -9.0, 9.0, -9.0, 9.0, 0.0]]
    function = Network.of([(weights, [-19.4])])
    return Explainer(network_model(function, SCHEMA, classes=("abgelehnt", "bewilligt")))


def test_the_languages_of_schemas_are_those_of_sentences() -> None:
    assert set(LANGUAGE_CODES) == set(LANGUAGES)


def test_a_schema_keeps_its_translations() -> None:
    assert schema_from_json(json.loads(SCHEMA.to_json())) == SCHEMA == pickle.loads(pickle.dumps(SCHEMA))
    assert hash(SCHEMA) == hash(schema_from_json(json.loads(SCHEMA.to_json())))
    assert SCHEMA != PLAIN
    renamed = SCHEMA.rename({"job": "work"})
    assert renamed["work"].translations["de"]["options"]["A1"] == "Aushilfe"
    data = json.loads(SCHEMA.to_json())
    data["features"][2]["translations"]["de"]["options"] = {"true": "Eigentum"}  # as JSON writes booleans
    assert schema_from_json(data)["owner"].translations["de"]["options"] == {"True": "Eigentum"}


def test_a_sentence_uses_the_names_of_its_language(explainer) -> None:
    answer = explainer.explain(ROW)
    german, english = answer.sentence("de"), answer.sentence("en")
    assert "„Jahreseinkommen“ 3 Tsd. € statt 1 Tsd. €" in german
    assert "„Beruf“ Fachkraft statt Aushilfe" in german
    assert "„Wohnen“ Eigentum statt Miete" in german
    assert "A1" not in german
    assert "your yearly income had been 3 k$ instead of 1 k$" in english
    assert "job had been skilled instead of temporary" in english
    assert "A1 -> A2" in str(answer) or "job had been A2 instead of A1" in str(
        answer
    )  # the exact sentence is the table's
    assert answer.counterfactual == {"income": 3.0, "job": "A2", "owner": True, "age": 40}
    assert Answer.from_dict(json.loads(answer.to_json())).sentence("de") == german


def test_pages_reasons_and_notices_use_them(explainer) -> None:
    answer = explainer.explain(ROW, constraints=["job in (A1, A2)", "age is fixed"])
    page = answer.to_html(language="de")
    for words in ("Aushilfe", "Fachkraft", "Miete", "Jahreseinkommen", "„Beruf“ ist eines von: Aushilfe, Fachkraft"):
        assert words in page
    for words in ("A1", "yearly income", "nodes", "nearest"):
        assert words not in page
    why = explainer.why(ROW)
    assert "Aushilfe" in why.sentence("de") or "Miete" in why.sentence("de")
    assert "A1" not in why.to_html(language="de")
    assert SufficientReasons.from_dict(json.loads(why.to_json())).sentence("de") == why.sentence("de")
    paper = notice(explainer, ROW, Letter(form="gdpr", language="de"))
    shown = {one["name"]: (one["label"], one["shown"], one["value"]) for one in paper.annex()["data"]}
    assert shown["job"] == ("Beruf", "Aushilfe", "A1")
    assert shown["owner"] == ("Wohnen", "Miete", False)
    assert "A1" not in paper.to_html()
    assert all("A1" not in one.text for one in paper.statements)


def test_what_stands_in_the_way_has_the_labels_of_its_language(explainer) -> None:
    answer = explainer.explain(ROW, constraints=["job is fixed", "income is fixed"])
    assert "„Beruf“ bleibt, wie es ist" in answer.sentence("de")
    assert "„Jahreseinkommen“ bleibt" in answer.sentence("de") or "„Beruf“ Fachkraft statt" in answer.sentence("de")
    other = explainer.explain(ROW, constraints=["income <= 2"])
    assert "“yearly income” is at most 2 k$" in other.sentence("en")


def test_rules_take_the_labels_of_any_language(explainer) -> None:
    answer = explainer.explain(ROW, constraints=["Jahreseinkommen >= 5", "yearly income <= 6"])
    assert answer.counterfactual["income"] == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"language": "fr"}, "There are words in en, de"),
        ({"options": {"job": {"A9": "x"}}, "language": "de"}, "whose options are A1, A2, missing"),
        ({"options": {"age": {"18": "x"}}, "language": "de"}, "which has no options"),
        ({"options": {"job": {"A1": "x"}}}, "Names of options are in a language"),
        ({"options": {"job": "x"}, "language": "de"}, "has a name per option"),
        ({"options": {"job": {"A1": "x\n"}}, "language": "de"}, "printable"),
    ],
)
def test_a_translation_that_fits_nothing_is_refused(given, words) -> None:
    with pytest.raises(SchemaError, match=words):
        PLAIN.labelled({}, **given)


@pytest.mark.parametrize("wrong", [3, {"fr": {}}, {"de": {"name": "x"}}, {"de": 3}, {"de": {"label": 3}}])
def test_a_translation_is_label_unit_and_options(wrong) -> None:
    with pytest.raises(SchemaError, match="translation|label"):
        Real("income", 0, 1, translations=wrong)


def test_an_answer_with_broken_translations_is_refused(explainer) -> None:
    data = explainer.explain(ROW).to_dict()
    for wrong in (3, {"job": 3}, {"job": {"de": 3}}, {"job": {"de": {"options": 3}}}, {"job": {"de": {"label": 3}}}):
        with pytest.raises(QuestionError, match="translations"):
            Answer.from_dict({**data, "translations": wrong})


def test_people_are_called_by_their_own_numbers() -> None:
    """By the number of the customer, where there is one, and not as a row of that number."""
    explainer = Explainer(
        network_model(Network.of([([[1.0, 1.0]], [-3.0])]), Schema([Integer("a", 0, 9), Integer("b", 0, 9)]))
    )
    found = explainer.explain_many([[0, 0], [1, 0]])
    assert "Row 0: what" in found.to_html() and "The other feature stays" in found.to_html()
    page = Answers(list(found), ids=["0047", "0048"]).to_html(language="de")
    assert ">0047: was anders sein müsste<" in page and "Zeile" not in page
