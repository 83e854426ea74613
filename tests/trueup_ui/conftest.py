"""One store with something for every page, its server, and a browser."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread

import mlflow
import numpy as np
import pytest
import uvicorn
from mlflow import MlflowClient
from tests.databases import new_database
from tests.trueup_ui.stores import HOSTILE, log_batches, log_seeds, train, tuned_study

from trueup_mlflow import compare_runs, log_evaluation, log_study
from trueup_optuna import confirm, report_study
from trueup_ui.web.server import local_app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
REQUIRED = os.environ.get("TRUEUP_REQUIRE_SERVICES") == "1"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@dataclass(frozen=True)
class Filled:
    """A store and what is in it."""

    uri: str
    studies: str
    experiment: str
    empty: str
    client: MlflowClient


@pytest.fixture(scope="session")
def filled(tmp_path_factory) -> Iterator[Filled]:
    """A store with pipelines, a decision, levels, a study and a monitored model."""
    folder = tmp_path_factory.mktemp("ui")
    uri = new_database(folder)
    client = MlflowClient(uri)
    files = (folder / "files").as_uri()
    experiment = client.create_experiment(HOSTILE[4], artifact_location=files)
    empty = client.create_experiment("nothing here", artifact_location=files)
    for name in ("trueup/demand", "other"):
        client.create_experiment(name, artifact_location=files)
    parents = [
        log_seeds(client, experiment, name, mean)
        for name, mean in ((HOSTILE[0], 0.46), (HOSTILE[1], 0.4605), ("a | plain `name`", 0.47))
    ]
    log_seeds(client, experiment, HOSTILE[2], 0.48, rows="other rows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        _log_levels(client, experiment)
        arms = [f"tags.`mlflow.parentRunId` = '{parent}'" for parent in parents[:2]]
        compare_runs(*arms, metric="calibrated_log_loss", client=client)
    studies = f"sqlite:///{folder / 'study.db'}"
    study = tuned_study(studies)
    confirmation = confirm(study, train, n_seeds=3)
    log_study(
        report_study(study), confirmation=confirmation, experiment_name=HOSTILE[4], client=client
    )
    log_batches(client, "demand", [0.2, 0.25, 0.22])
    yield Filled(uri, studies, experiment, empty, client)
    mlflow.set_tracking_uri(None)


def _log_levels(client: MlflowClient, experiment: str) -> None:
    rng = np.random.default_rng(0)
    names = np.array([*HOSTILE, *(f"site {number}" for number in range(300))])
    level = rng.integers(0, len(names), 6_000)
    logit = rng.normal(-1.0, 1.0, 6_000)
    late = rng.random(6_000) < 1 / (1 + np.exp(-logit - (level == 3)))
    run = client.create_run(experiment, run_name=HOSTILE[5]).info.run_id
    log_evaluation(
        late,
        y_logit=logit,
        fields={HOSTILE[1]: names[level], "hour": rng.integers(0, 24, 6_000).astype(str)},
        run_id=run,
        client=client,
        figures=False,
    )
    client.set_terminated(run)


@pytest.fixture(scope="session")
def served(filled) -> Iterator[str]:
    """Address of the pages of the store, served on loopback."""
    with serving(local_app(filled.uri, study_storage=filled.studies)) as address:
        yield address


@contextmanager
def serving(app) -> Iterator[str]:
    """Serve an application from a thread, and give its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 300
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(30)


@dataclass
class Visit:
    """A page in the browser and everything that went wrong on it."""

    page: object
    address: str
    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, path: str):
        """Open a path and wait until nothing is loaded any more."""
        self.page.goto(self.address + path, wait_until="networkidle")
        return self.page

    def follow(self, link) -> None:
        """Click a link and wait until nothing of the page behind it is loaded any more."""
        with self.page.expect_navigation(wait_until="networkidle"):
            link.click()


@pytest.fixture(
    scope="module"
)  # while it runs, so does an event loop: no test elsewhere may see it
def browser():
    """Debian's chromium, driven by playwright."""
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("chromium must be installed where TRUEUP_REQUIRE_SERVICES=1")
        pytest.skip("the pages are looked at with chromium, which is missing")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def visit(browser, served) -> Iterator[Visit]:
    """A fresh page; it must end without an error, a refusal by its policy or a foreign request."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(300_000)  # milliseconds: on a busy machine 30 s may be too few
    seen = Visit(context.new_page(), served)
    seen.page.on(
        "console",
        lambda message: message.type == "error" and seen.problems.append(message.text),
    )
    seen.page.on("pageerror", lambda error: seen.problems.append(str(error)))
    seen.page.on("request", lambda request: seen.hosts.add(request.url.split("/")[2]))
    yield seen
    context.close()
    assert seen.problems == []
    assert seen.hosts <= {served.removeprefix("http://")}
