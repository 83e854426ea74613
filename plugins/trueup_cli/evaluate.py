"""``trueup evaluate``: vanilla and calibrated metric of predictions in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import trueup
from trueup import Evaluation
from trueup.evaluation.files import evaluate_files
from trueup.losses import LOSSES
from trueup.read.csv_files import Dialect, Role
from trueup.read.files import resolve, size_when_read
from trueup.read.ids import ID_TYPES
from trueup.read.tables import read_columns, rows_of_files
from trueup.read.times import read_times
from trueup.splits.assignment import parse_split
from trueup.summaries import summary_type
from trueup_cli.shell.failures import BadInput, in_options
from trueup_cli.shell.options import (
    AS_JSON,
    TARGET,
    check_place,
    label_values,
    logged_run,
    logs_to_mlflow,
    refuse_format_alone,
    refuse_one_column,
)
from trueup_cli.shell.output import echo, json_text, progress
from trueup_mlflow.write.items import (
    LogItems,
    bias_cost_key,
    calibrated_key,
    evaluation_items,
    field_key,
)

_LARGE_BYTES = 10**8
_OF_NUMBERS = ("mean_squared_error", "poisson_deviance")
_PREDICTIONS = ("proba", "logit", "pred")


@click.command("evaluate")
@click.argument("files", nargs=-1, required=True)
@TARGET
@click.option("--proba", multiple=True, help="Column of probabilities; one a class, in order.")
@click.option("--logit", multiple=True, help="Column of log-odds or logits, in place of --proba.")
@click.option("--pred", multiple=True, help="Column of predictions, for losses of numbers.")
@click.option("--loss", type=click.Choice(sorted(LOSSES)), default="log_loss", show_default=True)
@click.option(
    "--split",
    "split_text",
    default="CrossFit(5)",
    show_default=True,
    help=("CrossFit(folds, salt), HoldOut(bias_fraction, salt), Rolling(period) or InSample."),
)
@click.option("--label", "labels", multiple=True, help="Classes in order; the positive one last.")
@click.option("--row-id", help="Column that identifies the rows; the position by default.")
@click.option("--time", "times", help="Column of times, for Rolling.")
@click.option("--time-format", help="Format of times that are not ISO 8601, such as %d.%m.%Y.")
@click.option("--weight", "sample_weight", help="Column of weights.")
@click.option("--field", "fields", multiple=True, help="Column over whose levels to look as well.")
@click.option("--sep", help="What separates the cells of CSV files; recognised by default.")
@click.option("--decimal", help="Decimal point of CSV files; recognised by default.")
@click.option("--id-type", type=click.Choice(ID_TYPES), help="What ids are, where files differ.")
@AS_JSON
@click.option("--step", type=int, default=0, show_default=True, help="Step of logged metrics.")
@logs_to_mlflow
def evaluate(files: tuple[str, ...], **options: Any) -> None:
    """Score the predictions in FILES before and after the correction of one bias term.

    FILES are parquet or CSV files, or patterns such as "preds/*.parquet".

    They are read in batches, so they may be larger than memory, except with --label, --time or
    several classes: these read the named columns as a whole. So does --field for files of up to
    100 MB together; the fields of larger ones are summed up in batches, which takes whole numbers
    and categories, no numbers with a fraction.

    Exit code: 0 fine, 2 bad input.

    Example: trueup evaluate "preds/*.parquet" --target click --proba p --field site_id
    """
    is_logged = check_place(options)
    with in_options(_written(options)):
        evaluation = _evaluation(files, options)
    items = evaluation_items(evaluation, prefix=options["prefix"])
    echo(
        json_text(evaluation.to_dict())
        if options["as_json"]
        else _text(evaluation, items, options["prefix"])
    )
    if is_logged:
        _log(evaluation, items, options)


def _written(options: Mapping[str, Any]) -> dict[str, str]:
    """Return what the user wrote for each argument of ``trueup.evaluate``."""
    kind = next((kind for kind in _PREDICTIONS if options[kind]), "proba")
    of_numbers = options["loss"] in _OF_NUMBERS
    of_pred = ("pred" if of_numbers else "proba") if kind == "logit" else kind
    return {
        "y_true": _option("--target", options["target"]),
        "y_pred": _option(f"--{of_pred}", *options[of_pred]),
        "y_proba": _option(f"--{of_pred}", *options[of_pred]),
        "y_logit": _option("--logit", *options["logit"]),
        "row_id": _option("--row-id", options["row_id"]),
        "times": _option("--time", options["times"]),
        "sample_weight": _option("--weight", options["sample_weight"]),
        "split": "--split",
        "paths": "FILES",
    }


def _option(name: str, *columns: str | None) -> str:
    return " ".join([name, *(repr(column) for column in columns if column is not None)])


def _evaluation(files: Sequence[str], options: Mapping[str, Any]) -> Evaluation:
    """Score in batches where a summary gives all that is shown, and from whole columns if not."""
    if options["times"] is None:
        refuse_format_alone(options["time_format"])
    kind, predictions = _prediction_columns(options)
    refuse_one_column(options["target"], predictions, f"--{kind}")
    others = (options["target"], *predictions, options["sample_weight"], options["times"])
    if options["row_id"] is not None and options["row_id"] in others:
        raise BadInput(
            f"--row-id must name another column than --target, --{kind}, --weight and --time; got "
            f"{options['row_id']!r} for two of them. Name the column of each."
        )
    split = parse_split(options["split_text"])
    by_rows = bool(options["times"] or options["labels"])
    n_columns = len(_roles(options, predictions))
    by_rows = by_rows or (bool(options["fields"]) and not _are_large(files, n_columns))
    summed_up = summary_type(options["loss"]) is not None and split.n_groups is not None
    with progress("evaluate", "row") as count:
        if by_rows or not summed_up or len(predictions) > 1:
            return _evaluate_rows(files, options)
        return evaluate_files(
            files,
            y_true=options["target"],
            y_proba=None if kind == "logit" else predictions[0],
            y_logit=predictions[0] if kind == "logit" else None,
            loss=options["loss"],
            split=split,
            row_id=options["row_id"],
            sample_weight=options["sample_weight"],
            fields=options["fields"],
            on_batch=count,
            sep=options["sep"],
            decimal=options["decimal"],
            id_type=options["id_type"],
        )


def _are_large(files: Sequence[str], n_columns: int) -> bool:
    return sum(size_when_read(file, n_columns) for file in resolve(files)) > _LARGE_BYTES


def _evaluate_rows(files: Sequence[str], options: Mapping[str, Any]) -> Evaluation:
    """Score the rows of whole columns; a row that is refused is found in its file."""
    kind, predictions = _prediction_columns(options)
    dialect = Dialect(options["sep"], options["decimal"])
    roles = _roles(options, predictions)
    columns = read_columns(files, roles, dialect=dialect, id_type=options["id_type"])
    y_true, given = columns[options["target"]], _stacked(columns, predictions)
    with rows_of_files(files, options["target"], dialect):
        if options["times"] is not None:
            times = columns[options["times"]]
            columns[options["times"]] = read_times(times, time_format=options["time_format"])
        return trueup.evaluate(
            y_true,
            None if kind == "logit" else given,
            y_logit=given if kind == "logit" else None,
            loss=options["loss"],
            split=parse_split(options["split_text"]),
            labels=label_values(options["labels"], y_true),
            row_id=columns.get(options["row_id"]),
            times=columns.get(options["times"]),
            sample_weight=columns.get(options["sample_weight"]),
            fields={name: columns[name] for name in options["fields"]} or None,
        )


def _roles(options: Mapping[str, Any], predictions: Sequence[str]) -> dict[str, Role]:
    """Return what each column is read for."""
    of_numbers = options["loss"] in _OF_NUMBERS
    given: list[tuple[str | None, Role]] = [
        *((name, "level") for name in options["fields"]),
        (options["times"], "any"),
        (options["target"], "number" if of_numbers else "label"),
        *((name, "number") for name in predictions),
        (options["sample_weight"], "number"),
        (options["row_id"], "id"),
    ]
    return {name: role for name, role in given if name is not None}


def _prediction_columns(options: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    given = [(kind, options[kind]) for kind in _PREDICTIONS if options[kind]]
    if len(given) != 1:
        raise BadInput(
            f"exactly one of --proba, --logit and --pred must be given; got {len(given)}. "
            "Name the column of the predictions."
        )
    return given[0]


def _stacked(columns: Mapping[str, NDArray[Any]], names: Sequence[str]) -> NDArray[Any]:
    given = [columns[name] for name in names]
    return given[0] if len(given) == 1 else np.column_stack(given)


def _text(evaluation: Evaluation, items: LogItems, prefix: str) -> str:
    width = max(map(len, _rows(evaluation, items)))
    errors = {
        items.key: evaluation.standard_errors.vanilla,
        calibrated_key(items.key): evaluation.standard_errors.calibrated,
    }
    floors = _floors(evaluation, prefix)
    last_title = "perfect model" if floors else ""
    lines = [f"{'':{width}}  {'value':>12}  {'± row sampling':>14}  {last_title:>13}".rstrip()]
    for key, value in _rows(evaluation, items).items():
        error = f"{errors[key]:.6f}" if key in errors else ""
        floor = f"{floors[key]:.6f}" if key in floors else ""
        lines.append(f"{key:{width}}  {value:12.6f}  {error:>14}  {floor:>13}".rstrip())
    lines.append(
        f"{evaluation.n} rows, {evaluation.n_scored} scored, {evaluation.spec.split}, "
        f"rows {evaluation.fingerprint.partition(':')[0]}"
    )
    if evaluation.n_scored < evaluation.n:
        lines.append(
            f"of the {evaluation.n_scored} scored rows: {_scored(items.key)} = "
            f"{calibrated_key(items.key)} + {bias_cost_key(items.key)}"
        )
    return "\n".join(lines)


def _rows(evaluation: Evaluation, items: LogItems) -> dict[str, float]:
    """Return the lines of the table; the vanilla value of the scored rows where those are fewer."""
    if evaluation.n_scored == evaluation.n:
        return dict(items.metrics)
    scored = {_scored(items.key): evaluation.vanilla_on_scored_rows}
    return {items.key: items.metrics[items.key], **scored, **items.metrics}


def _scored(key: str) -> str:
    return f"{key}, scored rows"


def _floors(evaluation: Evaluation, prefix: str) -> dict[str, float]:
    """Return what a perfect model would score, by the key of the error of each field."""
    return {
        field_key(kind, name, prefix, evaluation.fields): floor
        for name, measured in evaluation.fields.items()
        for kind, floor in (("ece", measured.floor), ("rce", measured.rce_floor))
    }


def _log(evaluation: Evaluation, items: LogItems, options: Mapping[str, Any]) -> None:
    from trueup_mlflow.log.log_evaluation import log_fields
    from trueup_mlflow.write.writer import Point, RunWriter

    with logged_run(options, "trueup evaluate") as (client, run_id):
        writer = RunWriter(run_id, client)
        written = writer.log(items, Point(options["step"]))
        if not (written and log_fields(evaluation, items.key, writer)):
            raise BadInput(f"the result could not be logged to run {run_id}.")
