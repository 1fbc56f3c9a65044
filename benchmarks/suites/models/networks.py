"""Networks: torch modules as people write them, and ONNX exports of them and of scikit-learn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from benchmarks.suites.models.people import CHOICES, JOBS, NUMBERS, REGIONS, applications, schema
from benchmarks.suites.models.subjects import Subject, Trained

CENTRES, SCALES = torch.tensor([42.0, 2600.0, 900.0, 35.0]), torch.tensor([14.0, 1700.0, 900.0, 35.0])
INPUTS = {"num": NUMBERS, "cat": CHOICES}


def numbers_and_codes(rows: Any) -> tuple[Any, Any]:
    """What a module of two inputs takes."""
    coded = [[JOBS.index(r["job"]), REGIONS.index(r["region"]), int(r["owner"])] for r in rows]
    return torch.tensor([[float(r[name]) for name in NUMBERS] for r in rows]), torch.tensor(coded)


class Scaled(nn.Module):
    """Numbers on one scale, as part of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centres", CENTRES)
        self.register_buffer("scales", SCALES)

    def forward(self, x: Any) -> Any:
        return (x - self.centres) / self.scales


class Embedded(nn.Module):
    """Two inputs: numbers, and choices by their numbers, each with an embedding."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.scaled, self.body = Scaled(), body
        self.tables = nn.ModuleList([nn.Embedding(size, 3) for size in (len(JOBS), len(REGIONS), 2)])

    def forward(self, num: Any, cat: Any) -> Any:
        found = [table(cat[:, i]) for i, table in enumerate(self.tables)]
        return self.body(torch.cat([self.scaled(num), *found], dim=1))


class Residual(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.last, self.activation = (
            nn.Linear(13, 12),
            nn.Linear(12, 12),
            nn.Linear(12, 1),
            activation,
        )

    def forward(self, x: Any) -> Any:
        h = self.activation(self.first(x))
        return self.last(h + self.activation(self.second(h)))


class WideAndDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.deep = nn.Linear(13, 1), nn.Sequential(nn.Linear(13, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(self.wide(x) + self.deep(x))


class Keyed(nn.Module):
    """Reads a dictionary of columns."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.body = nn.Embedding(len(JOBS), 3), nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))

    def forward(self, batch: Any) -> Any:
        numbers = torch.stack([batch["income"] / 2000, batch["debt"] / 1000], dim=1)
        return self.body(torch.cat([numbers, self.job(batch["job"])], dim=1))


def stack(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(13, 12), *layers, nn.Linear(12, 1))


def learned(module: nn.Module, given: Any, steps: int = 150) -> nn.Module:
    """Trained on the applications."""
    labels = torch.tensor(applications().labels, dtype=torch.float32)[:, None]
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        output = module(*given)
        loss = nn.functional.binary_cross_entropy if (output >= 0).all() and (output <= 1).all() else (
            nn.functional.binary_cross_entropy_with_logits
        )  # fmt: skip
        loss(output, labels).backward()
        optimizer.step()
    return module.eval()


def two_inputs(make: Callable[[], nn.Module], wrap: Callable[[Any], Any] = lambda module: module) -> Trained:
    torch.manual_seed(0)
    rows = applications().table.to_dict("records")
    module = learned(Embedded(make()), numbers_and_codes(rows))
    limit = 0.5 if isinstance(module.body, WideAndDeep) else 0.0

    def predict(rows: Any) -> list[int]:
        with torch.no_grad():
            return [int(v > limit) for v in module(*numbers_and_codes(rows))[:, 0].tolist()]

    return Trained(model=wrap(module), schema=schema("code"), predict=predict, options={"inputs": INPUTS})


def keyed() -> Trained:
    torch.manual_seed(0)

    def given(rows: Any) -> Any:
        batch = {name: torch.tensor([float(r[name]) for r in rows]) for name in ("income", "debt")}
        return {**batch, "job": torch.tensor([JOBS.index(r["job"]) for r in rows])}

    module = learned(Keyed(), (given(applications().table.to_dict("records")),))

    def predict(rows: Any) -> list[int]:
        with torch.no_grad():
            return [int(v > 0) for v in module(given(rows))[:, 0].tolist()]

    return Trained(model=module, schema=schema(), predict=predict)


def encoded(wrap: Callable[[Any], Any] = lambda module: module, *layers: nn.Module) -> Trained:
    """A module of the schema's encoded columns."""
    torch.manual_seed(0)
    described = schema()
    width = len(described.columns)
    data = applications()
    points = np.array([described.read(row) for row in data.table.to_dict("records")])
    rows = torch.tensor(described.encode(points), dtype=torch.float32)
    body = nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, 12), *layers, nn.Linear(12, 1))
    module = learned(body, (rows,))

    def predict(rows: Any) -> list[int]:
        columns = described.encode(np.array([described.read(row) for row in rows]))
        with torch.no_grad():
            return [int(v > 0) for v in module(torch.tensor(columns, dtype=torch.float32))[:, 0].tolist()]

    return Trained(model=wrap(module), schema=described, predict=predict)


