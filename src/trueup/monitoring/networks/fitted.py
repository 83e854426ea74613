"""Fitted networks as arrays, which predict without torch.

Networks are float32; what is averaged from them is averaged in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.storage import finite

Head = Literal["plain", "offset"]
Objective = Literal["k", "k_star", "l"]

_CHUNK = 8_192


@dataclass(frozen=True)
class FittedMLP:
    """A stack of multilayer perceptrons with ReLU between layers.

    Layers are weights (models, fan in, fan out) and biases (models, 1, fan out) in turn.
    """

    layers: tuple[NDArray[np.float32], ...]

    def predict(self, x: FloatArray | NDArray[np.float32]) -> FloatArray:
        """Return outputs (models, n) of inputs (n, d), the same for all, or (models, n, d)."""
        starts = range(0, x.shape[-2], _CHUNK)
        with np.errstate(over="ignore", invalid="ignore"):  # the estimate says that it isn't finite
            outputs = [self._outputs(x[..., start : start + _CHUNK, :]) for start in starts]
        return np.concatenate(outputs, axis=1).astype(np.float64)

    def _outputs(self, x: FloatArray | NDArray[np.float32]) -> NDArray[np.float32]:
        *layers, weight, bias = self.layers
        hidden = x.astype(np.float32)
        for index in range(0, len(layers), 2):
            hidden = hidden @ layers[index] + layers[index + 1]
            np.maximum(hidden, 0.0, out=hidden)
        return (hidden @ weight + bias)[..., 0]

    def to_arrays(self) -> Arrays:
        return {f"layer{index}": layer for index, layer in enumerate(self.layers)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FittedMLP:
        layers = tuple(finite(arrays[f"layer{i}"], 3, "float32") for i in range(len(arrays)))
        _require_chain([layer.shape for layer in layers])
        return cls(layers)

    @property
    def width(self) -> int:
        return int(self.layers[0].shape[1])


@dataclass(frozen=True)
class CheckNetwork:
    """h of a stack of check models.

    With the plain head h is the network's output, as in the paper. With the offset head
    ``h = f - softplus(g(x, f))``: h lies below f everywhere, so that it neither crosses f, where
    the estimate would be 0, nor has to learn f anew.
    """

    network: FittedMLP
    head: Head

    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return the estimate ``2 (h - f)^2`` of each row, shape (models, n) (Eq. 11)."""
        if self.head == "plain":
            return 2.0 * (self.network.predict(x) - f) ** 2
        inputs: NDArray[np.float64] = np.concatenate([x, f[..., None]], axis=-1)
        return 2.0 * np.logaddexp(0.0, self.network.predict(inputs)) ** 2


def _require_chain(shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse stored weights and biases whose shapes don't follow from each other."""
    weights, biases = shapes[::2], shapes[1::2]
    expected = [(n_models, 1, fan_out) for n_models, _, fan_out in weights]
    fits = all(before[::2] == (after[0], after[1]) for before, after in pairwise(weights))
    if not (weights and fits and list(biases) == expected and weights[-1][2] == 1):
        raise ValueError("layers of a network expected, which follow from each other")
