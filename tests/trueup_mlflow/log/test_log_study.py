from __future__ import annotations

import json
import warnings

import mlflow
import numpy as np
import optuna
import pytest
from mlflow.tracking import MlflowClient
from tests.databases import new_database
from tests.trueup_mlflow.conftest import hanging

from trueup.errors import TrueupWarning
from trueup_mlflow.log.log_study import log_study
from trueup_mlflow.write import failures, writer
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, confirm, finals, report_study


def train(trial, seed):
    x = trial.suggest_float("x", -1.0, 1.0)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    own = np.random.default_rng([seed, int((x + 2) * 2**40)])
    logit = (2 * y - 1) * (1.0 - x**2) + rng.normal(size=200) + own.normal()
    return y, 1 / (1 + np.exp(-logit))


def train_number(trial, seed):
    return trial.suggest_float("x", -1.0, 1.0) ** 2 + 0.01 * seed


def tuned(function=train, name="tuned"):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=name,
        pruner=SeedRacePruner(5),
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    study.optimize(SeedObjective(function, seeds=SeedList(6)), n_trials=5)
    finals(study, function, budget=4)
    return study


@pytest.fixture
def client(tmp_path):
    return MlflowClient(new_database(tmp_path))


@pytest.fixture(autouse=True)
def artifacts_under_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def children(client, parent):
    experiment = client.get_run(parent).info.experiment_id
    found = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent}'")
    return {
        run.data.tags.get("trueup.trial", run.data.tags.get("trueup.seed")): run for run in found
    }


def test_configurations_are_child_runs_and_seeds_are_steps(client):
    study = tuned()
    report = report_study(study)
    parent = log_study(report, experiment_name="tuning", client=client)
    runs = children(client, parent)
    assert set(runs) == {str(row.number) for row in report.rows}
    for row in report.rows:
        run = runs[str(row.number)]
        assert run.info.status == "FINISHED"
        assert run.data.params == {"x": str(row.params["x"])}
        history = client.get_metric_history(run.info.run_id, "calibrated_log_loss_by_seed")
        steps = {metric.step: metric.value for metric in history}
        assert steps == {step: record.value for step, record in enumerate(row.records)}
        vanilla = [record.vanilla for record in row.records]
        assert run.data.metrics["log_loss"] == pytest.approx(np.mean(vanilla))
        assert run.data.metrics["calibrated_log_loss"] == pytest.approx(row.mean)
        assert run.data.metrics["log_loss_mean"] == run.data.metrics["log_loss"]
        assert run.data.metrics["log_loss_std"] == pytest.approx(np.std(vanilla, ddof=1))
        assert run.data.metrics["n_seeds"] == row.n_seeds


def test_the_study_gains_exactly_these_keys(client):
    study = tuned()
    confirmed = confirm(study, train, n_seeds=3)
    report = report_study(study)
    parent = log_study(report, confirmation=confirmed, experiment_name="tuning", client=client)
    run = client.get_run(parent)
    name = "calibrated_log_loss"
    assert run.data.metrics == pytest.approx(
        {
            name: report.best.mean,
            f"{name}_standard_error": report.best.standard_error,
            f"{name}_optimistic": report.best.optimistic_value,
            f"{name}_cost_of_vanilla_choice": report.vanilla.cost,
            f"{name}_confirmed": confirmed.mean,
            f"{name}_confirmed_low": confirmed.low,
            f"{name}_confirmed_high": confirmed.high,
            "n_seeds": report.best.n_seeds,
            "n_configurations": 5,
            "search_trainings": report.search_trainings,
            "final_trainings": 4,
        }
    )
    assert run.data.params == {"x": str(report.best.trial.params["x"])}
    ours = {key for key in run.data.tags if key.startswith("trueup.")}
    assert ours == {"trueup.study", "trueup.role", "trueup.version", "trueup.trial"}
    local = mlflow.artifacts.download_artifacts(f"{run.info.artifact_uri}/trueup/selected.json")
    with open(local) as file:
        assert json.load(file) == report.best.trial.params


def test_logging_again_adds_only_what_is_missing(client):
    study = tuned()
    first = log_study(report_study(study), experiment_name="tuning", client=client)
    again = log_study(report_study(study), experiment_name="tuning", client=client)
    assert first == again
    experiment = client.get_experiment_by_name("tuning").experiment_id
    assert len(client.search_runs([experiment])) == 1 + 5


