"""The auxiliary network g(x) as arrays: it predicts without torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrators.inputs import UNSEEN

Float32Array = NDArray[np.float32]
_CHUNK = 65536


@dataclass(frozen=True)
class Training:
    """Sizes and schedule of the network."""

    embedding: int
    hidden: tuple[int, ...]
    learning_rate: float
    weight_decay: float
    batch_size: int
    epochs: int
    patience: int
    random_state: int


@dataclass(frozen=True)
class Network:
    """Embeddings of the levels, concatenated, into a ReLU network.

    ``table`` (rows, size) has the embeddings of all fields below each other; row 0 is zero and
    stands for unseen levels, and a field's code c > 0 has row ``first_rows + c``. The last layer
    gives the output.
    """

    table: Float32Array
    first_rows: NDArray[Any]
    weights: tuple[Float32Array, ...]
    biases: tuple[Float32Array, ...]

    def __call__(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return g of shape (n, outputs) for codes of shape (n, fields)."""
        rows = embedding_rows(codes, self.first_rows)
        starts = range(0, max(len(rows), 1), _CHUNK)
        parts = [self._forward(rows[start : start + _CHUNK]) for start in starts]
        return np.concatenate(parts).astype(np.float64)

    def _forward(self, rows: NDArray[np.intp]) -> Float32Array:
        hidden = self.table[rows].reshape(len(rows), -1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weight + bias, 0.0)
        return np.asarray(hidden @ self.weights[-1] + self.biases[-1])


def embedding_rows(codes: NDArray[np.intp], first_rows: NDArray[Any]) -> NDArray[np.intp]:
    """Return the embedding's row of each code; unseen values of every field share row 0."""
    return np.where(codes == UNSEEN, 0, codes + first_rows)


def stacked_rows(n_codes: list[int]) -> NDArray[np.intp]:
    """Return the row of each field's code 0 where the fields' tables lie below each other."""
    return np.concatenate([[0], np.cumsum(n_codes)[:-1]]).astype(np.intp)


def layer_sizes(inputs: int, hidden: tuple[int, ...], outputs: int) -> list[tuple[int, int]]:
    """Return (inputs, outputs) of each layer."""
    return list(pairwise((inputs, *hidden, outputs)))
