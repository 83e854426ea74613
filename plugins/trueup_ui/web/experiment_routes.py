"""Routes of one experiment: its pipelines, one pipeline's steps, and whether anything is new."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from trueup_ui.view.experiment import ORDERS, Choice, experiment_page
from trueup_ui.view.pipelines import choices
from trueup_ui.web.pages import Pages


def experiment_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def chosen(request: Request) -> Response:
        experiment = request.query_params.get("experiment", "")
        return RedirectResponse(pages.links(request)("experiment", experiment))

    def show(request: Request) -> Response:
        store = pages.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        anew = "anew" in request.query_params
        snapshot = store.runs(experiment.experiment_id, anew=anew)
        page = experiment_page(snapshot.runs, choice_of(request))
        content = {
            "page": page,
            "orders": ORDERS,
            "groupings": choices(snapshot.runs),
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "experiment.html", "experiment", content, experiment)

    def version(request: Request) -> Response:
        store = pages.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        return JSONResponse({"version": store.runs(experiment.experiment_id).version})

    return [
        Route("/experiments", chosen),
        Route("/experiment/{experiment}", show),
        Route("/experiment/{experiment}/version.json", version),
    ]


def choice_of(request: Request) -> Choice:
    """Return what the query says; unknown orders fall back to the first."""
    asked = request.query_params
    order = asked.get("order", ORDERS[0])
    return Choice(
        asked.get("metric", ""),
        asked.get("by", ""),
        order if order in ORDERS else ORDERS[0],
        asked.get("better") == "higher",
    )
