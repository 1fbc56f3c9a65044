"""The pictures of docs/gallery.md: python tools/gallery.py (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from ifonly import Explainer, datasets, score_path

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LABELS = {
    "MostRecentPaymentAmount": "latest payment",
    "TotalMonthsOverdue": "months overdue in all",
    "MaxPaymentAmountOverLast6Months": "highest payment of 6 months",
    "MaxBillAmountOverLast6Months": "highest bill of 6 months",
}
UNITS = {"MostRecentPaymentAmount": "$", "MaxPaymentAmountOverLast6Months": "$", "TotalMonthsOverdue": "months"}


def main() -> None:
    """Draw them, the same at every run."""
    matplotlib.rcParams["svg.hashsalt"] = "ifonly"
    model, data = datasets.network("credit"), datasets.load("credit")
    explainer = Explainer(model, schema=model.schema.labelled(LABELS, UNITS), classes=["deny", "approve"])
    answer = explainer.explain(data.row(0))
    _save(answer.plot(), "change")
    _save(score_path(explainer, answer).plot(), "path")
    _save(explainer.explain_diverse(data.row(0), 4).plot(), "alternatives")
    people = [data.row(i) for i in data.split()[1][:400]]
    answers = explainer.explain_many(people, target="approve")
    _save(answers.plot(by=[person["AgeGroup"] for person in people]), "costs")


def _save(axes: Any, name: str) -> None:
    axes.figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
