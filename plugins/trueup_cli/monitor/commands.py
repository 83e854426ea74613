"""``trueup monitor``: estimated error of registered models from the shell, cron and CI."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from trueup_cli.monitor.base import ABOVE, FINE, MODEL, NOT_TRUSTED, monitored, sentence
from trueup_cli.monitor.gates import status, watch
from trueup_cli.shell.failures import BadInput, SuggestingGroup
from trueup_cli.shell.options import AS_JSON, NewFile, names_between
from trueup_cli.shell.output import echo, json_text


@click.group("monitor", cls=SuggestingGroup)
def monitor() -> None:
    """Estimate the error of registered models before labels arrive."""


@monitor.command("init")
@MODEL
@click.option("--reference", required=True, help="Labelled rows: .parquet, .csv or .csv.gz.")
@click.option("--target", required=True, help="Column of the labels.")
@click.option(
    "--reference-is",
    type=click.Choice(["held-out", "train"]),
    default="held-out",
    show_default=True,
    help="Whether the model has seen the rows.",
)
@click.option("--row-id", default=None, help="Column that identifies a row, to join late labels.")
@click.option("--time", default=None, help="Column of times: their spread widens first intervals.")
@click.option("--time-format", default=None, help="Format of times that are text; ISO 8601 else.")
@click.option("--features", multiple=True, callback=names_between, help="What the check sees.")
@click.option("--ignore", multiple=True, callback=names_between, help="What it does not see.")
@click.option("--prediction", default=None, help="Column of the model's output, of several.")
@click.option("--predicted", default=None, help="Column of predictions: no model is loaded.")
@click.option("--fail-above", default=None, help="Threshold of status: an error, or 1.5x.")
@click.option(
    "--metric", default="mse", show_default=True, help="Estimated error: mse, mae, log_loss, ..."
)
@click.option("--all-missing", is_flag=True, help="Every version of models:/NAME without a check.")
@monitored
def init(model_uri: str, reference: str, all_missing: bool, **options: Any) -> None:
    """Train and register the check of a model version.

    Exit code: 0 fine, 2 bad input.

    Example: trueup monitor init models:/demand/3 --reference held_out.parquet --target y
    --row-id id
    """
    from trueup_mlflow import monitor as monitoring

    options["ignore"] = options["ignore"] or ()
    if all_missing:
        name = model_uri.removeprefix("models:/")
        if "/" in name or "@" in name:
            raise BadInput(
                f"--all-missing must come with models:/NAME, as it means every version; got "
                f"{model_uri!r}. Drop the version, or --all-missing."
            )
        made = monitoring.init_missing(name, reference, **options)
        for uri in made:
            echo(uri)
        if not made:
            echo(f"every version of {name} has a check", err=True)
    else:
        echo(monitoring.init(model_uri, reference, **options))


@monitor.command("run")
@MODEL
@click.option("--batch", required=True, help="Rows without labels: .parquet, .csv or .csv.gz.")
@click.option("--at", default=None, help="Time of the batch as an ISO date; now by default.")
@click.option(
    "--time", "--time-column", "time_column", help="Split the file by the times of this column."
)
@click.option("--time-format", default=None, help="Format of times that are text; ISO 8601 else.")
@click.option(
    "--period",
    type=click.Choice(["day", "week", "month"]),
    default=None,
    help="Calendar period of a batch with --time; month by default.",
)
@click.option("--chunk-rows", type=click.IntRange(1), default=None, help="A batch each N rows.")
@click.option("--segment", default=None, help="Column: an estimate for each level of 30 rows too.")
@click.option("--predicted", default=None, help="Column of predictions: no model is loaded.")
@click.option("--json", "as_json", is_flag=True, help="Print each estimate as a line of JSON.")
@monitored
def run(model_uri: str, batch: str, as_json: bool, **how: Any) -> None:
    """Estimate the error on a batch and log it.

    An alias, models:/NAME@champion, stands for its version.

    Exit code: 0 fine, 2 bad input, 3 an estimate is not to be trusted.

    Example: trueup monitor run models:/demand/3 --batch may.parquet --at 2026-05-31
    """
    found = _estimates(model_uri, batch, how)
    for name, estimate in found:
        values = estimate.to_dict()
        line = json.dumps({"period": name, **values}) if as_json else sentence(values)
        rows = "1 row" if estimate.n == 1 else f"{estimate.n:,} rows"
        echo(line if as_json or not name else f"{name} ({rows}) {line}")
    if not all(estimate.trusted for _, estimate in found):
        raise click.exceptions.Exit(NOT_TRUSTED)


def _estimates(model_uri: str, batch: str, how: dict[str, Any]) -> list[tuple[str, Any]]:
    from trueup_mlflow import monitor as monitoring

    given = {name: value for name, value in how.items() if value is not None}
    by_time, rows = "time_column" in given, given.pop("chunk_rows", None)
    if "period" in given and not by_time:
        raise BadInput("--period must come with --time. Give both.")
    if by_time and (rows is not None or "at" in given):
        raise BadInput("--time-column goes with neither --chunk-rows nor --at. Give one of them.")
    if "segment" in given and (by_time or rows is not None):
        raise BadInput("--segment is of one batch: it goes with neither --time-column nor chunks.")
    if "segment" in given:
        return monitoring.estimate_segments(model_uri, batch, **given)
    if by_time:
        return monitoring.estimate_periods(model_uri, batch, **given)
    if rows is not None:
        return monitoring.estimate_chunks(model_uri, batch, rows=rows, **given)
    return [("", monitoring.estimate(model_uri, batch, **given))]


@monitor.command("compare")
@click.argument("champion", metavar="models:/NAME@champion")
@click.argument("challenger", metavar="models:/NAME@challenger")
@click.option("--batch", required=True, help="Rows without labels: .parquet, .csv or .csv.gz.")
@click.option("--at", default=None, help="Time of the batch as an ISO date; now by default.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@monitored
def compare(champion: str, challenger: str, batch: str, at: str | None, as_json: bool) -> None:
    """Estimate the error of two models on one batch; decide over the batches that both have.

    Exit code: 0 the challenger has the lower error, 1 the champion, 2 bad input, 3 inconclusive.

    Example: trueup monitor compare models:/demand@champion models:/demand@challenger --batch
    may.parquet
    """
    from trueup_mlflow import monitor as monitoring

    found = monitoring.compare(champion, challenger, batch, at=at)
    if as_json:
        echo(json.dumps(found.to_dict(), allow_nan=False))
    else:
        for name in ("champion", "challenger"):
            echo(f"{name} {sentence(getattr(found, name).to_dict())}")
        if found.series is not None:
            series = found.series
            echo(
                f"challenger - champion over {series.n_pairs} batches ({found.basis}): "
                f"{series.difference:+.3g} [{series.low:+.3g}, {series.high:+.3g}]"
            )
        echo(f"{found.verdict}{': ' * bool(found.reason)}{found.reason}")
    codes = {"challenger": FINE, "champion": ABOVE, "inconclusive": NOT_TRUSTED}
    raise click.exceptions.Exit(codes[found.verdict])


@monitor.command("realize")
@MODEL
@click.option("--labels", required=True, help="Row id and target: .parquet, .csv or .csv.gz.")
@click.option(
    "--min-labelled",
    type=float,
    default=0.8,
    show_default=True,
    help="Share of a batch's rows whose labels must be there.",
)
@AS_JSON
@monitored
def realize(model_uri: str, labels: str, min_labelled: float, as_json: bool) -> None:
    """Log the realized error of every batch of which enough labels are there by now.

    Labels of a batch may come in several files; one that comes again corrects the earlier one.

    Exit code: 0 fine, 2 bad input.

    Example: trueup monitor realize models:/demand/3 --labels may_labels.parquet
    """
    from trueup_mlflow import monitor as monitoring

    found = monitoring.realize(model_uri, labels, min_labelled=min_labelled)
    if as_json:
        echo(json_text(asdict(found)))
        return
    corrected = f"{found.corrected} corrected an earlier label, " if found.corrected else ""
    waiting = "1 batch waits" if found.waiting == 1 else f"{found.waiting} batches wait"
    echo(
        f"{found.matched} ids matched, {corrected}{found.unknown} are of no batch, "
        f"{found.missing} rows have no label or id; {waiting} for more labels"
    )
    for realized in found.realized:
        echo(str(realized))
    if found.n:
        echo(
            f"{found.inside} of {found.n} realized batches lie in their 90% interval "
            f"(95% interval {found.low:.0%} to {found.high:.0%} if batches were independent)"
        )
        echo(found.state)


@monitor.command("report")
@MODEL
@click.option("--output", "--out", "out", type=NewFile(), required=True, help="HTML file to write.")
@click.option(
    "--threshold", "thresholds", multiple=True, help="Drawn as a line: an error, or 1.5x."
)
@monitored
def report(model_uri: str, out: Path, thresholds: tuple[str, ...]) -> None:
    """Write one HTML page that needs no network.

    Exit code: 0 fine, 2 bad input.

    Example: trueup monitor report models:/demand/3 --output demand.html
    """
    from trueup_mlflow import monitor as monitoring

    echo(str(monitoring.report(model_uri, out, thresholds=thresholds)))


monitor.add_command(status)
monitor.add_command(watch)
