from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import click
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient

import trueup
from trueup_cli.app import COMMANDS, app


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    uri = f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"
    MlflowClient(uri).create_experiment("tests")
    return uri


def run_without(package, *arguments):
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv[1:] = {list(arguments)!r};"
        "from trueup_cli import main; main()"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_lists_every_command_and_imports_none():
    code = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "from trueup_cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print(*(set(sys.modules) & {'mlflow', 'pyarrow', 'pandas', 'numpy', 'torch'}), 'end')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in run.stdout for name in COMMANDS)
    assert run.stdout.splitlines()[-1] == "end"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_is_a_command_with_help(name):
    command = getattr(import_module(f"trueup_cli.{COMMANDS[name][0]}"), name)
    assert isinstance(command, click.Command)
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert command.help


def test_version():
    assert (
        CliRunner().invoke(app, ["--version"]).output == f"trueup, version {trueup.__version__}\n"
    )


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["evalate"], "evaluate"),
        (["Doctor"], "doctor"),
        (["monitor", "statis"], "status"),
        (["doctor", "--jsno"], "--json"),
        (["zzz"], None),
    ],
)
def test_mistyped_word_is_bad_input_and_gets_a_suggestion(words, meant):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "No such" in result.output
    assert ("Did you mean" in result.output) == (meant is not None)
    assert meant is None or f"{meant!r}?" in result.output


@pytest.mark.parametrize("address", [None, "sqlite:///other.db", "folder", "file:./folder"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor", "abc"],
        ["compare", "a", "b", "--metric", "m"],
        ["report", "clicks", "--output", "page.html"],
        ["report", "models:/m/1", "--output", "page.html"],
        ["ui"],
        ["backfill", "abc"],
        ["monitor", "status", "models:/m/1"],
        ["monitor", "run", "models:/m/1", "--batch", "b.csv"],
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_who_reads_a_store_makes_none(arguments, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    given = [] if address is None else ["--tracking-uri", address]
    result = CliRunner().invoke(app, [*arguments, *given])
    assert result.exit_code == 2, result.output
    for word in ("must be a store that exists", address or "mlflow.db", "MLFLOW_TRACKING_URI"):
        assert word in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor", "abc"],
        ["backfill", "abc"],
        ["backfill", "--experiment-name", "nowhere"],
        ["report", "nowhere", "--output", "page.html"],
        ["compare", "params.a = 'x'", "params.a = 'y'", "--metric", "m"],
        ["compare", "a", "b", "--metric", "m", "--experiment-name", "nowhere"],
        ["monitor", "status", "models:/m/1"],
        [
            *("calibrate", "rows.csv", "--target=y", "--proba=p", "--field=f", "--compare"),
            *("--calibrator=shift", "--log-to-mlflow", "abc"),
        ],
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_what_is_not_found_names_the_store_and_how_to_choose_another(
    arguments, store, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{0.3 + i % 5 / 10},{i % 3}\n" for i in range(200))
    (tmp_path / "rows.csv").write_text("y,p,f\n" + rows)
    result = CliRunner().invoke(app, [*arguments, "--tracking-uri", store])
    assert result.exit_code == 2, result.output
    assert f"The store is {store}: MLFLOW_TRACKING_URI, or --tracking-uri" in result.output


def test_without_click_the_pip_command_is_printed():
    run = run_without("click", "--help")
    assert run.returncode == 2
    assert run.stderr == "click is not installed. Run: pip install 'trueup[cli]'\n"


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("mlflow", ["backfill", "x"], "mlflow"),
        ("pyarrow", ["evaluate", "x.csv", "--target", "y", "--proba", "p"], "files"),
    ],
)
def test_without_the_extra_of_a_command_the_pip_command_is_printed(
    package, command, extra, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("y,p\n0,0.3\n1,0.6\n")
    run = run_without(package, *command)
    assert run.returncode == 2
    assert run.stderr == f"Error: {package} is not installed. Run: pip install 'trueup[{extra}]'\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "{file}", "--target", "y", "--proba", "p"],
        ["calibrate", "{file}", "--target", "y", "--proba", "p"],
        ["resample", "sklearn.linear_model:LogisticRegression", "{file}", "--target", "y"],
        ["monitor", "init", "models:/m/1", "--reference", "{file}", "--target", "y"],
        ["monitor", "run", "models:/m/1", "--batch", "{file}"],
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_a_format_of_times_without_times_is_refused(arguments, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("y,p\n" + "0,0.2\n1,0.8\n" * 30)
    given = [argument.format(file=file) for argument in arguments]
    result = CliRunner().invoke(app, [*given, "--time-format", "%d.%m.%Y"])
    assert result.exit_code == 2, result.output
    assert "time" in result.output


def test_mistyped_names_of_metrics_and_learners_get_the_option_and_a_suggestion(tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("seeds")
    for seed in "01":
        run = client.create_run(experiment, tags={"seed": seed}).info.run_id
        client.log_metric(run, "loss", 0.5)
        client.set_terminated(run)
    arms = [f"tags.seed = '{seed}'" for seed in "01"]
    result = CliRunner().invoke(app, ["compare", *arms, "--metric", "los", "--tracking-uri", uri])
    assert result.exit_code == 2
    assert "--metric must be logged by the runs of candidate; got 'los'" in result.output
    (tmp_path / "rows.csv").write_text("y,p\n" + "0,0.2\n1,0.8\n" * 30)
    learner = "sklearn.linear_model:LogisticRegresion"
    result = CliRunner().invoke(
        app, ["resample", learner, str(tmp_path / "rows.csv"), "--target", "y"]
    )
    assert result.exit_code == 2
    assert "Did you mean LogisticRegression?" in result.output


def test_backfill_that_finds_nothing_says_what_it_looks_for(store):
    options = ["--experiment-name", "tests", "--tracking-uri", store]
    result = CliRunner().invoke(app, ["backfill", *options])
    assert "log_predictions stores them" in result.output
