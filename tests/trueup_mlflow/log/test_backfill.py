from __future__ import annotations

from pathlib import Path

import mlflow
import numpy as np
import pytest

import trueup
from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow import backfill, log_evaluation, log_predictions

N = 400
RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
OPTIONS = {"split": trueup.HoldOut(0.25, salt=1), "row_id": np.arange(N) + 7}


def run_with_predictions(y=Y, p=P, **options):
    with mlflow.start_run() as active:
        log_predictions(y, p, **options)
    return active.info.run_id


def points(client, run_id):
    keys = client.get_run(run_id).data.metrics
    return {
        key: [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run_id, key)]
        for key in keys
    }


def test_predictions_are_one_parquet_artifact_and_nothing_else(client):
    with mlflow.start_run() as active:
        tags = client.get_run(active.info.run_id).data.tags
        assert log_predictions(Y, P) == "trueup/predictions_val.parquet"
        assert log_predictions(Y, P, name="test.1", step=3).endswith(
            "predictions_test.1_step3.parquet"
        )
    assert sorted(entry.path for entry in client.list_artifacts(active.info.run_id, "trueup")) == [
        "trueup/predictions_test.1_step3.parquet",
        "trueup/predictions_val.parquet",
    ]
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert run.data.tags == tags


def test_backfill_logs_what_log_evaluation_would_have_logged(client):
    model = mlflow.initialize_logged_model(name="m")
    dataset = mlflow.data.from_numpy(P, name="validation")
    place = {"prefix": "val_", "step": 4, "dataset": dataset, "model_id": model.model_id}
    run_id = run_with_predictions(**OPTIONS, **place)
    with mlflow.start_run() as active:
        log_evaluation(Y, P, **OPTIONS, **place)
    (result,) = backfill([run_id])
    assert (result.status, result.key) == ("logged", "val_log_loss")
    backfilled, direct = client.get_run(run_id), client.get_run(active.info.run_id)
    assert backfilled.data.metrics == direct.data.metrics
    ours = [tag for tag in direct.data.tags if tag.startswith("trueup.")]
    assert [backfilled.data.tags[tag] for tag in ours] == [direct.data.tags[tag] for tag in ours]
    (point,) = client.get_metric_history(run_id, "calibrated_val_log_loss")
    assert point.step == 4
    assert backfilled.info.start_time <= point.timestamp <= backfilled.info.end_time
    on_model = client.get_logged_model(model.model_id).metrics
    assert {(m.key, m.value, m.dataset_name) for m in on_model if m.run_id == run_id} == {
        (key, value, "validation") for key, value in direct.data.metrics.items()
    }


def test_backfill_twice_changes_nothing(client):
    run_id = run_with_predictions()
    backfill([run_id])
    run, before = client.get_run(run_id), points(client, run_id)
    (result,) = backfill([run_id, run_id])
    assert result.status == "present"
    assert points(client, run_id) == before
    assert client.get_run(run_id).data.tags == run.data.tags


def test_a_vanilla_value_of_the_user_stays_as_it_is(client):
    with mlflow.start_run() as active:
        mlflow.log_metric("log_loss", 0.123)
        log_predictions(Y, P)
    backfill([active.info.run_id])
    metrics = points(client, active.info.run_id)
    assert [value for _, value, _ in metrics["log_loss"]] == [0.123]
    assert len(metrics["calibrated_log_loss"]) == 1


def test_each_step_is_filled_by_itself(client):
    with mlflow.start_run() as active:
        log_evaluation(Y, P, step=0)
        for step in range(2):
            log_predictions(Y, P, step=step)
    assert [result.status for result in backfill([active.info.run_id])] == ["present", "logged"]
    history = points(client, active.info.run_id)["calibrated_log_loss"]
    assert [step for step, *_ in history] == [0, 1]


def test_other_rows_under_the_same_key_are_refused(client):
    with mlflow.start_run() as active:
        log_predictions(Y, P, name="a")
        log_predictions(Y[::-1], P[::-1], name="b")
    first, second = backfill([active.info.run_id])
    assert (first.status, second.status) == ("logged", "skipped")
    assert "log_loss comes from other rows or another split" in second.reason
    assert len(points(client, active.info.run_id)["calibrated_log_loss"]) == 1


def test_undefined_metric_is_tagged_and_other_tables_are_computed(client):
    with mlflow.start_run() as active:
        with pytest.warns(TrueupWarning, match="the 400 rows of predictions_a are kept, but"):
            log_predictions(np.zeros_like(Y), P, name="a", prefix="a_")
        log_predictions(Y, P, name="b", prefix="b_")
    with pytest.warns(TrueupWarning, match="a_log_loss was not logged"):
        first, second = backfill([active.info.run_id])
    assert (first.status, second.status) == ("skipped", "logged")
    assert "trueup.skipped.a_log_loss" in client.get_run(active.info.run_id).data.tags


