"""Labels that arrive late, in parts, corrected, of other types; and what a batch learns of them."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression
from tests.trueup_mlflow.monitored import URI, draw, register, registered, version

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_cli.monitor.commands import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.labels import late_labels
from trueup_mlflow.monitor.batch.schema import Schema
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import CHECK_URI_TAG, CHECKED_URI_TAG, check_name

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
store = pytest.fixture(scope="module")(registered)


@pytest.fixture(scope="module")
def session(store):
    return monitor.Session.open(URI)


def kept(digest):
    return next(record for record in monitor.records(URI) if record.digest == digest)


def history(key):
    run_id = MonitorStore(version(), MlflowClient()).run_id
    return [point.value for point in MlflowClient().get_metric_history(run_id, key)]


def test_labels_of_a_batch_come_in_several_files_and_are_corrected(session, tmp_path):
    batch = draw(100, start=1_000)
    labels, prediction = (
        batch[["id", "y"]],
        mlflow.pyfunc.load_model(URI).predict(batch[["a", "b"]]),
    )
    record = session.record(batch.drop(columns="y"), at="2026-01-31")
    first = monitor.realize(URI, labels[:50])
    assert (first.n, first.matched, first.waiting) == (0, 50, 1)
    holes = labels[50:85].assign(y=labels["y"][50:85].mask(labels.index[50:85] >= 82))
    second = monitor.realize(URI, holes)
    assert (second.n, second.matched, second.missing, second.waiting) == (1, 32, 3, 0)
    expected = ((batch["y"] - prediction) ** 2)[:82].mean()
    assert kept(record.digest).realized == pytest.approx(expected)
    assert kept(record.digest).labelled == 82
    wrong = labels[:1].assign(y=labels["y"][:1] + 50.0)
    assert monitor.realize(URI, wrong).corrected == 1
    corrected = kept(record.digest)
    assert corrected.realized > 20.0
    assert corrected.corrections == (pytest.approx(expected),)
    monitor.realize(URI, labels)
    path = tmp_path / "labels.csv"
    labels.to_csv(path, index=False)
    again = CliRunner().invoke(command, ["realize", URI, "--labels", str(path)])
    assert "100 ids matched, 0 are of no batch, 0 rows have no label" in again.output
    assert len(kept(record.digest).corrections) == 2
    assert len(history("realized_mse")) == 3
    run = MonitorStore(version(), MlflowClient()).run()
    assert run.data.metrics["realized_mse"] == pytest.approx(
        ((batch["y"] - prediction) ** 2).mean()
    )
    assert run.info.run_name.startswith("monitor version 1: ")
    assert run.data.tags["mlflow.note.content"].split(":")[0] in ("fine", "watch", "act")


def test_unrelated_ids_and_wrong_shares_are_errors(session):
    session.record(draw(50, start=2_000).drop(columns="y"), at="2026-02-28")
    with pytest.raises(InvalidInputError, match="must have row ids of a batch; got 50 ids of none"):
        monitor.realize(URI, draw(50, start=900_000)[["id", "y"]])
    with pytest.raises(InvalidInputError, match="min_labelled must be above 0"):
        monitor.realize(URI, draw(50, start=2_000)[["id", "y"]], min_labelled=0.0)


def test_ids_of_another_type_are_refused_at_the_batch(session):
    batch = draw(50, start=3_000).drop(columns="y")
    before = len(monitor.records(URI))
    for ids, message in (
        (batch["id"].astype(str), "must be integers in 'id' as in the reference"),
        (batch["id"] * 0, "must differ from row to row; got"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            session.record(batch.assign(id=ids))
    assert len(monitor.records(URI)) == before


def test_the_same_rows_in_another_order_are_the_same_batch(session, caplog):
    batch = draw(60, start=4_000).drop(columns="y")
    first = session.record(batch, at="2026-03-31")
    again = session.record(batch.sample(frac=1.0, random_state=0), at="2026-04-30")
    assert again == first
    assert "this batch was logged before, at 2026-03-31" in caplog.text


def test_a_batch_with_a_date_before_1970_can_be_run_again(session):
    batch = draw(60, start=5_000).drop(columns="y")
    with pytest.raises(InvalidInputError, match="at must be 1970 or later"):
        session.record(batch, at="1969-01-31")
    assert session.record(batch, at="2026-05-31").logged


def test_estimates_learn_from_what_was_realized_before_and_from_nothing_later(store):
    train = draw(300, seed=21)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "drifting")
    MlflowClient().create_experiment(
        "trueup/drifting", artifact_location=(store / "files").as_uri()
    )
    uri = "models:/drifting/1"
    reference = draw(300, seed=22).assign(day=np.arange(300))
    monitor.init(uri, reference, target="y", row_id="id", time="day", ignore=["b"])
    session = monitor.Session.open(uri)
    schema = session.check.schema
    assert schema.features == ("a",)
    assert schema.inputs == ("a", "b")
    assert sum(schema.scale_prior) == pytest.approx(1.0)
    batches = [draw(80, start=10_000 + 100 * k) for k in range(8)]
    records = []
    for k, batch in enumerate(batches):
        records.append(session.record(batch.drop(columns="y"), at=f"2026-{k + 1:02d}-15"))
        monitor.realize(uri, batch[["id", "y"]].assign(y=lambda t: t["y"] + 2.0))
    first, last = records[0], records[-1]
    assert first.estimate["mse"] == first.raw["mse"]
    assert last.estimate["mse"] > 2.0 * last.raw["mse"]
    run_id = session.store.run_id
    unlearned = MlflowClient().get_metric_history(run_id, "estimated_mse_unlearned")
    assert sorted(p.value for p in unlearned) == sorted(r.raw["mse"] for r in records)
    late = session.record(draw(80, start=20_000).drop(columns="y"), at="2025-01-01")
    assert late.estimate["mse"] == late.raw["mse"]  # its time is before all labels


def test_text_ids_of_csv_files_stay_text(store, tmp_path):
    train = draw(100, seed=23)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "text")
    MlflowClient().create_experiment("trueup/text", artifact_location=(store / "files").as_uri())

    def written(rows, name, columns):
        path = tmp_path / name
        rows.assign(id=rows["id"].map("{:05d}".format))[columns].to_csv(path, index=False)
        return path

    every = ["id", "a", "b", "y"]
    uri = "models:/text/1"
    monitor.init(uri, written(draw(100, seed=24), "r.csv", every), target="y", row_id="id")
    batch = draw(50, start=400)
    monitor.estimate(uri, written(batch, "batch.csv", ["id", "a", "b"]), at="2026-01-31")
    assert monitor.realize(uri, written(batch, "labels.csv", ["id", "y"])).matched == 50
    with pytest.raises(InvalidInputError, match="must be text in 'id' as in the reference"):
        monitor.estimate(uri, batch.drop(columns="y"))


def test_a_claimed_estimate_survives_a_crash_before_it_was_logged(session, monkeypatch):
    session.record(draw(100, start=1_000).drop(columns="y"), at="2026-01-31")
    batch = draw(60, start=6_000).drop(columns="y")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MonitorStore, "keep_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            session.record(batch, at="2026-06-30")
    assert monitor.realize(URI, draw(60, start=6_000)[["id", "y"]].assign(id=range(1_000, 1_060)))
    done = session.record(batch, at="2026-06-30")
    assert done.logged
    assert isinstance(done.raw["mse"], float)
    assert isinstance(pd.Timestamp(done.time), pd.Timestamp)


def test_status_of_a_named_version_by_threshold_age_and_as_json(session):
    session.record(draw(60, start=7_000).drop(columns="y"), at="2030-01-31")

    def status(*options):
        return CliRunner().invoke(command, ["status", "models:/demand@champion", *options])

    (line,) = status("--json").output.splitlines()
    gate = json.loads(line)
    assert (gate["model"], gate["aliases"], gate["counts"]) == ("demand", ["champion"], True)
    assert gate["time"] >= "2030-01-31"
    assert status("--fail-above", "100x").exit_code == 0
    above = status("--fail-above", "0.001x")
    assert above.exit_code == 1
    assert "ABOVE" in above.output
    MlflowClient().set_model_version_tag("demand", "1", "trueup.fail_above", "0.0001")
    assert status().exit_code == 1
    MlflowClient().delete_model_version_tag("demand", "1", "trueup.fail_above")
    assert CliRunner().invoke(command, ["status", "models:/none@x"]).exit_code == 2


def test_levels_of_a_column_have_estimates_of_their_own(session, tmp_path):
    rows = draw(100, start=8_000).drop(columns="y").assign(region=["north"] * 60 + ["s$"] * 40)
    rows.iloc[:60, 0] += 9.0
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ["run", URI, "--batch", str(tmp_path / "rows.parquet"), "--at", "2030-02-28"]
    ran = CliRunner().invoke(command, [*arguments, "--segment", "region"])
    assert [line.split()[0] for line in ran.output.splitlines()][1:] == ["north", "s$"]
    run = MonitorStore(version(), MlflowClient()).run()
    assert run.data.metrics["segment/region/s_/estimated_mse"] > 0.0
    assert run.data.metrics["segment/region/s_/estimated_mse_rows"] == 40.0
    page = monitor.report(URI, tmp_path / "page.html").read_text()
    assert "<td>region/s_</td><td>2030-02-28</td>\n<td>40 (few)</td>" in page
    refused = CliRunner().invoke(command, [*arguments, "--segment", "none"])
    assert "--segment must be a column of the batch; got 'none'" in refused.output


def test_levels_have_realized_errors_whichever_comes_first(session):
    batch = draw(100, start=9_000).assign(region=["north"] * 60 + ["south"] * 40)
    prediction = mlflow.pyfunc.load_model(URI).predict(batch[["a", "b"]])
    north, south = (
        float(part.mean()) for part in np.split(np.asarray(batch["y"] - prediction) ** 2, [60])
    )
    rows = batch.drop(columns="y").assign(half=["early", "late"] * 50)
    for column in ("region", "half"):
        if column == "half":
            monitor.realize(URI, batch[["id", "y"]].iloc[:85])
        monitor.estimate_segments(URI, rows, segment=column, at="2030-03-31")
    metrics = MonitorStore(version(), MlflowClient()).run().data.metrics
    assert metrics["segment/region/north/realized_mse"] == pytest.approx(north)
    assert "segment/region/south/realized_mse" not in metrics  # 25 of 40 rows have a label
    assert {"segment/half/early/realized_mse", "segment/half/late/realized_mse"} <= set(metrics)
    monitor.realize(URI, batch[["id", "y"]].iloc[85:])
    assert history("segment/region/south/realized_mse") == [pytest.approx(south)]


def test_levels_that_get_no_estimate_are_said_and_equal_keys_refused(session):
    rows = draw(100, start=9_500).drop(columns="y")
    few = rows.assign(region=["north"] * 70 + ["south"] * 20 + [None] * 10)
    with pytest.warns(TrueupWarning, match="30 of 100 rows have no level of 'region' with 30 rows"):
        monitor.estimate_segments(URI, few, segment="region", at="2030-04-30")
    with pytest.raises(
        InvalidInputError, match=r"that differ in letters and digits; got 's\$' and"
    ):
        monitor.estimate_segments(URI, rows.assign(region=["s$", "s%"] * 50), segment="region")


def test_text_ids_of_a_csv_file_stay_text_however_it_is_cut(store, tmp_path):
    def written(name, n, start, **columns):
        rows = draw(n, start=start).assign(**columns)
        rows["id"] = [f"{one:07d}" for one in rows["id"]]
        rows.to_csv(tmp_path / name, index=False)
        return str(tmp_path / name)

    train = draw(400, seed=1)
    for _ in range(2):
        register(LinearRegression().fit(train[["a", "b"]], train["y"]), "texts")
    for version_of in (1, 2):
        reference = written("reference.csv", 200, start=700)
        monitor.init(f"models:/texts/{version_of}", reference, target="y", row_id="id")
    uri = "models:/texts/1"
    paths = [written(f"{k}.csv", 60, start=420 + 60 * k) for k in range(3)]
    dated = written("0.csv", 60, start=420, day=["2026-01-15"] * 30 + ["2026-02-15"] * 30)
    monitor.estimate_periods(uri, dated, time_column="day")
    monitor.estimate_chunks(uri, paths[1], rows=30, at="2026-03-31")
    monitor.compare(uri, "models:/texts/2", paths[2], at="2026-04-30")
    for path in paths:
        assert monitor.realize(uri, path).matched == 60
    both = pd.concat([pd.read_csv(paths[0], dtype={"id": str})] * 2)  # exports overlap
    assert monitor.realize(uri, both).matched == 60


def test_a_batch_with_its_predictions_is_the_same_batch_and_loads_no_model(session, tmp_path):
    batch = draw(100, start=11_000).drop(columns="y").assign(part=["x", "z"] * 50)
    known = session.record(batch, at="2030-05-31")
    given = batch.assign(p=mlflow.pyfunc.load_model(URI).predict(batch[["a", "b"]]))
    given.drop(columns="part").to_parquet(tmp_path / "rows.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow.pyfunc, "load_model", None)
        found = monitor.estimate(URI, tmp_path / "rows.parquet", at="2030-05-31", predicted="p")
        assert found == known.as_estimate()
        levels = monitor.estimate_segments(URI, given, segment="part", predicted="p")
        assert [level for level, _ in levels] == ["", "x", "z"]
        options = ["--batch", str(tmp_path / "rows.parquet"), "--predicted", "q"]
        refused = CliRunner().invoke(command, ["run", URI, *options])
    assert (refused.exit_code, "--predicted must be a column" in refused.output) == (2, True)


def test_a_batch_that_comes_again_and_a_time_in_the_future_are_said(session, caplog):
    batch = draw(60, start=12_000).drop(columns="y")
    session.record(batch, at="2999-01-31")
    assert "the batch's time, 2999-01-31T00:00:00+00:00, lies in the future" in caplog.text
    caplog.clear()
    session.record(batch, at="2999-01-31")
    assert not caplog.text
    assert session.record(batch).day == "2999-01-31"  # a job that is run again names no time
    assert "this batch was logged before, at 2999-01-31" in caplog.text


def test_labels_that_replace_others_are_counted(session, tmp_path):
    batch = draw(40, start=13_000)
    session.record(batch.drop(columns="y"), at="2030-06-30")
    labels = batch[["id", "y"]]
    assert monitor.realize(URI, labels).corrected == 0
    some = labels[:5].assign(y=labels["y"][:5] + np.array([0.0, 1.0, 0.0, 1.0, 1.0]))
    some.to_parquet(tmp_path / "some.parquet")
    arguments = ["realize", URI, "--labels", str(tmp_path / "some.parquet")]
    said = CliRunner().invoke(command, arguments).output
    assert "5 ids matched, 3 corrected an earlier label, 0 are of no batch" in said


@pytest.mark.parametrize("deleted", ["gone", "unchecked__trueup_check"])
def test_a_deleted_version_or_check_is_said_and_does_not_count(
    deleted, session, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # where artifacts of a new experiment go
    client = MlflowClient()
    rows, name = draw(50), deleted.removesuffix("__trueup_check")
    for registered_name in (name, check_name(name)):
        register(LinearRegression().fit(rows[["a", "b"]], rows["y"]), registered_name)
    client.set_model_version_tag(name, "1", CHECK_URI_TAG, f"models:/{check_name(name)}/1")
    client.set_model_version_tag(check_name(name), "1", CHECKED_URI_TAG, f"models:/{name}/1")
    record = session.record(draw(40, start=14_000).drop(columns="y"), at="2030-07-31")
    MonitorStore(resolve(f"models:/{name}/1", client), client).write(record)
    assert [gate.counts for gate in monitor.status([f"models:/{name}"])] == [True]

    client.delete_model_version(deleted, "1")
    (gate,) = (gate for gate in monitor.status() if gate.model == name)
    assert (gate.deleted, gate.counts, gate.to_dict()["deleted"]) == (True, False, True)
    said = CliRunner().invoke(command, ["status"]).output
    assert "(the registry has it or its check no longer: does not count)" in said
    with pytest.raises(InvalidInputError, match="must be of versions with a batch and a check"):
        monitor.status([f"models:/{name}"])


@pytest.mark.parametrize(
    ("values", "first"),
    [(["yes", "Zed", "Any"], "'Zed'"), ([0, 1, 1], "0"), ([True, False, True], "True")],
)
def test_a_label_of_no_class_is_shown_as_it_is_at_its_row_of_the_table(values, first):
    schema = Schema("y", "id", (), True, {}, {}, classes=("no", "yes"))
    rows = zip(["a", "b", "c"], values, strict=True)
    lost, again = ("x", None), ("w", "no")
    table = pd.DataFrame([lost, again, again, *rows], columns=["id", "y"], dtype=object)
    index = 4 if values[0] == "yes" else 3
    with pytest.raises(InvalidInputError, match=f"got {first} at index {index}. Name them"):
        late_labels(table, schema)
