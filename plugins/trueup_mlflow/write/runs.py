"""How runs are found, and how one of ours is made: clean, and told from others by a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

from mlflow.entities import Experiment, LifecycleStage, Param, Run
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NAME

from trueup.errors import InvalidInputError
from trueup.redact import without_credentials

KIND_TAG = "mlflow.experimentKind"
MODEL_DEVELOPMENT = "custom_model_development"
"""What MLflow's page calls model training: it then opens with metrics, not in the GenAI view."""
NOTE_TAG = "mlflow.note.content"
_PARAMS_AT_ONCE = 100  # MLflow takes no more in a request


def mark_as_model_training(client: Any, experiment_id: str) -> None:
    """Let the page of an experiment open with metrics, unless its kind was chosen; never fail."""
    with suppress(Exception):
        if KIND_TAG not in client.get_experiment(experiment_id).tags:
            client.set_experiment_tag(experiment_id, KIND_TAG, MODEL_DEVELOPMENT)


def store_of(client: Any) -> str:
    """Return a sentence on where a client has looked, and how to look elsewhere."""
    return (
        f"The store is {without_credentials(client.tracking_uri)}: MLFLOW_TRACKING_URI, or "
        "--tracking-uri of a command, names another."
    )


def all_pages(search: Callable[..., Any], *args: Any, **options: Any) -> Iterator[Any]:
    """Yield all that a search of a client finds, asking for a page at a time."""
    token = None
    while True:
        page = search(*args, **options, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def children_of(
    client: Any, experiment_ids: Iterable[str], parent: str, also: str = ""
) -> Iterator[Run]:
    """Yield the runs below a parent, those that a filter finds ``also`` if there is one."""
    query = f"tags.`{MLFLOW_PARENT_RUN_ID}` = '{parent}'" + (f" and {also}" if also else "")
    return all_pages(client.search_runs, list(experiment_ids), query)


def read_parquet(client: Any, run_id: str, path: str) -> Any:
    """Return a table among the artifacts of a run."""
    from pyarrow.parquet import read_table

    with TemporaryDirectory() as folder:
        return read_table(client.download_artifacts(run_id, path, folder))


def experiment_ids(client: Any, names: Sequence[str] | None) -> list[str]:
    """Return the ids of the named experiments, which must exist, or of all active ones."""
    if names is None:
        return [found.experiment_id for found in all_pages(client.search_experiments)]
    ids = []
    for name in names:
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            raise InvalidInputError(
                "experiment_names must name existing experiments",
                repr(name),
                f"Check the spelling. {store_of(client)}",
            )
        ids.append(experiment.experiment_id)
    return ids


def find_run(
    client: Any, run_id: str, *, argument: str = "run_id", may_be_deleted: bool = False
) -> Run:
    """Return a run; refuse an id that the store does not have, or of a run that was deleted."""
    rule = f"{argument} must be a run of the store"
    try:
        run: Run = client.get_run(run_id)
    except MlflowException as refusal:
        if refusal.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise
        got = f"{run_id!r}: {refusal.message.rstrip('.')}"
        raise InvalidInputError(rule, got, store_of(client)) from refusal
    if run.info.lifecycle_stage == LifecycleStage.DELETED and not may_be_deleted:
        mend = f"Restore it: mlflow runs restore --run-id {run_id}."
        raise InvalidInputError(rule, f"{run_id!r}, which was deleted", mend)
    return run


def find_experiment(client: Any, name: str, *, argument: str) -> Experiment | None:
    """Return an experiment by its name; None where it has yet to be made.

    Raises InvalidInputError if it was deleted: MLflow keeps its name, and takes no run for it.
    """
    found: Experiment | None = client.get_experiment_by_name(name)
    if found is not None and found.lifecycle_stage == LifecycleStage.DELETED:
        raise InvalidInputError(
            f"{argument} must be an experiment that is not deleted",
            repr(name),
            f"Restore it: mlflow experiments restore --experiment-id {found.experiment_id}.",
        )
    return found


def ensure_experiment(client: Any, name: str, *, argument: str) -> str:
    """Return the id of an experiment, which is made where it is not there."""
    found = find_experiment(client, name, argument=argument)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another process was faster
            found = find_experiment(client, name, argument=argument)
            if found is None:
                raise
    return str(found.experiment_id)


def new_run(client: Any, experiment_id: str, tags: Mapping[str, str]) -> str:
    """Begin a run that is nobody's active one, and return its id; no tag holds a password."""
    clean = {name: without_credentials(value) for name, value in tags.items()}
    return str(client.create_run(experiment_id, tags=clean).info.run_id)


def new_child(
    client: Any,
    home: tuple[str, str],
    name: str,
    tags: Mapping[str, str],
    params: Mapping[str, Any],
) -> str:
    """Begin a run with parameters in an experiment, below a parent, and return its id."""
    experiment_id, parent = home
    place = {MLFLOW_PARENT_RUN_ID: parent, MLFLOW_RUN_NAME: name}
    run_id = new_run(client, experiment_id, {**place, **tags})
    log_params(client, run_id, params)
    return run_id


def log_params(client: Any, run_id: str, params: Mapping[str, Any]) -> None:
    """Log parameters, none of which holds a password."""
    clean = [Param(name, without_credentials(str(value))) for name, value in params.items()]
    for start in range(0, len(clean), _PARAMS_AT_ONCE):
        client.log_batch(run_id, params=clean[start : start + _PARAMS_AT_ONCE])
