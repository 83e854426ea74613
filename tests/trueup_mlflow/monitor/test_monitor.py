import json
import subprocess
import sys
import urllib.request
from html import unescape

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from tests.trueup_mlflow.monitored import URI, draw, register, registered, version
from tests.warm import PYTHON

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_cli.monitor.commands import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.batches import estimate_chunks, estimate_periods
from trueup_mlflow.monitor.check.check_registry import load_check
from trueup_mlflow.monitor.judging.verdict import Coverage
from trueup_mlflow.monitor.prometheus import PrometheusExporter
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord, timestamp_of

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
store = pytest.fixture(scope="module")(registered)


def test_the_check_is_registered_and_linked_both_ways(store):
    client = MlflowClient()
    check = client.get_model_version_by_alias("demand__trueup_check", "for-v1")
    assert version().tags["trueup.check_model_uri"] == "models:/demand__trueup_check/1"
    assert check.tags["trueup.checks_model_uri"] == URI
    check_id = mlflow.models.get_model_info("models:/demand__trueup_check/1").model_id
    tags = client.get_logged_model(check_id).tags
    assert tags["trueup.checks_model_id"] == version().model_id


def test_the_check_loads_with_pickle_disallowed_through_the_standard_api(store, tmp_path):
    batch = draw(50, start=900)[["a", "b"]].assign(trueup_prediction=0.0)
    batch.to_parquet(tmp_path / "batch.parquet")
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import mlflow, pandas as pd;"
        f"mlflow.set_tracking_uri({mlflow.get_tracking_uri()!r});"
        "m = mlflow.pyfunc.load_model('models:/demand__trueup_check/1');"
        "print(m.predict(pd.read_parquet(sys.argv[1]))['mse'])"
    )
    run = subprocess.run(
        [PYTHON, "-c", code, str(tmp_path / "batch.parquet")],
        capture_output=True,
        text=True,
        env={"PATH": "", "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false", "HOME": str(tmp_path)},
    )
    assert run.returncode == 0, run.stderr
    expected = load_check(version()).consensus.estimate(batch[["a", "b"]], np.zeros(50)).mse
    assert float(run.stdout.split()[-1]) == pytest.approx(expected, rel=1e-6)


def test_a_batch_is_logged_once_to_the_run_and_to_the_model(store):
    batch = draw(200, start=1_000).drop(columns="y")
    first = monitor.estimate("models:/demand@champion", batch, at="2026-01-31")
    again = monitor.estimate(URI, batch, at="2026-02-28")
    assert first == again
    client = MlflowClient()
    run = MonitorStore(version(), client).run()
    assert run.info.experiment_id == client.get_experiment_by_name("trueup/demand").experiment_id
    (point,) = client.get_metric_history(run.info.run_id, "estimated_mse")
    assert point.value == first.mse
    assert {
        "estimated_mse",
        "estimated_mse_low",
        "estimated_mse_high",
        "estimated_mse_one_step",
        "estimated_mse_unlearned",
        "trusted",
        "support/domain_auc",
        "support/outside",
        "support/effective_sample_size",
        "support/disagreement_ratio",
    } == set(run.data.metrics)
    on_model = {m.key: m.value for m in client.get_logged_model(version().model_id).metrics}
    assert on_model["estimated_mse"] == first.mse


def test_a_batch_that_a_killed_process_left_is_completed_with_the_same_step(store, monkeypatch):
    batch = draw(100, start=2_000).drop(columns="y")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MonitorStore, "log", killed)
        with pytest.raises(KeyboardInterrupt):
            monitor.estimate(URI, batch, at="2026-03-31")
    (left,) = [record for record in monitor.records(URI) if not record.logged]
    monitor.estimate(URI, batch)
    (done,) = [record for record in monitor.records(URI) if record.digest == left.digest]
    assert done == left.mark(logged=True)
    history = MlflowClient().get_metric_history(
        MonitorStore(version(), MlflowClient()).run().info.run_id, "estimated_mse"
    )
    assert [point.step for point in history].count(left.step) == 1


def test_the_first_claim_of_a_batch_decides_for_all(store):
    board = MonitorStore(version(), MlflowClient())
    first = BatchRecord("claimed", 3, 1_000, 10, {"mse": 1.0})
    assert board.claim(first, {"estimated_mse": 1.0}) == (first, {"estimated_mse": 1.0})
    later = first.mark(step=4, timestamp=9_000)
    assert board.claim(later, {"estimated_mse": 1.0 + 1e-9}) == (first, {"estimated_mse": 1.0})


