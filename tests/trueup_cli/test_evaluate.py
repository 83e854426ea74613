from __future__ import annotations

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database
from tests.warm import PYTHON

import trueup
from trueup_cli.app import app

N = 600
RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
PROBA = RNG.dirichlet([1.0, 1.0, 1.0], N)
FRAME = pd.DataFrame(
    {
        "click": Y,
        "named": np.array(["no", "yes"])[Y],
        "bought": Y == 1,
        "one": 0,
        "p": P,
        "l": np.log(P / (1 - P)),
        "site": np.arange(N) % 3,
        "id": np.arange(N) * 11,
        "day": np.arange(N) // 100,
        "w": RNG.integers(1, 4, N),
        "three": np.arange(N) % 3,
        **{f"p{i}": PROBA[:, i] for i in range(3)},
    }
)


@pytest.fixture
def preds(tmp_path):
    FRAME.iloc[:250].to_parquet(tmp_path / "part-0.parquet")
    FRAME.iloc[250:].to_csv(tmp_path / "part-1.csv", index=False)
    return str(tmp_path / "part-*")


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", *arguments])


def as_dict(*arguments):
    result = evaluate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def assert_same(found, reference):
    """Compare two evaluations; a summary of the files is within 1e-11 of the rows."""
    assert found.keys() == reference.keys()
    for key, value in reference.items():
        if isinstance(value, (float, list)):
            np.testing.assert_allclose(found[key], value, rtol=0.0, atol=1e-11, err_msg=key)
        elif key == "standard_errors":
            assert found[key] == pytest.approx(value, rel=0.0, abs=1e-11)
        else:
            assert found[key] == value, key


def expected(y, p=None, **options):
    return json.loads(json.dumps(trueup.evaluate(y, p, **options).to_dict()))


def test_json_is_the_evaluation_of_all_files(preds):
    found = as_dict(preds, "--target", "click", "--proba", "p", "--field", "site")
    assert found == expected(Y, P, fields={"site": FRAME["site"].to_numpy()})


@pytest.mark.parametrize(
    ("arguments", "evaluation"),
    [
        (["--target", "click", "--logit", "l"], lambda: expected(Y, y_logit=FRAME["l"])),
        (
            ["--target", "named", "--proba", "p", "--label", "no", "--label", "yes"],
            lambda: expected(Y, P),
        ),
        (["--target", "bought", "--proba", "p"], lambda: expected(Y, P)),
        (
            ["--target", "bought", "--proba", "p", "--label", "False", "--label", "True"],
            lambda: expected(Y, P),
        ),
        (
            ["--target", "bought", "--proba", "p", "--label", "yes", "--label", "no"],
            lambda: expected(1 - Y, P),
        ),
        (
            ["--target", "click", "--proba", "p", "--label", "1", "--label", "0"],
            lambda: expected(1 - Y, P),
        ),
        (
            ["--target", "click", "--proba", "p", "--split", "HoldOut(0.3, salt=2)"],
            lambda: expected(Y, P, split=trueup.HoldOut(0.3, salt=2)),
        ),
        (
            ["--target", "click", "--proba", "p", "--split", "Rolling(2)", "--time", "day"],
            lambda: expected(Y, P, split=trueup.Rolling(2), times=FRAME["day"]),
        ),
        (
            ["--target", "click", "--proba", "p", "--row-id", "id", "--weight", "w"],
            lambda: expected(Y, P, row_id=FRAME["id"], sample_weight=FRAME["w"]),
        ),
        (
            ["--target", "l", "--pred", "p", "--loss", "mean_squared_error"],
            lambda: expected(FRAME["l"], P, loss="mean_squared_error"),
        ),
        (
            ["--target", "three", "--proba", "p0", "--proba", "p1", "--proba", "p2"],
            lambda: expected(FRAME["three"], PROBA),
        ),
    ],
)
def test_each_option_is_the_keyword_of_evaluate(preds, arguments, evaluation):
    assert_same(as_dict(preds, *arguments), evaluation())


