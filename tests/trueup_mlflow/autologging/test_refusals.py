"""Under autolog a call fails only where it fails without: what was added is taken back."""

from __future__ import annotations

import mlflow
import pytest
from sklearn.metrics import log_loss
from tests.trueup_mlflow.conftest import hanging

from trueup.errors import TrueupWarning
from trueup_mlflow import log_evaluation
from trueup_mlflow.write import failures, writer
from trueup_mlflow.write.items import COVERAGE_TAG

HOLDS_OURS = (b"calibrated_", b"trueup.")


@pytest.fixture(autouse=True)
def no_retries(server, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(writer, "SILENT", failures.Breaker())


def of_ours(status):
    """Refuse each request that holds anything of trueup."""
    return lambda _, body: status if any(word in body for word in HOLDS_OURS) else None


def of_batches(status):
    """Refuse a whole endpoint, as an old server or a proxy does."""
    return lambda path, _: status if path == "runs/log-batch" else None


def of_tags(status):
    return lambda _, body: status if b"trueup." in body else None


@pytest.mark.parametrize(
    "fault",
    [of_tags(403), of_ours(400), of_batches(404), of_batches(413), of_batches(500), of_ours(500)],
    ids=["403 tags", "400 keys", "404 batch", "413 batch", "500 batch", "500 ours"],
)
@pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")
def test_refused_request_is_repeated_as_the_user_made_it(server, autologging, binary, fault):
    with mlflow.start_run() as run:
        server.fault = fault
        value = log_loss(binary.y, binary.p)
        mlflow.log_metric("loss", value, step=3)
        again = log_loss(binary.y, binary.p * 0.99)
        mlflow.log_metric("loss", again, step=4)
    server.fault = lambda _path, _body: None
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [(3, value), (4, again)]


@pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")
def test_asynchronous_call_is_the_users_alone(server, autologging, binary):
    with mlflow.start_run() as run:
        server.fault = of_ours(403)
        value = log_loss(binary.y, binary.p)
        mlflow.log_metrics({"loss": value}, synchronous=False).wait()
        mlflow.log_metric("again", value, synchronous=False).wait()
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics == {"loss": value, "again": value}


def log_three_steps(binary):
    for step in range(3):
        value = log_loss(binary.y, binary.p * (1 - 0.01 * step))
        mlflow.log_metric("loss", value, step=step)


def test_twins_that_were_put_off_are_written_at_the_end_and_said_once(
    server, autologging, binary, capsys
):
    with mlflow.start_run() as run:
        server.fault = of_ours(403)
        with pytest.warns(TrueupWarning, match="put off until its end") as seen:
            log_three_steps(binary)
        assert len(seen) == 1
        server.fault = lambda _path, _body: None
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "calibrated_loss")
    assert [point.step for point in history] == [0, 1, 2]
    assert mlflow.get_run(run.info.run_id).data.tags[COVERAGE_TAG] == "twins of loss."


def test_hung_server_costs_the_timeout_of_the_users_own_call(server, autologging, binary):
    value = log_loss(binary.y, binary.p)
    refused = pytest.raises(mlflow.MlflowException)
    with mlflow.start_run(), hanging(server) as hung, refused:
        mlflow.log_metric("loss", value)
    assert len(hung) == 1


def test_hung_server_costs_log_evaluation_one_timeout(server, binary):
    told = pytest.warns(TrueupWarning, match="nothing is written for 60 s")
    with mlflow.start_run(), hanging(server) as hung, told:
        log_evaluation(binary.y, binary.p, fields={"field": binary.y}, figures=True)
    assert len(hung) == 1
