"""Whose certificate it is: the model, the schema and the person of a certificate against those that somebody holds."""

from __future__ import annotations

from typing import Any

from ifonly.certificate.format import Certificate, canonical
from ifonly.certificate.showing import Comparison
from ifonly.certifying.statement import hexes, stated_model, stated_schema
from ifonly.errors import FileError
from ifonly.model import Model
from ifonly.printing import quoted
from ifonly.schema import Schema


def compared_model(certificate: Certificate, model: Model, name: str) -> Comparison:
    """The model of a certificate with another one, number by number; of several models, any of them."""
    stated = stated_model(model)
    if stated is None:
        words = f"NOT the model that was proven: {quoted(name)} is {model.function.name}, which no certificate states."
        return Comparison(what="model", same=False, words=words)
    mine, members = canonical(stated), _members(certificate)
    if mine in members:
        words = f"Model {members.index(mine)} of the {len(members)} that were proven about is {quoted(name)}."
        return Comparison(what="model", same=True, words=words)
    return _compared("model", certificate, mine, name)


def _members(certificate: Certificate) -> list[bytes]:
    """The models of a certificate about several."""
    question = certificate.data.get("question")
    model = question.get("model") if isinstance(question, dict) else None
    members = model.get("models") if isinstance(model, dict) else None
    return [canonical(one) for one in members] if isinstance(members, list) else []


def compared_schema(certificate: Certificate, schema: Schema, name: str) -> Comparison:
    """The schema of a certificate with another one; rules are no part of it, since a question states them."""
    return _compared("schema", certificate, canonical(stated_schema(schema)), name)


def compared_person(certificate: Certificate, schema: Schema, row: Any, name: str) -> Comparison:
    """The row of a certificate with another one."""
    point = schema.read(row)
    own = _part(certificate, "factual")
    if own == canonical(hexes(point)):
        return Comparison(what="person", same=True, words=f"The person who was proven about is {name}.")
    listed = certificate.data["question"]["factual"]
    mine = hexes(point)
    other = [
        quoted(feature.name)
        for feature, a, b in zip(schema.features, listed, mine, strict=False)
        if a != b or len(listed) != len(mine)
    ]
    words = f"NOT the person who was proven about: {name} differs in {', '.join(other[:8])}."
    return Comparison(what="person", same=False, words=words)


def _compared(what: str, certificate: Certificate, mine: bytes, name: str) -> Comparison:
    own = _part(certificate, what)
    if own == mine:
        words = f"The {what} that was proven about is {quoted(name)}."
        return Comparison(what=what, same=True, words=words)
    return Comparison(what=what, same=False, words=f"NOT the {what} that was proven about: {quoted(name)} is another.")


def _part(certificate: Certificate, key: str) -> bytes:
    question = certificate.data.get("question")
    if not isinstance(question, dict) or key not in question:
        raise FileError("The question of this certificate cannot be read; `ifonly check` says what is wrong.")
    return canonical(question[key])
