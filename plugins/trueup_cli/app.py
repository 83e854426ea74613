"""The group of commands, each imported when it is called: ``trueup --help`` loads none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

import trueup
from trueup_cli.shell.failures import SuggestingGroup, one_line_failures
from trueup_cli.shell.output import without_run_urls

COMMANDS = {  # module of this package with the click command, and what the command does
    "apply": ("apply", "Apply a saved calibrator to a file of predictions."),
    "backfill": ("backfill", "Log the metrics of predictions stored in finished runs."),
    "calibrate": ("calibrate", "Compare calibrators on a model's predictions, and fit one."),
    "compare": ("compare", "Decide whether one pipeline beats another, over seeds."),
    "doctor": ("doctor", "Check installation, switch and store; or what a run gained."),
    "evaluate": ("evaluate", "Score the predictions of files, vanilla and calibrated."),
    "monitor": (
        "monitor.commands",
        "Estimate the error of registered models before labels arrive.",
    ),
    "report": ("pages", "Write the page of an experiment or a model to one file."),
    "resample": ("resample", "Estimate a learner's error on new training sets."),
    "tune": ("tune.command", "Tune hyper-parameters on the calibrated metric, over seeds."),
    "ui": ("pages", "Show pipelines, comparisons, studies and models in the browser."),
}


class LazyGroup(SuggestingGroup):
    """A group whose commands are imported by name, and whose failures are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # tune runs the user's own script, as it would run without trueup
        ctx.with_resource(without_run_urls(if_secret=cmd_name == "tune"))
        with one_line_failures():
            module = import_module(f"trueup_cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click passes it
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])

    def invoke(self, ctx: click.Context) -> Any:
        with one_line_failures():
            return super().invoke(ctx)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trueup.__version__, prog_name="trueup")
def app() -> None:
    """Calibrated metrics, decisions over seeds, tuning and label-free monitoring."""
