"""torch modules become networks that give the same scores, and stay as they were."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is optional, and has no wheel for every platform")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ifonly import Model, Real, Schema, import_model, load_model  # noqa: E402
from ifonly.errors import FileError, ModelError, UnsupportedModel  # noqa: E402
from ifonly.model.agreement import check_agreement  # noqa: E402
from ifonly.model.importers import load_pickle  # noqa: E402
from ifonly.model.operations import AffineOperation, LeakyReLU, RoundedInput  # noqa: E402

Agree = Callable[[Model], None]
COLUMNS = 13


def normalised(width: int) -> nn.BatchNorm1d:
    norm = nn.BatchNorm1d(width)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    norm.weight.data.normal_()
    norm.bias.data.normal_()
    return norm


class Functional(nn.Module):
    """Everything by function and by method, with arithmetic around it."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(COLUMNS, 6)
        self.second = nn.Linear(COLUMNS, 6)
        self.last = nn.Parameter(torch.randn(outputs, 6))
        self.register_buffer("mean", torch.randn(COLUMNS))

    def forward(self, x: Any) -> Any:
        x = x.view(x.size(0), -1)
        x = (x - self.mean) / 2.0
        h = functional.relu(torch.add(self.first(x), self.second(x), alpha=0.5))
        h = functional.dropout(h, 0.3, training=self.training)
        h = torch.cat([h[:, :3] * 2, -h[:, 3:]], dim=1).relu()
        return 1.0 - h @ self.last.t()


class Probability(Functional):
    def forward(self, x: Any) -> Any:
        return torch.sigmoid(super().forward(x)).squeeze(-1)


class Unflat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(COLUMNS, 5), nn.Linear(5, 5), nn.Linear(5, 3)])

    def forward(self, x: Any, scale: float = 2.0) -> Any:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return functional.log_softmax(self.layers[-1](x.reshape(x.shape[0], -1)) * scale, dim=-1)


MODULES: dict[str, tuple[Callable[[], Any], int]] = {
    "one score": (lambda: nn.Sequential(nn.Linear(COLUMNS, 8), nn.ReLU(), nn.Linear(8, 1)), 1),
    "linear": (lambda: nn.Sequential(nn.Linear(COLUMNS, 1, bias=False)), 1),
    "deep": (
        lambda: nn.Sequential(
            *(m for _ in range(4) for m in (nn.Linear(COLUMNS, COLUMNS), nn.ReLU())), nn.Linear(COLUMNS, 2)
        ),
        2,
    ),
    "sigmoid": (lambda: nn.Sequential(nn.Linear(COLUMNS, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid()), 1),
    "softmax": (lambda: nn.Sequential(nn.Linear(COLUMNS, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1)), 3),
    "log softmax": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(COLUMNS, 4), nn.LogSoftmax(-1), nn.Identity()), 4),
    "batch norm": (
        lambda: nn.Sequential(
            normalised(COLUMNS), nn.Linear(COLUMNS, 6), normalised(6), nn.ReLU(), nn.Dropout(), nn.Linear(6, 1)
        ),
        1,
    ),
    "merged": (
        lambda: nn.Sequential(nn.Linear(COLUMNS, 6), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3), nn.Linear(3, 2)),
        2,
    ),
    "nested": (
        lambda: nn.Sequential(
            nn.Sequential(nn.Linear(COLUMNS, 6), nn.ReLU()), nn.Sequential(nn.ReLU(), nn.Linear(6, 1), nn.Flatten(0))
        ),
        1,
    ),
    "relu first and last": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(COLUMNS, 3), nn.ReLU(inplace=True)), 3),
    "functional": (Functional, 1),
    "functional, three scores": (lambda: Functional(3), 3),
    "probability": (Probability, 1),
    "list of modules": (Unflat, 3),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("make", "outputs"), MODULES.values(), ids=MODULES)
def test_modules(make: Any, outputs: int, dtype: str, schema: Schema, agree: Agree) -> None:
    torch.manual_seed(0)
    module = make().to(getattr(torch, dtype))
    model = import_model(module, schema)
    agree(model)
    assert model.precision == dtype
    assert model.network.outputs == outputs and model.classes == tuple(range(max(2, outputs)))
    assert len(schema.columns) == COLUMNS


def test_consecutive_linear_layers_are_merged(schema: Schema) -> None:
    module = nn.Sequential(nn.Linear(COLUMNS, 6), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))
    model = import_model(module, schema)
    assert model.network.hidden == (4,)
    operations = model.network.operations
    assert operations is not None and operations.fold is None  # the last layer is the model's own
    assert [type(step.operation) for step in operations.steps] == [
        RoundedInput,
        AffineOperation,
        AffineOperation,
        LeakyReLU,
        AffineOperation,
    ]
    product = np.abs(module[1].weight.detach().numpy()) @ np.abs(module[0].weight.detach().numpy())
    assert operations.steps[3].fold is not None
    assert operations.steps[3].fold.sizes[0] == pytest.approx(product, rel=1e-6)


