"""Pages of studies: those that were logged, and those of an Optuna storage while they run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_ui.read.studies import (
    Study,
    logged_studies,
    logged_study,
    stored_study,
    study_names,
)
from trueup_ui.view.study import study_page
from trueup_ui.web.pages import Answer, Pages


def _table(pages: Pages, request: Request) -> Response:
    experiment, snapshot = pages.snapshot(request)
    content = {
        "studies": logged_studies(snapshot.runs),
        "stored": [] if pages.studies is None else study_names(pages.studies),
        "live": pages.live(request, experiment, snapshot),
    }
    return pages.html(request, "studies.html", "studies", content, experiment)


def _logged(pages: Pages, request: Request) -> Response:
    experiment, snapshot = pages.snapshot(request)
    parent = _found(logged_studies(snapshot.runs), request.path_params["run"])
    content = {
        "page": study_page(logged_study(parent, snapshot.runs)),
        "run": parent,
        "live": pages.live(request, experiment, snapshot),
    }
    return pages.html(request, "study.html", "studies", content, experiment)


def _at_work(pages: Pages, request: Request) -> Response:
    name = request.query_params.get("name", "")
    study = _stored(pages, name)
    url = pages.links(request)("study", "version.json", name=name)
    live = {"version": _digest(study), "url": url}
    page = study_page(study) if isinstance(study, Study) else None
    content = {"page": page, "name": name, "reason": study, "run": None, "live": live}
    return pages.html(request, "study.html", "studies", content)


def _version(pages: Pages, request: Request) -> Response:
    study = _stored(pages, request.query_params.get("name", ""))
    return JSONResponse({"version": _digest(study)})


def _found(runs: Sequence[StoredRun], run_id: str) -> StoredRun:
    for run in runs:
        if run.run_id == run_id:
            return run
    raise HTTPException(404, "This study is not in the experiment (any more).")


def _stored(pages: Pages, name: str) -> Study | str:
    try:
        if pages.studies is not None:
            return stored_study(pages.studies, name)
    except KeyError:
        pass
    raise HTTPException(404, "There is no such study. Give its storage: trueup ui --study-storage")


def _digest(study: Study | str) -> str:
    return hashlib.blake2b(repr(study).encode(), digest_size=8).hexdigest()


STUDY_ROUTES: Mapping[str, Answer] = {
    "/experiment/{experiment}/studies": _table,
    "/experiment/{experiment}/study/{run}": _logged,
    "/study": _at_work,
    "/study/version.json": _version,
}
