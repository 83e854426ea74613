"""A value that is refused is found in its file, on its line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from trueup_cli.app import app

N = 120
RNG = np.random.default_rng(0)
P = RNG.uniform(0.1, 0.9, N).round(3)
CLICK = (RNG.random(N) < P).astype(int)
FRAME = pd.DataFrame(
    {
        "click": CLICK,
        "named": np.array(["no", "yes"])[CLICK],
        "p": P,
        "q": 1.0 - P,
        "day": pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d"),
        "site": np.array(["a", "b"])[RNG.integers(0, 2, N)],
        "note": "two\nlines",
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


def spoiled(column, value, row=100):
    frame = FRAME.astype({column: object})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("column", "value", "options"),
    [
        ("named", "maybe", ["--target", "named", "--label", "no", "--label", "yes", "--proba=p"]),
        ("day", "soon", ["--target=click", "--proba=p", "--time=day", "--split=Rolling(7d)"]),
        ("day", None, ["--target=click", "--proba=p", "--time=day", "--split=Rolling(7d)"]),
        ("p", 1.5, ["--target=click", "--proba=q", "--proba=p", "--label=0", "--label=1"]),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_of_several_files_the_one_is_named(folder, column, value, options, suffix):
    frame = spoiled(column, value)
    frame.iloc[:70].to_csv("a.csv", index=False)
    last = frame.iloc[70:].infer_objects()
    last.to_csv("b.csv", index=False) if suffix == "csv" else last.to_parquet("b.parquet")
    said = run("evaluate", "a.csv", f"b.{suffix}", *options)
    line = f" (line {1 + 2 * 31} of the file)." if suffix == "csv" else "."
    assert f"It is row 30 of b.{suffix}, counted from 0{line}\n" in said
    assert "of the data" not in said


@pytest.mark.parametrize(
    ("column", "value", "options"),
    [
        ("named", "maybe", ["--target=named", "--label=no", "--label=yes"]),
        ("day", "soon", ["--target=click", "--field=site", "--time=day"]),
        ("p", 1.5, ["--target=click"]),
    ],
)
def test_calibrate_names_the_line(folder, column, value, options):
    spoiled(column, value).to_csv("a.csv", index=False)
    said = run("calibrate", "a.csv", "--proba=p", *options)
    assert "It is row 100 of a.csv, counted from 0 (line 203 of the file).\n" in said


def test_apply_and_resample_name_the_line(folder):
    FRAME.to_csv("fine.csv", index=False)
    fitted = ["calibrate", "fine.csv", "--target=click", "--proba=p", "--output=saved"]
    assert CliRunner().invoke(app, fitted).exit_code == 0
    spoiled("p", 1.5).to_csv("a.csv", index=False)
    said = run("apply", "a.csv", "--calibrator=saved", "--proba=p", "--output=new.csv")
    assert "It is row 100 of a.csv, counted from 0 (line 203 of the file).\n" in said
    spoiled("day", "soon").to_csv("a.csv", index=False)
    learner = "sklearn.linear_model:LogisticRegression"
    said = run("resample", learner, "a.csv", "--target=click", "--features=p", "--time=day")
    assert "It is row 100 of a.csv, counted from 0 (line 203 of the file).\n" in said
