"""Transformers of single numbers: functions of numpy, power, quantile and spline transformers; products of choices.

    QuantileTransformer to uniform, SplineTransformer of degree 1, np.abs    linear between knots (`Bent`)
    np.log1p, np.sqrt, ..., PowerTransformer                                 powers and logarithms (`Curved`, `Powers`)
    QuantileTransformer to normal, splines of higher degree, ...             any other function (`Curved`)

Values are computed by the fitted transformer itself. Before trees, cuts are moved through a function that grows or
falls; before linear models and networks, a function is tabulated where its number has few values, and otherwise taken
where it is a sum of powers and logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.importers.column_kinds import Absent, Bent, Binned, Column, Curved, Interaction, Line, Options
from ifonly.model.importers.columns import Columns
from ifonly.model.importers.powers import Powers, box_cox, function_powers, yeo_johnson
from ifonly.model.importers.tables import made_of
from ifonly.schema import Numeric

Floats = NDArray[np.float64]
EVERYWHERE = (-np.inf, np.inf)
FUNCTIONS: dict[str, tuple[tuple[float, float], ...]] = {
    "log": ((0.0, np.inf),),
    "log2": ((0.0, np.inf),),
    "log10": ((0.0, np.inf),),
    "log1p": ((-1.0, np.inf),),
    "sqrt": ((0.0, np.inf),),
    "square": ((0.0, np.inf), (-np.inf, 0.0)),
    "absolute": ((0.0, np.inf), (-np.inf, 0.0)),
    "reciprocal": ((0.0, np.inf), (-np.inf, 0.0)),
    **dict.fromkeys(
        ("cbrt", "exp", "expm1", "exp2", "tanh", "arctan", "arcsinh", "sinh", "rint", "floor"), (EVERYWHERE,)
    ),
    **dict.fromkeys(("ceil", "trunc", "sign", "negative", "positive", "deg2rad", "rad2deg"), (EVERYWHERE,)),
}
"""Functions of numpy by name, and where each is defined and grows, or falls."""
OPEN = ("log", "log2", "log10", "log1p", "reciprocal")
"""Functions that are not defined at the end of their interval."""
ERROR = 64.0 * 2.0**-53
"""What interpolation rounds, relative to the values."""


def function_transformer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """A function of numpy of each column; none at all is the identity."""
    if transformer.func is None:
        return columns
    function = transformer.func
    name = getattr(function, "__name__", repr(function))
    if not isinstance(function, np.ufunc) or name not in FUNCTIONS or transformer.kw_args:
        known = ", ".join(f"np.{one}" for one in list(FUNCTIONS)[:6])
        raise UnsupportedModel(
            f"The function '{name}' in the FunctionTransformer '{where}' may be anything; supported are functions of "
            f"numpy themselves, such as FunctionTransformer(np.log1p): {known}, ...",
            operation=f"FunctionTransformer({name})",
        )
    return [_function_of(function, name, column, arithmetic, where) for column in columns]


def _function_of(function: Any, name: str, column: Column, arithmetic: Columns, where: str) -> Column:
    if isinstance(column, Options):
        with np.errstate(all="ignore"):
            return Options(column.feature, np.asarray(function(arithmetic.numbers(column, where)), dtype=np.float64))
    if isinstance(column, Binned):
        return column
    feature, inner, ordered, (least, most) = _of_one_number(column, arithmetic, where)
    inside = [(low, high) for low, high in FUNCTIONS[name] if low <= least and most <= high]
    defined = FUNCTIONS[name][0][0] <= least or len(FUNCTIONS[name]) > 1
    if not defined or (name in OPEN and (least in FUNCTIONS[name][0] or (len(inside) == 0))):
        raise ModelError(
            f"'{where}' takes np.{name} of {arithmetic.describe(column)}, which reaches from {least:g} to {most:g} "
            f"there: that is no number; narrow the bounds in the schema."
        )
    if name == "absolute" and isinstance(column, Line) and arithmetic.number_of(column) is not None and not inside:
        return Bent(feature, np.array([least, 0.0, most]), np.array([-least, 0.0, most]))
    composed = partial(_composed, function, inner)
    powers = _powers(partial(function_powers, name), inner, feature, arithmetic)
    return Curved(feature, f"np.{name}", composed, ordered and bool(inside), powers)


def _powers(
    make: Callable[[float, float, Numeric], Powers | None], inner: Callable[[Floats], Floats], g: int,
    arithmetic: Columns,
) -> Powers | None:  # fmt: skip
    """A function of what `inner` makes of a number, as a sum of powers; None where that is no line."""
    feature = arithmetic.schema.features[g]
    assert isinstance(feature, Numeric)
    if not isinstance(inner, partial) or inner.func is not _straight:
        return None
    factor, shift = inner.args
    return make(factor, shift, feature)


def _composed(outer: Callable[[Floats], Floats], inner: Callable[[Floats], Floats], x: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(outer(inner(x)), dtype=np.float64)


def _of_one_number(
    column: Column, arithmetic: Columns, where: str
) -> tuple[int, Callable[[Floats], Floats], bool, tuple[float, float]]:
    """The feature whose number the column is a function of, the function, whether it is ordered, and its range."""
    if isinstance(column, Absent):
        arithmetic.line(column, where)
    schema = arithmetic.schema
    if isinstance(column, Bent):
        column = arithmetic.curved(column, where)
    if isinstance(column, Curved):
        feature = schema.features[column.feature]
        assert isinstance(feature, Numeric)
        ends = column.function(np.array([feature.lower, feature.upper]))
        return column.feature, column.function, column.ordered, (float(ends.min()), float(ends.max()))
    line = arithmetic.line(column, where)
    owners = [g for g, places in enumerate(schema.feature_columns) if line.weight[places].any()]
    if len(owners) != 1 or not isinstance(schema.features[owners[0]], Numeric):
        raise UnsupportedModel(
            f"'{where}' takes a function of {arithmetic.describe(column)}; supported are functions of one number, so "
            f"let it come before encoders and projections.",
            operation="function of several columns",
        )
    factor, shift = float(line.weight[schema.feature_columns[owners[0]][0]]), line.shift
    return owners[0], partial(_straight, factor, shift), True, arithmetic.interval(line)


def _straight(factor: float, shift: float, x: Floats) -> Floats:
    return np.asarray(x, dtype=np.float64) if factor == 1.0 and shift == 0.0 else factor * x + shift


# ---------------------------------------------------------------------- fitted transformers


def power_transformer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """Yeo-Johnson and Box-Cox grow with the number."""
    if transformer.method == "box-cox":
        for column in columns:
            if isinstance(column, Line | Curved | Bent) and _of_one_number(column, arithmetic, where)[3][0] <= 0.0:
                raise ModelError(
                    f"'{where}' (PowerTransformer, box-cox) takes numbers above 0 only, but in the schema "
                    f"{arithmetic.describe(column)} reaches below; raise its lower bound, or fit it with "
                    f"method='yeo-johnson'."
                )
    return [_power(transformer, columns, i, arithmetic, where) for i in range(len(columns))]


def _power(transformer: Any, columns: list[Column], i: int, arithmetic: Columns, where: str) -> Column:
    fitted = _fitted(transformer, columns, i, arithmetic, where)
    if not isinstance(fitted, Curved):
        return fitted
    of = box_cox if transformer.method == "box-cox" else yeo_johnson
    inner = _of_one_number(columns[i], arithmetic, where)[1]
    powers = _powers(partial(of, float(transformer.lambdas_[i])), inner, fitted.feature, arithmetic)
    if powers is not None and transformer.standardize:
        scaler = transformer._scaler
        powers = powers.scaled(1.0 / float(scaler.scale_[i]), -float(scaler.mean_[i]) / float(scaler.scale_[i]))
    return replace(fitted, powers=powers)


def quantile_transformer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """Interpolation between quantiles; jumps where several quantiles are equal."""
    result: list[Column] = []
    for i, column in enumerate(columns):
        curved = _fitted(transformer, columns, i, arithmetic, where)
        quantiles = np.asarray(transformer.quantiles_[:, i], dtype=np.float64)
        whole = isinstance(column, Line) and arithmetic.number_of(column) is not None
        continuous = len(np.unique(quantiles)) == len(quantiles) and transformer.output_distribution == "uniform"
        result.append(_between(curved, quantiles, arithmetic) if whole and continuous else curved)
    return result


def _between(column: Column, inner: Floats, arithmetic: Columns) -> Column:
    """A function of a number that is linear between these knots."""
    if not isinstance(column, Curved):
        return column
    feature = arithmetic.schema.features[column.feature]
    assert isinstance(feature, Numeric)
    inside = inner[(inner > feature.lower) & (inner < feature.upper)]
    knots = np.unique([feature.lower, *inside.tolist(), feature.upper])
    values = np.asarray(column.function(knots), dtype=np.float64)
    steepest = np.abs(np.diff(values) / np.diff(knots)).max(initial=0.0)
    error = ERROR * float(np.abs(values).max() + steepest * np.abs(knots).max())
    return Bent(column.feature, knots, values, error)


def spline_transformer(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """Splines of degree 1 are linear between knots; others are tabulated."""
    if transformer.extrapolation not in ("constant", "linear", "continue"):
        raise UnsupportedModel(
            f"The SplineTransformer '{where}' extrapolates by '{transformer.extrapolation}'; fit it with "
            f"extrapolation='constant' or 'linear'.",
            operation=f"SplineTransformer({transformer.extrapolation})",
        )
    result: list[Column] = []
    for i, column in enumerate(columns):
        spline = transformer.bsplines_[i]
        count = spline.c.shape[1] - (0 if transformer.include_bias else 1)
        first = len(result)
        whole = isinstance(column, Line) and arithmetic.number_of(column) is not None
        for k in range(count):
            one = _fitted(transformer, columns, i, arithmetic, where, output=first + k, ordered=False)
            result.append(_between(one, spline.t, arithmetic) if whole and transformer.degree == 1 else one)
    return result


def polynomial_features(transformer: Any, columns: list[Column], arithmetic: Columns, where: str) -> list[Column]:
    """Products of functions of choices that are 0 or 1, such as one-hot columns, of which powers are themselves; and
    squares of numbers."""
    result: list[Column] = []
    for powers in np.asarray(transformer.powers_).tolist():
        used = [(column, power) for column, power in zip(columns, powers, strict=True) if power]
        if len(used) == 1 and used[0][1] == 1:
            result.append(used[0][0])
        elif not used:
            result.append(arithmetic.constant(1.0))
        elif len(used) == 1 and used[0][1] == 2 and _is_number(used[0][0], arithmetic):
            result.append(_function_of(np.square, "square", used[0][0], arithmetic, where))
        else:
            result.append(_product([column for column, _ in used], arithmetic, where))
    return result


def _is_number(column: Column, arithmetic: Columns) -> bool:
    """Is it a number, or a line of one?"""
    return isinstance(column, Line) and arithmetic.of_choice(column) is None


def _product(columns: list[Column], arithmetic: Columns, where: str) -> Column:
    by_feature: dict[int, Options] = {}
    for column in columns:
        options = arithmetic.of_choice(column) if isinstance(column, Line) else column
        if not isinstance(options, Options) or not np.isin(arithmetic.numbers(options, where), (0.0, 1.0)).all():
            raise UnsupportedModel(
                f"'{where}' (PolynomialFeatures) multiplies {arithmetic.describe(column)}; supported are products of "
                f"columns of choices that are 0 or 1: put it after the OneHotEncoder, for those columns alone, or let "
                f"trees find the interactions of numbers.",
                operation="PolynomialFeatures of numbers",
            )
        known = by_feature.get(options.feature)
        values = arithmetic.numbers(options, where)
        by_feature[options.feature] = Options(
            options.feature, values if known is None else values * arithmetic.numbers(known, where)
        )
    factors = tuple(by_feature.values())
    return factors[0] if len(factors) == 1 else Interaction(factors)


def _fitted(
    transformer: Any, columns: list[Column], i: int, arithmetic: Columns, where: str, *, output: int | None = None,
    ordered: bool = True,
) -> Column:  # fmt: skip
    """What a fitted transformer makes of column i alone."""
    column = columns[i]
    evaluate = partial(_evaluated, transformer, len(columns), i, i if output is None else output, where)
    if isinstance(column, Options):
        return Options(column.feature, evaluate(arithmetic.numbers(column, where)))
    if isinstance(column, Binned):
        return Binned(column.feature, column.cuts, column.ordered and ordered)
    feature, inner, before, _ = _of_one_number(column, arithmetic, where)
    name = type(transformer).__name__
    return Curved(feature, name, partial(_composed, evaluate, inner), before and ordered)


def _evaluated(transformer: Any, width: int, i: int, output: int, where: str, values: Floats) -> Floats:
    """The output of a transformer that treats its columns one by one."""
    numbers = np.ravel(np.asarray(values, dtype=np.float64))
    others = np.ones(len(numbers))
    table = [numbers if j == i else others for j in range(width)]
    return np.asarray(made_of(transformer, table, where)[:, output], dtype=np.float64)
