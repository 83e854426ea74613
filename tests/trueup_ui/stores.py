"""Runs as a store holds them, made without training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from trueup_mlflow.seeds import log_seed_summary

ROWS = "trueup.fingerprint.log_loss"


def log_seeds(
    client: MlflowClient,
    experiment_id: str,
    name: str,
    mean: float,
    seeds: Sequence[int] = range(8),
    *,
    rows: str = "abc:CrossFit(folds=5, salt=0)",
    noise: float = 0.002,
) -> str:
    """Log one run for each seed, with the steps of a training, and their parent; return its id."""
    parent = client.create_run(experiment_id, run_name=name).info.run_id
    rng = np.random.default_rng(abs(hash(mean)) % 2**32)
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
    log_seed_summary(parent, client=client)
    client.set_terminated(parent)
    return parent
