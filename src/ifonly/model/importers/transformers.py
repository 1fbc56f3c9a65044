"""scikit-learn transformers as maps of column expressions (see `columns`).

Scalers and projections are affine. Encoders are functions of one column each: the fitted encoder itself is evaluated at
every option. Bins are in `binning`. Other transformers have no exact form, and are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.binning import Binning, binarizer, binning_process, is_binning_process, k_bins
from ifonly.model.importers.column_kinds import Absent, Column, Line, Options
from ifonly.model.importers.columns import Columns, option_array
from ifonly.model.importers.curves import (
    function_transformer,
    polynomial_features,
    power_transformer,
    quantile_transformer,
    spline_transformer,
)
from ifonly.model.importers.tables import made_of
from ifonly.schema import Missing
from ifonly.schema.values import is_missing, plain, same_value

Handler: TypeAlias = Callable[[Any, list[Column], Columns, str], list[Column]]


def transformed(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """The columns that a fitted transformer makes of these columns."""
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return columns
    if isinstance(transformer, str) and transformer == "drop":
        return []
    if is_binning_process(transformer):
        transformer = Binning(transformer)
    name = "BinningProcess" if isinstance(transformer, Binning) else sklearn_name(transformer, HANDLERS)
    if name is None:
        raise UnsupportedModel(
            f"The transformer {type(transformer).__name__} ('{where}') has no exact form here; "
            f"supported are {', '.join(n for n in HANDLERS if n != 'SelectorMixin')} and feature selectors.",
            operation=type(transformer).__name__,
        )
    expected = getattr(transformer, "n_features_in_", len(columns))
    if expected != len(columns):
        raise ModelError(f"'{where}' takes {expected} columns, but gets {len(columns)}.")
    return HANDLERS[name](transformer, columns, arithmetic, where)


def sklearn_name(thing: Any, known: Any) -> str | None:
    """The name of the class, or of the nearest base class in scikit-learn, that is known here."""
    for cls in type(thing).__mro__:
        if cls.__module__.partition(".")[0] == "sklearn" and cls.__name__ in known:
            return cls.__name__
    return None


def steps_of(pipeline: Any) -> Iterator[tuple[str, Any]]:
    """The steps of a pipeline that do something."""
    for name, step in pipeline.steps:
        if step is not None and not (isinstance(step, str) and step == "passthrough"):
            yield name, step


# ---------------------------------------------------------------------- containers


def _pipeline(pipeline: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    for name, step in steps_of(pipeline):
        columns = transformed(step, columns, arithmetic, f"{where}.{name}")
    return columns


def _column_transformer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    names = list(getattr(transformer, "feature_names_in_", []))
    weights = transformer.transformer_weights or {}
    result: list[Column] = []
    for name, part, spec in transformer.transformers_:
        chosen = [columns[i] for i in _positions(spec, names, len(columns))]
        if chosen or not isinstance(part, str):
            part_columns = transformed(part, chosen, arithmetic, f"{where}.{name}") if chosen else []
            result += _weighted(part_columns, weights.get(name), arithmetic, f"{where}.{name}")
    return result


def _feature_union(union: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    weights = union.transformer_weights or {}
    result: list[Column] = []
    for name, part in union.transformer_list:
        part_columns = transformed(part, columns, arithmetic, f"{where}.{name}")
        result += _weighted(part_columns, weights.get(name), arithmetic, f"{where}.{name}")
    return result


def _weighted(columns: list[Column], weight: float | None, arithmetic: Columns, where: str) -> list[Column]:
    if weight is None:
        return columns
    return [arithmetic.scaled(column, float(weight), 0.0, where=where) for column in columns]


def _positions(spec: Any, names: list[str], count: int) -> list[int]:
    """Positions of the columns that a ColumnTransformer selects: names, numbers, a mask or a slice of either."""
    if isinstance(spec, str | int | np.integer) and not isinstance(spec, bool):
        spec = [spec]
    if isinstance(spec, slice):
        if isinstance(spec.start, str) or isinstance(spec.stop, str):  # by name, and then the last one is included
            start = names.index(spec.start) if spec.start is not None else None
            spec = slice(start, names.index(spec.stop) + 1 if spec.stop is not None else None, spec.step)
        return list(range(count))[spec]
    listed = [plain(item) for item in spec]
    if listed and all(isinstance(item, bool) for item in listed):
        return [i for i, wanted in enumerate(listed) if wanted]
    return [names.index(item) if isinstance(item, str) else range(count)[item] for item in listed]


# ---------------------------------------------------------------------- scalers, projections, selectors


def _scaling(columns: list[Column], arithmetic: Columns, where: str, scale: Any, centre: Any) -> list[Column]:
    """(x - centre) / scale, either of which may be None."""
    scales = np.ones(len(columns)) if scale is None else np.asarray(scale, dtype=np.float64)
    centres = np.zeros(len(columns)) if centre is None else np.asarray(centre, dtype=np.float64)
    return [
        arithmetic.scaled(column, 1.0 / s, -c / s, where=where)
        for column, s, c in zip(columns, scales.tolist(), centres.tolist(), strict=True)
    ]


def _standard_scaler(scaler: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    return _scaling(columns, arithmetic, where, scaler.scale_, scaler.mean_ if scaler.with_mean else None)


def _robust_scaler(scaler: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    scale, centre = (
        (scaler.scale_ if scaler.with_scaling else None),
        (scaler.center_ if scaler.with_centering else None),
    )
    return _scaling(columns, arithmetic, where, scale, centre)


def _max_abs_scaler(scaler: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    scaled = _scaling(columns, arithmetic, where, scaler.scale_, None)
    return _clipped(scaled, arithmetic, where, (-1.0, 1.0)) if getattr(scaler, "clip", False) else scaled


def _min_max_scaler(scaler: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    scaled = [
        arithmetic.scaled(column, factor, shift, where=where)
        for column, factor, shift in zip(columns, scaler.scale_.tolist(), scaler.min_.tolist(), strict=True)
    ]
    return _clipped(scaled, arithmetic, where, scaler.feature_range) if scaler.clip else scaled


def _clipped(columns: list[Column], arithmetic: Columns, where: str, ends: tuple[float, float]) -> list[Column]:
    return [arithmetic.clipped(column, float(ends[0]), float(ends[1]), where=where) for column in columns]


def _pca(pca: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    components = np.asarray(pca.components_, dtype=np.float64)
    if pca.whiten:
        components = components / np.sqrt(np.asarray(pca.explained_variance_, dtype=np.float64))[:, None]
    centred = [
        arithmetic.scaled(column, 1.0, -mean, where=where)
        for column, mean in zip(columns, np.zeros(len(columns)) if pca.mean_ is None else pca.mean_, strict=True)
    ]
    return arithmetic.mixed(centred, components, np.zeros(len(components)), where=where)


def _truncated_svd(svd: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    return arithmetic.mixed(columns, svd.components_, np.zeros(len(svd.components_)), where=where)


def _selector(selector: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    return [column for column, kept in zip(columns, selector.get_support(), strict=True) if kept]


# ---------------------------------------------------------------------- imputers and encoders


def _simple_imputer(imputer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    result: list[Column] = []
    for column, statistic in zip(columns, imputer.statistics_.tolist(), strict=True):
        if is_missing(statistic):
            raise ModelError(
                f"'{where}' fills in a missing value for {arithmetic.describe(column)} (it saw no other, or does not "
                f"take None for missing); fit it on a table that has values there."
            )
        if isinstance(column, Options):
            if any(map(is_missing, column.values.tolist())) and _marks(imputer, column, arithmetic):
                arithmetic.missing[column.feature] = imputer.missing_values
            values = [
                statistic if lacks else value
                for value, lacks in zip(column.values.tolist(), _with_missing(imputer, column, arithmetic), strict=True)
            ]
            column = Options(column.feature, option_array(values), column.size, column.terms, column.underflows)
        elif isinstance(column, Line) and not is_missing(imputer.missing_values):
            least, most = arithmetic.interval(column)
            if least <= imputer.missing_values <= most:
                raise ModelError(
                    f"'{where}' takes {imputer.missing_values!r} for a missing value, but "
                    f"{arithmetic.describe(column)} can have that value; narrow its bounds in the schema."
                )
        result.append(column)
    return result + (_indicator(imputer.indicator_, columns, arithmetic, where) if imputer.add_indicator else [])


def _indicator(indicator: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """1 where a column has no value, else 0: for the columns with missing values at fitting, or all."""
    result: list[Column] = []
    for i in indicator.features_.tolist():
        column = columns[i]
        if isinstance(column, Options):
            with_missing = _with_missing(indicator, column, arithmetic)
            result.append(Options(column.feature, np.array(with_missing, dtype=np.float64)))
        else:
            arithmetic.line(column, where)
            result.append(arithmetic.constant(0.0))
    return result


def _marks(imputer: Any, column: Options, arithmetic: Columns) -> bool:
    """Is what the imputer takes for missing the marker of the feature? For numbers, a number can be that, too."""
    marker, feature = imputer.missing_values, arithmetic.schema.features[column.feature]
    return is_missing(marker) != isinstance(feature, Missing)


def _with_missing(imputer: Any, column: Options, arithmetic: Columns) -> list[bool]:
    """Of each option: does the imputer take its value for a missing one?"""
    marked = _marks(imputer, column, arithmetic)
    return [
        same_value(value, imputer.missing_values) or (marked and is_missing(value)) for value in column.values.tolist()
    ]


def _encoder(encoder: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """Each output is a function of one column: found by changing one column at a time, through all its options."""
    kind = type(encoder).__name__
    options: list[Options] = []
    for column, categories in zip(columns, encoder.categories_, strict=True):
        if isinstance(column, Absent):
            arithmetic.line(column, where)
        if not isinstance(column, Options):
            raise ModelError(
                f"'{where}' ({kind}) encodes {arithmetic.describe(column)} as categories, but the schema calls it a "
                f"number; declare it as Categorical or Ordinal, with the values that the encoder knows."
            )
        options.append(_with_known_marker(column, categories, arithmetic))
        arithmetic.check_known(options[-1], np.asarray(categories).tolist(), who=f"'{where}' ({kind})")
        if getattr(encoder, "handle_unknown", "") == "error":
            for value in options[-1].values.tolist():
                if not any(same_value(value, plain(known)) for known in categories):
                    raise ModelError(
                        f"'{where}' ({kind}) does not know the option {value!r} of {arithmetic.describe(column)}; "
                        f"remove it from the schema."
                    )
    if not options:
        return []
    counts = [len(column.values) for column in options]
    rows = [np.zeros(sum(counts), dtype=np.intp) for _ in options]
    starts = np.concatenate(([0], np.cumsum(counts)))
    for j, row in enumerate(rows):
        row[starts[j] : starts[j + 1]] = np.arange(counts[j])
    outputs = made_of(encoder, [column.values[row] for column, row in zip(options, rows, strict=True)], where)
    arithmetic.dtypes.add(outputs.dtype.name)
    result: list[Column] = []
    for output in outputs.T.astype(np.float64):
        parts = [output[starts[j] : starts[j + 1]] for j in range(len(options))]
        owners = [j for j, part in enumerate(parts) if not _constant(part)]
        if len(owners) > 1:
            raise ModelError(f"An output of '{where}' ({kind}) depends on {len(owners)} columns at once.")
        owner = owners[0] if owners else 0
        result.append(Options(options[owner].feature, parts[owner].copy()))
    return result


def _constant(values: NDArray[np.float64]) -> bool:
    return bool(np.array_equal(values, values[:1].repeat(len(values)), equal_nan=True))


def _with_known_marker(column: Options, categories: Any, arithmetic: Columns) -> Options:
    """The column with the marker for missing values that the encoder was fitted with (None or NaN)."""
    known = [plain(c) for c in np.asarray(categories).tolist() if is_missing(plain(c))]
    if not known or not any(map(is_missing, column.values.tolist())):
        return column
    arithmetic.missing[column.feature] = known[0]
    values = [known[0] if is_missing(value) else value for value in column.values.tolist()]
    return Options(column.feature, option_array(values), column.size, column.terms, column.underflows)


HANDLERS: dict[str, Handler] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "StandardScaler": _standard_scaler,
    "MinMaxScaler": _min_max_scaler,
    "MaxAbsScaler": _max_abs_scaler,
    "RobustScaler": _robust_scaler,
    "PCA": _pca,
    "TruncatedSVD": _truncated_svd,
    "SelectorMixin": _selector,
    "FunctionTransformer": function_transformer,
    "PowerTransformer": power_transformer,
    "QuantileTransformer": quantile_transformer,
    "SplineTransformer": spline_transformer,
    "PolynomialFeatures": polynomial_features,
    "SimpleImputer": _simple_imputer,
    "MissingIndicator": _indicator,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "TargetEncoder": _encoder,
    "KBinsDiscretizer": k_bins,
    "Binarizer": binarizer,
    "BinningProcess": binning_process,
}
