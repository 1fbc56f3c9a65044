"""Embeddings and several inputs, of torch modules and of their ONNX exports: against enumeration and the module itself."""

from __future__ import annotations

import io
import pickle
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import nn

from ifonly import Binary, Categorical, Explainer, Integer, Real, Schema, import_model
from ifonly.errors import ModelError, UnsupportedModel
from ifonly.methods import Enumerate
from ifonly.model import Model

INPUTS = {"num": ["age", "own"], "cat": ["job", "city"]}


def schema(encoding: Any) -> Schema:
    return Schema(
        [
            Integer("age", 18, 30),
            Categorical("job", ["a", "b", "c", "d"], encoding=encoding),
            Categorical("city", [10, 11, 12], encoding=encoding),
            Binary("own"),
        ]
    )


class Table(nn.Module):
    """Reads one table, in which choices are numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.city = nn.Embedding(4, 3), nn.Embedding(3, 2)
        self.first, self.last = nn.Linear(7, 6), nn.Linear(6, 1)

    def forward(self, x: Any) -> Any:
        parts = [x[:, [0]] / 10, x[:, 3:4], self.job(x[:, 1].long()), self.city(x[:, 2].to(torch.int64))]
        return torch.sigmoid(self.last(torch.relu(self.first(torch.cat(parts, dim=1)))))


class TwoTensors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(4, 3), nn.Embedding(13, 2)])
        self.first, self.last = nn.Linear(7, 6), nn.Linear(6, 1)

    def forward(self, num: Any, cat: Any) -> Any:
        found = [table(cat[:, i]) for i, table in enumerate(self.tables)]
        return self.last(torch.tanh(self.first(torch.cat([num * 0.1, *found], 1))))


class Offsets(nn.Module):
    """One table for all choices, with an offset for each."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.first, self.last = nn.Embedding(17, 2), nn.Linear(6, 6), nn.Linear(6, 2)
        self.register_buffer("offsets", torch.tensor([0, 4]))

    def forward(self, num: Any, cat: Any) -> Any:
        found = self.table(cat + self.offsets).flatten(1)
        return self.last(torch.relu(self.first(torch.cat([num * 0.1, found], 1))))


class Keyed(nn.Module):
    """Reads a dictionary, and looks a whole number up."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.age = nn.Embedding(4, 2), nn.Embedding(31, 2)
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, batch: Any) -> Any:
        numbers = [batch["age"].unsqueeze(1) * 0.1, batch["own"].unsqueeze(1).float()]
        found = torch.cat([*numbers, self.job(batch["job"]), self.age(batch["age"].long())], 1)
        return self.last(torch.relu(self.first(found)))


class Stacked(nn.Module):
    """Columns of shape (rows,), stacked."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.first, self.last = nn.Embedding(4, 2), nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, age: Any, own: Any, job: Any) -> Any:
        numbers = torch.stack([age * 0.1, own.float()], dim=1)
        return self.last(torch.relu(self.first(torch.cat([numbers, self.job(job)], 1))))


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, age: Any, own: Any, job: Any) -> Any:
        columns = [age.unsqueeze(1) * 0.1, own.unsqueeze(1).float(), nn.functional.one_hot(job, 4).float()]
        return self.last(torch.relu(self.first(torch.cat(columns, 1))))


MODULES: dict[str, tuple[Any, Any]] = {
    "one table": (Table, None),
    "two tensors": (TwoTensors, INPUTS),
    "offsets": (Offsets, INPUTS),
    "dictionary": (Keyed, None),
    "one hot": (OneHot, None),
    "stacked": (Stacked, None),
}


def agree(model: Model, seed: int = 0, count: int = 4) -> None:
    explainer = Explainer(model)
    for point in model.schema.sample(count, np.random.default_rng(seed)):
        row = model.schema.row(point)
        found, listed = explainer.explain(row), explainer.using(Enumerate()).explain(row)
        assert found.status == listed.status
        assert found.distance == pytest.approx(listed.distance, abs=1e-9)


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("encoding", ["code", "onehot", "dummy"])
@pytest.mark.parametrize(("make", "inputs"), MODULES.values(), ids=MODULES)
def test_against_enumeration(make: Any, inputs: Any, encoding: Any) -> None:
    if make is Table and encoding != "code":
        pytest.skip("reads the numbers of options")
    torch.manual_seed(1)
    agree(import_model(make(), schema(encoding), inputs=inputs))


