"""Runs as a store holds them, made without training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import optuna
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from tests.trueup_optuna.training import train_classifier

from trueup.monitoring import MSEEstimate
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "javascript:window.hacked=1",
    "{{ 7 * 191 }} {% raw %}",
    "</script><svg onload='window.hacked = 1'>",
    "' onmouseover='window.hacked = 1' x='",
)
"""Names that would do something if a page took them for more than text."""

ROWS = "trueup.fingerprint.log_loss"


def log_seeds(
    client: MlflowClient,
    experiment_id: str,
    name: str,
    mean: float,
    seeds: Sequence[int] = range(6),
    *,
    rows: str = "abc:CrossFit(folds=5, salt=0)",
    noise: float = 0.002,
) -> str:
    """Log one run for each seed, with the steps of a training, and their parent; return its id."""
    parent = client.create_run(experiment_id, run_name=name).info.run_id
    rng = np.random.default_rng(round(1e6 * mean))
    for seed in seeds:
        tags = {"mlflow.parentRunId": parent, "trueup.seed": str(seed), ROWS: rows}
        run = client.create_run(experiment_id, run_name=f"seed {seed}", tags=tags).info.run_id
        bias, own = noise * rng.random(), 0.3 * noise * rng.normal()
        metrics = [
            Metric(key, value + 0.1 / (step + 1), 1000 * (step + 1), step)
            for step in range(5)
            for key, value in (
                ("log_loss", mean + own + bias),
                ("calibrated_log_loss", mean + own),
            )
        ]
        metrics.append(Metric("bias_cost_log_loss", bias, 5000, 4))
        client.log_batch(run, metrics, [Param("pipeline", name), Param("seed", str(seed))])
        client.set_terminated(run)
    client.set_terminated(parent)
    return parent


def log_batches(client: MlflowClient, model: str, estimates: Sequence[float]) -> None:
    """Log monitored batches, all but the last with labels and the last one not to be trusted."""
    store = MonitorStore(RegisteredVersion(model, "1", None, {}), client)
    for step, mse in enumerate(estimates):
        is_last = step == len(estimates) - 1
        estimate = MSEEstimate(
            mse, 0.7 * mse, 1.4 * mse, {"k": mse}, not is_last, (HOSTILE[0],) if is_last else (), 50
        )
        moved = ((HOSTILE[1], 1.5), ("age", -0.2))
        record = BatchRecord(
            f"{step:016x}",
            step,
            1_767_225_600_000 + step * 86_400_000,
            50,
            estimate.to_dict(),
            moved,
        )
        store.write(record.mark(logged=True, realized=None if is_last else 1.1 * mse))


def tuned_study(storage: str) -> optuna.Study:
    """Return a small study with finals."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=HOSTILE[0],
        storage=storage,
        pruner=SeedRacePruner(n_configs=6),
        sampler=optuna.samplers.RandomSampler(seed=1),
    )
    study.optimize(SeedObjective(train, seeds=SeedList(6, confirm=3)), n_trials=6)
    finals(study, train, budget=6)
    return study


def train(trial: optuna.Trial, seed: int) -> tuple[np.ndarray, np.ndarray]:
    trial.suggest_categorical("head", [HOSTILE[2], "plain"])
    return train_classifier(trial, seed)
