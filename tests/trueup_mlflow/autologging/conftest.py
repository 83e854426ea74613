"""Predictions with a bias, and autologging that is off again after each test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from trueup_mlflow import autolog

# MLflow warns of its own type hints while it is imported, and Python of the way in which MLflow's
# import hooks load what they wait for: that is here before autologging waits for it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mlflow.models.evaluation  # noqa: F401

    for waited_for in ("lightgbm", "sklearn.metrics", "torch", "torchmetrics", "xgboost"):
        import_module(waited_for)


@dataclass(frozen=True)
class Rows:
    """Labels and the predictions of a model that is off in the mean."""

    y: Any
    p: Any


def binary_rows(seed: int = 0, n: int = 400) -> Rows:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.05, 0.95, n)
    return Rows(y=(rng.uniform(size=n) < truth).astype(int), p=0.8 * truth)


def multiclass_rows(seed: int = 0, n: int = 400, k: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k))
    y = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    weights = np.exp(logits + np.linspace(-0.3, 0.3, k))
    return Rows(y=y, p=weights / weights.sum(axis=1, keepdims=True))


def regression_rows(seed: int = 0, n: int = 400) -> Rows:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    return Rows(y=truth + rng.normal(size=n), p=truth + 0.3)


@pytest.fixture
def binary() -> Rows:
    return binary_rows()


@pytest.fixture
def multiclass() -> Rows:
    return multiclass_rows()


@pytest.fixture
def regression() -> Rows:
    return regression_rows()


@pytest.fixture
def autologging():
    """Autologging with its defaults; off again at the end."""
    autolog()
    yield
    autolog(disable=True)


@pytest.fixture
def off_at_the_end():
    yield
    autolog(disable=True)
