"""How often the corrected resampled t interval holds the generalization error.

``python benchmarks/resampling_coverage.py`` writes ``resampling_coverage.md`` beside it. The tests
run the same functions at a smaller size.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit
from sklearn.tree import DecisionTreeRegressor

from trueup.errors import TrueupWarning
from trueup.resampling import generalization_error

FloatArray = NDArray[np.float64]
Sample = tuple[FloatArray, FloatArray, NDArray[np.intp]]

_SLOPES = np.array([1.0, -0.7, 0.5, 0.2, 0.0])
_GROUP_SIZE = 5


def draw_regression(n: int, rng: np.random.Generator) -> Sample:
    """Draw rows whose signal is linear plus a wave, with normal noise of variance one."""
    X = rng.standard_normal((n, 5))
    y = X @ _SLOPES + 0.5 * np.sin(3.0 * X[:, 0]) + rng.standard_normal(n)
    return X, y, np.arange(n)


def draw_groups(n: int, rng: np.random.Generator) -> Sample:
    """Draw groups of five rows that share half of their noise and of their first feature."""
    group = np.arange(n) // _GROUP_SIZE
    shared = rng.standard_normal((2, n // _GROUP_SIZE + 1))[:, group]
    X, y, _ = draw_regression(n, rng)
    X[:, 0] = math.sqrt(0.5) * (X[:, 0] + shared[0])
    y = X @ _SLOPES + math.sqrt(0.5) * (shared[1] + rng.standard_normal(n))
    return X, y, group


def draw_classes(n: int, rng: np.random.Generator) -> Sample:
    """Draw 0/1 labels from a logistic model."""
    X = rng.standard_normal((n, 5))
    return X, (rng.random(n) < expit(X @ _SLOPES)).astype(np.float64), np.arange(n)


@dataclass(frozen=True)
class Case:
    """An inducer, its data and its measure."""

    inducer: Any
    draw: Callable[[int, np.random.Generator], Sample]
    loss: str
    error: Callable[[Any, FloatArray, FloatArray], float]


def _squared(model: Any, X: FloatArray, y: FloatArray) -> float:
    return float(mean_squared_error(y, model.predict(X)))


def _log_loss(model: Any, X: FloatArray, y: FloatArray) -> float:
    return float(log_loss(y, model.predict_proba(X)))


def _auc(model: Any, X: FloatArray, y: FloatArray) -> float:
    return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))


_TREE = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
CASES = {
    "linear, squared error": Case(
        LinearRegression(), draw_regression, "mean_squared_error", _squared
    ),
    "tree, squared error": Case(_TREE, draw_regression, "mean_squared_error", _squared),
    "logistic, log loss": Case(LogisticRegression(), draw_classes, "log_loss", _log_loss),
    "logistic, AUC": Case(LogisticRegression(), draw_classes, "roc_auc", _auc),
    "linear, groups of 5": Case(LinearRegression(), draw_groups, "mean_squared_error", _squared),
}
STRATEGIES: dict[str, Callable[[int], Any]] = {
    "10-fold": lambda seed: KFold(10, shuffle=True, random_state=seed),
    "2 x 10-fold": lambda seed: RepeatedKFold(n_splits=10, n_repeats=2, random_state=seed),
    "20 x subsampling (80%)": lambda seed: ShuffleSplit(20, test_size=0.2, random_state=seed),
    "grouped 10-fold": lambda seed: GroupKFold(10, shuffle=True, random_state=seed),
}
_TRAIN_SHARE = {"20 x subsampling (80%)": 0.8}


@dataclass(frozen=True)
class Coverage:
    """Shares of runs whose interval held the truth.

    Attributes
    ----------
    vanilla : float
        Against an error measured on fresh training and test sets.
    calibrated : float
        Against the mean of the runs, since the calibrated value depends on the size of the test
        set; nan where the measure has none.
    naive : float
        Of the t interval that takes the test sets as independent.
    truth : float
        The error.
    bias : float
        Mean of the estimates minus the truth, in standard errors of that mean.
    """

    vanilla: float
    calibrated: float
    naive: float
    truth: float
    bias: float


@cache
def true_error(case: Case, n_train: int, training_sets: int, seed: int) -> float:
    """Return the mean error of models from fresh training sets on fresh rows."""
    rng = np.random.default_rng([seed, 1])
    errors = []
    for _ in range(training_sets):
        X, y, _ = case.draw(n_train, rng)
        model = case.inducer.fit(X, y)
        errors.append(case.error(model, *case.draw(10_000, rng)[:2]))
    return float(np.mean(errors))


def coverage(
    name: str, strategy: str, n: int, runs: int, *, training_sets: int = 200, seed: int = 0
) -> Coverage:
    """Simulate ``runs`` data sets of n rows."""
    case = CASES[name]
    rng = np.random.default_rng([seed, 0])
    estimates = []
    for run in range(runs):
        X, y, group = case.draw(n, rng)
        groups = group if strategy.startswith("grouped") else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrueupWarning)
            estimates.append(
                generalization_error(
                    case.inducer, X, y, STRATEGIES[strategy](run), loss=case.loss, groups=groups
                )
            )
    truth = true_error(case, round(n * _TRAIN_SHARE.get(strategy, 0.9)), training_sets, seed)
    values = np.array([estimate.vanilla for estimate in estimates])
    ends = np.array([estimate.vanilla_interval for estimate in estimates])
    inflation = _inflation(estimates[0])
    shrunk = values[:, None] + (ends - values[:, None]) / inflation
    return Coverage(
        vanilla=_share(ends, truth),
        calibrated=_calibrated_coverage(estimates),
        naive=_share(shrunk, truth),
        truth=truth,
        bias=float((values.mean() - truth) / (values.std(ddof=1) / math.sqrt(runs))),
    )


def _inflation(estimate: Any) -> float:
    """Return how much wider the corrected interval is than the naive one."""
    fold = estimate.folds[0]
    return math.sqrt(1.0 + estimate.n_splits * fold.n_test / fold.n_train)


def _calibrated_coverage(estimates: list[Any]) -> float:
    if estimates[0].calibrated is None:
        return math.nan
    truth = float(np.mean([estimate.calibrated for estimate in estimates]))
    return _share(np.array([estimate.calibrated_interval for estimate in estimates]), truth)


def _share(ends: FloatArray, truth: float) -> float:
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


PLAN = [
    *(
        (case, strategy, n)
        for case in ("linear, squared error", "tree, squared error")
        for strategy in ("10-fold", "2 x 10-fold", "20 x subsampling (80%)")
        for n in (200, 2000)
    ),
    ("logistic, log loss", "10-fold", 2000),  # twenty test rows are too few for a bias term
    ("logistic, AUC", "10-fold", 2000),
    ("linear, groups of 5", "grouped 10-fold", 200),
]


def table_row(case: str, strategy: str, n: int, runs: int) -> str:
    """Return the line of one case."""
    found = coverage(case, strategy, n, runs)
    calibrated = "–" if math.isnan(found.calibrated) else f"{found.calibrated:.3f}"
    return (
        f"| {case} | {strategy} | {n:,} | {found.vanilla:.3f} | {calibrated} "
        f"| {found.naive:.3f} | {found.truth:.4f} | {found.bias:+.1f} |"
    )


def report(rows: list[str], runs: int) -> str:
    """Return the page around the lines of all cases."""
    error = math.sqrt(0.95 * 0.05 / runs)
    lines = [
        "# Coverage of the corrected resampled t interval",
        "",
        f"Written by `python benchmarks/resampling_coverage.py {runs}`; seeded, nominal 95%, "
        f"{runs} data sets a row, standard error about {error:.3f}.",
        "The truth of the vanilla measure is the mean over 200 fresh training sets on 10,000 fresh "
        "rows each; that of the calibrated one is the mean over the runs, since it depends on the "
        "size of a test set. *Naive* takes the test sets as independent. *Bias* is the mean of the "
        "estimates minus the truth, in standard errors of that mean (the truth has an error too).",
        "",
        "| inducer, measure | strategy | n | coverage | calibrated | naive | truth | bias |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        "Asked for: .90 to .995 for linear and tree inducers.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    table = []
    for cell in PLAN:
        table.append(table_row(*cell, size))
        print(table[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text(report(table, size))