def test_the_decision_is_that_of_the_probabilities(schema: Schema) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(COLUMNS, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1)).eval()
    model = import_model(module, schema, classes=("a", "b", "c"))
    points = schema.sample(500, np.random.default_rng(0))
    with torch.no_grad():
        likely = module(torch.from_numpy(schema.encode(points)).float()).numpy()
    assert (model.decide(model.scores(points)) == likely.argmax(axis=1)).all()


def test_the_module_is_left_as_it_was(schema: Schema, rows: Any) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(COLUMNS, 6), normalised(6), nn.ReLU(), nn.Dropout(), nn.Linear(6, 1))
    module[3].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    model = import_model(module, schema)
    scores = model.scores(rows.points)
    assert [m.training for m in module] == [True, True, True, False, True] and module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert all(parameter.requires_grad for parameter in module.parameters())
    with torch.no_grad():
        module[0].weight.add_(1.0)  # later training does not change an imported model
    assert np.array_equal(model.scores(rows.points), scores)


def test_regression_is_said_not_guessed(schema: Schema, agree: Agree) -> None:
    module = nn.Sequential(nn.Linear(COLUMNS, 4), nn.ReLU(), nn.Linear(4, 2))
    model = import_model(module, schema, regression=True)
    assert model.classes == ()
    agree(model)


def test_an_imported_module_travels_to_another_process(schema: Schema, rows: Any) -> None:
    model = import_model(nn.Sequential(nn.Linear(COLUMNS, 3), nn.Softmax(1)), schema)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).scores(rows.points), model.scores(rows.points))


# ---------------------------------------------------------------------- refusals


class Of(nn.Module):
    """A module whose forward is a function."""

    def __init__(self, forward: Callable[[Any, Any], Any], **children: Any) -> None:
        super().__init__()
        self.function = forward
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class TwoInputs(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


def half() -> Any:
    return nn.Sequential(nn.Linear(COLUMNS, 1)).half()


def mixture() -> Any:
    return nn.Sequential(nn.Linear(COLUMNS, 4), nn.Linear(4, 1).double())


def damaged() -> Any:
    module = nn.Sequential(nn.Linear(COLUMNS, 4), nn.ReLU(), nn.Linear(4, 1))
    module[2].weight.data[0, 1] = float("inf")
    return module


REFUSED: dict[str, tuple[Callable[[], Any], type[ModelError], str]] = {
    "softsign": (
        lambda: nn.Sequential(nn.Linear(COLUMNS, 4), nn.Sequential(nn.Softsign()), nn.Linear(4, 1)),
        UnsupportedModel,
        r"operation Softsign \('1\.0'\) of the torch module is not supported",
    ),
    "elu": (lambda: nn.Sequential(nn.ELU(2.0)), UnsupportedModel, "ELU with alpha=2 has a kink where it bends down"),
    "softplus": (lambda: nn.Sequential(nn.Softplus(-1.0)), UnsupportedModel, "beta=-1, which must be above 0"),
    "function": (
        lambda: Of(lambda m, x: functional.softsign(x)),
        UnsupportedModel,
        r"operation softsign \('softsign'\)",
    ),
    "method": (lambda: Of(lambda m, x: x.exp()), UnsupportedModel, r"operation exp \('exp'\)"),
    "convolution": (lambda: nn.Sequential(nn.Conv1d(1, 1, 1)), UnsupportedModel, r"operation Conv1d \('0'\)"),
    "recurrent": (lambda: nn.Sequential(nn.LSTM(COLUMNS, 2)), UnsupportedModel, "operation LSTM"),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(COLUMNS)), UnsupportedModel, "operation LayerNorm"),
    "softmax inside": (
        lambda: nn.Sequential(nn.Linear(COLUMNS, 4), nn.Softmax(1), nn.Linear(4, 1)),
        UnsupportedModel,
        r"operation Linear \('2'\) of the torch module follows a softmax, which may only come last",
    ),
    "labels": (lambda: nn.Sequential(nn.Linear(COLUMNS, 3), nn.Sigmoid()), UnsupportedModel, "gives 3 labels at once"),
    "softmax of one": (lambda: nn.Sequential(nn.Linear(COLUMNS, 1), nn.Softmax(1)), UnsupportedModel, "is always 1"),
    "softmax of rows": (lambda: nn.Sequential(nn.Linear(COLUMNS, 3), nn.Softmax(0)), UnsupportedModel, "compares rows"),
    "product": (lambda: Of(lambda m, x: x * x), UnsupportedModel, "operation mul .* multiplies two values of the row"),
    "quotient": (
        lambda: Of(lambda m, x: 1 / x),
        UnsupportedModel,
        "operation truediv .* divides by a value of the row",
    ),
    "rows": (lambda: Of(lambda m, x: x[0]), UnsupportedModel, "operation getitem .* selects rows"),
    "mean": (lambda: Of(lambda m, x: x.mean(0)), UnsupportedModel, "operation mean"),
    "shape": (lambda: Of(lambda m, x: x.view(-1)), UnsupportedModel, "operation view .* changes the shape"),
    "dropout": (lambda: Of(lambda m, x: functional.dropout(x)), UnsupportedModel, "dropout .* in evaluation mode"),
    "batch statistics": (
        lambda: nn.Sequential(nn.BatchNorm1d(COLUMNS, track_running_stats=False)),
        UnsupportedModel,
        "operation BatchNorm1d .* normalises by the other rows of a batch",
    ),
    "control flow": (
        lambda: Of(lambda m, x: x if x.sum() > 0 else -x),
        UnsupportedModel,
        "Of cannot be traced by torch.fx",
    ),
    "two inputs": (
        TwoInputs,
        UnsupportedModel,
        r"takes the inputs 'x', 'y', of which .* is no feature .*; say .* import_model\(model, schema, inputs=",
    ),
    "two outputs": (lambda: Of(lambda m, x: (x, x)), UnsupportedModel, "must return one tensor"),
    "half": (half, UnsupportedModel, "computes in float16"),
    "mixture": (mixture, ModelError, "mixes float32 and float64"),
    "columns": (
        lambda: nn.Sequential(nn.Linear(5, 1)),
        ModelError,
        "'0' takes 5 values, but gets 13; does the schema encode to the columns",
    ),
    "shapes": (
        lambda: nn.Sequential(nn.Linear(COLUMNS, 4), nn.ReLU(), nn.Linear(5, 1)),
        ModelError,
        "'2' takes 5 values, but gets 4",
    ),
    "NaN": (damaged, ModelError, "'2' has NaN or infinite weights; the model is damaged"),
}


