"""``trueup ui``: pipelines, comparisons, studies and monitored models in the browser."""

from __future__ import annotations

import click

from trueup_cli.shell.output import echo


@click.command("ui")
@click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
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

    if host not in LOOPBACK:
        echo(
            f"warning: whoever reaches {host}:{port} can read every run of this store; there is no "
            "password. To ask for one: mlflow server --app-name trueup-basic-auth",
            err=True,
        )
    shown = f"[{host}]" if ":" in host else host
    echo(f"trueup on http://{shown}:{port} (Ctrl-C ends)")
    serve(tracking_uri, host, port, study_storage)
