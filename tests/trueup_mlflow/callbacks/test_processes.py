"""Two real processes: the first logs the rows of both, or says why it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import mlflow
import numpy as np
import pytest

import trueup

FOLDER = Path(__file__).parent


def train(how):
    """Train with Lightning, which starts the second process itself."""
    pytest.importorskip("lightning")
    return shown_by(str(FOLDER / "ddp_lightning.py"), how)


def evaluate(how, folder):
    """Evaluate with the Trainer of Hugging Face, in processes that torch starts."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return shown_by(*launcher, str(FOLDER / "ddp_huggingface.py"), how, str(folder))


def shown_by(*words):
    """Return what a script shows and the only run of the store."""
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    shown = next(line for line in done.stdout.splitlines() if line.startswith("SHOW "))
    (run,) = mlflow.search_runs(experiment_names=["tests"], output_format="list")
    return json.loads(shown.removeprefix("SHOW ")), run


def test_rows_of_both_processes_are_evaluated_once_each(client):
    shown, run = train("dealt")
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
def test_reason_is_a_tag_and_both_processes_go_on(client, how, reason):
    _, run = train(how)
    assert reason in run.data.tags["trueup.skipped.val_log_loss"]
    assert "val_log_loss" not in run.data.metrics


def test_batches_of_both_processes_of_a_trainer_are_evaluated_once_each(client, tmp_path):
    shown, run = evaluate("dealt", tmp_path)
    expected = trueup.evaluate(np.array(shown["y"], int), y_logit=np.array(shown["logit"]))
    metrics = run.data.metrics
    assert metrics["eval_log_loss"] == pytest.approx(expected.vanilla, rel=1e-6)
    assert metrics["calibrated_eval_log_loss"] == pytest.approx(expected.calibrated, rel=1e-6)
    assert run.data.tags["trueup.fingerprint.eval_log_loss"] == expected.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"), [("fails", "KeyError: 'logits'"), ("stream", "a data set of known length")]
)
def test_reason_of_a_trainer_is_a_tag_and_both_processes_go_on(client, tmp_path, how, reason):
    _, run = evaluate(how, tmp_path)
    assert reason in run.data.tags["trueup.skipped.eval_log_loss"]
    assert "eval_log_loss" not in run.data.metrics
