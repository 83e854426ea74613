"""``trueup tune``: search, finals and confirmation from the shell, and the report of a study."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup_cli.shell.failures import BadInput, in_options, one_line_failures
from trueup_cli.shell.interrupts import exit_code, interruptible
from trueup_cli.shell.options import AS_JSON, TRACKING_URI, NewFile, check_place
from trueup_cli.shell.output import echo, json_text, without_run_urls

if TYPE_CHECKING:
    from trueup_cli.tune.plan import TunePlan

COMMANDLINE = click.core.ParameterSource.COMMANDLINE
_SPLIT = ("trials", "n_base", "finals", "alpha", "variance", "epsilon")
"""Options that a budget decides, or has no use for: it eliminates nothing."""
_OPTIONS = {"n_configs": "--trials", "n_seeds": "--confirm", "train": "SCRIPT.PY:TRAIN"}
_FIGURES = (".png", ".svg", ".pdf")


class _DefaultsToRun(click.Group):
    """``tune script.py:train`` means ``tune run script.py:train``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("tune", cls=_DefaultsToRun)
def tune() -> None:
    """Tune hyper-parameters on the calibrated metric, over seeds.

    "trueup tune script.py:train --space space.yaml" runs a study; "trueup tune run --help" lists
    its options.

    "trueup tune report" shows one.
    """


def _drawable(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in _FIGURES:
        raise BadInput(
            f"--plot must end in {', '.join(_FIGURES)}; got {str(path)!r}. "
            "The suffix gives the format."
        )
    return path


_STORAGE = click.option(
    "--storage",
    default="trueup-study.journal",
    show_default=True,
    envvar=["TRUEUP_STORAGE", "OPTUNA_STORAGE"],
    help="Path of a journal file, or a database URL such as postgresql+psycopg://...; a URL with a "
    "password belongs into the environment: TRUEUP_STORAGE or OPTUNA_STORAGE.",
)
_STUDY_NAME = click.option("--study-name", default="trueup", show_default=True)


@tune.command("run")
@click.argument("target", metavar="SCRIPT.PY:TRAIN")
@click.option("--space", type=click.Path(exists=True, dir_okay=False), help="YAML of parameters.")
@click.option(
    "--budget",
    type=click.IntRange(10),
    help="Trainings of search and finals, split by the noise of the seeds; in place of --trials, "
    "--n-base and --finals.",
)
@click.option("--trials", type=click.IntRange(2), default=60, show_default=True)
@click.option(
    "--seeds", type=click.IntRange(1, 100_000), default=20, show_default=True, help="At most."
)
@click.option(
    "--confirm",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Fresh seeds, at least 2; 0 leaves the confirmation out.",
)
@click.option(
    "--n-base", type=click.IntRange(1), default=2, show_default=True, help="Search seeds."
)
@click.option(
    "--finals", type=click.IntRange(0), help="Trainings; max(60, 1.25 trials) by default."
)
@click.option("--loss", default="log_loss", show_default=True)
@click.option(
    "--goes-by",
    type=click.Choice(["calibrated", "vanilla"]),
    help="Metric that ranks configurations; calibrated by default, with --budget chosen by its "
    "noise.",
)
@click.option("--direction", type=click.Choice(["minimize", "maximize"]), default="minimize")
@click.option(
    "--sampler",
    type=click.Choice(["random", "tpe", "gp", "cmaes", "nsga2", "grid"]),
    default="tpe",
    show_default=True,
)
@click.option(
    "--epoch-pruner",
    type=click.Choice(["median", "hyperband", "successive-halving"]),
    help="Stops configurations by what TRAIN reports on its trial per epoch.",
)
@click.option(
    "--catch", multiple=True, metavar="EXCEPTION", help="Of TRAIN, makes a failed seed. Repeatable."
)
@click.option(
    "--on-error",
    type=click.Choice(["drop", "keep"]),
    default="drop",
    show_default=True,
    help="What becomes of a configuration with a failed seed.",
)
@click.option("--sampler-seed", type=click.IntRange(0), help="Repeats a study of one worker.")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Error rate of the race."
)
@click.option(
    "--variance",
    type=click.Choice(["own", "moderated"]),
    default="moderated",
    show_default=True,
    help="own: error rate proved under normal noise; moderated: simulated, needs fewer seeds.",
)
@click.option("--epsilon", type=float, default=0.0, show_default=True, help="In metric units.")
@_STORAGE
@_STUDY_NAME
@click.option(
    "--workers", type=click.IntRange(1, 1_024), default=1, show_default=True, help="Processes."
)
@click.option("--grace", type=float, default=120.0, show_default=True, help="Seconds until a silent worker counts as dead.")  # fmt: skip  # noqa: E501
@click.option("--resume", is_flag=True, help="Go on with a study that exists, with its options.")
@click.option("--experiment-name", help="Log the study to this MLflow experiment.")
@AS_JSON
@TRACKING_URI
@click.pass_context
def run(context: click.Context, /, **options: Any) -> None:
    """Search, run the finals and confirm the selected configuration on fresh seeds.

    With --space, TRAIN is train(params, seed), params a dict; without, it is train(trial, seed) and
    calls the suggest methods of the trial. It returns (y_true, y_pred), an Evaluation or a number.

    Exit code: 0 fine, 1 a training raised what --catch does not name, 2 bad input, 130
    interrupted.

    Example: trueup tune run train.py:train --space space.yaml --budget 120 --study-name clicks
    """
    workers, resume = options.pop("workers"), options.pop("resume")
    ending = {name: options.pop(name) for name in ("experiment_name", "tracking_uri", "as_json")}
    if workers > 1 and options["storage"].startswith("sqlite"):
        raise BadInput(
            "--workers must be 1 with SQLite; got more. Use a journal file for --storage."
        )
    if options["confirm"] == 1:
        raise BadInput("--confirm must be 0 or at least 2; got 1. An interval needs two values.")
    _check_together(context, options)
    try:
        with interruptible(), one_line_failures(), in_options(_OPTIONS):
            check_place({"run_id": None, **ending})
            _run(_plan(options), workers, resume, ending)
    except KeyboardInterrupt as stop:
        context.exit(exit_code(stop))


