"""A worker that is going to be killed."""

from __future__ import annotations

import os
import time

import optuna
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState
from tests.trueup_optuna.training import train

from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals
from trueup_optuna.runtime.journal import open_journal

N_TRIALS, N_FINALS = 30, 16
LIVENESS = {"heartbeat": 0.2, "grace": 300.0}  # which no busy machine takes for death


def open_study(journal: str) -> optuna.Study:
    return optuna.create_study(
        study_name="crash",
        storage=open_journal(journal),
        sampler=optuna.samplers.RandomSampler(),
        pruner=SeedRacePruner(N_TRIALS),
        load_if_exists=True,
    )


def logged(log: str):
    def training(trial, seed):
        value = train(trial, seed)
        with open(log, "a") as file:
            file.write(f"{trial.params['x']!r} {seed}\n")
            file.flush()
            os.fsync(file.fileno())
        time.sleep(0.03)
        return value

    return training


def work(journal: str, log: str, job: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, training = open_study(journal), logged(log)
    if job == "finals":
        finals(study, training, budget=N_FINALS, **LIVENESS)
        return
    objective = SeedObjective(training, seeds=SeedList(8), n_base=4, **LIVENESS)
    enough = MaxTrialsCallback(N_TRIALS, states=(TrialState.COMPLETE,))
    study.optimize(objective, callbacks=[enough])
