"""The paper's RVN baselines: reliable variance networks (Skafte et al. 2019).

Locality-aware minibatches with Horvitz-Thompson weights, a mean that is trained apart from the
variance, an inverse-gamma variance whose marginal likelihood is Student's t, and a variance that
grows to that of y away from the training rows. Stacks as in
:mod:`trueup.monitoring.baselines.two_step`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.distributions import StudentT
from torch.nn.functional import softplus

from trueup.monitoring.baselines.two_step import fit_mean
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, as_tensor

Variant = Literal["rvn", "rvn_ne", "m2rvn"]

_PRIMARY, _SECONDARY, _NEIGHBOURHOOD = 3, 10, 40
_LOCAL_EPOCHS = 10
_DISTANCE_SCALE = float(np.log1p(np.exp(1.5)))
_DISTANCE_OFFSET = 6.907755278982137
_CHUNK = 2_000


@dataclass(frozen=True)
class ReliableVariance:
    """Networks of the mean and of the inverse-gamma's shape and scale.

    The variance is trusted at ``training_rows`` (models, n, d); None never extrapolates.
    """

    mean: StackedMLP
    shape: StackedMLP
    scale: StackedMLP
    training_rows: Tensor | None

    def likelihood(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return shape (above 1, so that the variance has a mean) and scale of the variance."""
        return 1.0 + softplus(self.shape(x)) + 1e-3, softplus(self.scale(x)) + 1e-6

    @torch.no_grad()
    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return ``(u(x) - f(x))^2 + s(x)^2`` for each row, shape (models, n)."""
        parts = []
        for start in range(0, x.shape[1], _CHUNK):
            rows = as_tensor(x[:, start : start + _CHUNK])
            shape, scale = self.likelihood(rows)
            variance = scale / (shape - 1.0)
            if self.training_rows is not None:
                distance = torch.cdist(rows, self.training_rows).amin(-1)
                far = torch.sigmoid(distance / _DISTANCE_SCALE - _DISTANCE_OFFSET)
                variance = (1.0 - far) * variance + far
            parts.append(
                (
                    (self.mean(rows) - as_tensor(f[:, start : start + _CHUNK])) ** 2 + variance
                ).numpy()
            )
        return np.concatenate(parts, axis=1).astype(np.float64)


def fit_reliable_variance(
    x: Tensor,
    y: Tensor,
    hidden: int,
    plan: TrainingPlan,
    generator: torch.Generator,
    variant: Variant = "rvn",
) -> ReliableVariance:
    """Fit RVN, RVNnE (no extrapolation) or M2RVN (the mean fixed after the first half).

    Notes
    -----
    The mean is trained for half of the epochs, then ten passes of local minibatches follow, as the
    paper says. Deviations from the authors' code: every training row is a centre of the
    extrapolation, whose scale stays at its initial value, and the mean of the inverse gamma stands
    for samples of it.
    """
    half = TrainingPlan(plan.learning_rate, plan.weight_decay, plan.epochs // 2, plan.batch_size)
    mean = fit_mean(x, y, hidden, half, generator)
    sizes = (x.shape[-1], hidden, 1)
    shape, scale = (StackedMLP(sizes, len(x), generator) for _ in range(2))
    model = ReliableVariance(mean, shape, scale, None if variant == "rvn_ne" else x)
    variance_step = _adam([shape, scale], plan)
    mean_step = None if variant == "m2rvn" else _adam([mean], plan)
    neighbours, weight = _neighbourhoods(x)
    for _ in range(_LOCAL_EPOCHS * -(-x.shape[1] // _PRIMARY)):
        rows = _local_rows(neighbours, generator)
        batch = x.gather(1, rows[..., None].expand(-1, -1, x.shape[2])), y.gather(1, rows)
        local = weight.gather(1, rows)
        _variance_update(model, batch, local, variance_step)
        if mean_step is not None:
            _mean_update(model, batch, local, mean_step)
    return model


def _adam(networks: list[StackedMLP], plan: TrainingPlan) -> torch.optim.Adam:
    parameters = [parameter for network in networks for parameter in network.parameters]
    return torch.optim.Adam(
        parameters, lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=True
    )


def _variance_update(
    model: ReliableVariance, batch: tuple[Tensor, Tensor], weight: Tensor, step: torch.optim.Adam
) -> None:
    x, y = batch
    with torch.no_grad():
        center = model.mean(x)
    shape, scale = model.likelihood(x)
    log_density = StudentT(
        2.0 * shape, center, (scale / shape).sqrt(), validate_args=False
    ).log_prob(y)  # type: ignore[no-untyped-call]
    _descend(-(weight * log_density).mean(-1).sum(), step)


def _mean_update(
    model: ReliableVariance, batch: tuple[Tensor, Tensor], weight: Tensor, step: torch.optim.Adam
) -> None:
    x, y = batch
    with torch.no_grad():
        shape, scale = model.likelihood(x)
    density = StudentT(2.0 * shape, model.mean(x), (scale / shape).sqrt(), validate_args=False)
    _descend(-(weight * density.log_prob(y)).mean(-1).sum(), step)  # type: ignore[no-untyped-call]


def _descend(loss: Tensor, step: torch.optim.Adam) -> None:
    step.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    step.step()


def _neighbourhoods(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nearest rows, (models, n, k), and the inverse chance of a row to be drawn."""
    k = min(_NEIGHBOURHOOD, x.shape[1])
    index = torch.stack([torch.cdist(rows, rows).topk(k, largest=False).indices for rows in x])
    counts = torch.zeros(x.shape[:2])
    counts.scatter_add_(1, index.flatten(1), torch.ones(index.flatten(1).shape))
    weight = 1.0 / counts.clamp(min=1.0)
    return index, weight / weight.mean(-1, keepdim=True)


def _local_rows(neighbours: Tensor, generator: torch.Generator) -> Tensor:
    """Draw three rows and ten neighbours of each, shape (models, 30)."""
    n_models, n, k = neighbours.shape
    primary = torch.randint(n, (n_models, _PRIMARY), generator=generator)
    near = neighbours.gather(1, primary[..., None].expand(-1, -1, k))
    chosen = torch.rand(n_models, _PRIMARY, k, generator=generator).argsort(-1)
    return near.gather(2, chosen[..., : min(_SECONDARY, k)]).flatten(1)
