"""What the commands of ``trueup monitor`` share: exit codes, the store, estimates in words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import click

from trueup_cli.shell.failures import in_options
from trueup_cli.shell.options import TRACKING_URI, existing_store, refuse_format_alone
from trueup_cli.shell.output import progress, quiet_mlflow

FINE, ABOVE, NOT_TRUSTED = 0, 1, 3

NAMES = {
    "labelled": "--labels",
    "model_uri": "models:/NAME/VERSION",
    "model_uris": "models:/NAME/VERSION",
    "row_id": "--row-id",  # this and the rest are options of init, which others refer to
    "prediction": "--prediction",
    "metric": "--metric",
}
MODEL = click.argument("model_uri", metavar="models:/NAME/VERSION")


def monitored(command: Callable[..., None]) -> Callable[..., None]:
    """Set the tracking store, and turn errors of trueup into exit code 2 with their message."""

    @TRACKING_URI
    @functools.wraps(command)
    def wrapped(tracking_uri: str | None, **options: Any) -> None:
        import mlflow

        sources = [name for name in ("time", "time_column", "name_pattern") if name in options]
        if not any(options[name] for name in sources):
            others = " or --name-pattern" if "name_pattern" in sources else ""
            refuse_format_alone(options.get("time_format"), others)
        store = existing_store(tracking_uri)
        if tracking_uri is not None:
            mlflow.set_tracking_uri(store)
        name = command.__name__
        shown = nullcontext() if name == "watch" else progress(f"monitor {name}")
        with in_options(NAMES), quiet_mlflow(), shown:
            command(**options)

    return wrapped


def sentence(estimate: dict[str, Any]) -> str:
    """Return an estimate with its interval, what it is, and what is to be said of it."""
    from trueup.monitoring.metrics import DEFAULT_METRIC, metric_of
    from trueup_mlflow.monitor.judging.verdict import short

    metric = metric_of(estimate.get("metric", DEFAULT_METRIC))
    value, low, high = (short(estimate[name]) for name in (metric.name, "low", "high"))
    numbers = f"{value} [{low}, {high}] {metric.words}, 90% interval"
    if not estimate["reasons"]:
        return f"{numbers}, {'trusted' if estimate['trusted'] else 'NOT TO BE TRUSTED'}"
    title = "trusted, note" if estimate["trusted"] else "NOT TO BE TRUSTED"
    return f"{numbers}, {title}: {'; '.join(estimate['reasons'])}"
