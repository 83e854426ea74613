"""Training of Neural Calibration with torch: eta(l) + g(x), jointly, with early stopping."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrators.inputs import FloatArray
from trueup.calibrators.line_plot import LinePlot, RowsAtKnots, SharedLinePlot
from trueup.calibrators.networks.network import (
    Network,
    Training,
    embedding_rows,
    layer_sizes,
    stacked_rows,
)
from trueup.extras import needed_by

with needed_by("This calibrator"):
    import torch

_LEAST_STEP = 1e-6


@dataclass(frozen=True)
class Trained:
    """The network, eta, and the epoch that was kept."""

    network: Network
    eta: LinePlot | SharedLinePlot
    epoch: int


class LinePlotEta(torch.nn.Module):
    """The line plot with positive increments, so that it stays non-decreasing."""

    def __init__(self, rows: RowsAtKnots, start: LinePlot) -> None:
        super().__init__()
        self.start, heights = start, start.heights
        self.piece = torch.from_numpy(rows.piece)
        self.position = torch.from_numpy(rows.position).float()
        self.fixed = torch.from_numpy(rows.fixed).float()
        steps = torch.from_numpy(np.maximum(np.diff(heights), _LEAST_STEP))
        self.first = torch.nn.Parameter(torch.tensor(heights[:1]).float())
        self.raw = torch.nn.Parameter(torch.log(torch.expm1(steps)).float())

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return eta of shape (batch, 1)."""
        return self.values(batch)[:, None]

    def values(self, batch: torch.Tensor) -> torch.Tensor:
        step = torch.nn.functional.softplus(self.raw)
        heights = torch.cat([self.first, self.first + step.cumsum(0)])
        piece = self.piece[batch]
        return heights[piece] + self.position[batch] * step[piece] + self.fixed[batch]

    def fitted(self) -> LinePlot | SharedLinePlot:
        return self.line_plot()

    def line_plot(self) -> LinePlot:
        first, raw = (part.detach().double().numpy() for part in (self.first, self.raw))
        heights = np.cumsum(np.concatenate([first, np.logaddexp(0.0, raw)]))
        return replace(self.start, heights=heights)


class SharedLinePlotEta(LinePlotEta):
    """The same line plot for the log-probabilities of all classes, and a bias per class."""

    def __init__(self, rows: RowsAtKnots, start: SharedLinePlot) -> None:
        super().__init__(rows, start.line_plot)
        self.bias = torch.nn.Parameter(torch.from_numpy(start.bias).float())
        shape = (-1, len(start.bias))
        self.piece, self.position, self.fixed = (
            part.reshape(shape) for part in (self.piece, self.position, self.fixed)
        )

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return eta of shape (batch, k)."""
        return self.values(batch) + self.bias

    def fitted(self) -> SharedLinePlot:
        return SharedLinePlot(self.line_plot(), self.bias.detach().double().numpy())


class AuxiliaryNetwork(torch.nn.Module):
    """The network g(x): embeddings and a ReLU network whose last layer starts at zero."""

    def __init__(self, n_codes: list[int], outputs: int, training: Training) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(sum(n_codes), training.embedding, padding_idx=0)
        torch.nn.init.normal_(self.embedding.weight, std=0.05)
        torch.nn.init.zeros_(self.embedding.weight[0])
        sizes = layer_sizes(len(n_codes) * training.embedding, training.hidden, outputs)
        layers = [torch.nn.Linear(*size) for size in sizes]
        torch.nn.init.zeros_(layers[-1].weight)
        torch.nn.init.zeros_(layers[-1].bias)
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return g of shape (batch, outputs)."""
        hidden: torch.Tensor = self.embedding(rows).flatten(1)
        for layer in self.layers[:-1]:
            hidden = torch.relu(layer(hidden))
        output: torch.Tensor = self.layers[-1](hidden)
        return output

    def arrays(self, first_rows: NDArray[Any]) -> Network:
        layers = [
            (layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy())
            for layer in self.layers
            if isinstance(layer, torch.nn.Linear)
        ]
        weights, biases = zip(*layers, strict=True)
        table = self.embedding.weight.detach().numpy().copy()
        return Network(table, first_rows, tuple(weights), tuple(biases))


def train(
    eta: LinePlotEta,
    codes: NDArray[np.intp],
    n_codes: list[int],
    y: FloatArray,
    weight: FloatArray,
    held_out: NDArray[np.bool_],
    training: Training,
) -> Trained:
    """Minimise the log loss of ``eta + g`` with Adam; keep the epoch that is best on held-out rows.

    Epoch 0, eta alone, is among the epochs to keep. The generator of torch is left as it was.
    """
    outputs = len(eta.bias) if isinstance(eta, SharedLinePlotEta) else 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.random_state)
        network = AuxiliaryNetwork(n_codes, outputs, training)
        first_rows = stacked_rows(n_codes)
        rows = torch.from_numpy(embedding_rows(codes, first_rows))
        label, share = torch.from_numpy(y).float(), torch.from_numpy(weight / weight.mean()).float()

        def losses(batch: torch.Tensor) -> torch.Tensor:
            margin = eta(batch) + network(rows[batch])
            return share[batch] * _log_loss(margin, label[batch])

        model = torch.nn.ModuleList([eta, network])
        epoch = _descend(model, losses, torch.from_numpy(held_out), training)
    return Trained(network.arrays(first_rows), eta.fitted(), epoch)


def _log_loss(margin: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    if margin.shape[1] > 1:
        return torch.nn.functional.cross_entropy(margin, label.long(), reduction="none")
    return torch.nn.functional.binary_cross_entropy_with_logits(
        margin[:, 0], label, reduction="none"
    )


def _descend(
    model: torch.nn.Module,
    losses: Callable[[torch.Tensor], torch.Tensor],
    is_held_out: torch.Tensor,
    training: Training,
) -> int:
    held_out, rows = is_held_out.nonzero()[:, 0], (~is_held_out).nonzero()[:, 0]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    best_epoch, best_loss, best = 0, _mean_loss(losses, held_out), copy.deepcopy(model.state_dict())
    for epoch in range(1, training.epochs + 1):
        for batch in torch.split(rows[torch.randperm(len(rows))], training.batch_size):
            optimizer.zero_grad()
            torch.autograd.backward(losses(batch).mean())
            optimizer.step()
        loss = _mean_loss(losses, held_out) if len(held_out) else -float(epoch)
        if loss < best_loss:
            best_epoch, best_loss, best = epoch, loss, copy.deepcopy(model.state_dict())
        elif epoch - best_epoch >= training.patience:
            break
    model.load_state_dict(best)
    return best_epoch


def _mean_loss(losses: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> float:
    if not len(rows):
        return float("inf")
    with torch.no_grad():
        total = sum(float(losses(part).sum()) for part in torch.split(rows, 65536))
    return total / len(rows)