@pytest.mark.parametrize(
    ("predictions", "said"),
    [
        ({"y_pred": np.where(np.arange(N) % 100 == 1, np.nan, P)}, "kept, 4 of them without"),
        ({"y_logit": np.where(np.arange(N) < 9, -np.inf, P)}, "kept, 9 of them without"),
        ({"y_pred": np.full((N, 3), np.nan), "labels": [0, 1, 2]}, "kept, 400 of them without"),
    ],
)
def test_rows_that_are_kept_without_a_finite_prediction_are_counted(client, predictions, said):
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match=said) as warned:
        assert log_predictions(Y, **predictions) == "trueup/predictions_val.parquet"
    assert len(warned) == 1
    assert "trueup backfill will skip them: " in str(warned[0].message)
    with pytest.warns(TrueupWarning, match="was not logged"):
        (result,) = backfill([active.info.run_id])
    assert result.status == "skipped"


@pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")  # one for each refused write
def test_a_run_that_takes_no_metrics_is_skipped_with_the_reason(client):
    run_id = run_with_predictions()
    client.delete_run(run_id)
    (result,) = backfill([run_id])
    assert (result.status, result.reason) == ("skipped", "writing failed")


def test_a_file_that_is_no_table_is_skipped_with_the_reason(client, tmp_path):
    run_id = run_with_predictions()
    broken = tmp_path / "predictions_broken.parquet"
    broken.write_text("no parquet")
    client.log_artifact(run_id, str(broken), "trueup")
    results = {Path(result.artifact).stem: result for result in backfill([run_id])}
    assert results["predictions_val"].status == "logged"
    assert results["predictions_broken"].status == "skipped"
    assert "ArrowInvalid" in results["predictions_broken"].reason


def test_experiments_are_searched_and_running_runs_left_alone(client):
    finished = {run_with_predictions() for _ in range(3)}
    with mlflow.start_run() as active:
        log_predictions(Y, P)
        results = backfill(experiment_names=["tests"], filter_string="attributes.status != 'X'")
    assert {r.run_id for r in results if r.status == "logged"} == finished
    (running,) = (r for r in results if r.status == "skipped")
    assert (running.run_id, running.reason) == (active.info.run_id, "the run is RUNNING")


def test_backfill_works_through_a_server(server):
    run_id = run_with_predictions()
    assert [result.status for result in backfill([run_id])] == ["logged"]
    server.requests.clear()
    assert [result.status for result in backfill([run_id])] == ["present"]
    assert "runs/log-batch" not in server.paths()
    expected = trueup.evaluate(Y, P).calibrated
    assert mlflow.get_run(run_id).data.metrics["calibrated_log_loss"] == expected


def test_backfill_wants_runs_or_experiments_that_exist(client):
    with pytest.raises(InvalidInputError, match="run_ids or experiment_names must name what"):
        backfill()
    with pytest.raises(InvalidInputError, match="experiment_names must name existing experiments"):
        backfill(experiment_names=["nowhere"])


def test_bad_predictions_raise_and_store_nothing(client):
    with mlflow.start_run() as active:
        with pytest.raises(InvalidInputError, match=r"y_pred must be in \[0, 1\]"):
            log_predictions([0, 1], [0.5, 2.0])
        with pytest.raises(InvalidInputError, match="name must be letters"):
            log_predictions(Y, P, name="../val")
    assert client.list_artifacts(active.info.run_id, "trueup") == []


def test_predictions_that_no_table_holds_are_a_tag(client):
    times = np.datetime64("2013-01-01T00:00:00", "ps") + np.arange(N)  # Arrow has no such unit
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match="predictions_val was not"):
        assert log_predictions(Y, P, times=times) is None
    tags = client.get_run(active.info.run_id).data.tags
    assert "trueup.skipped.predictions_val" in tags


def test_run_whose_artifacts_are_gone_is_reported_and_the_others_are_filled(client):
    lost = client.create_experiment("lost", artifact_location="gone://store")
    gone = client.create_run(lost).info.run_id
    client.set_terminated(gone)
    there = run_with_predictions()
    first, second = backfill([gone, there])
    assert (first.run_id, first.artifact, first.status) == (gone, "", "skipped")
    assert "gone://store" in first.reason
    assert second.status == "logged"


def test_predictions_that_cannot_be_written_warn_and_return_none(client):
    with pytest.warns(TrueupWarning) as caught:
        assert log_predictions(Y, P, run_id="0" * 32) is None
    assert any("predictions_val was not logged" in str(warning.message) for warning in caught)