def test_late_labels_give_the_realized_error_of_complete_batches_only(store):
    batch = draw(150, start=3_000)
    estimate = monitor.estimate(URI, batch.drop(columns="y"), at="2026-04-30")
    before = monitor.realize(URI, batch[["id", "y"]].iloc[:-1], min_labelled=1.0)
    after = monitor.realize(URI, batch[["id", "y"]].sample(frac=1, random_state=0))
    assert after.n == before.n + 1
    model = mlflow.pyfunc.load_model(URI)
    realized = ((batch["y"] - model.predict(batch[["a", "b"]])) ** 2).mean()
    record = next(r for r in monitor.records(URI) if r.realized is not None)
    assert record.realized == pytest.approx(realized)
    run = MonitorStore(version(), MlflowClient()).run()
    assert run.data.metrics["realized_mse"] == pytest.approx(realized)
    assert run.data.metrics["estimation_error"] == pytest.approx(estimate.mse - realized)
    assert monitor.realize(URI, batch[["id", "y"]]) == after


def test_the_report_is_one_page_without_network(store, tmp_path):
    monitor.estimate(URI, draw(60, start=4_000, shift=9.0).drop(columns="y"), at="2026-05-31")
    page = monitor.report(URI, tmp_path / "report.html").read_text()
    assert "not to be trusted: outside of the reference" in page
    assert "a +9" in page or "a +8" in page
    assert "<svg" in page
    assert 'src="http' not in page
    run_id = MonitorStore(version(), MlflowClient()).run().info.run_id
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/trueup/monitor.svg") in page
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/trueup/report.html") == page
    assert "<script" not in page


def test_status_exit_codes(store, tmp_path):
    far = draw(300, start=6_000, shift=9.0).drop(columns="y")
    monitor.estimate(URI, far, at="2100-12-30")
    untrusted = CliRunner().invoke(command, ["status"])
    assert f"{URI} 2100-12-30" in untrusted.output
    assert untrusted.exit_code == 3
    monitor.estimate(URI, draw(300, start=5_000).drop(columns="y"), at="2100-12-31")
    assert CliRunner().invoke(command, ["status"]).exit_code == 0
    failed = CliRunner().invoke(command, ["status", "--fail-above", "0.01"])
    assert failed.exit_code == 1
    assert "ABOVE 0.01" in failed.output
    mse = monitor.records(URI)[-1].estimate["mse"]
    warned = CliRunner().invoke(command, ["status", "--fail-above", str(0.999 * mse)])
    assert warned.exit_code == 0
    assert "warning: the estimate is above" in warned.output


