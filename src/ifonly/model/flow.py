"""A value on its way through a model: how the importers build a network step by step.

A flow is a list of finished layers (each ended in a ReLU or a smooth activation) and one affine map of what the last of
them gives:

    h_i = relu(W_i h_{i-1} + b_i),   value = A h + c

Linear maps, scalings, sums and selections change only A and c; a ReLU turns (A, c) into a layer. So scaling, encoding,
batch normalisation and linear layers in a row are multiplied together, and |A|, |c| are multiplied beside them
step by step, for the rounding analysis (see `rounding.Majorant`). Flows are immutable; two that share their finished
layers may be added or joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ifonly.errors import ModelError, UnsupportedModel
from ifonly.model.network import MAX_WEIGHTS, MAX_WIDTH, Network
from ifonly.model.rounding import Majorant, Stage, losses
from ifonly.model.smooth import Activation, SmoothNetwork

Floats = NDArray[np.float64]
RELU = Activation("relu")


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An affine map. A weight of one dimension is a diagonal; `size_*` are None where they are the absolute values."""

    weight: Floats
    bias: Floats
    size_weight: Floats | None
    size_bias: Floats | None
    terms: int
    lost: Floats | None = None
    """See `Majorant`; None where `losses` says it."""
    peak: float = 0.0
    """Of the steps before the last."""
    stages: tuple[Stage, ...] = ()
    """What it is made of, one after another; none for a map that is all there is to it."""
    activation: Activation = RELU
    """Of a finished layer."""

    def sizes(self) -> tuple[Floats, Floats]:
        weight = np.abs(self.weight) if self.size_weight is None else self.size_weight
        return weight, np.abs(self.bias) if self.size_bias is None else self.size_bias

    def after(self, first: Step) -> Step:
        """This map of the values that `first` gives."""
        size, shift = self.sizes()
        size_first, shift_first = first.sizes()
        return Step(
            _product(self.weight, first.weight),
            _applied(self.weight, first.bias) + self.bias,
            _product(size, size_first),
            _applied(size, shift_first) + shift,
            self.terms + first.terms,
            self.all_lost() * first.growth() + _applied(size, first.all_lost()),
            max(self.largest() * first.growth(), first.largest()),
            (*first.made_of(), *self.made_of()),
        )

    def made_of(self) -> tuple[Stage, ...]:
        return self.stages or (Stage(self.weight, self.bias, *self.sizes(), self.terms),)

    def all_lost(self) -> Floats:
        """What underflow may take of each output: see `Majorant`."""
        size, _ = self.sizes()
        return (losses(size) if size.ndim == 2 else 5.0 + size) if self.lost is None else self.lost

    def growth(self) -> float:
        """1 + the sum of the values that it gives is at most so many times 1 + the sum of the values that it takes."""
        size, shift = self.sizes()
        return float(1.0 + shift.sum() + (size.sum(axis=0) if size.ndim == 2 else size).max())

    def largest(self) -> float:
        """No value on the way is larger, in units of 1 + the sum of the inputs."""
        size, shift = self.sizes()
        return float(max(self.peak, size.max(), shift.max()))

    def dense(self) -> Step:
        if self.weight.ndim == 2:
            return self
        size = None if self.size_weight is None else np.diag(self.size_weight)
        return replace(self, weight=np.diag(self.weight), size_weight=size, lost=self.all_lost(), stages=self.made_of())

    def majorant(self) -> Majorant | None:
        """None where the step is the layer itself."""
        if self.size_weight is None:
            return None
        return Majorant(
            *self.sizes(), terms=self.terms, lost=self.all_lost(), peak=self.largest(), stages=self.made_of()
        )


def _product(a: Floats, b: Floats) -> Floats:
    """The matrix product, where either factor may be a diagonal."""
    if a.ndim == 1:
        return a * b if b.ndim == 1 else a[:, None] * b
    return a * b if b.ndim == 1 else a @ b


