"""Every option and argument of the command line, given texts that nobody meant."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pandas as pd
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression
from tests.trueup_mlflow.monitored import draw, register

from trueup.calibrators import ShiftCalibrator
from trueup_cli.app import app
from trueup_mlflow import monitor

SECRET = "Ter2"
ODD_TEXTS = (
    *("", " ", "x", "-", "--", "-1", "0", "nan", "-inf", "1e400", "1" * 400, f"{'9' * 400}d"),
    *("0x10", "1_0", "½", "None", "[]", "{}", "[" * 3000, "%", "%Q", "'", '"', "\n", "*", "**/*"),
    *("CrossFit(0)", "Rolling('x')", "InSample()", "2024-02-30", "y", "y,p", "param:", "param:`"),
    *("\x1b[2J", "\u202e", "\udcff", "../x", "a/b", "a" * 5000, "'; drop", "os:system"),
    *("models:/", "models:/x/1", "models:/demand/99", "sqlite://", "sqlite:////dev/null/x.db"),
    f"nosuch://me:{SECRET}@host/x",
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "evaluate": ("rows.csv", "--target", "y", "--proba", "p"),
    "calibrate": ("rows.csv", "--target", "y", "--proba", "p", "--no-guard"),
    "apply": ("rows.csv", "--calibrator", "shift", "--proba", "p", "--output", "out.csv"),
    "backfill": ("--experiment-name", "none"),
    "compare": ("params.a = '1'", "params.a = '2'", "--metric", "m"),
    "doctor": (),
    "report": ("none", "--output", "page.html"),
    "resample": (
        *("sklearn.linear_model:LogisticRegression", "rows.csv"),
        *("--target", "y", "--folds", "2"),
    ),
    "monitor status": (),
    "monitor init": ("models:/demand/2", "--reference", "demand.csv", "--target", "y"),
    "monitor run": ("models:/demand/1", "--batch", "demand.csv"),
    "monitor realize": ("models:/demand/1", "--labels", "demand.csv"),
    "monitor report": ("models:/demand/1", "--out", "page.html"),
    "monitor watch": ("models:/demand/1", "inbox", "--once"),
    "monitor compare": (
        *("models:/demand@champion", "models:/demand/2"),
        *("--batch", "demand.csv"),
    ),
    "tune report": ("--storage", "study.log", "--study-name", "s"),
    "tune run": ("none.py", "--storage", "study.log", "--study-name", "s"),
}
"""What is run without an odd value; it may be refused, where nothing is registered."""


def command_calls() -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each call: one option or argument in each is odd."""
    for name, usual in COMMANDS.items():
        words = tuple(name.split())
        for option in _options(words):
            for odd in ODD_TEXTS:
                yield (*words, *usual, option, odd)
        for at in (i for i, word in enumerate(usual) if not word.startswith("--")):
            for odd in ODD_TEXTS[:-1]:  # MLflow takes a filter apart, and a password in it
                yield (*words, *usual[:at], odd, *usual[at + 1 :])


def _options(words: Sequence[str]) -> list[str]:
    command: click.Command = app
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, words
        command = found
    options = [param for param in command.params if isinstance(param, click.Option)]
    return [option.opts[0] for option in options if not option.is_flag]


@contextlib.contextmanager
def in_command_folder(folder: Path, *, registered: bool = False) -> Iterator[None]:
    """Work in a folder with rows, a calibrator and a store, empty or with a monitored model."""
    before, variables = Path.cwd(), dict(os.environ)
    work = folder / "deep" / "work"  # "../x" stays inside
    (work / "inbox").mkdir(parents=True)
    p = np.linspace(0.1, 0.9, 60)
    rows = {"y": np.arange(60) % 2, "p": p, "site": np.arange(60) % 3}
    pd.DataFrame(rows).to_csv(work / "rows.csv", index=False)
    ShiftCalibrator().fit(p, rows["y"]).save(work / "shift")
    os.chdir(work)
    os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{work}/mlflow.db"
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
    draw(100, start=1000).to_csv(work / "demand.csv", index=False)
    try:
        if registered:
            _register(work)
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)


def _register(work: Path) -> None:
    MlflowClient().create_experiment("models", artifact_location=(work / "files").as_uri())
    MlflowClient().create_experiment("trueup/demand", artifact_location=(work / "files").as_uri())
    os.environ["MLFLOW_EXPERIMENT_NAME"] = "models"
    train = draw(400, seed=1)
    for _ in range(2):
        register(LinearRegression().fit(train[["a", "b"]], train["y"]), "demand")
    MlflowClient().set_registered_model_alias("demand", "champion", "1")
    monitor.init("models:/demand/1", draw(400, seed=2), target="y", row_id="id")


def failure_of(call: Sequence[str]) -> str | None:
    """Return what a command did that it must not: it may refuse in a few lines, and no more."""
    import_module("mlflow").set_tracking_uri(None)
    result = CliRunner().invoke(app, list(call))
    output = result.output
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return repr(result.exception)
    if result.exit_code not in (0, 1, 2, 3):
        return f"exit code {result.exit_code}"
    for unwanted in ("Traceback", "\x1b", "\u202e", SECRET):
        if unwanted in output:
            return f"{unwanted!r} in {output[:500]!r}"
    return None
