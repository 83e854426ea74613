from __future__ import annotations

import mlflow
import numpy as np
import pyarrow.parquet as pq
import pytest

import trueup
from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow import backfill, log_evaluation, log_predictions
from trueup_mlflow.write.field_figure import worst_cells

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
    first, second = worst_cells(fields).axes
    site = fields["site"]
    assert first.get_title("left").startswith(
        f"site: Field-ECE {site.ece:.4f}, a perfect model {site.floor:.4f}"
    )
    assert len(second.get_yticks()) == 2


def test_figure_shows_the_most_surprising_levels_by_their_difference():
    many = {"row": np.arange(N) // 20}
    cells = trueup.evaluate(Y, P, fields=many).fields["row"].cells
    (axes,) = worst_cells(trueup.evaluate(Y, P, fields=many).fields, n_cells=5).axes
    shown = [text.get_text().split()[0] for text in axes.get_yticklabels()]
    assert sorted(shown) == sorted(cells.level[:5])
    middles = [line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 1]
    assert middles == sorted(cells.difference[:5])


def test_names_of_levels_are_text_and_not_formulas(tmp_path):
    level = np.where(SITE == "a", "$\\x$", "plain " * 20)
    worst_cells(trueup.evaluate(Y, P, fields={"$_$": level}).fields).savefig(tmp_path / "a.png")


def test_no_fields_cannot_be_drawn():
    with pytest.raises(InvalidInputError, match="fields must hold at least one field"):
        worst_cells({})
