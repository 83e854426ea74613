from __future__ import annotations

import mlflow
import numpy as np
import pyarrow.parquet as pq
import pytest

import trueup
from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow import backfill, log_evaluation, log_predictions
from trueup_mlflow.write.field_figure import Panel, worst_cells

N = 600
RNG = np.random.default_rng(0)
SITE, DEVICE = RNG.choice(["a", "b", "c"], N), RNG.integers(0, 2, N)
P = RNG.random(N)
Y = (np.where(SITE == "a", 0.5, 1.0) * P > RNG.random(N)).astype(int)
FIELDS = {"site": SITE, "device": DEVICE}
TABLE, FIGURE = "trueup/fields_log_loss.parquet", "trueup/fields_log_loss.png"


def artifacts(client, run_id):
    return [entry.path for entry in client.list_artifacts(run_id, "trueup")]


def table_of(client, run_id, folder):
    return pq.read_table(client.download_artifacts(run_id, TABLE, str(folder)))


def test_table_has_a_row_for_each_field_and_level_and_every_column(client, tmp_path):
    with mlflow.start_run() as active:
        evaluation = log_evaluation(Y, P, fields=FIELDS)
    table = table_of(client, active.info.run_id, tmp_path).to_pydict()
    assert table.pop("field") == ["site"] * 3 + ["device"] * 2
    site, device = (evaluation.fields[name].cells.to_columns() for name in FIELDS)
    assert table == {name: [*site[name].tolist(), *device[name].tolist()] for name in site}


def test_weighted_rows_have_a_table_and_a_figure_too(client, tmp_path):
    weights = np.arange(N) % 2 + 1.0
    with mlflow.start_run() as active:
        evaluation = log_evaluation(Y, P, fields=FIELDS, sample_weight=weights)
    table = table_of(client, active.info.run_id, tmp_path).to_pydict()
    site = evaluation.fields["site"].cells
    assert table["level"][:3] == site.level.tolist()
    assert table["observed"][:3] == site.observed.tolist()
    assert FIGURE in artifacts(client, active.info.run_id)


def test_each_step_keeps_its_table(client, tmp_path):
    with mlflow.start_run() as active:
        for step, proba in ((0, P), (7, P**2)):
            log_evaluation(Y, proba, fields=FIELDS, step=step)
    run_id = active.info.run_id
    stem = "trueup/fields_log_loss"
    names = [f"{stem}.parquet", f"{stem}_step0.parquet", f"{stem}_step7.parquet"]
    assert set(names) <= set(artifacts(client, run_id))
    latest, first, last = (
        pq.read_table(client.download_artifacts(run_id, name, str(tmp_path))) for name in names
    )
    assert latest == last
    assert latest != first


def test_artifacts_that_cannot_be_written_leave_the_metrics(client, tmp_path):
    with mlflow.start_run() as active:
        (tmp_path / "artifacts" / active.info.run_id / "artifacts").mkdir(parents=True)
        (tmp_path / "artifacts" / active.info.run_id / "artifacts" / "trueup").write_text("")
        with pytest.warns(TrueupWarning, match="fields_log_loss was not logged: writing failed"):
            evaluation = log_evaluation(Y, P, fields=FIELDS)
    run = client.get_run(active.info.run_id)
    assert run.data.metrics["field_ece_site"] == evaluation.fields["site"].ece
    assert "writing failed" in run.data.tags["trueup.skipped.fields_log_loss"]


def test_backfill_writes_the_artifacts_that_log_evaluation_would_have_written(client, tmp_path):
    with mlflow.start_run() as active:
        log_evaluation(Y, P, fields=FIELDS)
    with mlflow.start_run() as finished:
        log_predictions(Y, P, fields=FIELDS)
    backfill([finished.info.run_id])
    (tmp_path / "direct").mkdir()
    (tmp_path / "backfilled").mkdir()
    direct = table_of(client, active.info.run_id, tmp_path / "direct")
    assert table_of(client, finished.info.run_id, tmp_path / "backfilled") == direct
    assert FIGURE in artifacts(client, finished.info.run_id)


def test_backfilled_levels_are_those_of_the_last_step(client, tmp_path):
    with mlflow.start_run() as active:
        for step, proba in ((10, P**2), (2, P)):
            log_predictions(Y, proba, fields=FIELDS, step=step)
    backfill([active.info.run_id])
    predicted = table_of(client, active.info.run_id, tmp_path)["predicted"]
    last = trueup.evaluate(Y, P**2, fields=FIELDS).fields["site"].cells
    assert predicted.to_pylist()[:3] == last.predicted.tolist()


def test_figure_has_a_panel_for_each_field_with_the_floor_in_its_title():
    fields = trueup.evaluate(Y, P, fields=FIELDS).fields
    first, second = (Panel.of(name, field, 12) for name, field in fields.items())
    site = fields["site"]
    assert first.title.startswith(
        f"site: Field-ECE {site.ece:.4f}, a perfect model {site.floor:.4f}"
    )
    assert len(second.labels) == 2
    assert first.height + second.height < worst_cells(fields).height


def test_figure_shows_the_most_surprising_levels_by_their_difference():
    field = trueup.evaluate(Y, P, fields={"row": np.arange(N) // 20}).fields["row"]
    panel = Panel.of("row", field, 5)
    shown = [label.split()[0] for label in panel.labels]
    assert sorted(shown) == sorted(field.cells.level[:5])
    assert panel.middle.tolist() == sorted(field.cells.difference[:5])


def test_a_level_is_drawn_in_the_colour_of_its_side():
    field = trueup.evaluate(Y, np.where(SITE == "a", 0.9, P), fields={"site": SITE}).fields["site"]
    panel = Panel.of("site", field, 12)
    drawn = np.asarray(worst_cells({"site": field})).reshape(-1, 3)
    colours = {tuple(pixel) for pixel in np.unique(drawn, axis=0).tolist()}
    wanted = {tuple(bytes.fromhex(colour[1:])) for colour in panel.colours}
    assert wanted <= colours


@pytest.mark.parametrize("name", ["$\\x$", "plain " * 20, "two\nlines", "\udce9", "", "中文"])
def test_any_text_is_the_name_of_a_level(name):
    level = np.where(SITE == "a", name, "other")
    fields = trueup.evaluate(Y, P, fields={name or "empty": level}).fields
    assert worst_cells(fields).size[0] > 0


def test_no_fields_cannot_be_drawn():
    with pytest.raises(InvalidInputError, match="fields must hold at least one field"):
        worst_cells({})
