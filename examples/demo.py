"""The main job: seeds of real models in MLflow, with vanilla and calibrated log loss side by side.

    python examples/demo.py --seeds 30

Trains two pipelines on the flights of 2013, each with a constant and with a decaying learning rate,
logs every seed as an MLflow run under a parent run, and prints how much less the calibrated metric
varies.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

import click
import mlflow
import numpy as np
import torch
from click_model import (
    DEEPFM,
    DEEPFM_DECAYED,
    MLP,
    MLP_DECAYED,
    PIPELINES,
    Pipeline,
    load_flights,
    train,
)
from mlflow.entities import Param
from mlflow.tracking import MlflowClient
from tqdm import tqdm

from trueup import Evaluation
from trueup.comparison import metric_accuracy, variance_reduction
from trueup_mlflow import compare_runs, log_evaluation
from trueup_mlflow.seeds import log_seed_summary

STORE = "sqlite:///mlflow.db"
EXPERIMENT = "trueup demo"
PAIRS = [(DEEPFM, MLP), (MLP, MLP_DECAYED), (DEEPFM_DECAYED, MLP)]


@dataclass
class Seeds:
    """The parent run of one pipeline and what its seeds gave so far."""

    parent_run_id: str
    evaluations: list[Evaluation] = field(default_factory=list)

    @property
    def vanilla(self) -> np.ndarray:
        return np.array([evaluation.vanilla for evaluation in self.evaluations])

    @property
    def calibrated(self) -> np.ndarray:
        return np.array([evaluation.calibrated for evaluation in self.evaluations])


@click.command()
@click.option("--seeds", "n_seeds", default=30, show_default=True, help="Seeds of each pipeline.")
@click.option("--workers", default=2, show_default=True, help="Processes that train.")
def main(n_seeds: int, workers: int) -> None:
    """Train, log and compare."""
    click.echo("Making the store and its experiment")
    if "MLFLOW_TRACKING_URI" not in os.environ:  # ``mlflow run`` sets it
        mlflow.set_tracking_uri(STORE)
    experiment = mlflow.set_experiment(EXPERIMENT)
    client = MlflowClient()
    results = {
        name: Seeds(client.create_run(experiment.experiment_id, run_name=name).info.run_id)
        for name in PIPELINES
    }
    click.echo(
        f"Training {len(PIPELINES)} pipelines with {n_seeds} seeds each in {workers} processes, "
        "and logging each model as it comes"
    )
    jobs = [(name, seed) for seed in range(n_seeds) for name in PIPELINES]
    for name, seed, logit in tqdm(
        _train_all(jobs, workers), total=len(jobs), unit="model", disable=None
    ):
        evaluation = _log_seed(client, experiment.experiment_id, results, (name, seed), logit)
        results[name].evaluations.append(evaluation)
        n_done = sum(len(seeds.evaluations) for seeds in results.values())
        if not sys.stderr.isatty() and n_done % max(1, len(jobs) // 6) == 0:
            click.echo(f"  {n_done} of {len(jobs)} models")  # no terminal, so no bar
    click.echo("Summing up the seeds of each pipeline, and comparing")
    for seeds in results.values():
        _finish_parent(client, seeds)
    click.echo(_noise_table(results))
    click.echo(_order_table(results))
    click.echo(_logged_decision(results))
    click.echo(
        f"Look at all of it:  .venv/bin/trueup ui --tracking-uri {mlflow.get_tracking_uri()}"
    )


def _train_all(jobs: list[tuple[str, int]], workers: int) -> Iterator[tuple[str, int, np.ndarray]]:
    spawn = multiprocessing.get_context("spawn")  # forking after torch has started is not safe
    with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (1,)) as pool:
        futures = {pool.submit(train, PIPELINES[name], seed): (name, seed) for name, seed in jobs}
        for future in as_completed(futures):
            yield (*futures[future], future.result())


def _log_seed(
    client: MlflowClient,
    experiment_id: str,
    results: dict[str, Seeds],
    job: tuple[str, int],
    logit: np.ndarray,
) -> Evaluation:
    name, seed = job
    parent = {"mlflow.parentRunId": results[name].parent_run_id, "trueup.seed": str(seed)}
    run_id = client.create_run(experiment_id, run_name=f"seed {seed}", tags=parent).info.run_id
    params = PIPELINES[name].params(seed).items()
    client.log_batch(run_id, params=[Param(key, str(value)) for key, value in params])
    rows = load_flights().validation
    evaluation = log_evaluation(
        rows.late,
        y_logit=logit,
        row_id=rows.row_id,
        run_id=run_id,
        client=client,
        figures=seed == 0,  # one reliability diagram for each pipeline is enough
    )
    client.set_terminated(run_id)
    return evaluation


def _finish_parent(client: MlflowClient, seeds: Seeds) -> None:
    log_seed_summary(seeds.parent_run_id, client=client)
    client.set_terminated(seeds.parent_run_id)


def _noise_table(results: dict[str, Seeds]) -> str:
    lines = [
        "",
        "Mean and standard deviation over seeds of vanilla and calibrated log loss, on these "
        "validation rows",
        f"{'pipeline':26}{'mean':>9}{'calibrated':>12}{'sd':>11}{'calibrated':>12}"
        "   reduction of the sd [95% interval]",
    ]
    for name, seeds in results.items():
        reduction = variance_reduction(seeds.vanilla, seeds.calibrated)
        resolved = (
            ""
            if reduction.low > 0 or reduction.high < 0
            else ("  not resolved at this number of seeds")
        )
        lines.append(
            f"{name:26}{seeds.vanilla.mean():9.5f}{seeds.calibrated.mean():12.5f}"
            f"{seeds.vanilla.std(ddof=1):11.2e}{seeds.calibrated.std(ddof=1):12.2e}"
            f"   {reduction}{resolved}"
        )
    return "\n".join(lines)


def _order_table(results: dict[str, Seeds]) -> str:
    lines = [
        "",
        "P(A < B) over all pairs of seeds [95% interval], and the order of the means",
        f"{'A < B':43}{'log_loss':>22}{'calibrated_log_loss':>24}",
    ]
    lines += [_order_row(results, first, second) for first, second in PAIRS]
    lines.append(
        "Where the order of the means differs, the pipelines differ in their mean calibration,\n"
        "which the calibrated metric takes out on purpose: read bias_cost_log_loss beside it."
    )
    return "\n".join([*lines, ""])


def _logged_decision(results: dict[str, Seeds]) -> str:
    """Decide between the first pair, log the decision to a run of its own, and return it."""
    first, second = PAIRS[0]
    candidate, baseline = (
        f"tags.`mlflow.parentRunId` = '{results[one.name].parent_run_id}'" for one in PAIRS[0]
    )
    decision = compare_runs(
        candidate, baseline, metric="calibrated_log_loss", experiment_names=[EXPERIMENT]
    )
    return f"{decision.sentence(first.name, second.name)}\n"


def _order_row(results: dict[str, Seeds], first: Pipeline, second: Pipeline) -> str:
    a, b = results[first.name], results[second.name]
    cells = [
        f"{metric_accuracy(x, y)} {'A<B' if x.mean() < y.mean() else 'B<A'}"
        for x, y in ((a.vanilla, b.vanilla), (a.calibrated, b.calibrated))
    ]
    pair = f"{first.name} < {second.name}"
    return f"{pair:43}{cells[0]:>22}{cells[1]:>24}"


if __name__ == "__main__":
    main()
