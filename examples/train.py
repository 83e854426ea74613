"""Train one seed of a pipeline and log its vanilla and calibrated log loss to MLflow.

    python examples/train.py --seed 3 --pipeline DeepFM

Under ``mlflow run`` the run that MLflow made is used; otherwise a new one.
"""

from __future__ import annotations

import click
import mlflow
import torch
from click_model import PIPELINES, load_flights, train

from trueup_mlflow import log_evaluation


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of initialization and data order.")
@click.option("--pipeline", default="MLP", type=click.Choice(list(PIPELINES)), show_default=True)
def main(seed: int, pipeline: str) -> None:
    """Train one seed and log it."""
    torch.set_num_threads(1)
    rows = load_flights().validation
    with mlflow.start_run():
        mlflow.log_params(PIPELINES[pipeline].params(seed))
        logit = train(PIPELINES[pipeline], seed)
        evaluation = log_evaluation(rows.late, y_logit=logit, row_id=rows.row_id)
    click.echo(f"log_loss            {evaluation.vanilla:.5f}")
    click.echo(f"calibrated_log_loss {evaluation.calibrated:.5f}")


if __name__ == "__main__":
    main()
