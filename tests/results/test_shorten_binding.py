"""Short numbers where rules, ranges and shares bind: on the safe side, and judged."""

import numpy as np
import pytest

from ifonly import Explainer, datasets

BINDING = [
    ["MaxPaymentAmountOverLast6Months + MaxBillAmountOverLast6Months <= 3000.55"],
    ["MaxPaymentAmountOverLast6Months <= 1000 or MaxPaymentAmountOverLast6Months >= 9999.99",
     "MaxBillAmountOverLast6Months >= 3 * MostRecentPaymentAmount"],
    ["MaxPaymentAmountOverLast6Months + MostRecentPaymentAmount <= 10000",
     "MaxBillAmountOverLast6Months >= MostRecentBillAmount"],
    ["MaxPaymentAmountOverLast6Months changes by at most 137 %", "MaxBillAmountOverLast6Months <= 3019.812"],
]  # fmt: skip


def _digits(value: float) -> int:
    return len(repr(float(value)).replace(".", "").strip("0-"))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("constraints", BINDING, ids=["sum", "gap", "order", "share"])
def test_numbers_are_short_where_constraints_bind(constraints, norm):
    dataset, model = datasets.load("credit", rules=False), datasets.network("credit", rules=False)
    points = dataset.points()[:400]
    denied = points[model.scores(points)[:, 0] < 0][:40]
    answers = Explainer(model).explain_many(
        [dataset.schema.row(point) for point in denied], distance=norm, constraints=constraints
    )
    assert all(answer.status == "nearest" for answer in answers)
    values = [change.after for answer in answers for change in answer.changes if isinstance(change.after, float)]
    assert len(values) > 20
    assert max(_digits(value) for value in values) <= 12  # a float64 has 17
    assert np.median([_digits(value) for value in values]) <= 9
