"""``trueup backfill``: calibrated metrics for finished runs."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from trueup.errors import TrueupWarning
from trueup_cli.shell.failures import in_options
from trueup_cli.shell.options import AS_JSON, TRACKING_URI, existing_store
from trueup_cli.shell.output import echo, json_text, quiet_mlflow

if TYPE_CHECKING:
    from trueup_mlflow.log.backfill import Backfilled


@click.command("backfill")
@click.argument("run_ids", nargs=-1)
@click.option(
    "--experiment-name",
    "--experiment",
    "experiments",
    multiple=True,
    help="Look at its runs; repeatable.",
)
@click.option("--filter", "filter_string", default="", help="MLflow filter of the runs.")
@TRACKING_URI
@AS_JSON
def backfill(
    run_ids: tuple[str, ...],
    experiments: tuple[str, ...],
    filter_string: str,
    tracking_uri: str | None,
    as_json: bool,
) -> None:
    """Compute the metrics of predictions that finished runs hold, and log what is missing.

    RUN_IDS are runs in which trueup_mlflow.log_predictions stored predictions. A second backfill
    changes nothing.

    Exit code: 0 fine, 2 bad input.

    Example: trueup backfill --experiment-name clicks
    """
    from mlflow import MlflowClient

    from trueup_mlflow.log.backfill import backfill as fill

    client = MlflowClient(existing_store(tracking_uri))
    names = {"run_ids": "RUN_IDS", "experiment_names": "--experiment-name"}
    with warnings.catch_warnings(), in_options(names), quiet_mlflow():
        warnings.simplefilter("ignore", TrueupWarning)  # each reason is in the results
        results = fill(
            run_ids, experiment_names=experiments, filter_string=filter_string, client=client
        )
    echo(json_text([asdict(result) for result in results]) if as_json else _text(results))


def _text(results: tuple[Backfilled, ...]) -> str:
    if not results:
        return "no run holds predictions: trueup_mlflow.log_predictions stores them"
    lines = [
        f"{result.status:8} {result.run_id} {result.artifact} {result.key} {result.reason}".rstrip()
        for result in results
    ]
    count = Counter(result.status for result in results)
    total = ", ".join(f"{count[status]} {status}" for status in ("logged", "present", "skipped"))
    return "\n".join([*lines, total])