def test_command_line_from_files(store, tmp_path):
    draw(300, seed=5).to_parquet(tmp_path / "reference.parquet")
    batch = draw(80, start=7_000)
    batch.drop(columns="y").to_parquet(tmp_path / "batch.parquet")
    batch[["id", "y"]].to_csv(tmp_path / "labels.csv", index=False)
    call = CliRunner().invoke
    ran = call(command, ["run", URI, "--batch", str(tmp_path / "batch.parquet"), "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.output)["n"] == 80
    realized = call(command, ["realize", URI, "--labels", str(tmp_path / "labels.csv")])
    assert "realized batches lie in their 90% interval" in realized.output
    value = next(one for one in monitor.records(URI) if one.n == 80 and one.realized).realized
    assert f"realized {value:.4g} mean squared error, inside its interval\n" in realized.output
    assert realized.output.count(" realized 0.") == 1  # earlier batches are not those of the file
    out = call(command, ["report", URI, "--out", str(tmp_path / "r.html")])
    assert out.exit_code == 0
    bad = call(command, ["run", URI, "--batch", str(tmp_path / "missing.parquet")])
    assert bad.exit_code == 2
    assert "file must exist" in bad.output


def test_periods_of_one_file_are_batches_of_their_own(store, tmp_path):
    rows = draw(120, start=20_000).drop(columns="y")
    rows["when"] = pd.date_range("2027-01-01", periods=120, freq="D")
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ["run", URI, "--batch", str(tmp_path / "rows.parquet"), "--time-column", "when"]
    ran = CliRunner().invoke(command, arguments)
    assert [line[:7] for line in ran.output.splitlines()] == [
        "2027-01",
        "2027-02",
        "2027-03",
        "2027-04",
    ]
    assert ran.output.startswith("2027-01 (31 rows) ")
    logged = [r for r in monitor.records(URI) if r.time.startswith("2027")]
    assert [record.n for record in logged] == [31, 28, 31, 30]
    with pytest.raises(InvalidInputError, match="time_column must be a column of the batch"):
        estimate_periods(URI, rows, time_column="then")
    with pytest.raises(InvalidInputError, match="time_column must hold dates"):
        estimate_periods(URI, rows.assign(when="soon"), time_column="when")
    with pytest.raises(InvalidInputError, match=r"hold dates, or text in ISO 8601 .*; got 'soon'"):
        estimate_periods(URI, rows.assign(when="soon"), time_column="when")
    with pytest.raises(InvalidInputError, match="time_column must hold dates; got float64"):
        estimate_periods(URI, rows, time_column="a")
    with pytest.raises(InvalidInputError, match="none in 'when' at index 1"):
        estimate_periods(
            URI, rows.assign(when=rows["when"].mask(rows.index == 1)), time_column="when"
        )


def test_periods_of_times_with_offsets_are_cut_in_utc_which_is_said_once(store, tmp_path):
    rows = draw(60, start=25_000).drop(columns="y")
    rows["when"] = ["2029-01-31T23:30:00-05:00"] * 40 + ["2029-01-31T23:30:00+02:00"] * 20
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["run", URI, "--batch", str(tmp_path / "rows.csv"), "--time", "when"]
    with pytest.warns(TrueupWarning, match="periods are cut in UTC") as said:
        ran = CliRunner().invoke(command, arguments)
    assert [line[:17] for line in ran.stdout.splitlines()] == [
        "2029-01 (20 rows)",
        "2029-02 (40 rows)",
    ]
    assert len([one for one in said if "cut in UTC" in str(one.message)]) == 1


def test_a_watched_folder_is_emptied_and_a_leftover_file_logs_nothing_twice(store, tmp_path):
    batch = draw(90, start=30_000).drop(columns="y")
    batch.to_parquet(tmp_path / "first.parquet")
    batch[["a"]].to_csv(tmp_path / "wrong.csv")
    before = len(monitor.records(URI))
    ran = CliRunner().invoke(command, ["watch", URI, str(tmp_path), "--once"])
    assert ran.exit_code == 2, ran.output
    assert "wrong.csv batch must have the columns" in ran.output
    assert (tmp_path / "done" / "first.parquet").exists()
    assert (tmp_path / "rejected" / "wrong.csv").exists()
    (tmp_path / "done" / "first.parquet").replace(tmp_path / "first.parquet")
    CliRunner().invoke(command, ["watch", URI, str(tmp_path), "--once"])
    assert len(monitor.records(URI)) == before + 1


def test_what_the_reference_never_showed_is_said_of_a_trusted_estimate_too(store, tmp_path):
    train = draw(200, seed=13)
    model = make_pipeline(SimpleImputer(), LinearRegression()).fit(train[["a", "b"]], train["y"])
    register(model, "holes", skops_trusted_types=["numpy.dtype"])
    monitor.init("models:/holes/1", draw(60, seed=14), target="y", row_id="id")
    rows = draw(60, seed=15).drop(columns="y")
    rows["b"] = rows["b"].mask(rows.index < 2)
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ["run", "models:/holes/1", "--batch", str(tmp_path / "rows.parquet")]
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 0
    assert "note: column 'b' has missing values that the reference never had" in ran.output
    page = monitor.report("models:/holes/1", tmp_path / "report.html").read_text()
    assert "column 'b' has missing values" in unescape(page)


def test_files_stay_where_the_watched_model_is_unknown(store, tmp_path):
    draw(90, start=31_000).drop(columns="y").to_parquet(tmp_path / "first.parquet")
    ran = CliRunner().invoke(command, ["watch", "models:/demand@none", str(tmp_path), "--once"])
    assert ran.exit_code == 2
    assert "models:/NAME/VERSION must be a registered model version" in ran.output
    assert [path.name for path in tmp_path.iterdir()] == ["first.parquet"]


def test_chunks_of_rows_are_batches_of_their_own(store, tmp_path):
    rows = draw(70, start=40_000).drop(columns="y")
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ["run", URI, "--batch", str(tmp_path / "rows.parquet"), "--at", "2028-01-01"]
    ran = CliRunner().invoke(command, [*arguments, "--chunk-rows", "30"])
    assert [line.split()[0] for line in ran.output.splitlines()] == ["0-29", "30-59", "60-69"]
    logged = [r for r in monitor.records(URI) if r.time.startswith("2028-01")]
    assert [record.n for record in logged] == [30, 30, 10]
    assert [r.timestamp // 1000 - logged[0].timestamp // 1000 for r in logged] == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="rows must be an integer of at least 1; got 0"):
        estimate_chunks(URI, rows, rows=0)
    refused = CliRunner().invoke(command, [*arguments, "--time-column", "when"])
    assert refused.exit_code == 2


def test_thresholds_are_drawn_in_the_report(store, tmp_path):
    monitor.estimate(URI, draw(60, start=41_000).drop(columns="y"), at="2028-02-01")
    out = tmp_path / "report.html"
    arguments = ["report", URI, "--out", str(out), "--threshold", "0.4"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert "threshold 0.4" in out.read_text()
    assert "threshold" not in monitor.report(URI, out).read_text()


def test_prometheus_serves_the_latest_estimate(store):
    found = monitor.estimate(URI, draw(60, start=42_000).drop(columns="y"), at="2028-03-01")
    with PrometheusExporter(URI, 0) as exporter:
        exporter.show(found)
        with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    served = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    label = f'{{model="{URI}"}}'
    assert float(served[f"trueup_estimated_mse{label}"]) == found.mse
    assert float(served[f"trueup_estimated_mse_low{label}"]) == found.low
    assert float(served[f"trueup_estimated_mse_trusted{label}"]) == found.trusted


def test_without_prometheus_client_the_pip_command_is_named(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    arguments = ["watch", URI, str(tmp_path), "--once", "--prometheus-port", "0"]
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 2
    assert "trueup[monitor]" in ran.output


def test_champion_and_challenger_are_estimated_on_the_same_batch(store, tmp_path):
    train = draw(200, seed=12)
    for labels in (train["y"], 3.0 * train["y"]):
        register(LinearRegression().fit(train[["a", "b"]], labels), "duel")
    client = MlflowClient()
    client.create_experiment("trueup/duel", artifact_location=(store / "files").as_uri())
    for number, alias in (("1", "challenger"), ("2", "champion")):
        client.set_registered_model_alias("duel", alias, number)
        monitor.init(f"models:/duel/{number}", draw(300, seed=13), target="y", row_id="id")
    pair = ["models:/duel@champion", "models:/duel@challenger"]
    path = tmp_path / "batch.parquet"
    for month in range(1, 6):
        draw(100, start=50_000 + 1_000 * month).drop(columns="y").to_parquet(path)
        monitor.estimate(pair[0], path, at=f"2026-{month:02d}-15")  # the pair is of that time
        at = f"2026-{month:02d}-28"
        ran = CliRunner().invoke(command, ["compare", *pair, "--batch", str(path), "--at", at])
        assert ran.exit_code == (0 if month == 5 else 3), ran.output
    assert "over 5 batches (estimated)" in ran.output
    assert ran.output.splitlines()[-1] == "challenger"
    turned = monitor.compare(*reversed(pair), path, at="2026-05-28")
    assert turned.verdict == "champion"
    with pytest.raises(InvalidInputError, match="challenger must be another version"):
        monitor.compare(pair[0], "models:/duel/2", path)


def test_coverage_by_hand():
    estimate = {"mse": 1.0, "low": 0.5, "high": 2.0}
    values = (0.4, 1.0, 1.9, None)
    found = Coverage.of(
        [BatchRecord(str(i), i, 0, 1, estimate, realized=v) for i, v in enumerate(values)]
    )
    assert (found.inside, found.n) == (2, 3)
    assert Coverage.of([]) == Coverage(0, 0, 0.0, 1.0)


def test_times_are_utc_and_two_batches_of_a_second_differ():
    assert timestamp_of("2026-01-31", "00000000ab") == 1_769_817_600_000
    assert timestamp_of("2026-01-31", "000000ffab") == 1_769_817_600_255
