"""Column expressions: what a column cannot be is said with the feature, the place and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import Categorical, Ordinal, Real, Schema
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import Binned, Column, Interaction, Options
from ifonly.model.importers.columns import Columns

SCHEMA = Schema([Real("x", 0, 1), Ordinal("level", ["a", "b", "c"], encoding="code"), Categorical("job", ["u", "v"])])
FLAG = Options(2, np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (Options(1, np.array([0.0, 1.0, 5.0])), ModelError, "Feature 'level' is encoded as .* not linear in that number; .*onehot"),
        (Interaction((FLAG, Options(1, np.array([0.0, 1.0, 1.0])))), UnsupportedModel, "A product of 2 features reaches 'scaler' as a product"),
        (Binned(0, np.array([0.5]), True), UnsupportedModel, "Feature 'x' reaches 'scaler' in bins, and jumps between them"),
    ],
)  # fmt: skip
def test_what_is_no_line(column: Column, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Columns(SCHEMA).line(column, "scaler")


def test_a_function_of_options_is_a_line_of_their_columns() -> None:
    columns = Columns(SCHEMA)
    points = np.array([[0.3, level, job] for level in range(3) for job in range(2)])
    for column, of in ((Options(1, np.array([2.0, 5.0, 8.0])), 1), (Options(2, np.array([-1.0, 4.0])), 2)):
        line = columns.line(column, "scaler")
        assert np.array_equal(
            SCHEMA.encode(points) @ line.weight + line.shift, column.values[points[:, of].astype(int)]
        )