def test_what_the_module_is_called_with() -> None:
    """Options that are whole numbers as they are, others by their position; choices as int64."""
    torch.manual_seed(0)
    module, described = TwoTensors(), schema("onehot")
    model = import_model(module, described, inputs=INPUTS)
    row = described.read({"age": 20, "job": "c", "city": 11, "own": True})
    with torch.no_grad():
        own = module(torch.tensor([[20.0, 1.0]]), torch.tensor([[2, 11]]))
    assert model.scores(row[None, :])[0, 0] == own.item()


def exported(module: nn.Module, arguments: Any, names: list[str]) -> Any:
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), arguments, content, input_names=names, dynamo=False,
            dynamic_axes={name: {0: "rows"} for name in names},
        )  # fmt: skip
    return onnx.load_model_from_string(content.getvalue())


@pytest.mark.parametrize("encoding", ["code", "onehot"])
@pytest.mark.parametrize("make", [Table, TwoTensors, Offsets])
def test_exports(make: Any, encoding: Any) -> None:
    if make is Table and encoding != "code":
        pytest.skip("reads the numbers of options")
    torch.manual_seed(2)
    module, described = make(), schema(encoding)
    arguments: Any = (torch.zeros(2, 4),)
    inputs = None
    if make is not Table:
        arguments, inputs = (torch.zeros(2, 2), torch.full((2, 2), 10 if make is TwoTensors else 0)), INPUTS
        arguments[1][:, 0] = 0
    proto = exported(module, arguments, ["x"] if make is Table else list(INPUTS))
    model = import_model(proto, described, inputs=inputs)
    agree(model, count=2)
    points = described.sample(50, np.random.default_rng(0))
    own = import_model(module, described, inputs=inputs)
    assert np.allclose(model.scores(points), own.scores(points), rtol=0.0, atol=1e-5)
    if inputs:
        with pytest.raises(UnsupportedModel, match=r"whose names are nowhere said; say them: import_model\("):
            import_model(proto, described)
        with pytest.raises(ModelError, match="no input 'other'; its inputs are 'num', 'cat'"):
            import_model(proto, described, inputs={**INPUTS, "other": ["age"]})
        with pytest.raises(ModelError, match="has 2 columns, and 1 is named; name one for each"):
            import_model(proto, described, inputs={**INPUTS, "num": ["age"]})


def test_a_look_up_is_exact_in_float32() -> None:
    """Its table takes no arithmetic: the bound is that of the layers after it."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(200, 4), nn.Linear(4, 1))
    model = import_model(Indexed(module), Schema([Integer("n", 0, 199)]))
    assert model.error.max() < 1e-5
    assert model.deviation < 1e-6
    agree(model)


class Indexed(nn.Module):
    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return self.inside(x[:, 0].long())


@pytest.mark.long
def test_compiled_modules_are_unwrapped() -> None:
    torch.manual_seed(0)
    module, described = Table(), schema("code")
    plain = import_model(module, described)
    assert import_model(torch.compile(module, backend="eager"), described).network == plain.network
    module.compile(backend="eager")
    assert import_model(module, described).network == plain.network
    inside = Table()
    inside.job = torch.compile(inside.job, backend="eager")  # type: ignore[assignment]
    assert import_model(inside, described).source == "torch Table"


class Scripted(nn.Module):
    """Two inputs, a smooth layer, and a sigmoid at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.first, self.last = nn.Embedding(4, 2), nn.Linear(4, 5), nn.Linear(5, 1)

    def forward(self, num: torch.Tensor, cat: torch.Tensor) -> torch.Tensor:
        h = torch.cat([num / 10.0, self.job(cat[:, 0])], dim=1)
        return torch.sigmoid(self.last(nn.functional.gelu(self.first(h))))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["scripted", "traced"])
