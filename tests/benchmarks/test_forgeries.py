"""Structural forgeries: none is VALID for a false statement; and the judge knows a false statement when it sees one."""

import copy
import itertools

import pytest

import ifonly
from benchmarks.suites.certificates import forgeries, forging
from ifonly.certificate.format import Certificate, stamp


@pytest.mark.long
def test_no_forgery_proves_a_lie():
    passed = 0
    for forgery in itertools.islice(forgeries.forgeries(7), 250):
        checked = ifonly.check(forgery.certificate, seconds=600)
        if checked.valid:
            passed += 1
            assert forgeries.judge(forgery.certificate), forgery.kind
    assert passed > 20


def test_one_seed_gives_one_sequence():
    first, second = (
        [(one.kind, one.certificate) for one in itertools.islice(forgeries.forgeries(3), 20)] for _ in range(2)
    )
    assert first == second
    assert [kind for kind, _ in first] != [one.kind for one in itertools.islice(forgeries.forgeries(4), 20)]


@pytest.mark.parametrize("certificate", [*forgeries.compas(), *forgeries.small(12)])
def test_the_judge(certificate):
    assert forgeries.judge(certificate)
    data = copy.deepcopy(certificate.data)
    if data["witness"] is None:
        return
    lies = [{"claim": {"lower": None, "upper": None}, "witness": None}]
    if float.fromhex(data["claim"]["upper"]) > 0:
        more = (float.fromhex(data["claim"]["upper"]) * 1.001).hex()
        lies.append({"claim": {"lower": more, "upper": None}, "witness": None})
        lies.append({"claim": {"lower": (0.0).hex(), "upper": (0.0).hex()}})
    for lie in lies:
        told = {**data, **lie}
        assert not forgeries.judge(Certificate({**told, "sha256": stamp(told)}))


def test_every_way_fits_some_certificate():
    """No way of altering is idle: each changes at least one of the certificates."""
    import random

    pool = [*forgeries.compas(), *forgeries.small(20)]
    for name, way in {**forging.QUESTION, **forging.ANSWER}.items():
        changed = 0
        for i, certificate in enumerate(pool):
            data, other = copy.deepcopy(certificate.data), copy.deepcopy(pool[i - 1].data)
            try:
                way(data, random.Random(i), other)
            except (IndexError, KeyError, TypeError, ValueError, OverflowError):
                continue
            changed += data != certificate.data
        assert changed, name
