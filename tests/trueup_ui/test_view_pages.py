from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from tests.trueup_optuna.six_trials import six_trials, train

from trueup.monitoring import MSEEstimate
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.monitor.judging.gates import judged
from trueup_mlflow.monitor.judging.verdict import state_of
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_optuna import confirm
from trueup_ui.read.levels import Levels
from trueup_ui.read.monitors import MonitoredVersion
from trueup_ui.read.studies import Configuration, Study, stored_study
from trueup_ui.view.charts import MOST_DOTS, Axis, strip
from trueup_ui.view.experiment import Choice, experiment_page
from trueup_ui.view.fields import PAGE_ROWS, AskedLevels, fields_page
from trueup_ui.view.models import version_row
from trueup_ui.view.seeds import Spread
from trueup_ui.view.study import study_page
from trueup_ui.web.rendering import Links, Templates
from trueup_ui.web.report import inlined

SHELL = {
    "here": "experiment",
    "experiment": SimpleNamespace(name="e", experiment_id="1"),
    "experiments": [],
}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def levels(n: int) -> dict[str, Levels]:
    rng = np.random.default_rng(0)
    names = ("observed", "predicted", "difference", "low", "high", "offset")
    numbers = {name: rng.normal(size=n) for name in names}
    numbers |= {"n": np.arange(n, dtype=float), "q_value": np.linspace(0.0, 1.0, n)}
    return {"site": Levels(np.array([f"level {k}" for k in range(n)]), numbers)}


def test_levels_are_sorted_searched_and_cut_into_pages():
    tables = levels(250)
    by_size = fields_page(tables, {}, AskedLevels(order="size"))
    sizes = [abs(row.difference) for row in by_size.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert (by_size.n_pages, len(by_size.rows)) == (3, PAGE_ROWS)
    beyond = fields_page(tables, {}, AskedLevels(page=99))
    assert (beyond.asked.page, beyond.first_row, len(beyond.rows)) == (3, 201, 50)
    found = fields_page(tables, {}, AskedLevels(search="LEVEL 24"))
    assert found.n_found == 11
    assert fields_page(tables, {}, AskedLevels(search="nowhere")).rows == ()


def test_a_field_has_its_error_beside_the_floor():
    metrics = {"val_field_ece_site": 0.1, "val_field_floor_site": 0.04}
    (summary,) = fields_page(levels(20), metrics, AskedLevels()).fields
    assert (summary.ece, summary.floor, summary.rce) == (0.1, 0.04, None)
    assert (summary.n_levels, summary.n_off) == (20, 1)


def record(step: int, mse: float, *, trusted: bool = True, realized: float | None = None):
    estimate = MSEEstimate(mse, 0.5 * mse, 2.0 * mse, {}, trusted, ("why",) * (not trusted), 10)
    return BatchRecord(str(step), step, 1_772_000_000_000 + step, 10, estimate.to_dict()).mark(
        realized=realized
    )


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([], "watch"),
        ([record(0, 1.0)], "fine"),
        ([record(0, 1.0, realized=1.1), record(1, 1.0)], "fine"),
        ([record(0, 1.0, realized=9.0), record(1, 1.0)], "watch"),
        ([record(0, 1.0, realized=9.0), record(1, 1.0, realized=9.0)], "act"),
        ([record(0, 1.0, trusted=False)], "watch"),
    ],
)
def test_the_state_of_a_version_is_that_of_its_latest_batches(records, state):
    row = version_row(MonitoredVersion("m", "1", "1", "r", tuple(records)), NOW)
    assert row.state.verdict == state
    assert (row.line is None) == (not records)


SERIES = {
    "inside": [record(0, 1.0, realized=1.1), record(1, 1.0)],
    "above once": [record(0, 1.0, realized=9.0), record(1, 1.0)],
    "doubtful": [record(0, 1.0), record(1, 1.0, trusted=False)],
    "no labels": [record(0, 1.0)],
}


@pytest.mark.parametrize("fail_above", [None, 0.01, 0.8, 1.05, 3.0, 99.0])
@pytest.mark.parametrize("name", SERIES)
def test_page_report_and_gate_give_one_verdict(name, fail_above):
    records = SERIES[name]
    row = version_row(_version(records, fail_above), NOW)
    assert row.state == state_of(records, fail_above)
    code, _ = judged(records, fail_above)
    assert (code == "above") <= (row.state.verdict == "act")
    assert (code == "not trusted") <= (row.state.verdict == "watch")
    assert (row.state.verdict == "fine") <= (code == "fine")


@pytest.mark.parametrize("template", ["model.html", "models.html"])
def test_a_threshold_is_a_line_and_words_and_what_lies_above_it_is_not_fine(template):
    def page(fail_above):
        row = version_row(_version([record(0, 1.0)], fail_above), NOW)
        values = {"static": inlined(), "row": row, "rows": [row]}
        return Templates().render(template, Links("", None), values)

    above = page(0.01)
    assert "✗ act" in above
    assert "the interval of 2026-02-25 lies above 0.01" in above
    assert "threshold 0.01" in above
    assert '<line class="threshold"' in above
    assert "✓ fine" not in above
    without = page(None)
    assert "✓ fine" in without
    assert '<line class="threshold"' not in without


def _version(records, fail_above) -> MonitoredVersion:
    return MonitoredVersion("m", "1", "1", "r", tuple(records), fail_above=fail_above)


