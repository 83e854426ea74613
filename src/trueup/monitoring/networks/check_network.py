"""The check model h as a network: its two heads and its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.networks.networks import StackedMLP, TrainingPlan, train
from trueup.monitoring.networks.objectives import OBJECTIVES, Objective

Head = Literal["plain", "offset"]


@dataclass(frozen=True)
class CheckNetwork:
    """h of a stack of check models.

    With the plain head h is the network's output, as in the paper. With the offset head
    ``h = f - softplus(g(x, f))``: h lies below f everywhere, so that it neither crosses f, where
    the estimate would be 0, nor has to learn f anew.
    """

    network: StackedMLP
    head: Head

    def output(self, x: Tensor, f: Tensor) -> Tensor:
        """Return h of shape (models, n)."""
        if self.head == "plain":
            return self.network(x)
        return f - softplus(self.network(torch.cat([x, f[..., None]], dim=-1)))

    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return the estimate ``2 (h - f)^2`` of each row, shape (models, n) (Eq. 11)."""
        if self.head == "plain":
            return 2.0 * (self.network.predict(x) - f) ** 2
        inputs: NDArray[np.float64] = np.concatenate([x, f[..., None]], axis=-1)
        return 2.0 * np.logaddexp(0.0, self.network.predict(inputs)) ** 2


def fit_check_network(
    columns: tuple[Tensor, Tensor, Tensor],
    generator: torch.Generator,
    *,
    objective: Objective,
    head: Head,
    hidden: int,
    plan: TrainingPlan,
) -> CheckNetwork:
    """Train h on x of shape (models, n, d) and f, y of shape (models, n), all standardised."""
    n_models, _, width = columns[0].shape
    sizes = (width + (head == "offset"), hidden, 1)
    check = CheckNetwork(StackedMLP(sizes, n_models, generator), head)
    criterion = OBJECTIVES[objective]

    def loss(x: Tensor, f: Tensor, y: Tensor) -> Tensor:
        return criterion(check.output(x, f), f, y)

    train([check.network], loss, columns, plan, generator)
    return check