@pytest.mark.parametrize("nested_seeds", [False, True])
def test_logging_again_adds_the_seeds_that_came_since(client, nested_seeds):
    study = tuned()
    where = {"experiment_name": "tuning", "nested_seeds": nested_seeds, "client": client}
    log_study(report_study(study), **where)
    finals(study, train, budget=9)
    report = report_study(study)
    parent = log_study(report, **where)
    runs = children(client, parent)
    for row in report.rows:
        run = runs[str(row.number)]
        assert run.data.metrics["n_seeds"] == row.n_seeds
        vanilla = [record.vanilla for record in row.records]
        assert run.data.metrics["log_loss_mean"] == pytest.approx(np.mean(vanilla))
        assert run.data.metrics["log_loss"] == pytest.approx(np.mean(vanilla))
        history = client.get_metric_history(run.info.run_id, "log_loss_by_seed")
        assert [metric.step for metric in history] == list(range(row.n_seeds))
        gone = row.eliminated_by is not None
        status = f"eliminated by {row.eliminated_by}" if gone else "finished"
        assert run.data.tags["trueup.status"] == status
        seeds = children(client, run.info.run_id)
        assert set(seeds) == {str(r.seed) for r in row.records if nested_seeds}
    experiment = client.get_experiment_by_name("tuning").experiment_id
    trainings = report.search_trainings + report.final_trainings
    assert len(client.search_runs([experiment])) == 1 + 5 + nested_seeds * trainings


def test_another_selection_is_said_where_the_parameters_cannot_change(client):
    log_study(report_study(tuned()), experiment_name="tuning", client=client)
    other = report_study(tuned(lambda trial, seed: 1.0 - train_number(trial, seed)))
    with pytest.warns(TrueupWarning, match="keeps the parameters of an earlier selection"):
        log_study(other, experiment_name="tuning", client=client)


def test_seeds_can_be_runs_of_their_own(client):
    report = report_study(tuned())
    parent = log_study(report, experiment_name="tuning", nested_seeds=True, client=client)
    row = report.rows[0]
    run = children(client, parent)[str(row.number)]
    seeds = children(client, run.info.run_id)
    assert set(seeds) == {str(record.seed) for record in row.records}
    record = row.records[0]
    data = seeds[str(record.seed)].data
    assert data.metrics["calibrated_log_loss"] == record.value
    assert data.tags["trueup.fingerprint.log_loss"] == record.fingerprint
    assert data.params == {"seed": str(record.seed)}


def test_a_study_is_logged_through_a_server(server):
    report = report_study(tuned())
    parent = log_study(report, experiment_name="tuning", client=MlflowClient(server.uri))
    runs = children(MlflowClient(server.uri), parent)
    assert set(runs) == {str(row.number) for row in report.rows}


def test_numbers_have_no_calibrated_key(client):
    report = report_study(tuned(train_number, "numbers"))
    parent = log_study(report, client=client)
    assert client.get_run(parent).data.metrics["value"] == report.best.mean
    for run in children(client, parent).values():
        assert not any(key.startswith("calibrated") for key in run.data.metrics)


def test_run_of_the_study_says_what_was_selected_with_a_picture(client):
    study = tuned(name=None)  # Optuna makes a name up
    parent = log_study(report_study(study), experiment_name="studies", client=client)
    run = client.get_run(parent)
    assert run.info.run_name == "study of x"
    note = run.data.tags["mlflow.note.content"]
    assert note.startswith(f"Trial {run.data.tags['trueup.trial']} of 5 configurations (x=")
    assert "calibrated_log_loss" in note
    files = {file.path for file in client.list_artifacts(parent, "trueup")}
    assert "trueup/seed_distributions_log_loss.png" in files
    kind = client.get_experiment(run.info.experiment_id).tags["mlflow.experimentKind"]
    assert kind == "custom_model_development"


def test_hung_server_costs_one_timeout(server, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(writer, "SILENT", failures.Breaker())
    report = report_study(tuned())
    first_metric = b"_by_seed"
    with warnings.catch_warnings(record=True) as told, hanging(server, first_metric, 5) as hung:
        warnings.simplefilter("always", TrueupWarning)
        assert log_study(report) is None
    assert "the store does not answer" in str(told[-1].message)
    assert len(hung) == 1
