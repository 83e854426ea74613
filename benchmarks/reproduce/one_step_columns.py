"""The columns of the one-step paper's tables: what estimates the operational MSE, and how f is fit.

The field's columns (training MSE, cross-validation, direct loss estimation, consensus) are not in
the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import torch
from one_step_data import FloatArray, Trials, benchmark, synthetic

from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.baselines.reliable_variance import fit_reliable_variance
from trueup.monitoring.baselines.two_step import fit_ensemble, fit_m2v, fit_mean, fit_mvn
from trueup.monitoring.networks.check_network import fit_check_network
from trueup.monitoring.networks.fitted import Objective
from trueup.monitoring.networks.training import TrainingPlan, as_tensor, seeded
from trueup.monitoring.panel.direct_loss import DirectLossEstimator

FOLDS = 5


class Judge(Protocol):
    """Whatever estimates the squared error of f on each row."""

    def squared_errors(self, x: FloatArray, f: FloatArray) -> FloatArray:
        """Return it, shape (models, n)."""


OURS: dict[str, Objective] = {"K": "k", "K*": "k_star", "L": "l"}
TWO_STEP: dict[str, Callable[..., Judge]] = {
    "M2V": fit_m2v,
    "MVN": fit_mvn,
    "ENS": fit_ensemble,
    "RVN": partial(fit_reliable_variance, variant="rvn"),
    "RVNnE": partial(fit_reliable_variance, variant="rvn_ne"),
    "M2RVN": partial(fit_reliable_variance, variant="m2rvn"),
}
COLUMNS = ("M2V", "MVN", "ENS", "RVN", "RVNnE", "M2RVN", "K", "K*", "L")
FIELD = ("training MSE", "5-fold CV", "DLE", "consensus")


@dataclass(frozen=True)
class Recipe:
    """Hidden units and training of f and h alike (Table B.1)."""

    hidden: int
    plan: TrainingPlan


RECIPES = {
    "synthetic": Recipe(64, TrainingPlan(0.01, 1e-3)),
    "mg": Recipe(128, TrainingPlan(1e-3, 1e-8, batch_size=50)),
    "space-ga": Recipe(32, TrainingPlan(5e-3, 1e-2, batch_size=100)),
    "abalone": Recipe(64, TrainingPlan(5e-4, 1e-5, batch_size=50)),
    "cpusmall": Recipe(32, TrainingPlan(1e-2, 1e-2, batch_size=100)),
    "cadata": Recipe(128, TrainingPlan(5e-4, 1e-7, batch_size=250)),
}


@dataclass(frozen=True)
class Row:
    """A data set's trials, their recipe, and the predictions of f."""

    trials: Trials
    recipe: Recipe
    f: FloatArray
    f_op: FloatArray


@lru_cache(maxsize=8)
def prepared(folder: Path, name: str, trials: int, seed: int) -> Row:
    """Draw the trials of a data set and train f."""
    kind = name.removeprefix("Synthetic ")
    data = synthetic(kind, trials, seed) if kind != name else benchmark(folder, name, trials, seed)
    recipe = RECIPES.get(name, RECIPES["synthetic"])
    x, y = as_tensor(data.x), as_tensor(data.y)
    model = fit_mean(x, y, recipe.hidden, recipe.plan, seeded(seed))
    return Row(data, recipe, model.predict(data.x), model.predict(data.x_op))


def estimate(row: Row, seed: int, column: str) -> FloatArray:
    """Return the true operational MSE ("true") or a column's estimate of it, shape (trials,).

    Each column has a generator of its own, so that it does not depend on which others are run.
    """
    trials, f_op = row.trials, row.f_op
    if column == "true":
        return np.asarray(((trials.y_op - f_op) ** 2).mean(1))
    if column == "training MSE":
        return np.asarray(((trials.y - row.f) ** 2).mean(1))
    generator = seeded(1_000 * (1 + (*COLUMNS, *FIELD).index(column)) + seed)
    if column in FIELD:
        return OF_FIELD[column](row, generator)
    return np.asarray(_judge(row, column, generator).squared_errors(trials.x_op, f_op).mean(1))


def _judge(row: Row, column: str, generator: torch.Generator) -> Judge:
    x, y, f = (as_tensor(values) for values in (row.trials.x, row.trials.y, row.f))
    hidden, plan = row.recipe.hidden, row.recipe.plan
    if column not in OURS:
        return TWO_STEP[column](x, y, hidden, plan, generator)
    return fit_check_network(
        (x, f, y), generator, objective=OURS[column], head="plain", hidden=hidden, plan=plan
    )


def cross_validated(row: Row, generator: torch.Generator) -> FloatArray:
    """Return the five-fold cross-validated MSE of f's recipe for each trial."""
    return np.asarray(((out_of_fold(row, generator) - row.trials.y) ** 2).mean(1))


def out_of_fold(row: Row, generator: torch.Generator) -> FloatArray:
    """Return the prediction of each row by a network that was fitted on the other four folds."""
    trials, recipe = row.trials, row.recipe
    fold = np.arange(trials.y.shape[1]) % FOLDS
    predictions = np.empty_like(trials.y)
    for index in range(FOLDS):
        seen, unseen = fold != index, fold == index
        x, y = as_tensor(trials.x[:, seen]), as_tensor(trials.y[:, seen])
        model = fit_mean(x, y, recipe.hidden, recipe.plan, generator)
        predictions[:, unseen] = model.predict(trials.x[:, unseen])
    return predictions


def direct_loss(row: Row, generator: torch.Generator) -> FloatArray:
    """Return NannyML's estimator, which learns the out-of-fold squared errors, for each trial."""
    trials, unseen = row.trials, out_of_fold(row, generator)
    errors = (trials.y - unseen) ** 2
    return np.array(
        [
            DirectLossEstimator()
            .fit(trials.x[index], unseen[index], errors[index])
            .squared_errors(trials.x_op[index], row.f_op[index])
            .mean()
            for index in range(len(trials))
        ]
    )


class Refit:
    """One network of a recipe, with the ``fit`` and ``predict`` that the consensus asks for."""

    def __init__(self, recipe: Recipe, random_state: int) -> None:
        self.recipe, self.random_state = recipe, random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        x, label = as_tensor(X[None]), as_tensor(y[None])
        generator = seeded(self.random_state)
        self.network = fit_mean(x, label, self.recipe.hidden, self.recipe.plan, generator)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return self.network.predict(X[None])[0]


def consensus(row: Row, generator: torch.Generator) -> FloatArray:
    """Return the consensus from f's training rows, f refitted five-fold, for each trial."""
    trials, found = row.trials, []
    for index in range(len(trials)):
        model = Refit(row.recipe, generator.initial_seed() + index)
        fitted = ConsensusEstimator(model, reference="train").fit(
            trials.x[index], row.f[index], trials.y[index]
        )
        found.append(fitted.estimate(trials.x_op[index], row.f_op[index]).mse)
    return np.array(found)


OF_FIELD = {"5-fold CV": cross_validated, "DLE": direct_loss, "consensus": consensus}