@tune.command("report")
@_STORAGE
@_STUDY_NAME
@AS_JSON
@click.option(
    "--figure",
    "--plot",
    "plot",
    type=NewFile(),
    callback=_drawable,
    help="PNG, SVG or PDF.",
)
def report(storage: str, study_name: str, as_json: bool, plot: Path | None) -> None:
    """Show seeds per configuration, eliminations, finalists, vanilla choice and confirmed value.

    Exit code: 0 fine, 2 bad input.

    Example: trueup tune report --study-name clicks --storage clicks.journal
    """
    with one_line_failures(), in_options():
        from trueup_cli.tune.report import (
            confirmation_text,
            report_json,
            report_text,
            save_figure,
        )
        from trueup_cli.tune.storage import load_study
        from trueup_optuna import report_study
        from trueup_optuna.final.confirmation import kept_confirmation

        study = load_study(storage, study_name)
        found, confirmed = report_study(study), kept_confirmation(study)
        if as_json:
            confirmation = None if confirmed is None else asdict(confirmed)
            echo(json.dumps({**report_json(found), "confirmation": confirmation}, indent=2))
        else:
            echo(report_text(found))
            if confirmed is not None:
                echo(confirmation_text(confirmed))
        if plot is not None:
            save_figure(found, plot)


def _plan(options: dict[str, Any]) -> TunePlan:
    from trueup_cli.tune.plan import TunePlan, grid_size

    if options["sampler"] == "grid":
        points = grid_size(options["space"], options["trials"])
        options["trials"] = max(2, min(options["trials"], points))
    if options["budget"] is None and options["finals"] is None:
        options["finals"] = max(60, -(-5 * options["trials"] // 4))
    return TunePlan(**options)


def _check_together(context: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that exclude each other, naming both."""
    given = [name for name in _SPLIT if context.get_parameter_source(name) == COMMANDLINE]
    if options["budget"] is not None and given:
        raise BadInput(
            f"--budget must stand alone; got --{given[0].replace('_', '-')} too. "
            "A budget splits itself: leave the other out."
        )
    if options["budget"] is not None and options["sampler"] == "grid":
        raise BadInput("--sampler must not be grid with --budget; got both. Leave one out.")
    if options["epoch_pruner"] is not None and options["space"] is not None:
        raise BadInput(
            "--epoch-pruner must come without --space; got both. TRAIN reports on its trial, which "
            "train(params, seed) doesn't get: let it call the suggest methods."
        )


def _run(plan: TunePlan, workers: int, resume: bool, ending: dict[str, Any]) -> None:
    import optuna

    from trueup_cli.tune import run as tune_run

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tune_run.plan_objective(plan)  # a wrong path or space is found before a study is made
    study = tune_run.prepare_study(plan, resume=resume)
    with tune_run.kept_with_results(study, new=not resume):
        _run_stages(plan, workers)
        _conclude(plan, **ending)


def _run_stages(plan: TunePlan, workers: int) -> None:
    from trueup_cli.tune import run as tune_run
    from trueup_cli.tune import workers as tune_workers
    from trueup_cli.tune.plan import STAGES
    from trueup_cli.tune.progress import progress

    for stage in STAGES:
        with progress(plan, stage):
            if workers == 1:
                tune_run.run_stage(plan, stage)
            else:
                tune_workers.run_workers(plan, stage, workers)


def _conclude(
    plan: TunePlan, experiment_name: str | None, tracking_uri: str | None, as_json: bool
) -> None:
    """Print the report and the confirmed value, and log them where asked."""
    from trueup_cli.tune.report import confirmation_text, report_json, report_text
    from trueup_cli.tune.run import plan_train
    from trueup_cli.tune.space import load_exceptions
    from trueup_cli.tune.storage import load_study
    from trueup_optuna import confirm, report_study

    study = load_study(plan.storage, plan.study_name)
    found, confirmed = report_study(study), None
    if not as_json:
        echo(report_text(found))
    if plan.confirm:
        confirmed = confirm(
            study,
            plan_train(plan),
            n_seeds=plan.confirm,
            catch=load_exceptions(plan.catch),
        )
        if not as_json:
            echo(confirmation_text(confirmed))
    if as_json:
        confirmation = None if confirmed is None else asdict(confirmed)
        echo(json_text({**report_json(found), "confirmation": confirmation}))
    if experiment_name is not None:
        from mlflow.tracking import MlflowClient

        from trueup_mlflow.log.log_study import log_study

        client = MlflowClient(tracking_uri)
        with without_run_urls():
            run_id = log_study(
                found, confirmation=confirmed, experiment_name=experiment_name, client=client
            )
        if run_id is None:
            raise BadInput("the study could not be logged. Mend what the warning says, and resume.")
        echo(f"logged to MLflow run {run_id}", err=as_json)
