"""Tables in the form that scikit-learn objects were fitted on, and the output of a fitted transformer for one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import MissingExtra, ModelError
from ifonly.schema.tables import import_pandas


def made_of(encoder: Any, columns: Sequence[NDArray[Any]], where: str) -> NDArray[Any]:
    """A fitted transformer's own answer for columns of options, as a dense array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories that the encoder ignores, as it was configured to
        try:
            answer = encoder.transform(table(columns, getattr(encoder, "feature_names_in_", None)))
        except MissingExtra:
            raise
        except Exception as error:
            raise ModelError(
                f"'{where}' ({type(encoder).__name__}) cannot encode the schema's options: {error}"
            ) from None
    if hasattr(answer, "to_numpy"):
        answer = answer.to_numpy()
    return np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)


def table(columns: Sequence[NDArray[Any]], names: Sequence[str] | None) -> Any:
    """Columns as what scikit-learn was fitted on: a DataFrame when it knows names, an array when it does not."""
    if names is None:
        same = all(column.dtype.kind in "biuf" for column in columns)
        return np.column_stack([c.astype(np.float64 if same else object) for c in columns])
    pd = import_pandas("A model that was fitted on a DataFrame", extra="sklearn")
    return pd.DataFrame({n: pd.Series(c, dtype=c.dtype) for n, c in zip(names, columns, strict=True)})
