"""``trueup calibrate`` on files."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.special import expit

from trueup.calibrators import load_calibrator
from trueup.calibrators.compare import default_calibrators
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
    uri = f"sqlite:///{tmp_path / 'store.db'}"
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
