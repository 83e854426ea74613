"""A fault in any function of trueup that a hook reaches never fails the user's call.

Each function that the scenario calls is made to fail at its first call, one after the other. The
functions that stand in the place of the user's, and do nothing themselves, are left out, and those
that refuse bad arguments, which raise. CI tries one in eight; ``TRUEUP_ALL_FAULTS=1`` tries all.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import mlflow
import numpy as np
import optuna
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import KFold
from tests.trueup_mlflow.conftest import EXPERIMENT
from torch.nn import functional

import trueup
import trueup_mlflow
from trueup.calibrators import ShiftCalibrator, compare_calibrators
from trueup.resampling import generalization_error
from trueup_mlflow import (
    autolog,
    log_calibrators,
    log_evaluation,
    log_predictions,
    log_resampling,
    log_study,
)
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, report_study

FOLDERS = tuple(str(Path(module.__file__).parent) for module in (trueup, trueup_mlflow))
EVERY = 1 if os.environ.get("TRUEUP_ALL_FAULTS") else 8  # functions that are tried, in CI a few
STAND_INS = {
    "hooked",
    "set_terminated",
    "watched",
    "watched.<locals>.told",
    "_watched.<locals>.seen",
    "noted",
    "prepared",
    "guest",
    "log_evaluation",
    "log_predictions",
    "check_keywords",
    "check_options",
    "check_place",
}


class FaultError(Exception):
    """What is injected."""


def is_ours(code):
    return code.co_filename.startswith(FOLDERS) and STAND_INS.isdisjoint(
        (code.co_name, code.co_qualname)
    )


def functions_called(scenario):
    found = {}

    def note(frame, event, _):
        if event == "call" and is_ours(frame.f_code):
            found[frame.f_code] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        scenario()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def with_fault(code, scenario):
    def fail(frame, event, _):
        if event == "call" and frame.f_code is code:
            raise FaultError(code.co_qualname)

    threading.setprofile(fail)
    sys.setprofile(fail)
    try:
        return scenario()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def failures_of(scenario, codes):
    failed = []
    for code in codes:
        try:
            with_fault(code, scenario)
        except Exception as failure:
            failed.append((code.co_qualname, repr(failure)))
    return failed


@pytest.fixture
def scenario(client, binary, off_at_the_end, monkeypatch):
    # By default MLflow's thread sleeps for a second in which it doesn't hear of the run's end.
    monkeypatch.setenv("MLFLOW_ASYNC_LOGGING_BUFFERING_SECONDS", "1")
    autolog()
    logits = torch.tensor(binary.p) + 0.1
    labels = torch.tensor(binary.y, dtype=logits.dtype)
    count = iter(range(10_000))

    def run():
        scale = 1.0 - 1e-6 * next(count)
        with mlflow.start_run() as active:
            loss = log_loss(binary.y, binary.p * scale)
            mlflow.log_metric("loss", loss)
            with torch.no_grad():
                in_torch = functional.binary_cross_entropy_with_logits(logits * scale, labels)
            error = mean_squared_error(binary.y, binary.p * scale)
            mlflow.log_metrics({"torch": in_torch.item(), "error": error, "other": 0.123456})
            later = mlflow.log_metric("later", error, synchronous=False)
        later.wait()
        metrics = client.get_run(active.info.run_id).data.metrics
        assert {"loss": loss, "error": error, "later": error}.items() <= metrics.items()

    return run


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(120, 1)), rng.uniform(0.1, 0.9, 120)
    y = (rng.random(120) < p).astype(int)
    estimate = generalization_error(LogisticRegression(), x, y, KFold(3))
    table = compare_calibrators(
        y, p, {"site": y}, calibrators={"shift": ShiftCalibrator()}, field="site", shuffle=True
    )
    sampler = optuna.samplers.RandomSampler(0)
    study = optuna.create_study(sampler=sampler, pruner=SeedRacePruner(n_configs=2))
    study.optimize(SeedObjective(train, seeds=SeedList(3, confirm=1)), n_trials=2)
    return report_study(study), estimate, table


def train(trial, seed):
    return trial.suggest_float("x", 0.0, 1.0) + 0.01 * seed


def test_no_fault_under_autolog_reaches_the_user(scenario):
    scenario()
    codes = functions_called(scenario)
    assert len(codes) > 100
    assert failures_of(scenario, codes[::EVERY]) == []


def test_no_fault_in_what_logs_an_evaluation_reaches_the_user(client, binary):
    def scenario():
        with mlflow.start_run():
            log_evaluation(binary.y, binary.p, fields={"field": binary.y})
            log_evaluation(binary.y[:1], binary.p[:1])  # undefined
            log_predictions(binary.y, binary.p)

    scenario()
    codes = functions_called(scenario)
    assert len(codes) > 50
    assert failures_of(scenario, codes[::EVERY]) == []


def test_no_fault_in_what_logs_other_results_reaches_the_user(client, results):
    report, estimate, table = results

    def scenario():
        with mlflow.start_run():
            log_resampling(estimate)
            log_calibrators(table)
        log_study(report, experiment_name=EXPERIMENT, nested_seeds=True)

    scenario()
    codes = functions_called(scenario)
    assert len(codes) > 30
    assert failures_of(scenario, codes[::EVERY]) == []
