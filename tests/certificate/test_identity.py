"""Whose certificate it is: this model, this schema, this person, or another one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from certificate.test_commands import run
from ifonly import Certificate, datasets
from ifonly.certifying import certified_query
from ifonly.certifying.identity import compared_model, compared_person, compared_schema
from ifonly.model import Network, network_model
from ifonly.model.files import save_network
from ifonly.schema import Schema


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("identity") / "answer.cert"
    words = ("--dataset", "compas", "--without-rules", "--row", 3, "--output", file)
    assert run("certify", *words).exit_code == 0
    return file


def test_the_model_the_schema_and_the_person(path):
    certificate, model = Certificate.load(path), datasets.network("compas", rules=False)
    _, row = certified_query(certificate)
    assert compared_model(certificate, model, "m").same and compared_schema(certificate, model.schema, "s").same
    assert compared_person(certificate, model.schema, row, "row 3").same
    other = compared_person(certificate, model.schema, {**row, "PriorsCount": 31}, "row 4")
    assert not other.same and "'PriorsCount'" in other.words


def test_names_in_another_language_are_no_part_of_a_certificate(path):
    certificate, schema = Certificate.load(path), datasets.network("compas", rules=False).schema
    assert all(feature.translations for feature in schema)
    assert not any("translations" in feature for feature in certificate.data["question"]["schema"]["features"])
    plain = Schema([replace(feature, translations={}) for feature in schema], schema.columns)
    assert compared_schema(certificate, plain, "s").same and compared_schema(certificate, schema, "s").same


def test_one_bit_of_a_weight_is_another_model(path):
    certificate, model = Certificate.load(path), datasets.network("compas", rules=False)
    layers = [(layer.weight.copy(), layer.bias.copy()) for layer in model.network.layers]
    layers[0][0][0, 0] = np.nextafter(layers[0][0][0, 0], 9.0)
    assert not compared_model(certificate, network_model(Network.of(layers), model.schema), "m").same
    feature = replace(model.schema["PriorsCount"], upper=39)
    features = [feature if one.name == "PriorsCount" else one for one in model.schema.features]
    assert not compared_schema(certificate, Schema(features), "s").same


def test_the_command(path, tmp_path):
    told = run("check", path)
    assert told.exit_code == 0 and "This is about the model in the file." in told.stdout
    told = run("check", path, "--dataset", "compas", "--row", 3)
    assert told.exit_code == 0 and "The person who was proven about is row 3." in told.stdout
    assert "This is about the model in the file." not in told.stdout
    told = run("check", path, "--dataset", "compas", "--row", 4)
    lines = told.stdout.splitlines()
    assert told.exit_code == 5 and lines[0] == lines[-1] == "VALID, BUT OF ANOTHER PERSON"
    told = run("check", path, "--dataset", "credit", "--json")
    assert (
        told.exit_code == 5 and json.loads(told.stdout)["verdict"] == "VALID, BUT OF ANOTHER MODEL AND ANOTHER SCHEMA"
    )


def test_files_of_a_model_and_a_schema(path, tmp_path):
    model, (_, row) = datasets.network("compas", rules=False), certified_query(path)
    save_network(model.network, tmp_path / "net.npz")
    model.schema.save(tmp_path / "schema.json")
    (tmp_path / "people.csv").write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    words = ("--model", tmp_path / "net.npz", "--schema", tmp_path / "schema.json", "--rows", tmp_path / "people.csv")
    told = run("check", path, *words, "--row", 0)
    assert told.exit_code == 0, told.output
    assert told.stdout.count("proven about is") == 3
    assert run("check", path, "--schema", tmp_path / "schema.json").exit_code == 0
    told = run("check", path, "--model", tmp_path / "net.npz")
    assert told.exit_code == 2 and "--schema" in told.stderr


def test_the_page(path, tmp_path):
    told = run("check", path, "--html", tmp_path / "answer.html")
    page = (tmp_path / "answer.html").read_text()
    assert told.exit_code == 0 and "<h1>Certificate: VALID</h1>" in page and "<script" not in page
    for part in ("Now and instead", "Not part of the proof", "PriorsCount", "Fingerprints"):
        assert part in page
    assert run("check", path, "--html", tmp_path / "answer.html").exit_code == 2
