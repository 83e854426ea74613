"""``trueup doctor``: whether all is as it should be here, and what a run gained."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any, Literal, NamedTuple

import click

import trueup
from trueup.extras import installed_version
from trueup_cli.shell.failures import in_options
from trueup_cli.shell.options import AS_JSON, TRACKING_URI, existing_store, place_of_store
from trueup_cli.shell.output import echo, json_text, progress

Mark = Literal["ok", "note", "wrong"]
_PACKAGES = ("mlflow", "optuna", "scikit-learn", "torch", "xgboost", "lightgbm", "lightning")
_OLDEST = {"mlflow": (3, 10), "optuna": (5, 0), "torch": (2, 5), "scikit-learn": (1, 6)}
_ENTRY_POINTS = ("mlflow.run_context_provider", "mlflow.model_evaluator", "mlflow.project_backend")


class _Finding(NamedTuple):
    """One thing that was looked at."""

    mark: Mark
    text: str


@click.command("doctor")
@click.argument("run_id", required=False)
@AS_JSON
@TRACKING_URI
@click.pass_context
def doctor(
    context: click.Context, run_id: str | None, as_json: bool, tracking_uri: str | None
) -> None:
    """Check the installation, the switch and the store; with RUN_ID, say what that run gained.

    Parents of seeds whose backend was killed on this machine are ended.

    Exit code: 0 fine; 1 something is wrong, or the run gained no twin; 2 bad input.

    Example: trueup doctor RUN_ID
    """
    if run_id is not None:
        gained = _coverage(run_id, tracking_uri)
        echo(json_text(gained) if as_json else _coverage_text(gained))
        context.exit(int(not gained["twins"]))
    with progress("doctor"):
        findings = [*_installation(), *_switch(), *_store(tracking_uri)]
    if as_json:
        echo(json_text([finding._asdict() for finding in findings]))
    else:
        echo("\n".join(f"{finding.mark:5} {finding.text}" for finding in findings))
    context.exit(int(any(finding.mark == "wrong" for finding in findings)))


def _coverage(run_id: str, tracking_uri: str | None) -> dict[str, Any]:
    """Return what a finished run says of its twins, and the reasons that it holds."""
    from mlflow import MlflowClient

    from trueup_mlflow.write.items import COVERAGE_TAG, calibrated_key, skipped_tag
    from trueup_mlflow.write.late_twins import late_twins
    from trueup_mlflow.write.runs import find_run

    with in_options({"run_id": "RUN_ID"}):
        run = find_run(MlflowClient(existing_store(tracking_uri)), run_id, may_be_deleted=True)
    tags, keys, start = run.data.tags, run.data.metrics, skipped_tag("")
    late = {
        key: said for key, said in late_twins(run).items() if key.startswith(calibrated_key(""))
    }
    return {
        "run_id": run_id,
        "run_name": run.info.run_name,
        "status": run.info.status,
        "coverage": tags.get(COVERAGE_TAG),
        "twins": sorted(key for key in keys if calibrated_key(key) in keys.keys() - late),
        "late": late,
        "skipped": {tag: text for tag, text in sorted(tags.items()) if tag.startswith(start)},
    }


def _coverage_text(gained: dict[str, Any]) -> str:
    said = gained["coverage"]
    if said is None and gained["twins"]:
        said = f"twins of {', '.join(gained['twins'])}."
    elif said is None and gained["late"]:
        said = "no twins of last values."
    elif said is None:
        said = (
            "no twins: autologging was off in this run, or it did not end. Set TRUEUP_AUTOLOG=1, "
            "or call trueup_mlflow.log_evaluation(y_true, y_pred)."
        )
    late = [f"{key} is late: {text}" for key, text in gained["late"].items()]
    lines = [f"run {gained['run_id']} ({gained['run_name']}), {gained['status']}", said]
    return "\n".join(
        [*lines, *late, *(f"{tag}: {text}" for tag, text in gained["skipped"].items())]
    )


def _installation() -> Iterator[_Finding]:
    from trueup._kernels import engine

    python = ".".join(map(str, sys.version_info[:3]))
    yield _Finding("ok", f"trueup {trueup.__version__}, Python {python}")
    if engine.__name__.endswith("numpy_engine"):
        asked = os.environ.get("TRUEUP_ENGINE") == "numpy"
        why = "as TRUEUP_ENGINE=numpy asks" if asked else "with gcc or clang here, install again"
        yield _Finding("note", f"numpy stands in for the loops in C: slower; {why}")
    for package in _PACKAGES:
        found = installed_version(package)
        if found is None:
            yield _Finding("note", f"{package} is not installed")
            continue
        oldest = _OLDEST.get(package, ())
        too_old = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal()) < oldest
        wanted = ".".join(map(str, oldest))
        text = f"{package} {found}" + (f"; trueup needs {wanted} or later" if too_old else "")
        yield _Finding("wrong" if too_old else "ok", text)
    for group in _ENTRY_POINTS:
        names = [point.name for point in entry_points(group=group) if "trueup" in point.value]
        if names:
            yield _Finding("ok", f"MLflow finds {names[0]} ({group})")
        else:
            yield _Finding("wrong", f"MLflow does not find trueup ({group}): install it again")


def _switch() -> Iterator[_Finding]:
    import mlflow  # noqa: F401 - which loads our context: first, or it finds half a module

    from trueup_mlflow.context import AUTOLOG_VARIABLE, OFF, ON

    value = os.environ.get(AUTOLOG_VARIABLE, "")
    word = value.strip().lower()
    if word in ON:
        yield _Finding("ok", f"{AUTOLOG_VARIABLE}={value}: autologging is on")
    elif word in OFF:
        yield _Finding("note", f"autologging is off; {AUTOLOG_VARIABLE}=1 switches it on")
    else:
        known = ", ".join(ON)
        text = f"{AUTOLOG_VARIABLE}={value} is none of {known}: autologging is off"
        yield _Finding("wrong", text)


def _store(tracking_uri: str | None) -> Iterator[_Finding]:
    from mlflow import MlflowClient, get_tracking_uri

    from trueup.redact import without_credentials
    from trueup_mlflow.seeds.seed_processes import end_abandoned

    uri = without_credentials(tracking_uri or get_tracking_uri())
    place = place_of_store(tracking_uri or get_tracking_uri())
    if place is not None and not place.exists():
        yield _Finding("note", f"there is no store at {uri} yet: the first logged run makes it")
        return
    try:
        client = MlflowClient(tracking_uri)
        ids = [experiment.experiment_id for experiment in client.search_experiments()]
        yield _Finding("ok", f"the store {uri} answers, {len(ids)} experiments")
        for run_id in end_abandoned(client, ids):
            yield _Finding("note", f"ended run {run_id}: its seeds backend was killed")
    except Exception as failure:
        reason = without_credentials(" ".join(str(failure).split()))[:300]
        yield _Finding("wrong", f"the store {uri} does not answer: {reason}")
