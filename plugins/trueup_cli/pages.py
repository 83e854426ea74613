"""``trueup ui`` and ``trueup report``: pages in the browser, and as one file for mail and CI."""

from __future__ import annotations

from pathlib import Path

import click

from trueup_cli.shell.failures import in_options
from trueup_cli.shell.options import GREATER_IS_BETTER, TRACKING_URI, NewFile, existing_store
from trueup_cli.shell.output import echo, progress


@click.command("ui")
@TRACKING_URI
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5055,
    show_default=True,
    help="Port to listen on.",
)
@click.option(
    "--study-storage",
    default=None,
    help="Database URL or journal file of Optuna, to watch studies while they run.",
)
def ui(tracking_uri: str | None, host: str, port: int, study_storage: str | None) -> None:
    """Show the runs of an MLflow store; nothing is written to it. Ctrl-C ends.

    Exit code: 0 stopped by Ctrl-C, 2 bad input.

    Example: trueup ui --tracking-uri sqlite:///mlflow.db
    """
    from trueup_ui.web.server import LOOPBACK, serve

    store = existing_store(tracking_uri)
    if host not in LOOPBACK:
        echo(
            f"warning: whoever reaches {host}:{port} can read every run of this store; there is no "
            "password. To ask for one: mlflow server --app-name trueup-basic-auth",
            err=True,
        )
    shown = f"[{host}]" if ":" in host else host
    echo(f"trueup on http://{shown}:{port} (Ctrl-C ends)")
    with in_options():
        serve(store, host, port, study_storage)


@click.command("report")
@click.argument("subject")
@click.option("--output", required=True, type=NewFile(), help="File to write.")
@click.option("--metric", default="", help="Vanilla key K; by default the one most runs have.")
@click.option(
    "--by",
    default="",
    help='What runs of a pipeline share: "params", "param:NAME" or "tag:NAME"; by default '
    "their parent, or equal parameters where there are no parents.",
)
@GREATER_IS_BETTER
@TRACKING_URI
def report(
    subject: str,
    output: Path,
    metric: str,
    by: str,
    greater_is_better: bool | None,
    tracking_uri: str | None,
) -> None:
    """Write the page of SUBJECT to one HTML file that needs no server, no script and no network.

    SUBJECT is the name of an experiment, whose pipelines, comparison and studies are shown, or a
    monitored version: models:/NAME/VERSION or models:/NAME@ALIAS.

    Exit code: 0 fine, 2 bad input.

    Example: trueup report clicks --output clicks.html
    """
    from trueup_ui.view.experiment import Choice
    from trueup_ui.web.report import write_report

    choice = Choice(metric=metric, by=by, higher=greater_is_better)
    subjects = dict.fromkeys(("subject", "experiment", "model"), "SUBJECT")
    with in_options(subjects), progress("report"):
        written = write_report(output, subject, choice, existing_store(tracking_uri))
    echo(str(written))
