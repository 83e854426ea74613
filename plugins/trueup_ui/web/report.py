"""``trueup report``: a page as one file that needs no server, no script and no network."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup
from mlflow import MlflowClient

from trueup.errors import InvalidInputError
from trueup.replace_file import replace_file
from trueup_mlflow.compare.direction import direction
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.items import calibrated_key
from trueup_mlflow.write.runs import store_of
from trueup_ui.read.monitors import monitored_versions
from trueup_ui.read.store import Store
from trueup_ui.read.studies import logged_studies, logged_study
from trueup_ui.view.compare import Asked, compare_page
from trueup_ui.view.experiment import Choice, experiment_page
from trueup_ui.view.models import version_row
from trueup_ui.view.pipelines import PARAMETERS, group
from trueup_ui.view.seeds import metric_keys
from trueup_ui.view.study import study_page
from trueup_ui.web.rendering import STATIC, Links, Templates

MOST_STUDIES = 5
_MODEL_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>.+))")


def inlined() -> dict[str, Any]:
    """Return the style of a page that stands alone, and the policy that allows it alone."""
    style = (STATIC / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
    return {"style": Markup(style), "policy": policy}


def render_report(client: MlflowClient, experiment_name: str, choice: Choice) -> str:
    """Return the page of an experiment: its pipelines, their comparison, its studies.

    Raises InvalidInputError if there is no such experiment.
    """
    found = client.get_experiment_by_name(experiment_name)
    if found is None:
        raise InvalidInputError(
            "experiment must exist",
            repr(experiment_name),
            f"Check the spelling. {store_of(client)}",
        )
    store = Store(client)
    experiment = store.experiment(str(found.experiment_id))
    runs = store.runs(experiment.experiment_id).runs
    _require_choice(runs, choice)
    parents = logged_studies(runs)
    studies = [logged_study(run, runs) for run in parents[:MOST_STUDIES]]
    content = {
        "static": inlined(),
        "experiment": experiment,
        "now": int(time.time() * 1000),
        "pipelines": experiment_page(runs, choice),
        "comparison": compare_page(runs, _asked(runs, choice)),
        "studies": [study_page(study) for study in studies],
        "n_studies_hidden": len(parents) - len(studies),
    }
    return Templates().render("report.html", Links("", client.tracking_uri), content)


def _require_choice(runs: Sequence[StoredRun], choice: Choice) -> None:
    """Refuse what a page in the browser leaves out: a file is not asked again."""
    if choice.by and ":" not in choice.by and choice.by not in (PARAMETERS, "parents"):
        raise InvalidInputError(
            "by must be params, parents, param:NAME or tag:NAME",
            repr(choice.by),
            f"Pass param:{choice.by} to group by that parameter.",
        )
    trained = [run for pipeline in group(runs, choice.by).pipelines for run in pipeline.runs]
    if choice.by and not trained:
        raise InvalidInputError(
            "by must name what the runs have", repr(choice.by), "Check the spelling."
        )
    known = metric_keys(trained)
    if choice.metric and choice.metric not in known:
        raise InvalidInputError(
            "metric must be a vanilla key of the runs", repr(choice.metric), f"They have {known}."
        )
    direction(choice.metric, choice.higher)


def _asked(runs: Sequence[StoredRun], choice: Choice) -> Asked:
    """Compare by the calibrated values of the metric where there are any."""
    twin = calibrated_key(choice.metric)
    has_twin = any(twin in run.metrics for run in runs)
    metric = twin if choice.metric and has_twin else choice.metric
    return Asked(metric=metric, by=choice.by, higher=choice.higher)


def render_model_report(client: MlflowClient, model_uri: str) -> str:
    """Return the page of a monitored version, ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``.

    Raises InvalidInputError if the URI has another form, or the version is not monitored.
    """
    asked = _name_and_version(client, model_uri)
    for version in monitored_versions(client):
        if (version.model, version.version) == asked:
            row = version_row(version, datetime.now(UTC))
            content = {"static": inlined(), "row": row}
            return Templates().render("model.html", Links("", client.tracking_uri), content)
    raise InvalidInputError(
        "model must be a monitored version",
        repr(model_uri),
        f"Monitor it with: trueup monitor init {model_uri} --reference FILE --target COLUMN.",
    )


def _name_and_version(client: MlflowClient, model_uri: str) -> tuple[str, str]:
    found = _MODEL_URI.fullmatch(model_uri)
    if found is None:
        raise InvalidInputError(
            "model must be models:/NAME/VERSION or models:/NAME@ALIAS",
            repr(model_uri),
            "Register the model first.",
        )
    name, version, alias = found["name"], found["version"], found["alias"]
    if alias:
        version = client.get_model_version_by_alias(name, alias).version
    return name, str(version)


def write_report(
    path: str | Path, subject: str, choice: Choice, tracking_uri: str | None = None
) -> Path:
    """Write the page of an experiment, or of a model ``models:/...``, to a file; return the file.

    Refused are a folder that does not exist, and a choice that the page has no use for.
    """
    if not Path(path).parent.is_dir():
        raise InvalidInputError(
            "output must be in a folder that exists", repr(str(path)), "Make the folder first."
        )
    client = MlflowClient(tracking_uri)
    if subject.startswith("models:/"):
        if choice != Choice():
            raise InvalidInputError(
                "subject must be an experiment where metric=, by= or greater_is_better= is given",
                repr(subject),
                "Leave them out: a monitored version has one metric.",
            )
        text = render_model_report(client, subject)
    else:
        text = render_report(client, subject, choice)
    return replace_file(path, text)
