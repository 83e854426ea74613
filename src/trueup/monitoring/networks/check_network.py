"""The check model h: what it minimises, and its training.

Objectives map arrays of shape (models, n) to (models,). ``f`` is the prediction of the monitored
model, ``h`` the check model's output, ``y`` the label, and ``e = (y - f)^2 - 2 (h - f)^2`` the
error of the estimate on one row (Section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from trueup.monitoring.networks.fitted import CheckNetwork, Head, Objective
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, train

REGULARIZER_WEIGHT = 100.0
REGULARIZER_MARGIN = 1e-3


def row_error(h: Tensor, f: Tensor, y: Tensor) -> Tensor:
    """Return e of each row."""
    return (y - f).square() - 2.0 * (h - f).square()


def k(h: Tensor, f: Tensor, y: Tensor) -> Tensor:
    """Return the mean of e squared (K of Theorem 2)."""
    return row_error(h, f, y).square().mean(-1)


def k_star(h: Tensor, f: Tensor, y: Tensor) -> Tensor:
    """Return max(K+, K-), the tighter bound of Theorem 2.

    The indicator of Eq. 8 is constant within a step, so value and gradient equal the maximum's. It
    is taken per minibatch: frozen for an epoch, training swings between the two sides.
    """
    e = row_error(h, f, y)
    return torch.maximum(e.relu().square().mean(-1), (-e).relu().square().mean(-1))


def one_sided(h: Tensor, f: Tensor, y: Tensor) -> Tensor:
    """Return the regulariser of Eq. 17 with its positive part.

    Printed without the positive part, it pulls h towards f and the estimate towards zero.
    """
    above = (h - (f - REGULARIZER_MARGIN)).relu()
    return ((f - y).square() * above.square()).mean(-1)


def l(h: Tensor, f: Tensor, y: Tensor) -> Tensor:  # noqa: E743 - the paper's name
    """Return K* + 100 R (Eq. 18, whose K-hat stands for K*)."""
    return k_star(h, f, y) + REGULARIZER_WEIGHT * one_sided(h, f, y)


OBJECTIVES: dict[Objective, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "k": k,
    "k_star": k_star,
    "l": l,
}


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
