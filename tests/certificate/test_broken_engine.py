"""An engine with a bug writes certificates: what the checker lets pass is true all the same, and each bug is caught."""

from __future__ import annotations

import numpy as np
import pytest

from cases import load
from certificate.samples import question
from ifonly import ClassTarget, Distance, Limits, check
from ifonly.certifying import certifier, leaves
from ifonly.certifying.certifier import Certifier
from ifonly.errors import IfonlyError
from ifonly.methods import Search, Tolerances
from ifonly.problem import Question


def problems():
    """Questions with people, and how far the nearest row is."""
    for norm in ("l0", "l1", "l2", "linf"):
        asked, point = question(norm)
        yield asked, np.array(point)
        model, points, _ = load("credit")
        asked = Question(model=model, target=ClassTarget(1, margin=0.0), distance=Distance(norm))
        for i in (0, 3, 7):
            yield asked, points[i]


CASES = list(problems())
"""Sound answers, before anything is broken."""
TRUTHS = [Search().prepare(asked).solve(point[None, :], Limits())[0] for asked, point in CASES]


def caught():
    """How many certificates the checker refuses; those that it lets pass must be true, and verified ones must pass."""
    refused = 0
    for (asked, point), truth in zip(CASES, TRUTHS, strict=True):
        optimum = asked.distance.between(asked.schema, point, truth.point)
        for verified in (False, True):
            try:
                checked = check(Certifier(asked, Tolerances(), verified=verified).proven(point, Limits()))
            except IfonlyError:  # nothing is given out
                continue
            refused += not checked.valid
            if checked.valid:
                assert checked.lower <= optimum * (1 + 1e-9) and checked.upper >= optimum * (1 - 1e-6)
            assert checked.valid or not verified
    return refused


def test_a_sound_engine_is_not_refused():
    assert caught() == 0


@pytest.mark.long
def test_a_bound_that_is_too_tight(monkeypatch):
    """Every bound is taken too low by a share of its terms, so boxes are closed that hold favourable rows."""
    monkeypatch.setattr(leaves, "SLACK", -0.02)
    assert caught() > 3


@pytest.mark.long
def test_a_radius_that_is_too_large(monkeypatch):
    """The engine claims a hundredth more than it has proven."""
    honest = certifier.exact_proof

    def boasting(*args):
        tree, lower, witness, upper = honest(*args)
        return tree, None if lower is None else lower * 1.01, witness, None if upper is None else upper * 1.02

    monkeypatch.setattr(certifier, "exact_proof", boasting)
    assert caught() == len(CASES)


@pytest.mark.long
@pytest.mark.parametrize("which", [0, -1])
def test_a_leaf_is_dropped(monkeypatch, which):
    honest, searches = leaves.Leaves.of_record, set()

    def forgetful(self, record):
        found = honest(self, record)
        closed = [k for k, node in enumerate(found) if isinstance(node, leaves.Closed)]
        if not closed:  # one region, which exact arithmetic has to look at anyway
            return found
        searches.add(record.log.tobytes())
        return found[: closed[which]] + found[closed[which] + 1 :]

    monkeypatch.setattr(leaves.Leaves, "of_record", forgetful)
    assert caught() == len(searches) >= len(CASES) - 4


def test_half_of_a_split_is_forgotten(monkeypatch):
    """The first split that has a leaf for its first side is replaced by its second side."""
    honest = leaves.Leaves.of_record

    def forgetful(self, record):
        found = honest(self, record)
        for k in range(len(found) - 1):
            if isinstance(found[k], list) and isinstance(found[k + 1], leaves.Closed):
                return found[:k] + found[k + 2 :]
        return found

    monkeypatch.setattr(leaves.Leaves, "of_record", forgetful)
    assert caught() > 0


@pytest.mark.long
def test_wrong_slopes(monkeypatch):
    honest = leaves._rows

    def inverted(about, multipliers, bits):
        return honest(about, multipliers, 1 - bits)

    monkeypatch.setattr(leaves, "_rows", inverted)
    assert caught() > 3


@pytest.mark.long
def test_an_option_off_by_one(monkeypatch):
    """Splits of options name the next one."""
    from ifonly.certificate.check.schema import StatedChoice

    honest = leaves.written_split

    def shifted(statement, which, value):
        split = honest(statement, which, value)
        features = statement.schema.features
        if split[0] == "option" and isinstance(feature := features[split[1]], StatedChoice):
            split[2] = (split[2] + 1) % len(feature.options)
        return split

    monkeypatch.setattr(leaves, "written_split", shifted)
    assert caught() > 0


def test_a_witness_off_by_one_option(monkeypatch):
    honest = certifier.exact_proof

    def shifted(*args):
        tree, lower, witness, upper = honest(*args)
        schema = args[0][0][0].schema
        g = next(k for k, feature in enumerate(schema.features) if hasattr(feature, "options"))
        moved = tuple((v + 1) % len(schema.features[g].options) if k == g else v for k, v in enumerate(witness))
        return tree, lower, moved, upper

    monkeypatch.setattr(certifier, "exact_proof", shifted)
    assert caught() > len(CASES) // 2
