"""``trueup resample``: the error of a learner on new training sets, from labelled rows."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup_cli.shell.failures import BadInput, in_options
from trueup_cli.shell.options import (
    AS_JSON,
    check_place,
    label_values,
    logged_run,
    logs_to_mlflow,
    names_between,
    refuse_format_alone,
)
from trueup_cli.shell.output import echo, json_text, progress
from trueup_cli.shell.scripts import load_attribute

if TYPE_CHECKING:
    import pandas as pd

    from trueup.resampling import GEEstimate

_OF_CLASSES = ("log_loss", "brier_score", "roc_auc", "average_precision")
_OF_NUMBERS = ("mean_squared_error", "poisson_deviance")


@click.command("resample")
@click.argument("learner", metavar="MODULE:LEARNER")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", required=True, help="Column of the labels.")
@click.option("--label", "labels", multiple=True, help="Classes in order; the positive one last.")
@click.option("--features", multiple=True, callback=names_between, help="Columns to learn from.")
@click.option("--ignore", multiple=True, callback=names_between, help="Columns to leave out.")
@click.option(
    "--loss",
    type=click.Choice(_OF_CLASSES + _OF_NUMBERS),
    default="log_loss",
    show_default=True,
    help="What is measured on the test sets.",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Of k-fold.")
@click.option(
    "--repeats", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Of k-fold."
)
@click.option(
    "--bootstrap", type=click.IntRange(2, 100_000), help="Draws of the bootstrap, not k-fold."
)
@click.option("--group", help="Column whose rows stay together, as those of one user.")
@click.option("--time", help="Column that orders the rows: train on earlier, test on later ones.")
@click.option("--time-format", help="Format of times that are not ISO 8601, such as %d.%m.%Y.")
@click.option(
    "--aggregate",
    type=click.Choice(["mean", "median", "pool"]),
    default="mean",
    show_default=True,
    help="How the test sets are brought together.",
)
@click.option(
    "--split",
    "split_text",
    default="CrossFit(5)",
    show_default=True,
    help="Which rows of a test set fit its bias: CrossFit(folds), HoldOut(fraction), InSample.",
)
@click.option("--calibrated/--no-calibrated", default=True, help="Also correct the bias.")
@click.option("--confidence-level", type=float, default=0.95, show_default=True)
@click.option("--random-state", type=int, default=0, show_default=True, help="Of the splits.")
@click.option(
    "--workers", type=click.IntRange(1, 1_024), default=1, show_default=True, help="Processes."
)
@AS_JSON
@logs_to_mlflow
def resample(learner: str, file: Path, **options: Any) -> None:
    """Estimate the error of a learner on new training sets by resampling FILE (CSV or parquet).

    MODULE:LEARNER is a class or an estimator of scikit-learn's kind, a function without arguments
    that returns one, or a training function of (X_train, y_train) that returns a function of X.
    MODULE is a script (train.py) or a module (sklearn.linear_model). X is a data frame.

    Exit code: 0 fine, 2 bad input.

    Example: trueup resample sklearn.linear_model:LogisticRegression clicks.parquet --target click
    --ignore id --folds 10
    """
    is_logged = check_place(options)
    names = {"inducer": "LEARNER", "X": "FILE", "y": f"--target {options['target']!r}"}
    with in_options({**names, "split": "--split", "resampling": "--folds"}):
        inducer = _learner(learner)
        frame = _read(file, options)
        features = _features(frame, options)
        estimate = _estimate(inducer, frame, features, options)
    echo(_json(estimate, features) if options["as_json"] else _text(estimate, features))
    if is_logged:
        from trueup_mlflow import log_resampling
        from trueup_mlflow.write.items import RESAMPLING_ROLE

        with logged_run(options, "trueup resample", RESAMPLING_ROLE) as (client, run_id):
            where = {"prefix": options["prefix"], "run_id": run_id, "client": client}
            if log_resampling(estimate, **where) is None:
                raise BadInput("the estimate could not be logged. Mend what the warning says.")


def _learner(target: str) -> Any:
    found = load_attribute(target, "LEARNER")
    takes_rows = inspect.isfunction(found) and bool(inspect.signature(found).parameters)
    if hasattr(found, "fit") and not isinstance(found, type):
        return found
    if not callable(found) or takes_rows:
        return found
    try:
        return found()
    except TypeError as error:
        raise BadInput(
            f"LEARNER must need no arguments; got {target!r}: {error}. "
            "Name an estimator that has them, or a function that returns one."
        ) from error


def _read(file: Path, options: dict[str, Any]) -> pd.DataFrame:
    from trueup.read.frames import require_columns
    from trueup.read.tables import read_frame, rows_of_files
    from trueup.read.times import read_times

    frame = read_frame(file)
    asked = [options["target"], options["group"], options["time"]]
    asked = [name for name in asked if name is not None]
    wanted = [*asked, *(options["features"] or ()), *(options["ignore"] or ())]
    require_columns(wanted, list(frame.columns), file)
    if options["time"] is None:
        refuse_format_alone(options["time_format"])
        return frame
    with rows_of_files(file, options["time"]):
        times = read_times(frame[options["time"]].to_numpy(), time_format=options["time_format"])
    return frame.iloc[times.argsort(kind="stable")].reset_index(drop=True)


def _features(frame: pd.DataFrame, options: dict[str, Any]) -> list[str]:
    left_out = {options["target"], options["group"], options["time"], *(options["ignore"] or ())}
    features = [name for name in options["features"] or frame.columns if name not in left_out]
    if not features:
        raise BadInput("FILE must hold columns to learn from; got none. Name them: --features.")
    return features


def _estimate(
    inducer: Any, frame: pd.DataFrame, features: list[str], options: dict[str, Any]
) -> GEEstimate:
    from trueup.errors import TrueupError
    from trueup.read.columns import column
    from trueup.resampling import generalization_error
    from trueup.splits.assignment import parse_split

    strategy, target = _strategy(options), frame[options["target"]]
    total = options["bootstrap"] or options["folds"] * options["repeats"]
    try:
        with progress("resample", "test set", total) as count:
            return generalization_error(
                inducer,
                frame[features],
                target,
                strategy,
                loss=options["loss"],
                aggregate=options["aggregate"],
                calibrated=options["calibrated"],
                n_jobs=options["workers"],
                groups=None if options["group"] is None else frame[options["group"]],
                split=parse_split(options["split_text"]),
                confidence_level=options["confidence_level"],
                labels=label_values(options["labels"], column(target, "y")),
                on_test_set=count,
            )
    except TrueupError:
        raise
    except (TypeError, ValueError) as error:  # of the learner
        what = f"{type(error).__name__}: {str(error).rstrip('.')}"
        raise BadInput(
            f"LEARNER must learn {options['target']!r} from {', '.join(features)}; got {what}. "
            "Choose columns with --features or --ignore, or put a step before it that encodes them."
        ) from error


def _strategy(options: dict[str, Any]) -> Any:
    """Return the splitter that the options describe; of classes it keeps their shares."""
    from sklearn import model_selection as by

    from trueup.resampling import Bootstrap

    given = [f"--{name}" for name in ("bootstrap", "group", "time") if options[name] is not None]
    given += ["--repeats"] if options["repeats"] > 1 else []
    if len(given) > 1:
        raise BadInput(f"{' and '.join(given)} exclude each other. Pass one.")
    folds, seed = options["folds"], options["random_state"]
    of_classes = options["loss"] in _OF_CLASSES
    if options["bootstrap"] is not None:
        return Bootstrap(options["bootstrap"], random_state=seed)
    if options["time"] is not None:
        return by.TimeSeriesSplit(folds)
    if options["repeats"] > 1:
        repeated = by.RepeatedStratifiedKFold if of_classes else by.RepeatedKFold
        return repeated(n_splits=folds, n_repeats=options["repeats"], random_state=seed)
    if options["group"] is not None:
        grouped = by.StratifiedGroupKFold if of_classes else by.GroupKFold
        return grouped(folds, shuffle=True, random_state=seed)
    plain = by.StratifiedKFold if of_classes else by.KFold
    return plain(folds, shuffle=True, random_state=seed)


def _json(estimate: GEEstimate, features: list[str]) -> str:
    derived = {name: getattr(estimate, name) for name in ("value", "low", "high", "n_splits")}
    return json_text({**derived, **asdict(estimate), "features": features})


def _text(estimate: GEEstimate, features: list[str]) -> str:
    from trueup.presentation import text_of

    return "\n".join([text_of(estimate), *estimate.reasons, f"learned from {', '.join(features)}"])
