"""The compiled analysis of rounding gives the bounds of the model's own, on random chains of operations."""

from __future__ import annotations

import numpy as np
import pytest

from ifonly import ClassTarget, Model, Network, Real, Schema, datasets
from ifonly.model.operations import (
    AffineOperation,
    Clip,
    Fold,
    LeakyReLU,
    Majorant,
    OperationGraph,
    RoundedInput,
    Shift,
    Step,
    underflow_counts,
)
from ifonly.problem import Distance, Question
from ifonly.problem.lowering import lower
from ifonly.schema import Choice
from ifonly.solvers.search.error_bounds import Boxes, encoded_boxes
from ifonly.solvers.search.rounding_analysis import ROUNDING_KERNEL, RoundingAnalysis, packed_chain


@pytest.fixture(scope="module", autouse=True)
def compiled():
    ROUNDING_KERNEL.load()


def fold(draw, outputs, inputs, terms):
    weight, bias = draw.normal(size=(outputs, inputs)), draw.normal(size=outputs)
    size = np.abs(weight) * draw.uniform(1.0, 3.0, size=weight.shape)
    return Fold((weight,), (size,), bias, np.abs(bias) * 2.0, terms, underflow_counts(size))


def random_model(seed):
    """A network whose model scales its inputs: by a diagonal, a shift and a diagonal, or a matrix with a majorant."""
    draw = np.random.default_rng(seed)
    inputs, outputs = int(draw.integers(1, 6)), int(draw.integers(1, 4))
    widths = [inputs, *draw.integers(1, 8, size=draw.integers(1, 4)).tolist()]
    layers = [
        (draw.normal(size=(m, n)), draw.normal(size=m)) for n, m in zip(widths, [*widths[1:], outputs], strict=True)
    ]
    steps = [Step(RoundedInput())]

    def add(operation, *rest):
        steps.append(Step(operation, (len(steps) - 1,), *rest))

    kind = seed % 4
    if kind == 1:
        add(Shift(draw.choice([-1.0, 1.0], inputs), draw.normal(size=inputs) * draw.integers(0, 2, inputs)))
        add(AffineOperation(draw.normal(size=inputs), np.zeros(inputs)))
    elif kind == 2:
        weight, bias = np.diag(draw.normal(size=inputs)), draw.normal(size=inputs)
        size = 2.0 * np.abs(weight)
        add(AffineOperation(weight, bias, Majorant(size, 3.0 * np.abs(bias), 7, underflow_counts(size), 5.0)))
    for k, (weight, bias) in enumerate(layers):
        add(AffineOperation(weight, bias))
        if k < len(layers) - 1:
            own = (fold(draw, len(bias), inputs, 9), (0,)) if k == 0 and kind else ()
            add(LeakyReLU(np.zeros(len(bias)), (np.ones(len(bias)),) if own else (), True), *own)
    last = (fold(draw, outputs, inputs, 5), (0,)) if kind == 3 else ()
    schema = Schema([Real(f"x{i}", -5, 5) for i in range(inputs)])
    network = Network.of(layers).deployed_as(OperationGraph(tuple(steps), *last))
    return draw, Model(
        function=network, schema=schema, original=lambda p: p, precision="float64" if seed % 3 else "float32"
    )


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_models_own_analysis(seed):
    draw, model = random_model(seed)
    analysis = RoundingAnalysis(model)
    assert analysis.chain is not None
    middle = draw.uniform(-4.0, 4.0, size=(6, model.function.inputs))
    wide = np.array([0.0, 0.0, 1e-3, 0.1, 1.0, 1.0])[:, None]
    lower, upper = middle - wide, middle + wide
    assert analysis._compiled(*analysis.chain, lower, upper) is not None
    np.testing.assert_allclose(analysis.over(lower, upper), model.error_over(lower, upper), rtol=1e-11)
    np.testing.assert_allclose(analysis.at(middle), model.error_at(middle), rtol=1e-11)


def test_what_the_kernel_does_not_take_is_left_to_the_model():
    schema = Schema([Real("x", -1e38, 1e38)])
    layers = [([[1.0]], [0.0]), ([[1.0]], [0.0])]
    model = Model(function=Network.of(layers), schema=schema, original=lambda p: p, precision="float32")
    beyond = np.array([[4e38]])
    assert RoundingAnalysis(model)._compiled(*packed_chain(model), beyond, beyond) is None
    assert RoundingAnalysis(model).over(beyond, beyond)[0, 0] == np.inf
    one = np.ones(1)
    clipped = OperationGraph(
        (Step(RoundedInput()), Step(Clip(-one, one, 1), (0,)), Step(AffineOperation(one[None], one), (1,)))
    )
    assert (
        packed_chain(Model(function=model.function.deployed_as(clipped), schema=schema, original=lambda p: p)) is None
    )


def test_boxes_are_encoded_by_the_codes_of_their_options():
    data = datasets.load("adult", rules=False)
    model = datasets.network("adult", rules=False)
    lowered = lower(Question(model=model, target=ClassTarget(model.classes[0]), distance=Distance("l1")))
    draw, schema = np.random.default_rng(0), data.schema
    points = data.points()[:40]
    options = draw.random((len(points), lowered.width)) < 0.4
    options |= lowered.unrolled(points) != 0.0
    lower_ends, upper_ends = encoded_boxes(lowered, Boxes(points - 1.0, points + 2.0, options))
    for g, (feature, columns) in enumerate(zip(schema.features, schema.feature_columns, strict=True)):
        for i in range(len(points)):
            if isinstance(feature, Choice):
                codes = feature.codes[options[i, lowered.start[g] : lowered.start[g + 1]]]
                least, most = codes.min(axis=0), codes.max(axis=0)
            else:
                least, most = points[i, g] - 1.0, points[i, g] + 2.0
            assert (lower_ends[i, columns] == least).all() and (upper_ends[i, columns] == most).all()
