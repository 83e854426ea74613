"""``trueup report``: an experiment as one file that needs no server, no script and no network."""

from __future__ import annotations

import base64
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from mlflow import MlflowClient

from trueup.errors import InvalidInputError
from trueup_ui.read.store import Store
from trueup_ui.read.studies import logged_studies, logged_study
from trueup_ui.view.compare import Asked, compare_page
from trueup_ui.view.experiment import Choice, experiment_page
from trueup_ui.view.study import study_page
from trueup_ui.web.rendering import STATIC, Links, Templates

MOST_STUDIES = 5


@dataclass(frozen=True)
class Inlined:
    """The style of a page that stands alone, and the policy that allows it and nothing else."""

    style: Markup
    policy: str

    @classmethod
    def read(cls) -> Inlined:
        """Return the style sheet of the pages."""
        style = (STATIC / "page.css").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        return cls(
            Markup(style), f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
        )


def render_report(client: MlflowClient, experiment_name: str, choice: Choice) -> str:
    """Return the page of an experiment: its pipelines, their comparison, its studies.

    Raises
    ------
    InvalidInputError
        If there is no such experiment.
    """
    found = client.get_experiment_by_name(experiment_name)
    if found is None:
        raise InvalidInputError(
            f"experiment must exist; got {experiment_name!r}. "
            "Check the spelling and the tracking URI."
        )
    store = Store(client)
    experiment = store.experiment(str(found.experiment_id))
    runs = store.runs(experiment.experiment_id).runs
    studies = [logged_study(run, runs) for run in logged_studies(runs)[:MOST_STUDIES]]
    uri = client.tracking_uri
    content = {
        "static": Inlined.read(),
        "experiment": experiment,
        "now": int(time.time() * 1000),
        "pipelines": experiment_page(runs, choice),
        "comparison": compare_page(runs, Asked(by=choice.by, higher=choice.higher)),
        "studies": [study_page(study) for study in studies],
    }
    links = Links("", uri if uri.startswith("http") else None)
    return Templates().render("report.html", links, content)


def write_report(
    path: str | Path, experiment_name: str, choice: Choice, tracking_uri: str | None = None
) -> Path:
    """Write the page of an experiment to a file and return it; see :func:`render_report`."""
    page = Path(path)
    client = MlflowClient(tracking_uri)
    page.write_text(render_report(client, experiment_name, choice), encoding="utf-8")
    return page
