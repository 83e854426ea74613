from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

import trueup
from trueup_cli.app import COMMANDS, app


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
    command = getattr(import_module(f"trueup_cli.{COMMANDS[name].module}"), name)
    assert isinstance(command, click.Command)
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert command.help


def test_version():
    assert (
        CliRunner().invoke(app, ["--version"]).output == f"trueup, version {trueup.__version__}\n"
    )


def test_unknown_command_is_bad_input():
    result = CliRunner().invoke(app, ["evalate"])
    assert result.exit_code == 2
    assert "No such command" in result.output


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
