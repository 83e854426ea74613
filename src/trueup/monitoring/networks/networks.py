"""Small multilayer perceptrons, many of the same shape trained at once by batched products.

One check model is a stack of one; five folds, ten members of an ensemble or a hundred trials of a
simulation are a stack too, in one pass. Networks are float32; what is averaged from them is
averaged in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.arrays import Arrays
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.storage import finite

_CHUNK = 8_192


@dataclass(frozen=True)
class TrainingPlan:
    """Adam with weight decay on minibatches.

    Parameters
    ----------
    learning_rate, weight_decay : float
        As in ``torch.optim.Adam``: the decay is added to the gradient.
    epochs : int
        Passes over the rows.
    batch_size : int or None
        Rows of one step; None takes all.
    validation_fraction : float
        Share of rows, in [0, 1), that are held out to stop early; 0 trains all epochs on all rows.
    patience : int
        Epochs without a better validation loss after which training stops.
    """

    learning_rate: float = 0.01
    weight_decay: float = 1e-3
    epochs: int = 200
    batch_size: int | None = None
    validation_fraction: float = 0.0
    patience: int = 20


class StackedMLP:
    """Independent networks with ReLU between layers and PyTorch's default initial values.

    Parameters
    ----------
    sizes : sequence of int
        Width of each layer from input to output; the output is 1.
    n_models : int
        Number of networks.
    generator : torch.Generator
        Source of the initial values.
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
        """Return the outputs, (models, n), of inputs of shape (models, n, d)."""
        hidden = x
        for index in range(0, len(self.parameters), 2):
            weight, bias = self.parameters[index : index + 2]
            hidden = torch.baddbmm(bias, hidden, weight)
            if index + 2 < len(self.parameters):
                hidden = hidden.relu()
        return hidden[..., 0]

    @torch.no_grad()
    def predict(self, x: FloatArray | NDArray[np.float32]) -> FloatArray:
        """Return outputs of shape (models, n).

        The inputs are (n, d), the same for all models, or (models, n, d).
        """
        n_models, device = self.parameters[0].shape[0], self.parameters[0].device
        outputs = []
        for start in range(0, x.shape[-2], _CHUNK):
            part = torch.as_tensor(x[..., start : start + _CHUNK, :], dtype=torch.float32)
            outputs.append(self(part.to(device).expand(n_models, *part.shape[-2:])).cpu().numpy())
        return np.concatenate(outputs, axis=1).astype(np.float64)

    def to_arrays(self) -> Arrays:
        """Return the weights."""
        return {
            f"layer{index}": parameter.detach().cpu().numpy()
            for index, parameter in enumerate(self.parameters)
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> StackedMLP:
        """Return the networks whose weights ``to_arrays`` gave, on the CPU."""
        layers = [finite(arrays[f"layer{i}"], 3, "float32") for i in range(len(arrays))]
        _require_chain([layer.shape for layer in layers])
        network = cls((), 0, torch.Generator())
        network.parameters = [torch.as_tensor(layer) for layer in layers]
        return network

    @property
    def width(self) -> int:
        """Number of inputs."""
        return int(self.parameters[0].shape[1])


def _require_chain(shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse stored weights and biases whose shapes don't follow from each other."""
    weights, biases = shapes[::2], shapes[1::2]
    expected = [(n_models, 1, fan_out) for n_models, _, fan_out in weights]
    fits = all(before[::2] == (after[0], after[1]) for before, after in pairwise(weights))
    if not (weights and fits and list(biases) == expected and weights[-1][2] == 1):
        raise ValueError("layers of a network expected, which follow from each other")


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

    Parameters
    ----------
    networks : sequence of StackedMLP
        Whose parameters are changed.
    loss : callable
        Maps a batch of the columns to a loss per model, shape (models,).
    columns : sequence of tensors of shape (models, n, ...)
        The rows, aligned over the columns.
    plan : TrainingPlan
        The optimiser's settings.
    generator : torch.Generator
        Order of the rows.
    """
    parameters = [parameter for network in networks for parameter in network.parameters]
    optimizer = torch.optim.Adam(
        parameters, lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=True
    )
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
    optimizer: torch.optim.Adam,
    loss: Callable[..., Tensor],
    columns: Sequence[Tensor],
    batch_size: int | None,
    generator: torch.Generator,
) -> None:
    n_models, n = columns[0].shape[:2]
    size = n if batch_size is None else min(batch_size, n)
    if size < n:
        order = torch.rand(n_models, n, generator=generator, device=generator.device).argsort(1)
    for start in range(0, n, size):
        rows = order[:, start : start + size] if size < n else None
        batch = columns if rows is None else [_take(column, rows) for column in columns]
        optimizer.zero_grad(set_to_none=True)
        loss(*batch).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _take(column: Tensor, rows: Tensor) -> Tensor:
    if len(column) == 1:
        return column[:, rows[0]]
    if column.ndim == 2:
        return column.gather(1, rows)
    return column.gather(1, rows[..., None].expand(-1, -1, column.shape[2]))
