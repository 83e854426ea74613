"""The study of the example of ``SeedObjective``: six configurations, raced over six seeds."""

from __future__ import annotations

import optuna

from trueup_optuna import SeedList, SeedObjective, SeedRacePruner


def train(trial, seed):
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2 + 0.01 * (seed % 3)


def six_trials():
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(0), pruner=SeedRacePruner(n_configs=6)
    )
    study.optimize(SeedObjective(train, seeds=SeedList(6, confirm=3)), n_trials=6)
    return study
