"""The paper's two-step baselines: a mean u and a variance s^2 first, the MSE from both (Eq. 2).

All take stacks: x of shape (models, n, d) and y of shape (models, n), standardised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, train

ENSEMBLE_SIZE = 10


def squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Return the mean squared error."""
    return (prediction - y).square().mean(-1)


def gaussian_nll(mean: Tensor, log_variance: Tensor, y: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of a normal variable, without its constant."""
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean(-1)


@dataclass(frozen=True)
class MeanVariance:
    """Networks of the mean and of the logarithm of the variance."""

    mean: StackedMLP
    log_variance: StackedMLP

    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return ``(u(x) - f(x))^2 + s(x)^2`` for each row, shape (models, n)."""
        with np.errstate(over="ignore"):
            variance = np.exp(self.log_variance.predict(x))
        return (self.mean.predict(x) - f) ** 2 + variance


@dataclass(frozen=True)
class Ensemble:
    """Members whose normal distributions are mixed with equal weight."""

    members: tuple[MeanVariance, ...]

    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return ``(u(x) - f(x))^2 + s(x)^2`` of the mixture: the mean over members of theirs."""
        rows = [member.squared_errors(x, f) for member in self.members]
        return np.asarray(np.mean(rows, axis=0))


def fit_mean(
    x: Tensor, y: Tensor, hidden: int, plan: TrainingPlan, generator: torch.Generator
) -> StackedMLP:
    """Fit a network to y by squared error."""
    network = StackedMLP((x.shape[-1], hidden, 1), len(x), generator)
    train([network], lambda a, b: squared_error(network(a), b), (x, y), plan, generator)
    return network


def fit_m2v(
    x: Tensor, y: Tensor, hidden: int, plan: TrainingPlan, generator: torch.Generator
) -> MeanVariance:
    """M2V: the mean by squared error, then the variance by likelihood with the mean fixed."""
    mean = fit_mean(x, y, hidden, plan, generator)
    with torch.no_grad():
        fixed = mean(x)
    variance = StackedMLP((x.shape[-1], hidden, 1), len(x), generator)

    def loss(rows: Tensor, label: Tensor, center: Tensor) -> Tensor:
        return gaussian_nll(center, variance(rows), label)

    train([variance], loss, (x, y, fixed), plan, generator)
    return MeanVariance(mean, variance)


def fit_mvn(
    x: Tensor, y: Tensor, hidden: int, plan: TrainingPlan, generator: torch.Generator
) -> MeanVariance:
    """MVN (Nix and Weigend 1994): mean and variance jointly by likelihood."""
    sizes = (x.shape[-1], hidden, 1)
    mean, variance = (StackedMLP(sizes, len(x), generator) for _ in range(2))

    def loss(rows: Tensor, label: Tensor) -> Tensor:
        return gaussian_nll(mean(rows), variance(rows), label)

    train([mean, variance], loss, (x, y), plan, generator)
    return MeanVariance(mean, variance)


def fit_ensemble(
    x: Tensor, y: Tensor, hidden: int, plan: TrainingPlan, generator: torch.Generator
) -> Ensemble:
    """ENS (Lakshminarayanan et al. 2017): ten MVN from different initial values."""
    members = (fit_mvn(x, y, hidden, plan, generator) for _ in range(ENSEMBLE_SIZE))
    return Ensemble(tuple(members))
