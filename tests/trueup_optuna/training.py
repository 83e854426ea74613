"""Trainings whose results depend on configuration and seed alone."""

from __future__ import annotations

import numpy as np


def result(x: float, seed: int) -> float:
    """x^2, a shared effect of the seed, and noise of the configuration and the seed."""
    own = np.random.default_rng([seed, int((x + 2.0) * 2**40)])
    shared = np.random.default_rng([seed, 7])
    return x**2 + 0.05 * shared.standard_normal() + 0.02 * own.standard_normal()


def train(trial, seed):
    return result(trial.suggest_float("x", -1.0, 1.0), seed)


def train_maximized(trial, seed):
    return -train(trial, seed)


def train_classifier(trial, seed):
    """Labels that the seed draws, and probabilities with a bias that moves between trainings."""
    x = trial.suggest_float("x", -1.0, 1.0)
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 2, 300)
    own = np.random.default_rng([seed, int((x + 2.0) * 2**40)])
    logit = (2 * y_true - 1) * (1.5 - x**2) + rng.standard_normal(300) + 0.5 * own.standard_normal()
    return y_true, 1.0 / (1.0 + np.exp(-logit))
