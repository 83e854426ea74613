"""A small study for the tests of ``trueup tune``."""

from __future__ import annotations

import sys

from click.testing import CliRunner
from optuna.trial import TrialState

from trueup_cli.tune.command import tune
from trueup_cli.tune.run import loaded_train
from trueup_cli.tune.storage import load_study
from trueup_optuna.runtime.heartbeat import _ABANDONED_AT as ABANDONED_AT

SCRIPT = """
import time
import numpy as np

def train(params, seed):
    time.sleep({pause})
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    own = np.random.default_rng([seed, int(params["x"] * 2**30), params["depth"]])
    logit = (2 * y - 1) * (1.0 - (params["x"] - 0.5) ** 2) + rng.normal(size=200) + own.normal()
    return y, 1 / (1 + np.exp(-logit))

def train_number(trial, seed):
    return trial.suggest_float("x", 0.0, 1.0) ** 2 + 0.01 * np.random.default_rng(seed).normal()
"""
SPACE = """
x: {type: float, low: 0.0, high: 1.0}
depth: {type: int, low: 1, high: 3}
"""


def arguments(*more):
    small = ["--trials", "6", "--seeds", "6", "--finals", "5", "--confirm", "3"]
    return ["my_script.py:train", "--space", "space.yaml", *small, *more]


def invoke(*arguments):
    return CliRunner().invoke(tune, list(arguments), catch_exceptions=False)


def forget_scripts():
    """Let this process read script and space anew, as another process would."""
    loaded_train.cache_clear()
    sys.modules.pop("my_script", None)


def waits_for_nobody(storage="trueup-study.journal", name="trueup"):
    """Tell whether all that was interrupted may be taken up at once, with no grace to wait for."""
    study = load_study(storage, name)
    open_states = (TrialState.RUNNING, TrialState.FAIL)
    interrupted = study.get_trials(deepcopy=False, states=open_states)
    return all(trial.user_attrs.get(ABANDONED_AT) == 0.0 for trial in interrupted)