def half(module: Any) -> Any:
    return module.bfloat16()


TORCH = [
    Subject(
        family="torch",
        name="two ReLU layers, batch normalisation, dropout",
        train=lambda: encoded(lambda m: m, nn.ReLU(), nn.Dropout(0.1), nn.Linear(12, 12), nn.ReLU()),
    ),
    Subject(
        family="torch",
        name="TorchScript, tanh",
        train=lambda: encoded(lambda m: torch.jit.trace(m, torch.zeros(2, len(schema().columns))), nn.Tanh()),
    ),
    Subject(family="torch", name="embeddings, two inputs", train=partial(two_inputs, lambda: stack(nn.ReLU()))),
    Subject(family="torch", name="embeddings, GELU", train=partial(two_inputs, lambda: stack(nn.GELU()))),
    Subject(family="torch", name="embeddings, residual SiLU", train=partial(two_inputs, lambda: Residual(nn.SiLU()))),
    Subject(family="torch", name="embeddings, wide and deep, sigmoid", train=partial(two_inputs, WideAndDeep)),
    Subject(family="torch", name="a dictionary of columns", train=keyed),
    Subject(
        family="torch",
        name="torch.compile",
        train=partial(two_inputs, lambda: stack(nn.ReLU()), lambda m: torch.compile(m, backend="eager")),
    ),
    Subject(
        family="torch",
        name="LayerNorm",
        train=partial(two_inputs, lambda: stack(nn.LayerNorm(12), nn.ReLU())),
        advice="BatchNorm1d",
        remedy=partial(two_inputs, lambda: stack(nn.BatchNorm1d(12), nn.ReLU())),
    ),
    Subject(
        family="torch",
        name="bfloat16",
        train=lambda: encoded(half, nn.ReLU()),
        advice=".float()",
        remedy=lambda: encoded(lambda m: m.bfloat16().float(), nn.ReLU()),
    ),
]


# ---------------------------------------------------------------------- ONNX


def exported(trained: Trained) -> Trained:
    """The ONNX export of a torch module."""
    several = trained.options.get("inputs") is not None
    names = list(INPUTS) if several else ["x"]
    given: Any = (torch.zeros(2, 4), torch.zeros(2, 3, dtype=torch.int64)) if several else (
        torch.zeros(2, len(trained.schema.columns)),
    )  # fmt: skip
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = {name: {0: "rows"} for name in names}
        torch.onnx.export(trained.model, given, content, input_names=names, dynamic_axes=axes, dynamo=False)
    proto = onnx.load_model_from_string(content.getvalue())
    return Trained(model=proto, schema=trained.schema, predict=trained.predict, options=trained.options)


def converted(make: Callable[[], Any]) -> Trained:
    """The skl2onnx export of an estimator of encoded columns; its own labels decide."""
    from skl2onnx import to_onnx

    described, data = schema(), applications()
    points = np.array([described.read(row) for row in data.table.to_dict("records")])
    rows = described.encode(points).astype(np.float32)
    model = make().fit(rows, data.labels)
    proto = to_onnx(model, rows[:1], options={"zipmap": False})
    return Trained(model=proto, schema=described, predict=partial(_labels, proto.SerializeToString(), described))


def _labels(content: bytes, described: Any, rows: Any) -> list[int]:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    columns = described.encode(np.array([described.read(row) for row in rows])).astype(np.float32)
    return list(session.run(None, {session.get_inputs()[0].name: columns})[0].tolist())


def estimators() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        "perceptron": lambda: make_pipeline(StandardScaler(), MLPClassifier((12,), max_iter=150, random_state=0)),
        "forest": lambda: RandomForestClassifier(10, max_depth=4, random_state=0),
        "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=20, random_state=0),
        "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    }


ONNX = [
    Subject(family="ONNX", name="torch, ReLU", train=lambda: exported(encoded(lambda m: m, nn.ReLU()))),
    Subject(family="ONNX", name="torch, tanh", train=lambda: exported(encoded(lambda m: m, nn.Tanh()))),
    Subject(
        family="ONNX",
        name="torch, embeddings, two inputs",
        train=lambda: exported(two_inputs(lambda: stack(nn.ReLU()))),
    ),
    Subject(
        family="ONNX",
        name="torch, embeddings, residual SiLU",
        train=lambda: exported(two_inputs(lambda: Residual(nn.SiLU()))),
    ),
    Subject(family="ONNX", name="torch, embeddings, wide and deep", train=lambda: exported(two_inputs(WideAndDeep))),
    *(
        Subject(family="ONNX", name=f"skl2onnx, {name}", train=partial(converted, make))
        for name, make in estimators().items()
    ),
]
