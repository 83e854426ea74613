"""The training of the check model h."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import softplus

from trueup.monitoring.networks.fitted import CheckNetwork, Head, Objective
from trueup.monitoring.networks.objectives import OBJECTIVES
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, train


def fit_check_network(
    columns: Sequence[Tensor],
    generator: torch.Generator,
    *,
    objective: Objective,
    head: Head,
    hidden: int,
    plan: TrainingPlan,
) -> CheckNetwork:
    """Train h on x of shape (models, n, d) and f, y of shape (models, n), all standardised."""
    n_models, _, width = columns[0].shape
    network = StackedMLP((width + (head == "offset"), hidden, 1), n_models, generator)
    criterion = OBJECTIVES[objective]

    def output(x: Tensor, f: Tensor) -> Tensor:
        if head == "plain":
            return network(x)
        return f - softplus(network(torch.cat([x, f[..., None]], dim=-1)))

    def loss(x: Tensor, f: Tensor, y: Tensor) -> Tensor:
        return criterion(output(x, f), f, y)

    train([network], loss, columns, plan, generator)
    return CheckNetwork(network.fitted(), head)
