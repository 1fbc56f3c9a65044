"""Certificates under the rules of the shipped schemas, whose amounts are in cents, for every distance."""

import pytest

from ifonly import Distance, Explainer, Limits, certify, check, datasets

PEOPLE = {"credit": (112, 5743, 8732, 23745), "adult": (11742, 24888, 32327, 40765)}
DISTANCES = [Distance(norm) for norm in ("l0", "l1", "l2", "linf")] + [Distance({"l0": 0.5, "l1": 0.5})]
MOST_NODES = 400


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@pytest.mark.parametrize("name", PEOPLE)
def test_amounts_in_cents_leave_short_proofs(name: str, distance: Distance) -> None:
    """Split where a number changes at all, then at whole numbers, then at cents: in another order a proof takes as many
    nodes as there are cents."""
    data, explainer = datasets.load(name), Explainer(datasets.network(name)).using(limits=Limits(seconds=60))
    for person in PEOPLE[name]:
        certificate = certify(explainer, data.row(person), distance=distance)
        found = check(certificate)
        assert found.valid and found.upper is not None
        assert found.upper - found.lower <= 2e-6 * found.upper
        assert found.nodes <= MOST_NODES