@pytest.mark.parametrize(("make", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(make: Any, error: type[ModelError], message: str, schema: Schema) -> None:
    with pytest.raises(error, match=message) as caught:
        import_model(make(), schema)
    assert "\n" not in str(caught.value) and str(caught.value).endswith((".", "?"))


def test_other_refusals(schema: Schema) -> None:
    probability = nn.Sequential(nn.Linear(COLUMNS, 1), nn.Sigmoid())
    with pytest.raises(UnsupportedModel, match="Sigmoid is not piecewise linear, so its output cannot be a prediction"):
        import_model(probability, schema, regression=True)
    with pytest.raises(ModelError, match="decides between 2 classes, but 3 class names were given"):
        import_model(probability, schema, classes=(1, 2, 3))
    with pytest.raises(ModelError, match="must be a torch.nn.Module; got Tensor"):
        import_model(torch.zeros(3), schema)


def test_pickled_modules(schema: Schema, tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(COLUMNS, 3), nn.ReLU(), nn.Linear(3, 1))
    torch.save(module, tmp_path / "module.pt")
    torch.save(module.state_dict(), tmp_path / "weights.pth")
    assert load_pickle(tmp_path / "module.pt", schema).network == import_model(module, schema).network
    with pytest.raises(ModelError, match="'weights.pth' holds a dict, not a model"):
        load_pickle(tmp_path / "weights.pth", schema)
    with pytest.raises(FileError, match="loading such a file runs code in it"):
        load_model(tmp_path / "module.pt", schema)


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_rounding_of_large_numbers_that_cancel_is_no_disagreement(scale: float) -> None:
    """What is left of them is off by far more than a share of itself; the model's own rounding bound says by how much."""
    rng, pairs = np.random.default_rng(1), 32
    schema = Schema([Real("a", 0, 1), Real("b", 0, 1)])
    weights, bias, out = rng.normal(size=(pairs, 2)) * scale, rng.normal(size=pairs), rng.uniform(0.5, 1.0, pairs)
    first, last = torch.nn.Linear(2, 2 * pairs), torch.nn.Linear(2 * pairs, 1)
    with torch.no_grad():
        first.weight[:] = torch.tensor(np.concatenate([weights, weights]))
        first.bias[:] = torch.tensor(np.concatenate([bias, bias + 0.1 * rng.normal(size=pairs)]))
        last.weight[:] = torch.tensor(np.concatenate([out, -out])[None])
        last.bias[:] = 0.1
    module = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    model = import_model(module, schema)
    points = schema.sample(500, np.random.default_rng(2))
    difference = np.abs(model.exact_scores(points) - model.scores(points))
    assert difference.max() > 1e-4 * (1.0 + np.abs(model.scores(points)).max())  # a share of the scores allows less
    assert (difference <= model.error).all()
    shift = 3.0 * model.error.max()

    with pytest.raises(ModelError, match="disagree by"):
        check_agreement(replace(model, original=lambda x: model.original(x) + shift))
