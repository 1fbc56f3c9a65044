"""Networks as people deploy them: float32 torch modules and ONNX files that scale their own inputs, deep float64 ones.

Each is trained once and kept. Every row that an answer returns is put to the module itself (for ONNX, to onnxruntime
where it is installed), alone and in batches of several sizes: a sum may round differently in each.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.subjects import networks
from benchmarks.subjects.data import Data, load
from benchmarks.terminal import cache_option
from ifonly import Answer, Explainer, Limits, Model
from ifonly.datasets.dataset import SEED
from ifonly.errors import MissingExtra
from ifonly.model.importers import import_model
from ifonly.schema import read_points

BATCHES = (1, 2, 7, 16, None)
"""Rows asked about at a time; None: all of them."""
EPOCHS = 30
Floats = NDArray[np.float64]
Decide = Callable[[Floats], NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A model, and the original's own decision about encoded rows in any batch."""

    name: str
    model: Model
    favours: Decide


def _module(data: Data, hidden: tuple[int, ...], path: Path) -> Any:
    """A float32 torch module that divides by the standard deviation itself, trained or read."""
    import torch
    from torch import nn

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    inputs = torch.tensor(data.schema.encode(data.points[data.train]), dtype=torch.float32)

    class Scaled(nn.Module):
        """Standardises its inputs as many do."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", inputs.mean(0))
            self.register_buffer("std", inputs.std(0))
            widths = (inputs.shape[1], *hidden)
            layers: list[nn.Module] = []
            for width, following in itertools.pairwise(widths):
                layers += [nn.Linear(width, following), nn.ReLU()]
            self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mean, std = self.get_buffer("mean"), self.get_buffer("std")
            scores: torch.Tensor = self.layers((x - mean) / (std + 1e-6))
            return scores

    module = Scaled()
    if path.exists():
        module.load_state_dict(torch.load(path, weights_only=True))
        return module.eval()
    labels = torch.tensor(data.labels[data.train], dtype=torch.float32)[:, None]
    optimiser = torch.optim.Adam(module.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(inputs)).split(256):
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(module(inputs[part]), labels[part]).backward()
            optimiser.step()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), path)
    return module.eval()


def _torch(dataset: str, arch: str, cache: Path) -> Deployed:
    import torch

    module = _module(load(dataset), networks.arch(arch), cache / f"{dataset}_{arch}_torch.pt")

    def favours(encoded: Floats) -> NDArray[np.bool_]:
        with torch.no_grad():
            return np.asarray(module(torch.tensor(encoded, dtype=torch.float32)).numpy()[:, 0] > 0.0)

    model = import_model(module, load(dataset).schema, classes=networks.CLASSES)
    return Deployed(name=f"torch float32 {arch}", model=model, favours=favours)


def _onnx(dataset: str, arch: str, cache: Path) -> Deployed:
    from onnx import TensorProto, helper, numpy_helper, save

    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("onnxruntime", extra="onnx", needed_for="The original of an ONNX file") from None
    module = _module(load(dataset), networks.arch(arch), cache / f"{dataset}_{arch}_torch.pt")
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    held = [numpy_helper.from_array(state["mean"], "mean"), numpy_helper.from_array(state["std"] + 1e-6, "std")]
    nodes = [helper.make_node("Sub", ["x", "mean"], ["c"]), helper.make_node("Div", ["c", "std"], ["h0"])]
    layers = sorted({int(name.split(".")[1]) for name in state if name.startswith("layers.")})
    for k, layer in enumerate(layers):
        held += [numpy_helper.from_array(state[f"layers.{layer}.{part}"], f"{part}{k}") for part in ("weight", "bias")]
        last = layer == layers[-1]
        out = "score" if last else f"z{k}"
        nodes.append(helper.make_node("Gemm", [f"h{k}", f"weight{k}", f"bias{k}"], [out], transB=1))
        if not last:
            nodes.append(helper.make_node("Relu", [out], [f"h{k + 1}"]))
    width = len(state["mean"])
    graph = helper.make_graph(
        nodes, "deployed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n", 1])], held,
    )  # fmt: skip
    path = cache / f"{dataset}_{arch}.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def favours(encoded: Floats) -> NDArray[np.bool_]:
        return np.asarray(session.run(None, {"x": encoded.astype(np.float32)})[0][:, 0] > 0.0)

    model = import_model(path, load(dataset).schema, classes=networks.CLASSES)
    return Deployed(name=f"ONNX float32 {arch}", model=model, favours=favours)


def _network(dataset: str, arch: str, cache: Path) -> Deployed:
    model = networks.model(networks.Spec(dataset, networks.arch(arch)), cache)
    layers = [(layer.weight, layer.bias) for layer in model.network.layers]

    def favours(encoded: Floats) -> NDArray[np.bool_]:
        values = encoded
        for weight, bias in layers[:-1]:
            values = np.maximum(values @ weight.T + bias, 0.0)
        weight, bias = layers[-1]
        return np.asarray((values @ weight.T + bias)[:, 0] > 0.0)

    return Deployed(name=f"network float64 {arch}", model=model, favours=favours)


MAKERS = {"torch": _torch, "onnx": _onnx, "float64": _network}
CASES = (
    *((kind, dataset, arch)
      for kind in ("torch", "onnx") for dataset in ("compas", "credit", "adult") for arch in ("2x20", "3x50")),
    ("float64", "adult", "10x100"),
)  # fmt: skip


def _refused(deployed: Deployed, answers: list[Answer], resolved: int) -> int:
    """How many of the rows returned the original refuses, alone or in a batch of any of the sizes."""
    schema = deployed.model.schema
    points = read_points(schema, [a.counterfactual for a in answers if a.counterfactual is not None])
    encoded = schema.encode(points)
    bad = np.zeros(len(points), dtype=bool)
    for size in BATCHES:
        step = size or max(1, len(points))
        for first in range(0, len(points), step):
            bad[first : first + step] |= deployed.favours(encoded[first : first + step]) != bool(resolved)
    return int(bad.sum())


@click.command("deployed")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="People per network.")
@click.option("--only", type=click.Choice(sorted(MAKERS)), multiple=True, help="Only these kinds.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time limit per row.")
@cache_option
def command(rows: int, only: tuple[str, ...], seconds: float, cache: Path) -> None:
    """Float32 and deep networks: statuses, and whether the originals accept what is returned."""
    console = Console(width=170)
    table = Table(
        "data", "model", "people", "nearest", "within", "unknown", "none", "refused", "E", "median ms", "CPU s"
    )
    for kind, dataset, arch in CASES:
        if only and kind not in only:
            continue
        deployed = MAKERS[kind](dataset, arch, cache)
        data = load(dataset)
        chosen = networks.denied(deployed.model, data, rows)
        people = [data.schema.row(point) for point in data.points[chosen]]
        explainer = Explainer(deployed.model).using(limits=Limits(seconds=seconds))
        begun = time.process_time()
        answers = list(explainer.explain_many(people, target=1))
        taken, counts = time.process_time() - begun, explainer_counts(answers)
        middle = 1e3 * float(np.median([a.seconds for a in answers]))
        table.add_row(dataset, deployed.name, str(len(answers)), *counts, str(_refused(deployed, answers, 1)),
                      f"{float(deployed.model.error.max()):.1e}", f"{middle:.2f}", f"{taken:.2f}")  # fmt: skip
        console.print(f"{dataset} {deployed.name}: {', '.join(counts)}; {taken:.2f} s", style="dim")
    console.print(table)


def explainer_counts(answers: list[Answer]) -> list[str]:
    """How many answers of each kind, in the order of the table."""
    return [str(sum(a.status == status for a in answers)) for status in ("nearest", "within", "unknown", "none exists")]
