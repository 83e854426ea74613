"""``trueup report``: a page of ``trueup ui`` as one file, for mail and CI artifacts."""

from __future__ import annotations

import click

from trueup_cli.shell.output import echo


@click.command("report")
@click.argument("subject")
@click.option("--output", required=True, type=click.Path(dir_okay=False), help="File to write.")
@click.option("--metric", default="", help="Vanilla key K; by default the one most runs have.")
@click.option(
    "--by",
    default="",
    help='What runs of a pipeline share: "params", "param:NAME" or "tag:NAME"; by default '
    "their parent, or equal parameters where there are no parents.",
)
@click.option("--greater-is-better", is_flag=True, help="For metrics such as accuracy.")
@click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
def report(
    subject: str,
    output: str,
    metric: str,
    by: str,
    greater_is_better: bool,
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
    echo(str(write_report(output, subject, choice, tracking_uri)))
