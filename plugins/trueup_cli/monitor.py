"""``trueup monitor``: estimated error of registered models from the shell, cron and CI."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trueup.errors import TrueupError
from trueup_cli.failures import BadInput
from trueup_cli.output import echo
from trueup_cli.quiet import quiet_mlflow
from trueup_cli.wording import in_options

FINE, ABOVE, NOT_TRUSTED = 0, 1, 3


def _monitored(command: Callable[..., None]) -> Callable[..., None]:
    """Set the tracking store, and turn errors of trueup into exit code 2 with their message."""

    @click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
    @functools.wraps(command)
    def wrapped(tracking_uri: str | None, **options: Any) -> None:
        import mlflow

        if tracking_uri is not None:
            mlflow.set_tracking_uri(tracking_uri)
        with in_options({"labelled": "--labels"}), quiet_mlflow():
            command(**options)

    return wrapped


_MODEL = click.argument("model_uri", metavar="models:/NAME/VERSION")


@click.group("monitor")
def monitor() -> None:
    """Estimate the error of registered models before labels arrive."""


@monitor.command("init")
@_MODEL
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
@click.option("--all-missing", is_flag=True, help="Every version of models:/NAME without a check.")
@_monitored
def init(model_uri: str, reference: str, all_missing: bool, **options: Any) -> None:
    """Train and register the check of a model version."""
    from trueup_mlflow import monitor as monitoring
    from trueup_mlflow.monitor.batches import init_missing

    if all_missing:
        name = model_uri.removeprefix("models:/").split("/")[0]
        made = init_missing(name, reference, **options)
        for uri in made:
            echo(uri)
        if not made:
            echo(f"every version of {name} has a check", err=True)
    else:
        echo(monitoring.init(model_uri, reference, **options))


@monitor.command("run")
@_MODEL
@click.option("--batch", required=True, help="Rows without labels: .parquet, .csv or .csv.gz.")
@click.option("--at", default=None, help="Time of the batch as an ISO date; now by default.")
@click.option("--time-column", default=None, help="Split the file by the times of this column.")
@click.option(
    "--period",
    type=click.Choice(["day", "week", "month"]),
    default="month",
    show_default=True,
    help="Calendar period of a batch with --time-column.",
)
@click.option("--chunk-rows", type=click.IntRange(1), default=None, help="A batch each N rows.")
@click.option("--json", "as_json", is_flag=True, help="Print each estimate as a line of JSON.")
@_monitored
def run(model_uri: str, batch: str, as_json: bool, **how: Any) -> None:
    """Estimate the error on a batch and log it.

    An alias, models:/NAME@champion, stands for its version.

    Exit code: 0 fine, 2 bad input, 3 an estimate is not to be trusted.
    """
    found = _estimates(model_uri, batch, **how)
    for name, estimate in found:
        values = estimate.to_dict()
        line = json.dumps({"period": name, **values}) if as_json else _sentence(values)
        echo(line if as_json or not name else f"{name} {line}")
    if not all(estimate.trusted for _, estimate in found):
        raise click.exceptions.Exit(NOT_TRUSTED)


def _estimates(
    model_uri: str,
    batch: str,
    *,
    at: str | None,
    time_column: str | None,
    period: Any,
    chunk_rows: int | None,
) -> list[tuple[str, Any]]:
    from trueup_mlflow import monitor as monitoring
    from trueup_mlflow.monitor.batches import estimate_chunks, estimate_periods

    if time_column is not None and (chunk_rows is not None or at is not None):
        raise BadInput("--time-column goes with neither --chunk-rows nor --at. Give one of them.")
    if time_column is not None:
        return estimate_periods(model_uri, batch, time_column=time_column, period=period)
    if chunk_rows is not None:
        return estimate_chunks(model_uri, batch, rows=chunk_rows, at=at)
    return [("", monitoring.estimate(model_uri, batch, at=at))]


@monitor.command("compare")
@click.argument("champion", metavar="models:/NAME@champion")
@click.argument("challenger", metavar="models:/NAME@challenger")
@click.option("--batch", required=True, help="Rows without labels: .parquet, .csv or .csv.gz.")
@click.option("--at", default=None, help="Time of the batch as an ISO date; now by default.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_monitored
def compare(champion: str, challenger: str, batch: str, at: str | None, as_json: bool) -> None:
    """Estimate the error of two models on one batch; decide over the batches that both have.

    Exit code: 0 the challenger has the lower error, 1 the champion, 2 bad input, 3 inconclusive.
    """
    from trueup_mlflow import monitor as monitoring

    found = monitoring.compare(champion, challenger, batch, at=at)
    if as_json:
        echo(json.dumps(found.to_dict(), allow_nan=False))
    else:
        for name in ("champion", "challenger"):
            echo(f"{name} {_sentence(getattr(found, name).to_dict())}")
        if found.series is not None:
            series = found.series
            echo(
                f"challenger - champion over {series.n_pairs} batches ({found.basis}): "
                f"{series.difference:+.3g} [{series.low:+.3g}, {series.high:+.3g}]"
            )
        echo(f"{found.verdict}{': ' * bool(found.reason)}{found.reason}")
    codes = {"challenger": FINE, "champion": ABOVE, "inconclusive": NOT_TRUSTED}
    raise click.exceptions.Exit(codes[found.verdict])


@monitor.command("watch")
@_MODEL
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Pause between looks.")
@click.option("--once", is_flag=True, help="Stop when the folder holds no more files.")
@click.option(
    "--prometheus-port", type=int, default=None, help="Serve the latest estimate on this port."
)
@_monitored
def watch(
    model_uri: str, folder: Path, seconds: float, once: bool, prometheus_port: int | None
) -> None:
    """Estimate the error on files as they come in FOLDER; they move to done/ or rejected/."""
    from trueup_mlflow.monitor.batches import watch as watching

    with contextlib.ExitStack() as stack:
        exporter = _exporter(stack, model_uri, prometheus_port)
        for path, outcome in watching(model_uri, folder, seconds=seconds, once=once):
            if isinstance(outcome, TrueupError):
                echo(f"{path.name} {outcome}")
                continue
            echo(f"{path.name} {_sentence(outcome.to_dict())}")
            if exporter is not None:
                exporter.show(outcome)


def _exporter(stack: contextlib.ExitStack, model_uri: str, port: int | None) -> Any:
    if port is None:
        return None
    from trueup_mlflow.monitor.prometheus import PrometheusExporter

    try:
        return stack.enter_context(PrometheusExporter(model_uri, port))
    except (ImportError, OSError) as error:
        raise BadInput(f"--prometheus-port {port}: {error}") from error


@monitor.command("realize")
@_MODEL
@click.option("--labels", required=True, help="Row id and target: .parquet, .csv or .csv.gz.")
@_monitored
def realize(model_uri: str, labels: str) -> None:
    """Log the realized error of every batch whose labels are all there."""
    from trueup_mlflow import monitor as monitoring

    found = monitoring.realize(model_uri, labels)
    echo(
        f"{found.inside} of {found.n} realized batches lie in their 90% interval "
        f"(95% interval {found.low:.0%} to {found.high:.0%} if batches were independent)"
    )


@monitor.command("report")
@_MODEL
@click.option("--out", type=click.Path(path_type=Path), required=True, help="HTML file to write.")
@click.option("--threshold", "thresholds", type=float, multiple=True, help="Error drawn as a line.")
@_monitored
def report(model_uri: str, out: Path, thresholds: tuple[float, ...]) -> None:
    """Write one HTML page that needs no network."""
    from trueup_mlflow import monitor as monitoring

    echo(str(monitoring.report(model_uri, out, thresholds=thresholds)))


@monitor.command("status")
@click.option("--fail-above", type=float, default=None, help="Largest error that is fine.")
@_monitored
def status(fail_above: float | None) -> None:
    """List the latest batch of every version.

    Exit code: 0 fine, 1 the low end of an interval is above --fail-above, 2 bad input, 3 an
    estimate is not to be trusted.
    """
    from trueup_mlflow import monitor as monitoring

    codes = {FINE}
    entries = monitoring.status()
    if not entries:
        echo("no monitored model has a batch yet: see trueup monitor init and run")
    for entry in entries:
        batch = entry["batch"]
        code, note = _verdict(batch.estimate, fail_above)
        codes.add(code)
        sentence = _sentence(batch.estimate)
        echo(f"models:/{entry['model']}/{entry['version']} {batch.time} {sentence}{note}")
    raise click.exceptions.Exit(ABOVE if ABOVE in codes else max(codes))


def _verdict(estimate: dict[str, Any], fail_above: float | None) -> tuple[int, str]:
    """Return exit code and remark on one estimate."""
    if not estimate["trusted"]:
        return NOT_TRUSTED, ""
    if fail_above is None or estimate["mse"] <= fail_above:
        return FINE, ""
    if estimate["low"] > fail_above:
        return ABOVE, f" ABOVE {fail_above:g}"
    return FINE, f" warning: the estimate is above {fail_above:g}, its interval is not"


def _sentence(estimate: dict[str, Any]) -> str:
    mse, low, high = (_short(estimate[name]) for name in ("mse", "low", "high"))
    numbers = f"{mse} [{low}, {high}]"
    if not estimate["reasons"]:
        return numbers
    title = "note" if estimate["trusted"] else "NOT TO BE TRUSTED"
    return f"{numbers} {title}: {'; '.join(estimate['reasons'])}"


def _short(value: Any) -> str:
    """Return a number with four digits; None is what was no finite number."""
    return f"{value:.4g}" if isinstance(value, (int, float)) else "none"