def test_script_modules_are_read_and_decide_themselves(how: str) -> None:
    torch.manual_seed(3)
    module = Scripted().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = (torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.int64))
        script = torch.jit.script(module) if how == "scripted" else torch.jit.trace(module, given)
    with pytest.raises(UnsupportedModel, match="'num' is no feature.*inputs="):
        import_model(script, schema("onehot"))
    model = import_model(script, schema("onehot"), inputs=INPUTS)
    assert "gelu" in model.function.name and model.source == "torch ScriptModule" and model.deviation < 1e-5
    people = schema("onehot").sample(300, np.random.default_rng(1))
    with torch.no_grad():
        numbers = torch.tensor(people[:, [0, 3]], dtype=torch.float32)
        codes = torch.tensor(np.column_stack([people[:, 1], people[:, 2] + 10]), dtype=torch.int64)
        own = script(numbers, codes).double().numpy()[:, 0]
    assert ((model.scores(people)[:, 0] > 0.0) == (own > 0.5)).all()
    assert np.allclose(model.probabilities(people)[:, 1], own, atol=1e-6)
    assert (pickle.loads(pickle.dumps(model.original))(people) == model.scores(people)).all()
    agree(model, count=3)


def test_script_modules_that_cannot_be_read() -> None:
    class Jumps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sum(dim=1, keepdim=True) > 40.0).float()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(Jumps())
    with pytest.raises(UnsupportedModel, match="Greater"):
        import_model(script, schema("onehot"))


def test_refusals_say_what_to_do() -> None:
    described = schema("code")
    with pytest.raises(UnsupportedModel, match=r"inputs={'num': \['age'\], 'cat': \['job', 'city', 'own'\]}"):
        import_model(TwoTensors(), described)
    with pytest.raises(ModelError, match="no input 'cats'; its inputs are 'num', 'cat'"):
        import_model(TwoTensors(), described, inputs={"num": ["age"], "cats": ["job"]})
    with pytest.raises(ModelError, match="'ages', which is neither a feature nor a column"):
        import_model(TwoTensors(), described, inputs={"num": ["ages"], "cat": ["job"]})
    with pytest.raises(ModelError, match="has 4 rows, numbered from 0, but feature 'job' can be 4"):
        wider = Schema([described["age"], Categorical("job", list("abcde"), encoding="code"), *described.features[2:]])
        import_model(Table(), wider)
    with pytest.raises(UnsupportedModel, match="rounds feature 'n' to whole numbers.*encoding='code'"):
        import_model(Indexed(nn.Embedding(9, 1)), Schema([Real("n", 0, 8)]))
    with pytest.raises(UnsupportedModel, match="max_norm"):
        import_model(Indexed(nn.Embedding(9, 1, max_norm=1.0)), Schema([Integer("n", 0, 8)]))
    normalised = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 1))
    with pytest.raises(UnsupportedModel, match="train with BatchNorm1d instead"):
        import_model(normalised, described)
    coarse = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)).bfloat16()
    with pytest.raises(UnsupportedModel, match=r"convert it with \.float\(\)"):
        import_model(coarse, described)
    agree(import_model(coarse.float(), described), count=2)
    with pytest.raises(ModelError, match="'inputs' is not for a model of sklearn"):
        import_model(LogisticRegression(), described, inputs=INPUTS)
    for wrong in ("num", {"num": 3}, {1: ["age"]}, {"num": []}):
        with pytest.raises(ModelError, match="holds a feature or a list|says which features"):
            import_model(TwoTensors(), described, inputs=wrong)  # type: ignore[arg-type]


def test_numbers_of_options_before_a_linear_model() -> None:
    """A function of an option's number that is not linear in it is bent between numbers."""
    rng = np.random.default_rng(0)
    columns = np.column_stack([rng.integers(0, 4, 200), rng.integers(0, 3, 200)])
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(columns, (columns[:, 0] % 2 == 1).astype(int))
    described = Schema(
        [Categorical("a", [0, 1, 2, 3], encoding="code"), Categorical("b", [0, 1, 2], encoding="onehot")]
    )
    agree(import_model(pipeline, described))
