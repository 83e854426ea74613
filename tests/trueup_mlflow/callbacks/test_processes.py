"""Two real processes: the first logs the rows of both, or says why it does not.

Each framework trains in one pair of processes, a run for each way to deal out the rows: to start
them takes longer than all that they do.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mlflow import MlflowClient
from tests.databases import new_database
from tests.warm import PYTHON

import trueup

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Training with Lightning, which starts the second process itself."""
    pytest.importorskip("lightning")
    command = [str(FOLDER / "ddp_lightning.py"), "dealt", "fails", "shuffled"]
    return shown_by(command, tmp_path_factory.mktemp("lightning"))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Evaluation with the Trainer of Hugging Face, in processes that torch starts."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [*launcher, str(FOLDER / "ddp_huggingface.py"), "out", "dealt", "fails", "stream"]
    return shown_by(command, tmp_path_factory.mktemp("huggingface"))


def shown_by(words, folder):
    """Return what a script shows of each of its runs, the run, and the client of their store."""
    store = new_database(folder)
    client = MlflowClient(store)
    experiment = client.create_experiment("tests", artifact_location=(folder / "files").as_uri())
    done = subprocess.run(
        [PYTHON, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": store},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("SHOW ")]
    shown = [json.loads(line.removeprefix("SHOW ")) for line in lines]
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert len(runs) == len(shown)
    return {one["how"]: (one, runs[one["how"]]) for one in shown}, client


def test_rows_of_both_processes_are_evaluated_once_each(trained):
    found, client = trained
    shown, run = found["dealt"]
    expected = trueup.evaluate(np.array(shown["y"], int), y_logit=np.array(shown["logit"]))
    metrics = run.data.metrics
    assert metrics["val_log_loss"] == pytest.approx(expected.vanilla, rel=1e-6)
    assert metrics["calibrated_val_log_loss"] == pytest.approx(expected.calibrated, rel=1e-6)
    assert run.data.tags["trueup.fingerprint.val_log_loss"] == expected.fingerprint
    history = client.get_metric_history(run.info.run_id, "calibrated_val_log_loss")
    assert len(history) == 2
    assert shown["checkpoint"] == pytest.approx(min(point.value for point in history), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [("fails", "validation_step must return y_true"), ("shuffled", "must be dealt out by torch's")],
)
def test_reason_is_a_tag_and_both_processes_go_on(trained, how, reason):
    _, run = trained[0][how]
    assert reason in run.data.tags["trueup.skipped.val_log_loss"]
    assert "val_log_loss" not in run.data.metrics


def test_batches_of_both_processes_of_a_trainer_are_evaluated_once_each(evaluated):
    shown, run = evaluated[0]["dealt"]
    expected = trueup.evaluate(np.array(shown["y"], int), y_logit=np.array(shown["logit"]))
    metrics = run.data.metrics
    assert metrics["eval_log_loss"] == pytest.approx(expected.vanilla, rel=1e-6)
    assert metrics["calibrated_eval_log_loss"] == pytest.approx(expected.calibrated, rel=1e-6)
    assert run.data.tags["trueup.fingerprint.eval_log_loss"] == expected.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"), [("fails", "KeyError: 'logits'"), ("stream", "a data set of known length")]
)
def test_reason_of_a_trainer_is_a_tag_and_both_processes_go_on(evaluated, how, reason):
    _, run = evaluated[0][how]
    assert reason in run.data.tags["trueup.skipped.eval_log_loss"]
    assert "eval_log_loss" not in run.data.metrics
