"""Diverse answers as flat tables."""

from __future__ import annotations

from ifonly import Explainer, datasets


def test_a_row_per_answer() -> None:
    explainer = Explainer(datasets.network("compas"), classes=["low risk", "high risk"])
    found = explainer.explain_diverse(datasets.load("compas").row(1), 3)
    frame = found.to_frame("all")
    assert len(frame) == len(found) == 3 and list(frame.index) == [0, 1, 2]
    after = [name for name in frame.columns if name.endswith(" (after)")]
    rows = [dict(zip(after, row, strict=True)) for row in frame[after].itertuples(index=False)]
    assert rows == [{f"{name} (after)": value for name, value in one.counterfactual.items()} for one in found]
    assert found.to_polars("none")["distance"].to_list() == [one.distance for one in found]
