from __future__ import annotations

import mlflow
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from trueup import __version__
from trueup.errors import TrueupWarning
from trueup.resampling import Bootstrap, generalization_error, nested_resampling
from trueup_mlflow import log_resampling

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    return X, (X[:, 0] + rng.normal(size=150) > 0).astype(int)


def nested_runs(client, parent):
    experiment = client.get_run(parent).info.experiment_id
    found = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent}'")
    return sorted(found, key=lambda run: run.data.tags["trueup.fold"])


def test_a_run_gains_exactly_these_keys(client, rows):
    estimate = generalization_error(LogisticRegression(), *rows, FOLDS)
    run = client.get_run(log_resampling(estimate))
    assert run.data.metrics == {
        "log_loss": estimate.vanilla,
        "log_loss_low": estimate.vanilla_interval[0],
        "log_loss_high": estimate.vanilla_interval[1],
        "calibrated_log_loss": estimate.calibrated,
        "calibrated_log_loss_low": estimate.low,
        "calibrated_log_loss_high": estimate.high,
        "n_splits": 3.0,
        "n_train": 100.0,
    }
    own = {name: tag for name, tag in run.data.tags.items() if name.startswith("trueup.")}
    assert own == {
        "trueup.version": __version__,
        "trueup.role": "resampling",
        "trueup.resampling": repr(FOLDS),
        "trueup.aggregate": "mean",
    }
    assert run.data.tags["mlflow.note.content"] == f"{estimate}."
    assert run.info.status == "FINISHED"


def test_each_test_set_is_a_nested_run_with_what_the_tuner_selected(client, rows):
    tuner = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring="neg_log_loss")
    estimate = nested_resampling(tuner, *rows, outer=FOLDS, inner=3)
    parent = log_resampling(estimate, prefix="test_")
    runs = nested_runs(client, parent)
    assert [run.data.tags["trueup.fold"] for run in runs] == ["0", "1", "2"]
    for run, fold in zip(runs, estimate.folds, strict=True):
        assert run.data.params == {"C": str(fold.selected["C"])}
        assert run.data.metrics == {
            "test_log_loss": fold.vanilla,
            "calibrated_test_log_loss": fold.calibrated,
            "n_train": 100.0,
            "n_test": 50.0,
        }
        assert run.info.status == "FINISHED"


def test_the_active_run_is_taken_and_left_running(client, rows):
    estimate = generalization_error(LogisticRegression(), *rows, FOLDS)
    with mlflow.start_run() as run:
        assert log_resampling(estimate, nested_folds=False) == run.info.run_id
        assert client.get_run(run.info.run_id).info.status == "RUNNING"
    assert "trueup.role" not in client.get_run(run.info.run_id).data.tags
    assert nested_runs(client, run.info.run_id) == []


def test_a_metric_of_the_run_that_is_replaced_is_said(client, rows):
    estimate = generalization_error(LogisticRegression(), *rows, FOLDS)
    with mlflow.start_run():
        mlflow.log_metric("log_loss", 0.5)
        log_resampling(estimate, prefix="cv_", nested_folds=False)
        with pytest.warns(TrueupWarning, match="has a log_loss of its own, .* pass another prefix"):
            log_resampling(estimate, nested_folds=False)


def test_a_missing_interval_is_no_metric_but_a_sentence(client, rows):
    strategy = Bootstrap(3, random_state=0)
    estimate = generalization_error(LogisticRegression(), *rows, strategy, loss="roc_auc")
    run = client.get_run(log_resampling(estimate))
    assert set(run.data.metrics) == {"roc_auc", "n_splits", "n_train"}
    assert "no interval: training sets of the bootstrap" in run.data.tags["mlflow.note.content"]


def test_a_run_of_its_own_has_a_name_and_a_picture(client, rows):
    run = client.get_run(log_resampling(generalization_error(LogisticRegression(), *rows, FOLDS)))
    assert run.info.run_name == "log_loss over 3 test sets of StratifiedKFold"
    files = {file.path for file in client.list_artifacts(run.info.run_id, "trueup")}
    assert files == {"trueup/resampling_log_loss.png"}
    kind = client.get_experiment(run.info.experiment_id).tags["mlflow.experimentKind"]
    assert kind == "custom_model_development"
