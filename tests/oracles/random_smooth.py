"""Random questions to networks with smooth activations: those of `random_problems` and `random_rules`, whose network
becomes a torch module with other activations, which is imported again: the original is torch's own arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from random_problems import Floats, random_problem
from random_rules import random_ruled_problem
from torch import nn

from ifonly import import_model
from ifonly.model import Network
from ifonly.problem import ClassTarget, Question, ScoreTarget
from ifonly.schema import Schema

MAKE = {
    "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softplus": nn.Softplus, "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"), "silu": nn.SiLU, "elu": lambda: nn.ELU(0.75),
}  # fmt: skip
ACTIVATIONS = tuple(MAKE)


def random_smooth_problem(
    seed: int, activation: str, *, finite: bool = False, ruled: bool = False, single: bool = False
) -> tuple[Question, Floats] | None:
    """A question and a few people; None where the network has no hidden layer. One in four is mixed with ReLU.
    `single`: in float32."""
    question, points = (random_ruled_problem if ruled else random_problem)(seed, finite=finite)
    network, rng = question.model.network, np.random.default_rng([seed, 9])
    if len(network.layers) < 2:
        return None
    mixed = len(network.layers) > 2 and rng.random() < 0.25
    module = _module(network, activation, mixed, question.schema, rng)
    if ruled:  # rules make the network deeper, and then rows on the very margin cannot be told from it
        module[-1].bias.data += 1e-7  # type: ignore[operator]
    module = module.float() if single else module.double()
    classes = question.model.classes
    model = import_model(module, question.schema, classes=classes, regression=not classes)
    return replace(question, model=model, target=_target(question, model, rng)), points


def _module(network: Network, activation: str, mixed: bool, schema: Schema, rng: np.random.Generator) -> nn.Sequential:
    """The last bias is moved so that about as many rows are decided one way as the other."""
    steps: list[nn.Module] = []
    for i, layer in enumerate(network.layers):
        if i:
            steps.append(nn.ReLU() if mixed and i == 1 else MAKE[activation]())
        linear = nn.Linear(layer.weight.shape[1], layer.weight.shape[0]).double()
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(layer.weight))
            linear.bias.copy_(torch.tensor(layer.bias))
        steps.append(linear)
    module = nn.Sequential(*steps)
    with torch.no_grad():
        scores = module(torch.tensor(schema.encode(schema.sample(400, rng)))).numpy()
        shift = np.quantile(scores, float(rng.choice([0.05, 0.2, 0.5, 0.8, 0.95])), axis=0)
        steps[-1].bias -= torch.tensor(shift)  # type: ignore[union-attr]
    return module


def _target(question: Question, model: object, rng: np.random.Generator) -> ClassTarget | ScoreTarget:
    """The same target; scores that are asked for are where scores are."""
    target = question.target
    if isinstance(target, ClassTarget):
        return target
    assert isinstance(target, ScoreTarget)
    schema = question.schema
    scores = model.exact_scores(schema.sample(400, rng))[:, target.output]  # type: ignore[attr-defined]
    low, high = np.sort(np.quantile(scores, rng.random(2))).tolist()
    margin = target.margin if high - low >= 2.5 * target.margin else 0.0
    return ScoreTarget(
        at_least=None if target.at_least is None else low,
        at_most=None if target.at_most is None else high,
        margin=margin,
        output=target.output,
    )