def test_a_threshold_far_above_all_errors_stays_in_the_picture():
    line = version_row(_version([record(0, 1.0)], 99.0), NOW).line
    assert 0.0 < line.threshold < line.points[0].high


def test_a_time_line_has_ticks_at_equal_steps_and_counts_the_intervals_that_it_cuts():
    records = [*(record(step, 1.0) for step in range(7)), record(7, 1.0, trusted=False)]
    wide = records[-1]
    records[-1] = wide.mark(estimate={**wide.estimate, "high": 50.0})
    line = version_row(MonitoredVersion("m", "1", "1", "r", tuple(records)), NOW).line
    assert [tick.timestamp % 10 for tick in line.times] == [1, 3, 5, 7]
    assert (line.n_cut, line.points[-1].high, line.points[0].high > 0.0) == (1, 0.0, True)


def configuration(number: int, mean: float, by: int | None = None, **params) -> Configuration:
    return Configuration(number, params, mean, 0.01, 3, by)


def test_the_selected_configuration_stands_first_and_the_eliminated_ones_last():
    found = (
        configuration(0, 0.1, by=2, rate="0.001"),
        configuration(1, 0.2, rate="0.1"),
        configuration(2, 0.3, rate="1"),
    )
    page = study_page(Study("s", "loss", found, 2, 0.1, None, 9, 0, None))
    assert [line.configuration.number for line in page.lines] == [2, 1, 0]
    assert [line.state for line in page.lines] == ["selected", "finished", "eliminated"]
    assert page.panels[0].logarithmic
    assert page.n_eliminated == 1
    assert page.confirmed == ""


def test_a_study_without_a_result_has_a_page():
    page = study_page(Study("s", "", (), None, None, None, 0, 0, None))
    assert (page.lines, page.panels) == ((), ())


def test_parameters_that_are_not_drawn_are_counted():
    params = [{f"p{k}": value for k in range(15)} for value in (1.0, 2.0)]
    found = tuple(Configuration(n, one, 0.5, None, 1, None) for n, one in enumerate(params))
    page = study_page(Study("s", "loss", found, None, None, None, 0, 0, None))
    assert (len(page.panels), page.n_panels_hidden) == (12, 3)


def test_a_long_strip_keeps_its_ends():
    values = np.random.default_rng(0).normal(size=1_000).tolist()
    axis = Axis.over(values)
    drawn = strip(Spread.of(values), axis, 0.0, 100.0)
    assert len(drawn.dots) == MOST_DOTS
    assert drawn.n_hidden == 1_000 - MOST_DOTS
    assert (drawn.dots[0].x, drawn.dots[-1].x) == (axis.at(min(values)), axis.at(max(values)))


def test_an_axis_over_equal_values_has_a_width():
    for value in (0.0, 3.0, -2.0, 1e300):
        axis = Axis.over([value])
        assert 0.0 < axis.at(value) < 100.0
        assert axis.ticks()


def test_what_somebody_wrote_into_a_batch_is_no_number():
    odd = record(0, 1.0)
    odd = odd.mark(
        estimate={**odd.estimate, "mse": "<b>", "low": None, "reasons": 7}, realized="much"
    )
    labelled = record(2, 1.0, realized=1.0).mark(raw={"reference": "<b>"})
    assert version_row(_version([labelled], None), NOW).state.verdict == "fine"
    half = record(1, 1.0)
    half = half.mark(estimate={**half.estimate, "high": float("inf")})
    row = version_row(MonitoredVersion("m", "1", "1", "r", (odd, half)), NOW)
    assert len(row.line.points) == 1
    assert row.last_realized is None
    assert version_row(MonitoredVersion("m", "1", "1", "r", (odd,)), NOW).line is None
    links = Links("", None)
    page = Templates().render("model.html", links, {"static": inlined(), "row": row})
    assert "&lt;b&gt;" not in page


def test_a_study_in_a_storage_shows_what_was_confirmed():
    study = six_trials()
    storage, name = study._storage, study.study_name
    assert study_page(stored_study(storage, name)).confirmed == ""
    confirmed = confirm(study, train)
    assert stored_study(storage, name).confirmed == (confirmed.mean, confirmed.low, confirmed.high)
    assert study_page(stored_study(storage, name)).confirmed != ""


@pytest.mark.parametrize(
    ("higher", "said"),
    [
        (None, "the name of auc says that higher is better"),
        (True, "Higher auc is better."),
        (False, "Lower auc is better."),
    ],
)
def test_the_page_of_an_experiment_says_which_direction_is_better(higher, said):
    runs = [
        StoredRun(f"r{seed}", "1", "r", "FINISHED", 1, 2, {"seed": str(seed)}, {}, {"auc": 0.8})
        for seed in range(3)
    ]
    page = experiment_page(runs, Choice(higher=higher))
    content = {"static": inlined(), "page": page}
    text = Templates().render("experiment_table.html", Links("", None), content)
    assert said in text
    chosen = {"page": page, "orders": (), "groupings": (), "shell": SHELL}
    form = Templates().render("experiment.html", Links("", None), chosen)
    assert ('<option value="" selected>not said</option>' in form) == (higher is None)
    assert ('<option value="higher" selected>' in form) == (higher is True)
    assert ('<option value="lower" selected>' in form) == (higher is False)
