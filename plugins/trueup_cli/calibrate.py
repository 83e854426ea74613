"""``trueup calibrate``: fit a guarded calibrator on a file of predictions, or compare them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup_cli.failures import BadInput
from trueup_cli.label_values import label_values
from trueup_cli.output import echo
from trueup_cli.wording import in_options

if TYPE_CHECKING:
    import pandas as pd

    from trueup.calibrators import Calibrator, CalibratorTable, GuardDecision

# The names of `default_calibrators`, whose packages are too heavy to import for `--help`.
_NAMES = (
    "shift",
    "temperature",
    "histogram",
    "isotonic",
    "platt",
    "ilps",
    "neural_field_only",
    "neural",
    "field_offset",
)


class _CalibratorName(click.Choice[str]):
    """The names of the table of ``--compare``; a hyphen is as good as an underscore."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(str(value).replace("-", "_"), param, ctx)


@click.command("calibrate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", required=True, help="Column of the labels.")
@click.option("--label", "labels", multiple=True, help="The two classes, the positive one last.")
@click.option("--proba", required=True, help="Column of P(positive class).")
@click.option("--field", "fields", multiple=True, help="Column of a field; may be given again.")
@click.option("--time", "time", default=None, help="Column that orders the rows.")
@click.option(
    "--calibrator",
    "calibrators",
    type=_CalibratorName(_NAMES),
    multiple=True,
    help="field_offset with --field, else shift; all with --compare, where it may be repeated.",
)
@click.option(
    "--guard/--no-guard", default=True, show_default=True, help="Keep it only if it helps."
)
@click.option("--output", type=click.Path(path_type=Path), help="Folder for the fitted calibrator.")
@click.option("--compare", is_flag=True, help="Compare on later rows, for the first field.")
@click.option("--log", is_flag=True, help="With --compare: log the table to a new MLflow run.")
@click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
@click.option("--experiment-name", default=None, help="Experiment of the run.")
def calibrate(file: Path, **options: Any) -> None:
    """Calibrate the predictions in FILE, a CSV or parquet file of rows the model has not seen.

    Exit code: 0 done, whether or not the guard keeps the calibrator; 2 bad input.
    """
    target, proba = (f"--{name} {options[name]!r}" for name in ("target", "proba"))
    names = {"y": target, "y_true": target, "X": proba, "y_proba": proba, "times": "--time"}
    try:
        with in_options(names):
            frame = _read(file, options)
            (_compare if options["compare"] else _fit)(frame, options)
    except ImportError as error:
        raise BadInput(f"{error}. Run: pip install 'trueup[cli,sklearn,torch,mlflow]'") from error


def _read(file: Path, options: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    from trueup.read.labels import read_binary_labels
    from trueup.read.tables import read_columns
    from trueup.read.times import read_times

    wanted = [options["target"], options["proba"], *options["fields"], options["time"]]
    frame = pd.DataFrame(read_columns([str(file)], filter(None, wanted)))
    if options["time"]:
        frame[options["time"]] = read_times(frame[options["time"]].to_numpy())
    raw = frame[options["target"]]
    labels = label_values(options["labels"], raw.to_numpy())
    return frame.assign(**{options["target"]: read_binary_labels(raw, labels).astype(int)})


def _fit(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    from trueup.calibrators import Guarded

    name, *others = options["calibrators"] or ("field_offset" if options["fields"] else "shift",)
    if others:
        raise BadInput(
            f"--calibrator must be given once without --compare; got {len(others) + 1}. "
            "Add --compare, or choose one."
        )
    calibrator = _calibrator(name, options["fields"])
    more = {}
    if options["guard"]:
        calibrator = Guarded(calibrator)
        more = {"times": frame[options["time"]]} if options["time"] else {}
    fields = {name: frame[name] for name in options["fields"]}
    calibrator.fit(frame[options["proba"]], frame[options["target"]], fields=fields, **more)
    decision = getattr(calibrator, "decision_", None)
    echo(_report(decision, name))
    if options["output"] is not None:
        calibrator.save(options["output"])
        echo(f"saved to {options['output']}{_effect(decision)}")


def _calibrator(name: str, fields: tuple[str, ...]) -> Calibrator:
    from trueup.calibrators import FieldOffsetCalibrator
    from trueup.calibrators.compare import default_calibrators

    if name == "field_offset":
        return FieldOffsetCalibrator()  # of all fields; the table's is that of the first
    if name == "neural_field_only" and not fields:
        raise BadInput("--field must be given with neural_field_only; got none. Name the field.")
    return default_calibrators(next(iter(fields), ""))[name]


def _report(decision: GuardDecision | None, name: str) -> str:
    if decision is None:
        return f"{name}: fitted without a guard"
    return (
        f"{name}: {decision.reason}\n"
        f"log loss change {decision.log_loss_change:+.6f} on {decision.n_check} checked rows, "
        f"fitted on {decision.n_fit}"
    )


def _effect(decision: GuardDecision | None) -> str:
    unchanged = decision is not None and not decision.kept
    return ", which returns the probabilities unchanged" if unchanged else ""


def _compare(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    from trueup.calibrators import compare_calibrators
    from trueup.calibrators.compare import default_calibrators

    if not options["fields"]:
        raise BadInput("--field must be given with --compare; got none. Name the sensitive field.")
    known = default_calibrators(options["fields"][0])
    table = compare_calibrators(
        frame[options["target"]],
        frame[options["proba"]],
        {name: frame[name] for name in options["fields"]},
        field=options["fields"][0],
        times=frame[options["time"]] if options["time"] else None,
        calibrators={name: known[name] for name in options["calibrators"] or known},
    )
    echo(table.to_markdown(), nl=False)
    if options["log"]:
        _log(table, options)


def _log(table: CalibratorTable, options: dict[str, Any]) -> None:
    import mlflow

    from trueup_mlflow.log.log_calibrators import log_calibrators

    if options["tracking_uri"] is not None:
        mlflow.set_tracking_uri(options["tracking_uri"])
    if options["experiment_name"] is not None:
        mlflow.set_experiment(options["experiment_name"])
    with mlflow.start_run(run_name="calibrators") as run:
        log_calibrators(table)
    echo(f"logged to run {run.info.run_id}")