def _applied(a: Floats, values: Floats) -> Floats:
    return a * values if a.ndim == 1 else a @ values


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """`last` is None for the values of the finished layers themselves."""

    done: tuple[Step, ...]
    last: Step | None
    width: int

    @classmethod
    def of(cls, width: int) -> Flow:
        """The input itself."""
        return cls((), None, width)

    def linear(
        self, weight: ArrayLike, bias: ArrayLike | None = None, *, name: str, sizes: Majorant | None = None
    ) -> Flow:
        """weight @ value + bias, weight of shape (outputs, inputs). `sizes` is for a step made of several itself."""
        matrix = checked(weight, name)
        shift = np.zeros(len(matrix)) if bias is None else _spread(checked(bias, name), len(matrix), name)
        if matrix.ndim != 2 or matrix.shape[1] != self.width:
            raise ModelError(
                f"'{name}' takes {matrix.shape[-1]} values, but gets {self.width}"
                + ("; does the schema encode to the columns that the model was trained with?" if not self.done else ".")
            )
        self._afford(len(matrix), name)
        step = Step(matrix, shift, None, None, self.width + 1)
        if sizes is not None:
            step = Step(matrix, shift, sizes.weight, sizes.bias, sizes.terms, sizes.lost, sizes.peak)
        return self._then(step, len(matrix))

    def scale(
        self, factor: ArrayLike = 1.0, shift: ArrayLike = 0.0, *, name: str, size_shift: ArrayLike | None = None
    ) -> Flow:
        """factor * value + shift, entry by entry. `size_shift` bounds what is added up for it."""
        added_up = np.abs(shift if size_shift is None else size_shift)
        parts = [np.ravel(checked(part, name)) for part in (factor, shift, added_up)]
        for part in parts:
            if part.size not in (1, self.width):
                raise ModelError(f"'{name}' combines {self.width} values with {part.size} numbers.")
        diagonal, added, size = (np.array(np.broadcast_to(part, (self.width,))) for part in parts)
        step = Step(diagonal, added, np.abs(diagonal), size, 4)
        if size_shift is None and (diagonal == 1.0).all():  # a constant is added, and nothing else
            step = replace(step, stages=(Stage(diagonal, added, None, None, 1),))
        return self._then(step, self.width)

    def pick(self, columns: Sequence[int], *, name: str) -> Flow:
        """Some of the values, in this order."""
        if not len(columns):
            raise ModelError(f"'{name}' selects no values at all.")
        self._afford(len(columns), name)
        chosen = np.zeros((len(columns), self.width))
        chosen[np.arange(len(columns)), columns] = 1.0
        return self._then(Step(chosen, np.zeros(len(columns)), None, None, 0), len(columns))

    def plus(self, other: Flow, *, name: str) -> Flow:
        """The sum of two flows that part only after the last ReLU."""
        if self.width != other.width:
            raise ModelError(f"'{name}' adds {self.width} values to {other.width}.")
        mine, theirs = self._beside([self, other], name)
        size_weight, size_bias = (a + b for a, b in zip(mine.sizes(), theirs.sizes(), strict=True))
        added = Step(
            mine.weight + theirs.weight,
            mine.bias + theirs.bias,
            size_weight,
            size_bias,
            max(mine.terms, theirs.terms) + 2 * self.width + 1,
            mine.all_lost() + theirs.all_lost() + 3.0,  # both terms and their sum may be flushed
            max(mine.largest(), theirs.largest()),
        )
        return Flow(self.done, added, self.width)

    def joined(self, others: Sequence[Flow], *, name: str) -> Flow:
        """Flows beside one another."""
        steps = self._beside([self, *others], name)
        sizes = [step.sizes() for step in steps]
        joined = Step(
            np.vstack([step.weight for step in steps]),
            np.concatenate([step.bias for step in steps]),
            np.vstack([weight for weight, _ in sizes]),
            np.concatenate([bias for _, bias in sizes]),
            max(step.terms for step in steps),
            np.concatenate([step.all_lost() for step in steps]),
            max(step.largest() for step in steps),
        )
        return Flow(self.done, joined, len(joined.bias))

    def _beside(self, flows: Sequence[Flow], name: str) -> list[Step]:
        """The last steps of flows that share their finished layers, as full matrices."""
        if any(flow.done is not self.done for flow in flows):
            raise UnsupportedModel(
                f"'{name}' combines values from different depths of the network (a skip connection); "
                f"only plain feed-forward networks are supported.",
                operation=name,
            )
        self._afford(sum(flow.width for flow in flows), name)
        return [flow._step().dense() for flow in flows]

    def _afford(self, width: int, name: str) -> None:
        """Refuse what a few bytes of a file can ask for, before memory is taken for it."""
        step = self._step()
        if width > MAX_WIDTH or width * step.weight.shape[-1] > MAX_WEIGHTS:
            raise ModelError(
                f"'{name}' makes {width} values of {step.weight.shape[-1]}, which is more than the {MAX_WIDTH} values "
                f"or {MAX_WEIGHTS} weights that are read."
            )

    def relu(self) -> Flow:
        if self.last is None and self.done and self.done[-1].activation is RELU:
            return self
        return self.smooth(RELU)

    def smooth(self, activation: Activation) -> Flow:
        """The activation of each value."""
        self._afford(self.width, activation.name)
        return Flow((*self.done, replace(self._step().dense(), activation=activation)), None, self.width)

    def finish(self) -> Network | SmoothNetwork:
        """The network; a layer that stands for several steps says what they could add up to in the model."""
        self._afford(self.width, "the output")
        steps = (*self.done, self._step().dense())
        network = Network.of([(step.weight, step.bias) for step in steps])
        network = network.with_majorants([step.majorant() for step in steps])
        if all(step.activation is RELU for step in self.done):
            return network
        return SmoothNetwork(network, [step.activation for step in self.done])

    def _step(self) -> Step:
        return self.last or Step(np.ones(self.width), np.zeros(self.width), None, None, 0)

    def _then(self, step: Step, width: int) -> Flow:
        return Flow(self.done, step if self.last is None else step.after(self.last), width)


def _spread(numbers: Floats, width: int, name: str) -> Floats:
    if numbers.size not in (1, width) or numbers.ndim > 1:
        raise ModelError(f"'{name}' adds {numbers.size} numbers to {width} values.")
    return np.broadcast_to(numbers, (width,))


def checked(numbers: ArrayLike, name: str) -> Floats:
    """Numbers of the model as float64, or a ModelError that names where the NaN is."""
    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ModelError(f"'{name}' has NaN or infinite weights; the model is damaged.")
    return array
