"""``trueup calibrate``: fit a guarded calibrator on a file of predictions, or compare them all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.replace_file import replace_file_by
from trueup_cli.shell.failures import BadInput, in_options
from trueup_cli.shell.options import (
    AS_JSON,
    TARGET,
    NewFile,
    check_place,
    label_values,
    logged_run,
    logs_to_mlflow,
    refuse_one_column,
)
from trueup_cli.shell.output import echo, json_text, progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
@TARGET
@click.option("--label", "labels", multiple=True, help="The two classes, the positive one last.")
@click.option("--proba", required=True, help="Column of P(positive class).")
@click.option("--field", "fields", multiple=True, help="Column of a field; may be given again.")
@click.option("--time", "time", default=None, help="Column that orders the rows; else chance does.")
@click.option("--time-format", default=None, help='Of text that is not ISO 8601, as "%d.%m.%Y".')
@click.option("--weight", default=None, help="Column of weights.")
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
@click.option(
    "--priority",
    type=click.Choice(["field", "log_loss"]),
    default="field",
    show_default=True,
    help="Whether a rising field error refuses what lowers the log loss.",
)
@click.option("--follow", is_flag=True, help="With --time: fit on the newest rows, if drift asks.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder for the fitted calibrator.")
@click.option("--overwrite", is_flag=True, help="Replace the calibrator in the folder.")
@click.option(
    "--table",
    type=NewFile(),
    help="JSON or CSV file of the fitted numbers, for use without trueup.",
)
@click.option("--figure", type=NewFile(), help="PNG file of what each origin said.")
@click.option("--compare", is_flag=True, help="Compare on later rows, for the first field.")
@click.option("--log", is_flag=True, hidden=True)  # to a run where MLflow would make one
@AS_JSON
@logs_to_mlflow
def calibrate(file: Path, **options: Any) -> None:
    """Calibrate the predictions in FILE, a CSV or parquet file of rows the model has not seen.

    Exit code: 0 done, whether or not the guard keeps the calibrator; 2 bad input.

    Example: trueup calibrate val.parquet --target click --proba p --field site --output
    site_offsets
    """
    target, proba = (f"--{name} {options[name]!r}" for name in ("target", "proba"))
    names = {"y": target, "y_true": target, "X": proba, "y_proba": proba}
    more = {"times": "--time", "sample_weight": "--weight"}
    _check_options(options)
    from trueup.read.tables import rows_of_files

    try:
        with in_options(names | more), rows_of_files(file, options["target"]):
            frame = _read(file, options)
            (_compare if options["compare"] else _fit)(frame, options)
    except ImportError as error:
        raise BadInput(f"{error}. Run: pip install 'trueup[cli,sklearn,torch,mlflow]'") from error


def _check_options(options: dict[str, Any]) -> None:
    refuse_one_column(options["target"], (options["proba"],), "--proba")
    if check_place(options) and not options["compare"]:
        place = "--log-to-mlflow" if options["run_id"] else "--experiment-name"
        raise BadInput(f"{place} must come with --compare; got none. A fitted one is saved.")
    for needing, needed in (("follow", "time"), ("time_format", "time"), ("log", "compare")):
        if options[needing] and not options[needed]:
            option = f"--{needing.replace('_', '-')}"
            raise BadInput(f"{option} must come with --{needed}; got none. Give both.")
    if options["follow"] and not options["guard"]:
        raise BadInput("--follow must come with the guard; got --no-guard. Leave one out.")
    for saved in ("output", "table"):
        if options["compare"] and options[saved] is not None:
            raise BadInput(
                f"--{saved} must be left out with --compare; got one. Fit the one you choose "
                "without --compare."
            )


def _read(file: Path, options: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    from trueup.read.tables import read_columns
    from trueup.read.targets import read_binary_labels

    optional = [name for name in (options["time"], options["weight"]) if name is not None]
    wanted = [options["target"], options["proba"], *options["fields"], *optional]
    frame = pd.DataFrame(read_columns([str(file)], wanted))
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
    _refuse_overwriting(options)
    calibrator = _calibrator(name, options["fields"])
    columns = {"fields": {name: frame[name] for name in options["fields"]}}
    if options["weight"]:
        columns["sample_weight"] = frame[options["weight"]]
    if options["guard"]:
        calibrator = Guarded(calibrator, priority=options["priority"], windows=_windows(options))
        columns["times"] = _times(frame, options)
    with progress("calibrate"):
        calibrator.fit(frame[options["proba"]], frame[options["target"]], **columns)
    decision = getattr(calibrator, "decision_", None)
    if options["as_json"]:
        content = None if decision is None else {**asdict(decision), "by_time": decision.by_time}
        echo(json_text({"calibrator": name, "decision": content}))
    else:
        echo(_report(decision, name))
    for line in _write(calibrator, decision, name, options):
        echo(line, err=options["as_json"])


def _times(frame: pd.DataFrame, options: dict[str, Any]) -> Any:
    from trueup.read.times import read_times

    if options["time"] is None:
        return None
    return read_times(frame[options["time"]].to_numpy(), time_format=options["time_format"])


def _windows(options: dict[str, Any]) -> tuple[float, ...]:
    from trueup.calibrators import DRIFT_WINDOWS

    return DRIFT_WINDOWS if options["follow"] else (1.0,)


def _refuse_overwriting(options: dict[str, Any]) -> None:
    output = options["output"]
    if output is not None and (output / "calibrator.json").exists() and not options["overwrite"]:
        raise BadInput(
            f"--output must be a folder without a calibrator; got {str(output)!r}, which holds "
            "one. Name another folder, or pass --overwrite."
        )


def _write(
    calibrator: Calibrator, decision: GuardDecision | None, name: str, options: dict[str, Any]
) -> Iterator[str]:
    unchanged = decision is not None and not decision.kept
    effect = ", which returns the probabilities unchanged" if unchanged else ""
    if options["output"] is not None:
        calibrator.save(options["output"])
        yield f"saved to {options['output']}{effect}"
    if options["table"] is not None:
        from trueup.calibrators import offset_table

        offset_table(calibrator).write(options["table"])
        yield f"table written to {options['table']}{effect}"
    if options["figure"] is not None:
        yield _draw({} if decision is None else {name: decision}, options["figure"])


def _draw(decisions: Mapping[str, GuardDecision], path: Path) -> str:
    from trueup_mlflow.write.decision_figures import guard_figure

    by_time = {name: decision for name, decision in decisions.items() if decision.by_time}
    if not by_time:
        raise BadInput("--figure must come with --time and a guard; got no origins. Name the time.")
    figure = guard_figure(by_time)
    replace_file_by(path, lambda file: figure.savefig(file, dpi=120))
    return f"figure written to {path}"


def _calibrator(name: str, fields: tuple[str, ...]) -> Calibrator:
    from trueup.calibrators import FieldOffsetCalibrator
    from trueup.calibrators.judging.compare import default_calibrators

    if name == "field_offset":
        return FieldOffsetCalibrator()  # of all fields; the table's is that of the first
    if name == "neural_field_only" and not fields:
        raise BadInput("--field must be given with neural_field_only; got none. Name the field.")
    return default_calibrators(next(iter(fields), ""))[name]


def _report(decision: GuardDecision | None, name: str) -> str:
    if decision is None:
        return f"{name}: fitted without a guard"
    lines = [
        f"{name}: {decision.reason}",
        f"log loss change {decision.log_loss_change:+.6f} on {decision.n_check} checked rows, "
        f"fitted on {decision.n_fit}",
    ]
    if decision.refused_by == "field error":
        lines.append("--priority log_loss keeps it")
    if not decision.by_time and decision.origins:
        lines.append(
            "the halves are random: name the column of time with --time to judge on later rows"
        )
    if decision.window < 1.0:
        lines.append(f"fitted on the newest {decision.window:.3g} of the rows, to follow drift")
    if decision.by_time:
        lines.append(decision.to_markdown().rstrip())
    return "\n".join(lines)


def _compare(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    from trueup.calibrators import compare_calibrators
    from trueup.calibrators.judging.compare import default_calibrators

    if not options["fields"]:
        raise BadInput("--field must be given with --compare; got none. Name the sensitive field.")
    known = default_calibrators(options["fields"][0])
    times = _times(frame, options)
    chosen = {name: known[name] for name in options["calibrators"] or known}
    with progress("calibrate", "calibrator", len(chosen)) as count:
        table = compare_calibrators(
            frame[options["target"]],
            frame[options["proba"]],
            {name: frame[name] for name in options["fields"]},
            field=options["fields"][0],
            times=times,
            shuffle=times is None,
            sample_weight=frame[options["weight"]] if options["weight"] else None,
            guard=options["guard"],
            priority=options["priority"],
            windows=_windows(options),
            calibrators=chosen,
            on_score=count,
        )
    echo(json_text(asdict(table)) if options["as_json"] else table.to_markdown().rstrip("\n"))
    if options["figure"] is not None:
        echo(_draw(table.decisions(), options["figure"]), err=options["as_json"])
    if options["log"] or options["run_id"] or options["experiment_name"]:
        _log(table, options)


def _log(table: CalibratorTable, options: dict[str, Any]) -> None:
    from trueup_mlflow.log.log_calibrators import log_calibrators

    with logged_run(options, "calibrators") as (client, run_id):
        if not log_calibrators(table, prefix=options["prefix"], run_id=run_id, client=client):
            raise BadInput(f"the table could not be logged to run {run_id}.")
