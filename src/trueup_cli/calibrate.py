"""``trueup calibrate``: fit a guarded calibrator on a file of predictions, or compare them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.errors import TrueupError

if TYPE_CHECKING:
    import pandas as pd

    from trueup.calibrators import Calibrator, CalibratorTable, GuardDecision

_CLASSES = {
    "shift": "ShiftCalibrator",
    "platt": "PlattCalibrator",
    "temperature": "TemperatureCalibrator",
    "isotonic": "IsotonicCalibrator",
    "histogram": "HistogramCalibrator",
    "ilps": "ILPSCalibrator",
    "neural": "NeuralCalibrator",
    "field-offset": "FieldOffsetCalibrator",
}


class BadInput(click.ClickException):
    """Something is wrong with what was asked."""

    exit_code = 2


@click.command("calibrate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", required=True, help="Column of the labels 0 and 1.")
@click.option("--proba", required=True, help="Column of P(label 1).")
@click.option("--field", "fields", multiple=True, help="Column of a field; may be given again.")
@click.option("--time", "time", default=None, help="Column that orders the rows.")
@click.option(
    "--calibrator",
    type=click.Choice(list(_CLASSES)),
    default="field-offset",
    show_default=True,
)
@click.option(
    "--guard/--no-guard", default=True, show_default=True, help="Keep it only if it helps."
)
@click.option("--output", type=click.Path(path_type=Path), help="Folder for the fitted calibrator.")
@click.option("--compare", is_flag=True, help="Compare all on later rows, for the first field.")
@click.option("--log", is_flag=True, help="With --compare: log the table to a new MLflow run.")
@click.option("--tracking-uri", default=None, help="MLflow store; by default that of MLflow.")
@click.option("--experiment-name", default=None, help="Experiment of the run.")
def calibrate(file: Path, **options: Any) -> None:
    """Calibrate the predictions in FILE, a CSV or parquet file of rows the model has not seen.

    Exit code: 0 done, whether or not the guard keeps the calibrator; 2 bad input.
    """
    try:
        frame = _read(file, options)
        if options["compare"]:
            _compare(frame, options)
        else:
            _fit(frame, options)
    except ImportError as error:
        raise BadInput(f"{error}. Run: pip install 'trueup[cli,sklearn,torch,mlflow]'") from error
    except TrueupError as error:
        raise BadInput(str(error)) from error


def _read(file: Path, options: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    read = pd.read_csv if file.suffix in (".csv", ".gz") else pd.read_parquet
    frame: pd.DataFrame = read(file)
    wanted = [options["target"], options["proba"], *options["fields"], options["time"]]
    for name in filter(None, wanted):
        if name not in frame.columns:
            raise BadInput(f"{name!r} must be a column of {file.name}; got {list(frame.columns)}.")
    return frame


def _fit(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    import trueup.calibrators

    calibrator: Calibrator = getattr(trueup.calibrators, _CLASSES[options["calibrator"]])()
    more = {}
    if options["guard"]:
        calibrator = trueup.calibrators.Guarded(calibrator)
        more = {"times": frame[options["time"]]} if options["time"] else {}
    fields = {name: frame[name] for name in options["fields"]}
    calibrator.fit(frame[options["proba"]], frame[options["target"]], fields=fields, **more)
    click.echo(_report(getattr(calibrator, "decision_", None), options["calibrator"]))
    if options["output"] is not None:
        calibrator.save(options["output"])
        click.echo(f"saved to {options['output']}")


def _report(decision: GuardDecision | None, name: str) -> str:
    if decision is None:
        return f"{name}: fitted without a guard"
    return (
        f"{name}: {decision.reason}\n"
        f"log loss change {decision.log_loss_change:+.6f} on {decision.n_check} checked rows, "
        f"fitted on {decision.n_fit}"
    )


def _compare(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    from trueup.calibrators import compare_calibrators

    if not options["fields"]:
        raise BadInput("--field must be given with --compare; got none. Name the sensitive field.")
    table = compare_calibrators(
        frame[options["target"]],
        frame[options["proba"]],
        {name: frame[name] for name in options["fields"]},
        field=options["fields"][0],
        times=frame[options["time"]] if options["time"] else None,
    )
    click.echo(table.to_markdown(), nl=False)
    if options["log"]:
        _log(table, options)


def _log(table: CalibratorTable, options: dict[str, Any]) -> None:
    import mlflow

    from trueup_mlflow.log_calibrators import log_calibrators

    if options["tracking_uri"] is not None:
        mlflow.set_tracking_uri(options["tracking_uri"])
    if options["experiment_name"] is not None:
        mlflow.set_experiment(options["experiment_name"])
    with mlflow.start_run(run_name="calibrators") as run:
        log_calibrators(table)
    click.echo(f"logged to run {run.info.run_id}")
