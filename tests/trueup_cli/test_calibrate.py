"""``trueup calibrate`` on files."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.special import expit
from tests.databases import new_database

from trueup.calibrators import (
    PlattCalibrator,
    ShiftCalibrator,
    compare_calibrators,
    load_calibrator,
)
from trueup.calibrators.judging.compare import default_calibrators
from trueup_cli.calibrate import _NAMES, calibrate


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(0)
    n = 4000
    margin, site = rng.normal(size=n), rng.integers(0, 6, n)
    y = (rng.random(n) < expit(margin + np.linspace(-1.0, 1.0, 6)[site])).astype(int)
    frame = pd.DataFrame({"y": y, "p": expit(margin), "site": site, "day": np.arange(n)})
    path = tmp_path / "predictions.parquet"
    frame.to_parquet(path)
    return path


def run(*arguments):
    return CliRunner().invoke(calibrate, [str(argument) for argument in arguments])


def columns(path):
    return (path, "--target", "y", "--proba", "p", "--field", "site")


def test_fits_reports_and_saves(predictions, tmp_path):
    result = run(*columns(predictions), "--time", "day", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "field_offset: kept" in result.output
    loaded = load_calibrator(tmp_path / "out")
    assert loaded.decision_.n_fit == 2000
    low, high = loaded.predict_proba([0.5, 0.5], fields={"site": np.array([0, 5])})[:, 1]
    assert low < 0.4 < 0.6 < high


def test_without_a_guard_nothing_is_checked(predictions):
    result = run(*columns(predictions), "--no-guard", "--calibrator", "platt")
    assert result.output == "platt: fitted without a guard\n"


def test_reads_csv(predictions):
    csv = predictions.with_suffix(".csv")
    pd.read_parquet(predictions).to_csv(csv, index=False)
    assert run(*columns(csv), "--calibrator", "shift").exit_code == 0


def test_compare_prints_the_table_and_logs_it(predictions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = new_database(tmp_path)
    result = run(*columns(predictions), "--compare", "--log", "--tracking-uri", uri)
    try:
        assert result.exit_code == 0, result.output
        assert "| field_offset |" in result.output
        (logged,) = mlflow.MlflowClient(uri).search_runs(["0"])
        metrics, tags = logged.data.metrics, logged.data.tags
        assert metrics["calibrator_field_offset_field_ece"] < metrics["calibrator_base_field_ece"]
        assert tags["trueup.guard.field_offset"] == "kept"
        assert len([key for key in metrics if key.startswith("calibrator_")]) == 7 * 10
        names = [
            file.path
            for file in mlflow.MlflowClient(uri).list_artifacts(logged.info.run_id, "trueup")
        ]
        assert names == ["trueup/calibrators.md"]
    finally:
        mlflow.set_tracking_uri(None)  # back to the environment


def test_a_run_tells_what_each_origin_said(predictions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = new_database(tmp_path)
    try:
        run(*columns(predictions), "--time", "day", "--compare", "--calibrator", "platt",
            "--log", "--tracking-uri", uri)  # fmt: skip
        client = mlflow.MlflowClient(uri)
        (logged,) = client.search_runs(["0"])
        files = {file.path for file in client.list_artifacts(logged.info.run_id, "trueup")}
        assert files == {"trueup/calibrators.md", "trueup/calibrators.png"}
        text = client.download_artifacts(logged.info.run_id, "trueup/calibrators.md", str(tmp_path))
        assert "| fitted up to | checked up to |" in Path(text).read_text()
    finally:
        mlflow.set_tracking_uri(None)  # back to the environment


def test_a_column_that_is_not_there_is_named(predictions):
    result = run(predictions, "--target", "label", "--proba", "p")
    assert result.exit_code == 2
    assert f"column 'label' must be in {predictions}; got y, p, site, day" in result.output


def test_an_empty_file_is_bad_input(tmp_path):
    path = tmp_path / "nothing.csv"
    path.touch()
    result = run(path, "--target", "y", "--proba", "p")
    assert result.exit_code == 2
    assert f"{path} must be a readable file; got Empty CSV file." in result.output
    path.write_text("y,p\n")
    result = run(path, "--target", "y", "--proba", "p")
    assert f"files must hold at least one row; got none in {path}." in result.output


def test_without_a_field_one_bias_is_fitted_and_a_refused_one_is_said_to_change_nothing(
    predictions, tmp_path
):
    result = run(predictions, "--target", "y", "--proba", "p", "--output", tmp_path / "out")
    assert result.output.startswith("shift: not kept")
    assert "which returns the probabilities unchanged" in result.output
    saved = load_calibrator(tmp_path / "out")
    assert saved.predict_proba([0.3])[0, 1] == pytest.approx(0.3, abs=1e-15)


def test_wrong_probabilities_are_named(predictions):
    result = run(predictions, "--target", "y", "--proba", "day", "--calibrator", "shift")
    assert result.exit_code == 2
    assert "--proba 'day' must hold probabilities" in result.output


def test_compare_needs_a_field(predictions):
    result = run(predictions, "--target", "y", "--proba", "p", "--compare")
    assert result.exit_code == 2
    assert "--field must be given" in result.output


def test_compare_shows_the_calibrators_that_were_chosen(predictions):
    chosen = ("--calibrator", "temperature", "--calibrator", "field-offset")
    result = run(*columns(predictions), "--compare", *chosen)
    assert result.exit_code == 0, result.output
    shown = [line.split("|")[1].strip() for line in result.output.splitlines()[2:]]
    assert shown == ["base", "temperature", "field_offset"]


def test_every_name_of_the_table_can_be_chosen_and_no_other():
    assert [*default_calibrators("site")] == [*_NAMES]
    result = run("--help")
    assert all(name in result.output for name in _NAMES)


def test_several_calibrators_need_compare(predictions):
    result = run(*columns(predictions), "--calibrator", "platt", "--calibrator", "shift")
    assert result.exit_code == 2
    assert "--calibrator must be given once without --compare; got 2" in result.output


def test_one_field_is_needed_where_the_network_reads_it_alone(predictions):
    bare = (predictions, "--target", "y", "--proba", "p", "--calibrator", "neural_field_only")
    result = run(*bare)
    assert result.exit_code == 2
    assert "--field must be given with neural_field_only" in result.output


def test_labels_other_than_0_and_1_are_named(predictions):
    result = run(predictions, "--target", "site", "--proba", "p", "--field", "site", "--compare")
    assert result.exit_code == 2
    assert "--target 'site' must be 0 or 1; got" in result.output
    assert "Pass --label NEGATIVE --label POSITIVE" in result.output


@pytest.mark.parametrize(
    "more", [("--calibrator", "platt"), ("--calibrator", "shift", "--compare")]
)
def test_named_and_boolean_labels_are_those_of_0_and_1(predictions, more):
    frame = pd.read_parquet(predictions)
    frame.assign(
        named=frame["y"].map({0: "no", 1: "yes"}),
        true=frame["y"] == 1,
    ).to_parquet(predictions)
    rest = ("--proba", "p", "--field", "site", *more)
    expected = run(predictions, "--target", "y", *rest).output
    named = run(predictions, "--target", "named", "--label", "no", "--label", "yes", *rest)
    assert (named.exit_code, named.output) == (0, expected)
    assert run(predictions, "--target", "true", *rest).output == expected
    unnamed = run(predictions, "--target", "named", *rest)
    assert unnamed.exit_code == 2
    assert "or --label must name the classes" in unnamed.output


def test_without_times_both_commands_say_that_the_rows_are_random(predictions):
    fitted, compared = (
        run(*columns(predictions), *more) for more in ((), ("--compare", "--calibrator", "shift"))
    )
    assert "the halves are random: name the column of time with --time" in fitted.output
    assert "| method, on 2000 other random rows |" in compared.output
    assert "| guard, on 2000 random rows |" in compared.output
    timed = run(*columns(predictions), "--time", "day", "--compare", "--calibrator", "shift")
    assert "| guard, on 2000 earlier rows |" in timed.output


def test_origins_are_shown_in_a_table_and_a_figure(predictions, tmp_path):
    figure = tmp_path / "origins.png"
    result = run(*columns(predictions), "--time", "day", "--figure", figure)
    assert "| fitted up to | checked up to |" in result.output
    assert "| 1999 | 2249 | 250 |" in result.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    several = ("--compare", "--calibrator", "platt", "--calibrator", "shift")
    assert run(*columns(predictions), "--time", "day", *several, "--figure", figure).exit_code == 0
    assert "--figure must come with --time" in run(*columns(predictions), "--figure", figure).output


def test_text_dates_are_read_in_iso_or_a_format(predictions):
    frame = pd.read_parquet(predictions)
    days = np.datetime64("2018-01-01") + frame["day"].to_numpy() // 10
    frame.assign(
        iso=days.astype(str), month=pd.Series(days).dt.strftime("%b-%Y"), day=days
    ).to_parquet(predictions)
    by_day = run(*columns(predictions), "--time", "day").output
    assert run(*columns(predictions), "--time", "iso").output == by_day
    refused = run(*columns(predictions), "--time", "month")
    assert refused.exit_code == 2
    assert "--time must be numbers or datetimes, or text in ISO 8601" in refused.output
    for more in ((), ("--compare", "--calibrator", "shift")):
        read = run(*columns(predictions), "--time", "month", "--time-format", "%b-%Y", *more)
        assert read.exit_code == 0, read.output


def test_integer_weights_equal_repeated_rows(predictions, tmp_path):
    frame = pd.read_parquet(predictions)
    weight = np.random.default_rng(1).integers(0, 4, len(frame))
    frame.assign(w=weight).to_parquet(predictions)
    repeated = tmp_path / "repeated.parquet"
    frame.loc[frame.index.repeat(weight)].to_parquet(repeated)
    plain = ("--calibrator", "shift", "--no-guard", "--table")
    run(*columns(predictions), "--weight", "w", *plain, tmp_path / "a.csv")
    run(*columns(repeated), *plain, tmp_path / "b.csv")
    first, second = (pd.read_csv(tmp_path / f"{name}.csv")["value"] for name in "ab")
    np.testing.assert_allclose(first, second, rtol=1e-10)
    compared = run(*columns(predictions), "--weight", "w", "--compare", "--calibrator", "shift")
    assert compared.exit_code == 0, compared.output
    assert run(*columns(predictions), "--weight", "v").exit_code == 2


def test_the_priority_reaches_the_guard(predictions):
    result = run(*columns(predictions), "--time", "day", "--priority", "log_loss")
    assert "field_offset: kept" in result.output
    assert run(*columns(predictions), "--priority", "auc").exit_code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--follow",), "--follow must come with --time"),
        (("--follow", "--time", "day", "--no-guard"), "--follow must come with the guard"),
        (("--time-format", "%Y"), "--time-format must come with --time"),
        (("--log",), "--log must come with --compare"),
        (("--compare", "--output", "x"), "--output must be left out with --compare"),
        (("--table", "x.txt"), "--table must be a .json or .csv file"),
        (
            ("--table", "x.csv", "--calibrator", "isotonic", "--no-guard"),
            "calibrator must be of two classes",
        ),
    ],
)
def test_options_that_would_do_nothing_are_refused(predictions, options, message):
    result = run(*columns(predictions), *options)
    assert result.exit_code == 2
    assert message in result.output


def test_decision_and_table_are_told_as_json(predictions, tmp_path):
    result = run(*columns(predictions), "--json", "--output", tmp_path / "out")
    decision = json.loads(result.stdout)["decision"]
    assert decision["kept"] is load_calibrator(tmp_path / "out").decision_.kept
    assert "saved to" in result.stderr
    chosen = ("--calibrator", "shift", "--calibrator", "isotonic")
    table = json.loads(run(*columns(predictions), "--compare", *chosen, "--json").stdout)
    assert [score["name"] for score in table["scores"]] == ["base", "shift", "isotonic"]


def test_the_table_goes_to_an_experiment_or_a_run(predictions, tmp_path):
    uri = new_database(tmp_path)
    asked = (*columns(predictions), "--compare", "--calibrator", "shift", "--tracking-uri", uri)
    result = run(*asked, "--experiment-name", "compared", "--prefix", "val_")
    assert result.exit_code == 0, result.output
    client = mlflow.MlflowClient(uri)
    home = client.get_experiment_by_name("compared").experiment_id
    (made,) = client.search_runs([home])
    assert made.info.status == "FINISHED"
    assert any(key.startswith("val_calibrator_shift") for key in made.data.metrics)
    run_id = client.create_run(home).info.run_id
    assert f"logged to run {run_id}" in run(*asked, "--log-to-mlflow", run_id).stderr
    assert "calibrator_shift_log_loss" in client.get_run(run_id).data.metrics
    alone = run(*columns(predictions), "--experiment-name", "compared", "--tracking-uri", uri)
    assert "--experiment-name must come with --compare" in alone.output


def test_each_calibrator_of_a_table_is_a_step_of_the_bar():
    rng, steps = np.random.default_rng(0), []
    p = rng.uniform(0.1, 0.6, 400)
    two = {"shift": ShiftCalibrator(), "platt": PlattCalibrator()}
    compare_calibrators(
        rng.random(400) < p,
        p,
        {"site": rng.choice(["a", "b"], 400)},
        field="site",
        shuffle=True,
        calibrators=two,
        on_score=lambda: steps.append(1),
    )
    assert len(steps) == len(two)
