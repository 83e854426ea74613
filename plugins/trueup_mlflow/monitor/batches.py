"""Where batches come from: periods of a table, files of a folder; and the missing checks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError, TrueupError
from trueup.monitoring import MSEEstimate
from trueup_mlflow import monitor
from trueup_mlflow.monitor.check_registry import ReferenceKind, check_uri
from trueup_mlflow.monitor.periods import Period, periods_of
from trueup_mlflow.monitor.registered_model import resolve
from trueup_mlflow.monitor.tables import is_spark_frame, read_table
from trueup_mlflow.write.monitor_items import CHECK_URI_TAG, timestamp_of

_SUFFIXES = (".parquet", ".csv", ".csv.gz")


def estimate_periods(
    model_uri: str, table: Any, *, time_column: str, period: Period = "month"
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log each calendar period of a table as a batch of its own.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`.
    table : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows of any number of periods. Of Spark, one period at a time is collected.
    time_column : str
        Column of the times; it is a feature only if the reference had it.
    period : {"day", "week", "month"}, default "month"
        Calendar period; the end of it is the time of the batch.

    Returns
    -------
    list of (str, MSEEstimate)
        The period's name and its estimate, in order.

    Raises
    ------
    InvalidInputError
        If the column is missing, or a row of it holds no date.
    """
    found = []
    for label, part in periods_of(table, time_column, period):
        end = label.end_time.to_pydatetime(warn=False)
        found.append((str(label), monitor.estimate(model_uri, part, at=end)))
    return found


def estimate_chunks(
    model_uri: str, table: Any, *, rows: int, at: str | datetime | None = None
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log each run of consecutive rows of a table as a batch of its own.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`.
    table : data frame of pandas or path of a parquet or CSV file
        Rows in the order in which they came.
    rows : int
        Rows of a batch; the last one may have fewer.
    at : str or datetime, optional
        Time of the first batch, now by default; each further one is a second later.

    Returns
    -------
    list of (str, MSEEstimate)
        The first and last row, counted from 0, and the estimate.

    Raises
    ------
    InvalidInputError
        If ``rows`` is below 1, or the rows have no order, as those of Spark.
    """
    if rows < 1:
        raise InvalidInputError(f"rows must be at least 1; got {rows}. Give the size of a batch.")
    if is_spark_frame(table):
        raise InvalidInputError(
            "table must have an order to be cut into chunks of rows; got a Spark data frame. "
            "Cut it by time with estimate_periods, or collect its rows in an order that means one."
        )
    whole = read_table(table)
    start = datetime.fromtimestamp(timestamp_of(at, "00000000") / 1000.0, UTC)
    found = []
    for number, first in enumerate(range(0, len(whole), rows)):
        part, moment = whole.iloc[first : first + rows], start + timedelta(seconds=number)
        estimate = monitor.estimate(model_uri, part, at=moment)
        found.append((f"{first}-{first + len(part) - 1}", estimate))
    return found


def watch(
    model_uri: str, folder: str | Path, *, seconds: float = 10.0, once: bool = False
) -> Iterator[tuple[Path, MSEEstimate | TrueupError]]:
    """Estimate and log files as they come in a folder.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`; an alias is followed anew for each file.
    folder : str or path
        Parquet and CSV files. Write a file under another name and rename it when it is complete.
    seconds : float, default 10
        Pause between two looks.
    once : bool, default False
        Stop when the folder holds no more files.

    Yields
    ------
    (Path, MSEEstimate or TrueupError)
        Each file in the order of its time, with its estimate or what is wrong with it.

    Raises
    ------
    InvalidInputError
        If the version has no check, or there is no such version; the files stay.

    Notes
    -----
    A file moves to ``done/`` after it was logged, or to ``rejected/``. A process that is killed in
    between leaves the file; the next one finds its batch logged, logs nothing twice, and moves it.
    """
    root = Path(folder)
    while True:
        _require_check(model_uri)
        for path in _waiting(root):
            yield path, _handle(model_uri, path)
        if once:
            return
        time.sleep(seconds)


def init_missing(
    name: str,
    reference: Any,
    *,
    target: str,
    reference_is: ReferenceKind = "held-out",
    row_id: str | None = None,
) -> list[str]:
    """Give every version of a registered model that has no check one; return their URIs.

    Raises
    ------
    InvalidInputError
        If the registry knows no such model, or as :func:`trueup_mlflow.monitor.init` does.
    """
    versions = MlflowClient().search_model_versions(f"name='{name}'")
    if not versions:
        raise InvalidInputError(
            f"name must be a registered model; got {name!r}. Check name and tracking URI."
        )
    return [
        monitor.init(
            f"models:/{name}/{version.version}",
            reference,
            target=target,
            reference_is=reference_is,
            row_id=row_id,
        )
        for version in sorted(versions, key=lambda version: int(version.version))
        if CHECK_URI_TAG not in version.tags
    ]


def _require_check(model_uri: str) -> None:
    check_uri(resolve(model_uri, MlflowClient()))


def _waiting(root: Path) -> list[Path]:
    files = [path for path in root.iterdir() if path.name.endswith(_SUFFIXES)]
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name))


def _handle(model_uri: str, path: Path) -> MSEEstimate | TrueupError:
    _require_check(model_uri)  # a file is not to blame if the alias was removed
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    try:
        outcome: MSEEstimate | TrueupError = monitor.estimate(model_uri, path, at=at)
    except TrueupError as failure:
        outcome = failure
    target = path.parent / ("rejected" if isinstance(outcome, TrueupError) else "done")
    target.mkdir(exist_ok=True)
    path.replace(target / path.name)
    return outcome
