"""Models that are monitored by another metric than the MSE, under keys of its name."""

from __future__ import annotations

import json

import mlflow
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.metrics import log_loss, mean_absolute_error
from tests.trueup_mlflow.monitored import URI, draw, registered

from trueup.errors import InvalidInputError
from trueup_cli.monitor.commands import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.store import MonitorStore

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
CHURN = "models:/churn/1"
store = pytest.fixture(scope="module")(registered)


def metrics_of(uri):
    return MonitorStore(resolve(uri, MlflowClient()), MlflowClient()).run().data.metrics


def classes(rows):
    return rows.assign(y=(rows["y"] > 0).astype(float))


def test_a_check_made_anew_for_another_metric_shares_nothing_with_the_old_one(store, tmp_path):
    monitor.init(URI, draw(400, seed=2), target="y", row_id="id", fail_above=9.0)
    batch = draw(100, start=1_000)
    old = monitor.Session.open(URI).record(batch.drop(columns="y"), at="2026-01-01")
    monitor.realize(URI, batch[["id", "y"]])
    draw(400, seed=2).to_parquet(tmp_path / "reference.parquet")
    init = ["init", URI, "--reference", str(tmp_path / "reference.parquet"), "--target", "y"]
    ran = CliRunner().invoke(command, [*init, "--row-id", "id", "--metric", "mae"])
    assert ran.exit_code == 0, ran.output

    session = monitor.Session.open(URI)
    new = session.record(batch.drop(columns="y"), at="2026-01-02")
    assert new.digest != old.digest
    assert new.as_estimate().value == new.raw["mse"]  # the MSE of the day before taught it nothing
    assert 0.25 < new.as_estimate().value < 0.6
    prediction = mlflow.pyfunc.load_model(URI).predict(batch[["a", "b"]])
    error = mean_absolute_error(batch["y"], prediction)
    again = batch[["id", "y"]].assign(y=batch["y"] + 1e-9)  # corrected labels reach both
    monitor.realize(URI, again)
    metrics = metrics_of(URI)
    assert metrics["realized_mae"] == pytest.approx(error, abs=1e-6)
    assert metrics["realized_mse"] == pytest.approx(((batch["y"] - prediction) ** 2).mean())
    assert metrics["estimated_mae"] == new.as_estimate().value
    assert {"estimated_mae_low", "estimated_mae_high", "estimated_mae_unlearned"} <= set(metrics)
    assert 0.2 < metrics["estimated_mae_one_step"] < 0.6
    (gate,) = monitor.status([URI])
    assert (gate.batch.metric, gate.fail_above) == ("mae", None)  # 9 was of squared units
    shown = json.loads(CliRunner().invoke(command, ["status", URI, "--json"]).stdout)
    assert (shown["metric"], shown["mae"]) == ("mae", new.as_estimate().value)
    assert "mse" not in shown
    (limit,) = monitor.status([URI], fail_above="1.5x")
    assert limit.fail_above == pytest.approx(1.5 * new.raw["reference"])
    page = monitor.report(URI, tmp_path / "page.html").read_text()
    assert "mean absolute error; page of" in page
    other = batch.drop(columns="y").assign(id=batch["id"] + 500).iloc[:60]
    other.to_parquet(tmp_path / "b.parquet")
    ran = CliRunner().invoke(command, ["run", URI, "--batch", str(tmp_path / "b.parquet")])
    assert "mean absolute error, 90% interval" in ran.stdout


def test_a_classifier_is_monitored_by_its_log_loss_also_by_level(store):
    reference = classes(draw(400, seed=3))
    monitor.init(CHURN, reference, target="y", row_id="id", metric="log_loss", fail_above="2x")
    batch = classes(draw(200, start=100)).assign(part=["x", "z"] * 100)
    found = dict(monitor.estimate_segments(CHURN, batch.drop(columns="y"), segment="part"))
    monitor.realize(CHURN, batch[["id", "y"]])
    probability = mlflow.sklearn.load_model(CHURN).predict_proba(batch[["a", "b"]])[:, 1]
    metrics = metrics_of(CHURN)
    assert metrics["estimated_log_loss"] == found[""].value
    assert metrics["realized_log_loss"] == pytest.approx(log_loss(batch["y"], probability))
    assert metrics["segment/part/x/estimated_log_loss"] == found["x"].value
    assert metrics["segment/part/x/realized_log_loss"] == pytest.approx(
        log_loss(batch["y"][::2], probability[::2])
    )
    assert not [key for key in metrics if "mse" in key]
    with pytest.raises(InvalidInputError, match=r"must have 0 and 1 in 'y' .* got 2 for 100"):
        monitor.realize(CHURN, batch[["id", "y"]].assign(y=2))
    assert monitor.realize(CHURN, batch[["id", "y"]]).corrected == 0  # nothing of it was kept
    with pytest.raises(InvalidInputError, match="challenger must have the metric of the champion"):
        monitor.compare(CHURN, URI, batch.drop(columns="y"))


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("auc", "metric must be one of"),
        ("log_loss", "metric 'log_loss' must have labels of two classes"),
        ("poisson_deviance", "metric 'poisson_deviance' must have labels of 0 or more"),
    ],
)
def test_a_metric_that_does_not_fit_is_refused_and_nothing_is_registered(store, metric, message):
    before = len(MlflowClient().search_model_versions())
    with pytest.raises(InvalidInputError, match=message):
        monitor.init(URI, draw(400, seed=2), target="y", metric=metric)
    assert len(MlflowClient().search_model_versions()) == before
