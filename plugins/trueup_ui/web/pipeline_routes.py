"""Routes of one pipeline: its seeds, and the steps of their metric on demand."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from trueup_mlflow.write.items import calibrated_key
from trueup_ui.read.histories import read_histories
from trueup_ui.read.run_cache import Snapshot
from trueup_ui.read.store import Store, StoredExperiment
from trueup_ui.view.curves import curves
from trueup_ui.view.pipeline import find_pipeline, pipeline_page
from trueup_ui.view.pipelines import Pipeline
from trueup_ui.web.experiment_routes import choice_of
from trueup_ui.web.pages import Pages


def pipeline_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def show(request: Request) -> Response:
        store = pages.store_of(request)
        experiment, pipeline, snapshot = _asked_for(store, request)
        page = pipeline_page(pipeline, choice_of(request))
        content = {"page": page, "live": pages.live(request, experiment, snapshot)}
        return pages.html(request, "pipeline.html", "experiment", content, experiment)

    def steps(request: Request) -> Response:
        store = pages.store_of(request)
        _, pipeline, _ = _asked_for(store, request)
        metric = request.query_params.get("metric", "")
        return JSONResponse(
            {
                "vanilla": _curves(store, pipeline, metric),
                "calibrated": _curves(store, pipeline, calibrated_key(metric)),
            }
        )

    return [
        Route("/experiment/{experiment}/pipeline", show),
        Route("/experiment/{experiment}/curves.json", steps),
    ]


def _asked_for(store: Store, request: Request) -> tuple[StoredExperiment, Pipeline, Snapshot]:
    experiment = store.experiment(request.path_params["experiment"])
    snapshot = store.runs(experiment.experiment_id)
    query = request.query_params
    found = find_pipeline(snapshot.runs, query.get("by", ""), query.get("key", ""))
    if found is None:
        raise HTTPException(404, "This pipeline is not in the experiment (any more).")
    return experiment, found, snapshot


def _curves(store: Store, pipeline: Pipeline, key: str) -> dict[str, object]:
    runs = [run for run in pipeline.runs if key in run.metrics]
    names = {run.run_id: run.name if run.seed is None else f"seed {run.seed}" for run in runs}
    found = read_histories(store.client, list(names), key)
    return curves({names[run_id]: history for run_id, history in found.items()}).to_dict()
