"""Take the pictures of ``docs/ui.md`` with Debian's chromium.

``python docs/site/make_screenshots.py sqlite:///mlflow.db`` takes the pipelines and their
comparison from the store of ``make demo``, and the other pages from a store that it fills itself: a
study on made-up data, the levels of a field, a monitored regression. About two minutes.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import mlflow
import numpy as np
import optuna
import pandas as pd
import uvicorn
from mlflow import MlflowClient
from playwright.sync_api import Page, sync_playwright
from sklearn.linear_model import LinearRegression

from trueup_mlflow import log_evaluation, log_study, monitor
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, confirm, finals, report_study
from trueup_ui.web.server import local_app

PICTURES = Path(__file__).parents[1]
DEMO = "trueup demo"
OWN = "click model"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--hide-scrollbars"]


def train(trial: optuna.Trial, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return made-up results: best at a rate of 0.03, with a bias that moves between seeds."""
    rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    width = trial.suggest_categorical("width", ["64", "128", "256"])
    rng = np.random.default_rng(0)
    logit = rng.normal(-1.2, 1.2, 3_000)
    click = (rng.random(3_000) < 1 / (1 + np.exp(-logit))).astype(int)
    own = np.random.default_rng([seed, int(1e6 * rate), int(width)])
    miss = 0.25 * abs(np.log10(rate / 0.03)) + {"64": 0.2, "128": 0.05, "256": 0.0}[width]
    noise = (0.5 + miss) * own.normal(size=3_000)
    return click, 1 / (1 + np.exp(-(logit + noise + 0.15 * own.normal())))


def fill_study(client: MlflowClient, experiment: str) -> None:
    """Log a tuned study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.RandomSampler(seed=3)
    study = optuna.create_study(
        study_name="width and rate", pruner=SeedRacePruner(n_configs=16), sampler=sampler
    )
    study.optimize(SeedObjective(train, seeds=SeedList(8, confirm=5)), n_trials=16)
    finals(study, train, budget=14)
    confirmation = confirm(study, train, n_seeds=5)
    log_study(
        report_study(study), confirmation=confirmation, experiment_name=experiment, client=client
    )


def fill_levels(client: MlflowClient, experiment_id: str) -> None:
    """Log an evaluation with a field of many levels, some of which are off."""
    rng = np.random.default_rng(0)
    n = 40_000
    site = rng.zipf(1.3, n) % 2_000
    logit = rng.normal(-1.5, 1.0, n)
    off = 0.5 * (site % 9 == 2) - 0.4 * (site % 11 == 3)
    click = rng.random(n) < 1 / (1 + np.exp(-(logit + off)))
    names = np.array([f"site-{number:04d}.example" for number in range(2_000)])
    run = client.create_run(experiment_id, run_name="deepfm seed 0").info.run_id
    fields = {"site": names[site], "hour": rng.integers(0, 24, n).astype(str)}
    log_evaluation(click, y_logit=logit, fields=fields, run_id=run, client=client, figures=False)
    client.set_terminated(run)


def fill_models() -> None:
    """Monitor a regression over eight batches whose features move at the end."""
    names = ["temperature", "price"]

    def rows(n: int, first: int, shift: float = 0.0) -> pd.DataFrame:
        rng = np.random.default_rng(first)
        x = rng.normal(shift, 1.0, size=(n, 2))
        y = x[:, 0] + 0.5 * rng.normal(size=n)
        return pd.DataFrame(
            {**dict(zip(names, x.T, strict=True)), "y": y, "id": first + np.arange(n)}
        )

    train_rows = rows(400, 1)
    model = LinearRegression().fit(train_rows[names], train_rows["y"])
    with mlflow.start_run():
        mlflow.sklearn.log_model(
            model, name="model", registered_model_name="demand", pip_requirements=["scikit-learn"]
        )
    monitor.init("models:/demand/1", rows(200, 2), target="y", row_id="id")
    batches = [rows(150, 1_000 * (k + 1), 0.15 * k * (k > 3)) for k in range(7)]
    batches.append(rows(100, 90_000, 6.0))
    for month, batch in enumerate(batches, 1):
        monitor.estimate("models:/demand/1", batch.drop(columns="y"), at=f"2026-{month:02d}-28")
    monitor.realize("models:/demand/1", pd.concat(batches[:6])[["id", "y"]])


def fill(folder: Path) -> str:
    """Fill a store for the pages that the demo has nothing for; return its address."""
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    os.environ["MLFLOW_TRACKING_URI"] = uri
    os.environ["MLFLOW_EXPERIMENT_NAME"] = OWN
    client = MlflowClient(uri)
    for name in (OWN, "trueup/demand"):
        client.create_experiment(name, artifact_location=(folder / "files").as_uri())
    fill_study(client, OWN)
    fill_levels(client, client.get_experiment_by_name(OWN).experiment_id)
    fill_models()
    return uri


@contextmanager
def served(uri: str) -> Iterator[str]:
    """Serve the pages of a store from a thread."""
    server = uvicorn.Server(uvicorn.Config(local_app(uri), port=0, log_level="warning"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def shoot(page: Page, url: str, name: str, height: int = 0) -> None:
    """Take a picture of the whole page, or of so many pixels of it."""
    page.goto(url, wait_until="networkidle")
    path = PICTURES / f"ui_{name}.png"
    if height:
        page.screenshot(
            path=path, clip={"x": 0, "y": 0, "width": 1280, "height": height}, full_page=True
        )
    else:
        page.screenshot(path=path, full_page=True)


def experiment(uri: str, name: str) -> str:
    """Return the path of the pages of an experiment."""
    return f"/experiment/{MlflowClient(uri).get_experiment_by_name(name).experiment_id}"


def shoot_demo(page: Page, uri: str) -> None:
    """Take the pictures of the demo's runs."""
    with served(uri) as address:
        own = address + experiment(uri, DEMO)
        shoot(page, own, "experiment", 720)
        shoot(page, f"{own}/compare", "compare")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 420, "height": 900})
        page.goto(own, wait_until="networkidle")
        page.screenshot(path=PICTURES / "ui_phone.png")
        page.set_viewport_size({"width": 1280, "height": 720})
        page.emulate_media(color_scheme="light")


def shoot_own(page: Page, uri: str) -> None:
    """Take the pictures of the store that was filled here."""
    with served(uri) as address:
        own = experiment(uri, OWN)
        page.goto(f"{address}{own}/studies", wait_until="networkidle")
        path = page.locator("main tbody a").first.get_attribute("href")
        shoot(page, address + urllib.parse.unquote(path or ""), "study")
        shoot(page, f"{address}{own}/fields", "fields", 760)
        shoot(page, f"{address}/models", "models", 500)
        shoot(page, f"{address}/model?name=demand&version=1", "model", 900)


def main() -> None:
    """Take all pictures."""
    demo = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        own = fill(Path(folder))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720}, locale="en-GB")
        shoot_demo(page, demo)
        shoot_own(page, own)
        browser.close()


if __name__ == "__main__":
    main()