def test_table_shows_what_a_run_would_gain(preds):
    result = evaluate(preds, "--target", "click", "--proba", "p", "--prefix", "val_")
    assert result.exit_code == 0
    shown = {line.split()[0] for line in result.output.splitlines()[1:5]}
    assert shown == {
        "val_log_loss",
        "calibrated_val_log_loss",
        "bias_cost_val_log_loss",
        "bias_term_val_log_loss",
    }
    assert f"{N} rows, {N} scored, CrossFit(folds=5, salt=0)" in result.output


def test_table_shows_the_vanilla_value_of_the_scored_rows_where_not_all_are(preds):
    options = ["--target", "click", "--proba", "p"]
    assert "scored rows" not in evaluate(preds, *options).output
    result = evaluate(preds, *options, "--split", "HoldOut(0.3)")
    reference = trueup.evaluate(Y, P, split=trueup.HoldOut(0.3))
    lines = result.output.splitlines()
    assert lines[1].split()[:2] == ["log_loss", f"{reference.vanilla:.6f}"]
    assert lines[2].startswith("log_loss, scored rows")
    assert lines[2].split()[-1] == f"{reference.vanilla_on_scored_rows:.6f}"
    assert lines[-1] == (
        f"of the {reference.n_scored} scored rows: log_loss, scored rows = calibrated_log_loss + "
        "bias_cost_log_loss"
    )


ROLLING = ["--target", "click", "--proba", "p", "--time", "when", "--split"]


@pytest.mark.parametrize("form", ["parquet", "csv", "German"])
@pytest.mark.parametrize("period", ["7d", "168h", "'1 week'", "month"])
def test_rolling_takes_durations_and_dates(form, period, tmp_path):
    when = pd.Series(np.datetime64("2024-01-01") + np.arange(N) % 60)
    frame = FRAME.assign(when=when)
    path, options = str(tmp_path / ("a.parquet" if form == "parquet" else "a.csv")), []
    if form == "German":
        frame["when"], options = when.dt.strftime("%d.%m.%Y"), ["--time-format", "%d.%m.%Y"]
    frame.to_parquet(path) if form == "parquet" else frame.to_csv(path, index=False)
    found = as_dict(path, *ROLLING, f"Rolling({period})", *options)
    split = trueup.Rolling("month" if period == "month" else "7d")
    assert_same(found, expected(Y, P, split=split, times=when))


def test_a_time_that_the_split_does_not_read_is_said(tmp_path):
    path = str(tmp_path / "a.parquet")
    FRAME.assign(when=np.arange(N)).to_parquet(path)
    assert (
        "warning: --time has no effect with InSample()."
        in evaluate(path, *ROLLING, "InSample").stderr
    )
    assert "warning" not in evaluate(path, *ROLLING, "Rolling(200)").stderr


def test_dates_are_never_guessed_and_a_period_of_dates_has_a_unit(tmp_path):
    path = str(tmp_path / "a.csv")
    when = pd.Series(np.datetime64("2024-01-01") + np.arange(N) % 60)
    FRAME.assign(when=when.dt.strftime("%d/%m/%Y")).to_csv(path, index=False)
    refused = evaluate(path, *ROLLING, "Rolling(7d)")
    assert refused.exit_code == 2
    assert "got '01/01/2024' at index 0" in refused.output
    assert "--time-format" in refused.output
    FRAME.assign(when=when).to_csv(path, index=False)
    refused = evaluate(path, *ROLLING, "Rolling(30)")
    assert refused.exit_code == 2
    assert 'such as "30d"' in refused.output


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_fields_of_large_files_are_summed_up_in_batches(form, tmp_path, monkeypatch):
    monkeypatch.setattr("trueup_cli.evaluate._LARGE_BYTES", 0)
    monkeypatch.delattr("trueup_cli.evaluate.read_columns")  # no column is read as a whole
    path = str(tmp_path / f"large.{form}")
    FRAME.to_parquet(path) if form == "parquet" else FRAME.to_csv(path, index=False)
    found = as_dict(path, "--target", "click", "--proba", "p", "--field", "site")
    measured = trueup.evaluate(Y, P, fields={"site": FRAME["site"].to_numpy()}).fields["site"]
    for name in ("ece", "rce", "floor"):
        assert found["fields"]["site"][name] == pytest.approx(getattr(measured, name), abs=1e-9)
    text = evaluate(path, "--target", "click", "--proba", "p", "--field", "site")
    assert f"{measured.floor:.6f}" in str(getattr(text, "output", text))


