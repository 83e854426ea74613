"""Small multilayer perceptrons, many of the same shape trained at once by batched products.

One check model is a stack of one; five folds, ten members of an ensemble or a hundred trials of a
simulation are a stack too, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.networks.fitted import FittedMLP


@dataclass(frozen=True)
class TrainingPlan:
    """Adam with weight decay, added to the gradient, on minibatches of the rows.

    A ``batch_size`` of None takes all rows. ``validation_fraction`` in [0, 1) is the share that is
    held out; training stops after ``patience`` epochs without a lower loss there.
    """

    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    epochs: int = 200
    batch_size: int | None = None
    validation_fraction: float = 0.0
    patience: int = 20


class StackedMLP:
    """Independent networks with ReLU between layers and PyTorch's default initial values.

    ``sizes`` are the widths of the layers from input to output, which is 1.
    """

    def __init__(self, sizes: Sequence[int], n_models: int, generator: torch.Generator) -> None:
        self.parameters: list[Tensor] = []
        for fan_in, fan_out in pairwise(sizes):
            for rows in (fan_in, 1):
                uniform = torch.rand(
                    n_models, rows, fan_out, generator=generator, device=generator.device
                )
                self.parameters.append((2.0 * uniform - 1.0) / fan_in**0.5)
        for parameter in self.parameters:
            parameter.requires_grad_()

    def __call__(self, x: Tensor) -> Tensor:
        """Return the outputs, (models, n), of inputs (models, n, d), or (1, n, d) for all."""
        *layers, weight, bias = self.parameters
        hidden = x.expand(len(weight), *x.shape[1:])
        for index in range(0, len(layers), 2):
            hidden = torch.baddbmm(layers[index + 1], hidden, layers[index]).relu_()
        # the product with one column and its gradient take three times as long
        return (hidden * weight.transpose(1, 2)).sum(-1) + bias[..., 0]

    def fitted(self) -> FittedMLP:
        """Return the networks as they are now, without torch."""
        return FittedMLP(tuple(one.detach().cpu().numpy().copy() for one in self.parameters))

    def predict(self, x: FloatArray | NDArray[np.float32]) -> FloatArray:
        """Return what the networks give now, as :meth:`FittedMLP.predict`."""
        return self.fitted().predict(x)


def seeded(random_state: int, device: str = "cpu") -> torch.Generator:
    """Return a generator of its own, so that no global one is touched."""
    return torch.Generator(device=device).manual_seed(random_state)


def as_tensor(values: FloatArray, device: str = "cpu") -> Tensor:
    """Return the values as float32 on the device."""
    return torch.as_tensor(values, dtype=torch.float32, device=device)


def train(
    networks: Sequence[StackedMLP],
    loss: Callable[..., Tensor],
    columns: Sequence[Tensor],
    plan: TrainingPlan,
    generator: torch.Generator,
) -> None:
    """Fit the networks in place.

    ``loss`` maps a batch of the columns to a loss per model, shape (models,). The columns are of
    shape (models, n, ...); where the first is of shape (1, n, ...), all models see the same
    minibatches.
    """
    parameters = [parameter for network in networks for parameter in network.parameters]
    optimizer = _Adam(parameters, plan)
    held_out, columns = _hold_out(columns, plan.validation_fraction, generator)
    best, stale = float("inf"), 0
    kept = [parameter.detach().clone() for parameter in parameters]
    for _ in range(plan.epochs):
        _epoch(optimizer, loss, columns, plan.batch_size, generator)
        if not held_out:
            continue
        with torch.no_grad():
            value = float(loss(*held_out).sum())
        if value < best:
            best, stale = value, 0
            kept = [parameter.detach().clone() for parameter in parameters]
        else:
            stale += 1
        if stale >= plan.patience:
            break
    if held_out:
        with torch.no_grad():
            for parameter, value_kept in zip(parameters, kept, strict=True):
                parameter.copy_(value_kept)


class _Adam:
    """Adam without ``torch.optim.Optimizer``, which loads torch's compiler: 1.5 s at first use."""

    def __init__(self, parameters: Sequence[Tensor], plan: TrainingPlan) -> None:
        self._parameters = list(parameters)
        self._plan = plan
        self._means, self._squares = (
            [torch.zeros_like(one, requires_grad=False) for one in parameters] for _ in range(2)
        )
        self._steps = [torch.zeros((), device=one.device) for one in parameters]

    def step(self, loss: Tensor) -> None:
        gradients = torch.autograd.grad(loss, self._parameters)
        with torch.no_grad():
            adam(
                self._parameters,
                list(gradients),
                self._means,
                self._squares,
                [],
                self._steps,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._plan.learning_rate,
                weight_decay=self._plan.weight_decay,
                eps=1e-8,
                maximize=False,
            )


def _hold_out(
    columns: Sequence[Tensor], fraction: float, generator: torch.Generator
) -> tuple[list[Tensor], list[Tensor]]:
    n = columns[0].shape[1]
    size = int(fraction * n)
    if size == 0:
        return [], list(columns)
    order = torch.randperm(n, generator=generator, device=generator.device)
    return (
        [column[:, order[:size]] for column in columns],
        [column[:, order[size:]] for column in columns],
    )


def _epoch(
    optimizer: _Adam,
    loss: Callable[..., Tensor],
    columns: Sequence[Tensor],
    batch_size: int | None,
    generator: torch.Generator,
) -> None:
    n_orders, n = columns[0].shape[:2]
    size = n if batch_size is None else min(batch_size, n)
    if size < n:
        order = torch.rand(n_orders, n, generator=generator, device=generator.device).argsort(1)
    for start in range(0, n, size):
        rows = order[:, start : start + size] if size < n else None
        batch = columns if rows is None else [_take(column, rows) for column in columns]
        optimizer.step(loss(*batch).sum())


def _take(column: Tensor, rows: Tensor) -> Tensor:
    if len(rows) == 1:
        return column[:, rows[0]]
    if column.ndim == 2:
        return column.gather(1, rows)
    return column.gather(1, rows[..., None].expand(-1, -1, column.shape[2]))
