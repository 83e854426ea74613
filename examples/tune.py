"""Tune the flights network on the calibrated log loss, over seeds.

    python examples/tune.py --trials 6

Six hyper-parameters; two seeds a configuration in the search, further ones for the close contenders
in the finals, fresh ones for the value to publish. The study is logged to MLflow.
"""

from __future__ import annotations

import os

import click
import mlflow
import optuna
import torch
from click_model import Pipeline, load_flights, train
from mlflow.tracking import MlflowClient
from optuna.trial import TrialState

from trueup import Evaluation, evaluate
from trueup_mlflow import log_study
from trueup_optuna import (
    SeedList,
    SeedObjective,
    SeedRacePruner,
    confirm,
    finals,
    report_study,
)

STORE = "sqlite:///mlflow.db"
EXPERIMENT = "trueup tune"


def train_flights(trial: optuna.Trial, seed: int) -> Evaluation:
    """Train one network; every random choice comes from the seed, the rows never change."""
    pipeline = Pipeline(
        name="trial",
        architecture=trial.suggest_categorical("architecture", ["mlp", "deepfm"]),
        decay=trial.suggest_categorical("decay", [False, True]),
        learning_rate=trial.suggest_float("learning_rate", 5e-4, 1e-2, log=True),
        embedding=trial.suggest_int("embedding", 4, 16),
        width=trial.suggest_int("width", 16, 128, log=True),
        batch_size=trial.suggest_categorical("batch_size", [256, 512, 1024]),
    )
    rows = load_flights().validation
    return evaluate(rows.late, y_logit=train(pipeline, seed), row_id=rows.row_id)


def run_study(trials: int, seeds: SeedList, budget: int, storage: str | None) -> optuna.Study:
    """Search and finals; with a storage the study resumes where it stopped."""
    study = optuna.create_study(
        storage=storage,
        study_name="flights" if storage else None,
        load_if_exists=storage is not None,
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=SeedRacePruner(n_configs=trials),
    )
    objective = SeedObjective(train_flights, seeds=seeds, n_base=2, n_startup_seeds=2)
    done = len(study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED)))
    study.optimize(objective, n_trials=trials - done, show_progress_bar=True)
    finals(study, train_flights, budget=budget)
    return study


@click.command()
@click.option("--trials", default=6, show_default=True, help="Configurations.")
@click.option("--seeds", default=6, show_default=True, help="Most seeds of a configuration.")
@click.option("--finals", "budget", default=6, show_default=True, help="Trainings of the finals.")
@click.option("--storage", help="Optuna storage; in memory by default.")
def main(trials: int, seeds: int, budget: int, storage: str | None) -> None:
    """Tune, confirm and log."""
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if "MLFLOW_TRACKING_URI" not in os.environ:  # ``mlflow run`` sets it
        mlflow.set_tracking_uri(STORE)
    study = run_study(trials, SeedList(seeds, confirm=3), budget, storage)
    confirmed = confirm(study, train_flights, n_seeds=3)
    report = report_study(study)
    best = report.best
    click.echo(f"selected trial {best.trial.number}: {best.trial.params}")
    click.echo(
        f"calibrated log loss {best.mean:.5f} ± {best.standard_error:.5f}, {best.n_seeds} seeds"
    )
    click.echo(f"Optuna's best value {best.optimistic_value:.5f}")
    click.echo(f"confirmed {confirmed.mean:.5f} [{confirmed.low:.5f}, {confirmed.high:.5f}]")
    vanilla = report.vanilla
    click.echo(
        f"vanilla would have chosen trial {vanilla.number}, at a cost of {vanilla.cost:.5f}; "
        f"seed sd {vanilla.vanilla_seed_sd:.5f} vanilla, {vanilla.seed_sd:.5f} calibrated"
    )
    client = MlflowClient()
    run_id = log_study(report, confirmation=confirmed, experiment_name=EXPERIMENT, client=client)
    click.echo(f"logged to run {run_id} of experiment {EXPERIMENT!r}")


if __name__ == "__main__":
    main()
