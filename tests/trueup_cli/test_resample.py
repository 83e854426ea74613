"""``trueup resample``: the estimate of Python, from a file and the name of a learner."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from tests.databases import new_database

from trueup.resampling import generalization_error
from trueup_cli.app import app

LEARNERS = """
from sklearn.linear_model import LogisticRegression

ready = LogisticRegression()
number = 3


def make():
    return LogisticRegression()


def train(X, y):
    model = LogisticRegression().fit(X, y)
    return lambda X: model.predict_proba(X)[:, 1]


class Needy(LogisticRegression):
    def __init__(self, depth):
        self.depth = depth
"""
CLASS = "sklearn.linear_model:LogisticRegression"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    frame["click"] = (rng.random(600) < expit(frame["a"])).astype(int)
    frame["user"], frame["day"] = rng.integers(0, 30, 600), rng.permutation(600)
    frame["word"] = rng.choice(["yes", "no"], 600)
    frame.to_parquet("rows.parquet")
    (tmp_path / "learners.py").write_text(LEARNERS)
    yield frame
    sys.modules.pop("learners", None)


def resample(*arguments):
    return CliRunner().invoke(app, ["resample", *arguments])


def values(*more, learner=CLASS):
    asked = [learner, "rows.parquet", "--target", "click", "--features", "a,b", "--json"]
    result = resample(*asked, *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_estimate_is_that_of_python(rows):
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = generalization_error(LogisticRegression(), rows[["a", "b"]], rows["click"], folds)
    got = values("--folds", "4", "--random-state", "3")
    assert got["value"] == pytest.approx(expected.value, abs=1e-12)
    assert (got["low"], got["high"]) == pytest.approx(expected.calibrated_interval)
    assert [fold["vanilla"] for fold in got["folds"]] == [f.vanilla for f in expected.folds]
    assert got["features"] == ["a", "b"]


@pytest.mark.parametrize("name", ["learners.py:ready", "learners.py:make", "learners:train"])
def test_every_kind_of_learner_is_taken(rows, name):
    assert values(learner=name)["value"] == pytest.approx(values()["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "strategy", "n_splits"),
    [
        (("--repeats", "2"), "RepeatedStratifiedKFold", 10),
        (("--bootstrap", "3"), "Bootstrap", 3),
        (("--group", "user"), "StratifiedGroupKFold", 5),
        (("--time", "day", "--folds", "3"), "TimeSeriesSplit", 3),
        (("--loss", "roc_auc"), "StratifiedKFold", 5),
    ],
)
def test_the_options_name_the_strategy(rows, options, strategy, n_splits):
    got = values(*options)
    assert got["strategy"].startswith(strategy)
    assert got["n_splits"] == n_splits


def test_a_terminal_reads_the_sentence_the_reasons_and_the_columns(rows):
    result = resample("learners.py:train", "rows.parquet", "--target", "click", "--ignore",
                      "word,user,day", "--bootstrap", "2")  # fmt: skip
    assert result.output.startswith("calibrated log_loss 0.")
    assert "no interval: training sets of the bootstrap repeat rows" in result.output
    assert result.output.endswith("learned from a, b\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learners.py", "--target", "click"), "LEARNER must be script.py:name or module:name"),
        (("learners.py:absent", "--target", "click"), "It defines make, train."),
        (("absent.py:make", "--target", "click"), "LEARNER must name a script that exists"),
        (("absent:make", "--target", "click"), "LEARNER must name a module that can be imported"),
        (("learners.py:number", "--target", "click"), "LEARNER must be an estimator with fit"),
        (("learners.py:Needy", "--target", "click"), "LEARNER must need no arguments"),
        ((CLASS, "--target", "x"), "column 'x' must be in rows.parquet"),
        ((CLASS, "--target", "click", "--features", "word"), "could not convert string to float"),
        ((CLASS, "--target", "click", "--features", "click"), "must hold columns to learn from"),
        ((CLASS, "--target", "click", "--group", "user", "--time", "day"), "exclude each other"),
        ((CLASS, "--target", "click", "--features", "a", "--folds", "500"), "--folds must suit"),
        ((CLASS, "--target", "click", "--features", "a", "--folds", "200"), "--no-calibrated"),
        (
            (CLASS, "--target", "click", "--log-to-mlflow", "x", "--experiment-name", "y"),
            "--log-to-mlflow and --experiment-name exclude each other",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(rows, arguments, message):
    learner, *options = arguments
    result = resample(learner, "rows.parquet", *options)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1


def test_the_estimate_and_its_test_sets_are_logged(rows, tmp_path):
    uri = new_database(tmp_path)
    place = ("--experiment-name", "resampled", "--prefix", "cv_", "--tracking-uri", uri)
    value = values(*place)["value"]
    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("resampled").experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    assert len(runs) == 6
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["calibrated_cv_log_loss"] == pytest.approx(value)
    assert parent.data.tags["trueup.role"] == "resampling"


def test_a_positive_class_is_named_and_not_guessed(rows):
    """Average precision of the words was that of the last in the alphabet, without a word."""
    for names in (["no", "yes"], ["low", "high"], [1, 2]):
        named = rows.assign(outcome=np.array(names)[rows["click"]])
        named.to_csv("named.csv", index=False)
        asked = (CLASS, "named.csv", "--target", "outcome", "--features", "a,b")
        refused = resample(*asked, "--loss", "average_precision")
        assert refused.exit_code == 2
        assert "--target 'outcome' must be 0 and 1" in refused.output
        assert "--label NEGATIVE --label POSITIVE" in refused.output
        labels = [word for name in names for word in ("--label", str(name))]
        given = resample(*asked, "--loss", "average_precision", "--json", *labels)
        expected = values("--loss", "average_precision")["value"]
        assert json.loads(given.stdout)["value"] == pytest.approx(expected)
