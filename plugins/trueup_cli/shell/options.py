"""Options that several commands have, under one name, and what they stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueup.errors import InvalidInputError
from trueup_cli.shell.failures import BadInput
from trueup_cli.shell.output import echo

if TYPE_CHECKING:
    from numpy.typing import NDArray

Command = Callable[..., Any]
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
TRACKING_URI = click.option("--tracking-uri", help="MLflow store; by default that of MLflow.")
GREATER_IS_BETTER = click.option(
    "--greater-is-better/--lower-is-better",
    default=None,
    help="Direction of the metric; lower by default. It must be said of one whose name says that "
    "higher is better, such as val_accuracy.",
)
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _ColumnOfLabels(click.types.StringParamType):
    """Says, where it is missing, which option is near: one letter less names the classes."""

    def get_missing_message(
        self,
        param: click.Parameter,  # noqa: ARG002 - click passes both
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        return "It names the column of the labels; --label names their classes."


TARGET = click.option(
    "--target", required=True, type=_ColumnOfLabels(), help="Column of the labels."
)


class NewFile(click.Path):
    """A file that is written after the work, in a folder that must be there before."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            name = "the file" if param is None else param.opts[0]
            raise BadInput(
                f"{name} must be in a folder that exists; got {str(path)!r}. Make the folder first."
            )
        return path


def existing_store(tracking_uri: str | None) -> str:
    """Return the address of a store that is there: who only reads must not have one made."""
    from mlflow import get_tracking_uri

    uri = tracking_uri or get_tracking_uri()
    place = place_of_store(uri)
    if place is None or place.exists():
        return uri
    raise BadInput(
        f"--tracking-uri must be a store that exists; got {uri!r}, and there is no {place}. "
        "MLFLOW_TRACKING_URI or --tracking-uri names another; the first logged run makes one."
    )


def place_of_store(uri: str) -> Path | None:
    """Return the file or folder of a store on this machine; None for a server or a database."""
    kind = uri.partition(":")[0] if ":" in uri else "file"
    if kind.partition("+")[0] == "sqlite":
        from sqlalchemy.engine import make_url

        file = make_url(uri).database
        return Path(file) if file and file != ":memory:" else None
    if kind != "file":
        return None
    from mlflow.utils.file_utils import local_file_uri_to_path

    return Path(local_file_uri_to_path(uri))


def label_values(labels: Sequence[str], y_true: NDArray[Any]) -> list[Any] | None:
    """Return the classes as values of a column, which must hold such; None where none was named."""
    if not labels:
        return None
    if y_true.dtype.kind == "b":
        return _truth_values(labels)
    if y_true.dtype.kind not in "iuf":
        return list(labels)
    try:
        return [float(label) for label in labels]
    except ValueError:
        import numpy as np

        found = ", ".join(f"{value:g}" for value in np.unique(y_true)[:5])
        raise InvalidInputError(
            "labels must be numbers, as the column of the labels is",
            repr(list(labels)),
            f"It holds {found}.",
        ) from None


def _truth_values(labels: Sequence[str]) -> list[bool]:
    try:
        return [_TRUTH[label.lower()] for label in labels]
    except KeyError:
        raise InvalidInputError(
            "labels must be true and false, as the column of the labels holds",
            repr(list(labels)),
            "Pass labels=[negative, positive] of these.",
        ) from None


def refuse_one_column(target: str, predictions: Sequence[str], option: str) -> None:
    """Refuse predictions that are the labels themselves."""
    if target in predictions:
        raise BadInput(
            f"{option} must name another column than --target; got {target!r} for both. Name the "
            "column of each."
        )


def refuse_format_alone(time_format: str | None, or_another: str = "") -> None:
    """Refuse a format of times where nothing is named that holds times."""
    if time_format is not None:
        raise BadInput(f"--time-format must come with --time{or_another}; got none. Give both.")


def names_between(
    context: click.Context,  # noqa: ARG001 - click passes both
    option: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[str, ...] | None:
    """Return names that were given one by one or between commas; None for none."""
    return tuple(name.strip() for value in values for name in value.split(",")) or None


def logs_to_mlflow(command: Command) -> Command:
    """Give a command the options that say to which run its result goes, see :func:`logged_run`."""
    for option in (
        TRACKING_URI,
        click.option("--prefix", default="", help="Put before the keys, such as val_."),
        click.option(
            "--experiment-name",
            "--experiment",
            "experiment_name",
            help="Log the result to a new run of this experiment.",
        ),
        click.option(
            "--log-to-mlflow", "run_id", metavar="RUN_ID", help="Log the result to this run."
        ),
    ):
        command = option(command)
    return command


def check_place(options: Mapping[str, Any]) -> bool:
    """Return whether the result is logged, to a run or an experiment that must be there."""
    run_id, name = options["run_id"], options["experiment_name"]
    if run_id and name:
        raise BadInput("--log-to-mlflow and --experiment-name exclude each other. Pass one.")
    if not (run_id or name):
        return False
    from mlflow import get_tracking_uri

    from trueup_mlflow.write.runs import find_experiment, find_run

    place = place_of_store(options["tracking_uri"] or get_tracking_uri())
    if name and place is not None and not place.exists():
        return True  # it has no experiment yet, and to ask would make it before the input is read
    client = _client(options)
    if run_id:
        find_run(client, run_id, argument="--log-to-mlflow")
    else:
        find_experiment(client, name, argument="--experiment-name")
    return True


def _client(options: Mapping[str, Any]) -> Any:
    """Return a client of the store, which a run that is named must not bring into being."""
    from mlflow import MlflowClient

    uri = options["tracking_uri"]
    return MlflowClient(existing_store(uri) if options["run_id"] else uri)


@contextmanager
def logged_run(
    options: Mapping[str, Any], run_name: str, role: str = "scoring"
) -> Iterator[tuple[Any, str]]:
    """Yield a client of the store and the run that the options name; end a new run.

    A new run of the named experiment, or of MLflow's own choice where none is named. Its role says
    that nothing was trained in it; a run that is named gets none.
    """
    from trueup_mlflow.write.items import ROLE_TAG

    client, run_id, ending = _client(options), options["run_id"], "FAILED"
    if not run_id:
        home, tags = _home(client, options["experiment_name"]), {ROLE_TAG: role}
        run_id = client.create_run(home, run_name=run_name, tags=tags).info.run_id
    try:
        yield client, run_id
        ending = "FINISHED"
    finally:
        if not options["run_id"]:
            client.set_terminated(run_id, ending)
    echo(f"logged to run {run_id}", err=True)


def _home(client: Any, name: str | None) -> str:
    """Return the id of an experiment, which is made where it is not there."""
    from mlflow.tracking.fluent import _get_experiment_id

    from trueup_mlflow.write.runs import ensure_experiment

    if not name:
        return str(_get_experiment_id())
    return ensure_experiment(client, name, argument="--experiment-name")