def test_table_shows_the_error_of_a_field_beside_that_of_a_perfect_model(preds):
    result = evaluate(preds, "--target", "click", "--proba", "p", "--field", "site")
    measured = trueup.evaluate(Y, P, fields={"site": FRAME["site"]}).fields["site"]
    lines = {line.split()[0]: line.split()[1:] for line in result.output.splitlines()[1:]}
    assert result.output.splitlines()[0].endswith("perfect model")
    assert lines["field_ece_site"] == [f"{measured.ece:.6f}", f"{measured.floor:.6f}"]
    assert lines["field_rce_site"] == [f"{measured.rce:.6f}", f"{measured.rce_floor:.6f}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "click"], "exactly one of --proba, --logit and --pred must be given; got 0"),
        (["--target", "click", "--proba", "p", "--logit", "l"], "must be given; got 2"),
        (["--target", "click", "--proba", "q"], "column 'q' must be in"),
        (["--target", "click", "--proba", "l"], "--proba 'l' must be in [0, 1]; got"),
        (["--target", "click", "--proba", "l"], "as --logit."),
        (["--target", "click", "--proba", "p", "--split", "Fold(3)"], "split must be one of"),
        (
            ["--target", "named", "--proba", "p"],
            "--target 'named' must be 0 and 1, or --label must",
        ),
        (["--target", "named", "--proba", "p"], "Pass --label NEGATIVE --label POSITIVE."),
        (
            ["--target", "named", "--proba", "p", "--label", "a", "--label", "yes"],
            "--target 'named' must be one of ['a', 'yes']; got",
        ),
        (
            ["--target", "click", "--proba", "p", "--label", "a", "--label", "b"],
            "--label must be numbers, as the column of the labels is; got ['a', 'b']. "
            "It holds 0, 1.",
        ),
        (
            ["--target", "bought", "--proba", "p", "--label", "a", "--label", "b"],
            "--label must be true and false",
        ),
        (
            ["--target", "click", "--proba", "p", "--label", "1"],
            "--label must name two classes, the positive one last; got [1.0]. "
            "Pass --label NEGATIVE --label POSITIVE.",
        ),
        (["--target", "click", "--proba", "p", "--row-id", "l"], "--row-id 'l' must be integers"),
        (["--target", "click", "--proba", "p", "--weight", "l"], "--weight 'l' must not be neg"),
        (
            ["--target", "one", "--proba", "p"],
            "--target 'one' must hold more than one class; got 600 rows in which all labels are "
            "the same (0).",
        ),
        (
            ["--target", "click", "--proba", "p", "--split", "Rolling(2)"],
            "--time must be given with Rolling; got None.",
        ),
        (["--target", "click", "--logit", "l", "--loss", "mean_squared_error"], "Pass --pred."),
        (["--target", "click", "--proba", "p", "--time", "day", "--split", "Rolling(999)"], "two"),
        (["--target", "click", "--proba", "p", "--loss", "auc"], "Invalid value for '--loss'"),
        (["--proba", "p"], "Missing option '--target'"),
        (
            ["--target", "click", "--proba", "p", "--log-to-mlflow", "x", "--experiment", "y"],
            "exclude each other",
        ),
    ],
)
def test_bad_input_ends_with_two_and_one_line(preds, arguments, message):
    result = evaluate(preds, *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("more", [(), ("--field", "p"), ("--label", "0", "--label", "1")])
def test_a_file_without_rows_is_named(tmp_path, more):
    path = tmp_path / "no_rows.csv"
    path.write_text("click,p\n")
    result = evaluate(str(path), "--target", "click", "--proba", "p", *more)
    assert result.exit_code == 2
    assert f"files must hold at least one row; got none in {path}." in result.output


def test_the_command_itself_prints_one_line_and_no_traceback(tmp_path):
    command = [PYTHON, "-c", "from trueup_cli import main; main()", "evaluate"]
    command += [str(tmp_path / "no.parquet"), "--target", "y", "--proba", "p"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("Error: FILES must name files; got")
    assert len(run.stderr.splitlines()) == 1


def test_warnings_are_one_line_on_standard_error(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"y": Y, "p": P.round()}).to_csv(path, index=False)
    result = evaluate(str(path), "--target", "y", "--proba", "p", "--json")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"warning: {N} predictions are ")
    assert json.loads(result.stdout)["n"] == N


