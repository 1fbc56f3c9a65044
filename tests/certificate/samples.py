"""Certificates to look at, made once."""

from __future__ import annotations

from functools import cache

import numpy as np

from cases import load
from ifonly import Certificate, ClassTarget, Distance, Fixed, Limits, Range, Real, Schema
from ifonly.certificate.format import stamp
from ifonly.certifying.certifier import Certifier
from ifonly.methods import Tolerances
from ifonly.model import Network, network_model
from ifonly.problem import Question
from ifonly.schema import Categorical, Integer


@cache
def question(norm: str, *, hopeless: bool = False) -> tuple[Question, tuple[float, ...]]:
    """A small question with every kind of split; `hopeless`: no row is favourable."""
    rng = np.random.default_rng(9)
    schema = Schema([Real("a", 0.0, 4.0), Integer("b", 0, 9), Categorical("c", ["x", "y", "z"])])
    layers = [(rng.normal(size=(5, 5)), rng.normal(size=5)), (rng.normal(size=(4, 5)), rng.normal(size=4))]
    network = Network.of([*layers, (rng.normal(size=(1, 4)), np.array([-1.8 if hopeless else -0.9]))])
    asked = Question(
        model=network_model(network, schema),
        target=ClassTarget(1, margin=0.01),
        distance=Distance(norm),
        constraints=(Range("b", 1.0, 8.0),),
    )
    return asked, (0.5, 2.0, 1.0)


@cache
def small(norm: str = "l1", *, hopeless: bool = False) -> Certificate:
    asked, point = question(norm, hopeless=hopeless)
    return Certifier(asked, Tolerances()).proven(np.array(point), Limits())


@cache
def of_case(dataset: str, arch: str, variant: str, norm: str, row: int) -> Certificate:
    model, points, _ = load(dataset, arch, variant)
    fixed = (Fixed(model.schema.names[0]),) if row % 2 else ()
    asked = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm), constraints=fixed)
    return Certifier(asked, Tolerances()).proven(points[row], Limits())


def restamped(data: dict) -> Certificate:
    """As somebody would who alters a certificate on purpose."""
    return Certificate({**data, "sha256": stamp(data)})
