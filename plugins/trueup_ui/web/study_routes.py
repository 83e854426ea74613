"""Routes of studies: those that were logged, and those of an Optuna storage while they run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_ui.read.studies import (
    Study,
    logged_studies,
    logged_study,
    stored_study,
    study_names,
)
from trueup_ui.view.study import study_page
from trueup_ui.web.pages import Live, Pages

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


def study_routes(pages: Pages, storage: BaseStorage | None) -> list[BaseRoute]:
    """Return the routes; ``storage`` is Optuna's, where studies at work are read from."""

    def table(request: Request) -> Response:
        experiment, snapshot = pages.snapshot(request)
        content = {
            "studies": logged_studies(snapshot.runs),
            "stored": [] if storage is None else study_names(storage),
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "studies.html", "studies", content, experiment)

    def logged(request: Request) -> Response:
        experiment, snapshot = pages.snapshot(request)
        parent = _found(logged_studies(snapshot.runs), request.path_params["run"])
        content = {
            "page": study_page(logged_study(parent, snapshot.runs)),
            "run": parent,
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "study.html", "studies", content, experiment)

    def stored(request: Request) -> Response:
        study = _stored(storage, request.query_params.get("name", ""))
        name = request.query_params.get("name", "")
        live = Live(_digest(study), pages.links(request)("study", "version.json", name=name))
        page = study_page(study) if isinstance(study, Study) else None
        content = {"page": page, "name": name, "reason": study, "run": None, "live": live}
        return pages.html(request, "study.html", "studies", content)

    def version(request: Request) -> Response:
        study = _stored(storage, request.query_params.get("name", ""))
        return JSONResponse({"version": _digest(study)})

    return [
        Route("/experiment/{experiment}/studies", table),
        Route("/experiment/{experiment}/study/{run}", logged),
        Route("/study", stored),
        Route("/study/version.json", version),
    ]


def _found(runs: Sequence[StoredRun], run_id: str) -> StoredRun:
    for run in runs:
        if run.run_id == run_id:
            return run
    raise HTTPException(404, "This study is not in the experiment (any more).")


def _stored(storage: BaseStorage | None, name: str) -> Study | str:
    try:
        if storage is not None:
            return stored_study(storage, name)
    except KeyError:
        pass
    raise HTTPException(404, "There is no such study. Give its storage: trueup ui --study-storage")


def _digest(study: Study | str) -> str:
    return hashlib.blake2b(repr(study).encode(), digest_size=8).hexdigest()