def test_files_are_summed_up_batch_by_batch_with_one_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("trueup.read.files._BATCH_ROWS", 100)
    monkeypatch.setattr("trueup_cli.evaluate.read_columns", None)  # whole columns are not read
    path, certain = tmp_path / "a.parquet", P.copy()
    certain[[50, 350]] = 1.0 - Y[[50, 350]]
    pd.DataFrame({"y": Y, "p": certain}).to_parquet(path)
    result = evaluate(str(path), "--target", "y", "--proba", "p", "--json")
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()  # and no progress bar: this is no terminal
    assert line.startswith("warning: 2 predictions are ")
    with pytest.warns(trueup.errors.TrueupWarning):
        assert_same(json.loads(result.stdout), expected(Y, certain))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    uri = new_database(folder)
    MlflowClient(uri).create_experiment("tests", artifact_location=(folder / "files").as_uri())
    return uri


def test_result_is_logged_to_a_run_when_asked(preds, store):
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("tests").experiment_id
    run_id = client.create_run(experiment).info.run_id
    options = ["--target", "click", "--proba", "p", "--tracking-uri", store]
    options += ["--prefix", "val_", "--step", "3", "--field", "site"]
    result = evaluate(preds, *options, "--log-to-mlflow", run_id)
    assert result.exit_code == 0, result.output
    assert run_id in result.stderr
    run = client.get_run(run_id)
    evaluation = trueup.evaluate(Y, P)
    assert run.data.metrics["calibrated_val_log_loss"] == evaluation.calibrated
    assert run.data.tags["trueup.fingerprint.val_log_loss"] == evaluation.fingerprint
    assert client.get_metric_history(run_id, "val_log_loss")[0].step == 3
    assert [entry.path for entry in client.list_artifacts(run_id, "trueup")] == [
        "trueup/fields_val_log_loss.parquet",
        "trueup/fields_val_log_loss.png",
    ]


def test_result_is_logged_to_a_new_run_of_an_experiment(preds, store):
    options = ["--target", "click", "--proba", "p", "--tracking-uri", store]
    for _ in range(2):
        assert evaluate(preds, *options, "--experiment", "from files").exit_code == 0
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name("from files").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert all("calibrated_log_loss" in run.data.metrics for run in runs)


def test_a_run_that_does_not_exist_is_bad_input(preds, store):
    options = ["--target", "click", "--proba", "p", "--tracking-uri", store]
    result = evaluate(preds, *options, "--log-to-mlflow", "0" * 32)
    assert result.exit_code == 2
    assert f"Run with id={'0' * 32} not found. The store is {store}" in result.stderr


def test_a_result_that_cannot_be_logged_is_no_success(preds, store):
    options = ["--target", "click", "--proba", "p", "--tracking-uri", store]
    result = evaluate(preds, *options, "--experiment", "refused", "--prefix", "a=")
    assert result.exit_code == 2
    assert "could not be logged" in result.stderr


@pytest.mark.parametrize("other", [["--proba", "id"], ["--proba", "p", "--weight", "id"]])
def test_one_column_is_not_the_ids_and_something_else(other, tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    refused = evaluate(
        str(tmp_path / "a.parquet"), "--target", "click", "--row-id", "id", *other, "--label", "0"
    )
    assert refused.exit_code == 2
    assert "--row-id must name another column than" in refused.stderr
    assert "got 'id' for two of them" in refused.stderr
