"""Routes of one experiment: its pipelines, their comparison, one pipeline, levels of fields."""

from __future__ import annotations

from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from trueup_mlflow.write.items import calibrated_key
from trueup_ui.read.levels import level_tables, read_levels
from trueup_ui.read.store import MOST_RUNS, Snapshot, Store, StoredExperiment, read_histories
from trueup_ui.view.charts import curves
from trueup_ui.view.compare import Asked, ComparePage, as_markdown, compare_page
from trueup_ui.view.experiment import ORDERS, Choice, experiment_page, find_pipeline, pipeline_page
from trueup_ui.view.fields import (
    LEVEL_ORDERS,
    AskedLevels,
    fields_page,
    runs_with_fields,
)
from trueup_ui.view.pipelines import Pipeline, choices
from trueup_ui.web.pages import Pages
from trueup_ui.web.rendering import Links


def experiment_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""
    kinds = (_overview_routes, _compare_routes, _pipeline_routes, _fields_routes)
    return [route for kind in kinds for route in kind(pages)]


def _overview_routes(pages: Pages) -> list[BaseRoute]:

    def chosen(request: Request) -> Response:
        experiment = request.query_params.get("experiment", "")
        return RedirectResponse(pages.links(request)("experiment", experiment))

    def show(request: Request) -> Response:
        experiment, snapshot = pages.snapshot(request, anew="anew" in request.query_params)
        page = experiment_page(snapshot.runs, _choice(request))
        content = {
            "page": page,
            "orders": ORDERS,
            "groupings": choices(snapshot.runs),
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "experiment.html", "experiment", content, experiment)

    def version(request: Request) -> Response:
        return JSONResponse({"version": pages.snapshot(request)[1].version})

    return [
        Route("/experiments", chosen),
        Route("/experiment/{experiment}", show),
        Route("/experiment/{experiment}/version.json", version),
    ]


def _choice(request: Request) -> Choice:
    """Return what the query says; unknown orders fall back to the first."""
    asked = request.query_params
    order = asked.get("order", ORDERS[0])
    return Choice(
        asked.get("metric", ""),
        asked.get("by", ""),
        order if order in ORDERS else ORDERS[0],
        asked.get("better") == "higher",
    )


def _compare_routes(pages: Pages) -> list[BaseRoute]:
    def page_of(request: Request) -> tuple[StoredExperiment, Snapshot, ComparePage]:
        experiment, snapshot = pages.snapshot(request)
        return experiment, snapshot, compare_page(snapshot.runs, _compared(request))

    def show(request: Request) -> Response:
        experiment, snapshot, page = page_of(request)
        link = partial(_link, pages.links(request), experiment.experiment_id, page.asked)
        content = {
            "page": page,
            "groupings": choices(snapshot.runs),
            "permanent": link("compare"),
            "markdown_url": link("compare.md"),
            "outlook_url": link("outlook.json"),
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "compare.html", "compare", content, experiment)

    def markdown(request: Request) -> Response:
        experiment, _, page = page_of(request)
        path = _link(pages.links(request), experiment.experiment_id, page.asked, "compare")
        address = f"{request.url.scheme}://{request.url.netloc}{path}"
        return PlainTextResponse(as_markdown(page, address))

    def outlook(request: Request) -> Response:
        _, _, page = page_of(request)
        pairs = [pair for row in page.matrix for pair in row if pair is not None]
        return JSONResponse(
            {
                f"{pair.first.key} {pair.second.key}": pair.outlook
                for pair in pairs
                if pair.outcome == "inconclusive"
            }
        )

    return [
        Route("/experiment/{experiment}/compare", show),
        Route("/experiment/{experiment}/compare.md", markdown),
        Route("/experiment/{experiment}/outlook.json", outlook),
    ]


def _compared(request: Request) -> Asked:
    """Return what the query asks for."""
    query = request.query_params
    return Asked(
        query.get("metric", ""),
        query.get("by", ""),
        query.get("better") == "higher",
        tuple(query.getlist("p")),
        query.get("a", ""),
        query.get("b", ""),
    )


def _link(links: Links, experiment: str, asked: Asked, page: str) -> str:
    """Return the path of a page that shows all that was chosen."""
    return links(
        "experiment",
        experiment,
        page,
        metric=asked.metric,
        by=asked.by,
        better="higher" if asked.higher else "",
        p=asked.chosen,
        a=asked.first,
        b=asked.second,
    )


def _pipeline_routes(pages: Pages) -> list[BaseRoute]:
    def show(request: Request) -> Response:
        experiment, pipeline, snapshot = _asked_for(pages, request)
        page = pipeline_page(pipeline, _choice(request))
        live = pages.live(request, experiment, snapshot)
        content = {"page": page, "live": live, "most_curves": MOST_RUNS}
        return pages.html(request, "pipeline.html", "experiment", content, experiment)

    def steps(request: Request) -> Response:
        store = pages.store_of(request)
        _, pipeline, _ = _asked_for(pages, request)
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


def _asked_for(pages: Pages, request: Request) -> tuple[StoredExperiment, Pipeline, Snapshot]:
    experiment, snapshot = pages.snapshot(request)
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


MOST_LISTED = 200
"""As many runs can be chosen on the page."""


def _fields_routes(pages: Pages) -> list[BaseRoute]:
    def show(request: Request) -> Response:
        client, (experiment, snapshot) = pages.store_of(request).client, pages.snapshot(request)
        runs = runs_with_fields(snapshot.runs)
        asked = request.query_params.get("run", "")
        run = next((one for one in runs if asked in ("", one.run_id)), None)
        if run is None and asked:
            raise HTTPException(404, "This run is not in the experiment, or has no fields.")
        tables = [] if run is None else level_tables(client, run.run_id)
        if run is None or not tables:
            return pages.html(request, "fields.html", "fields", {"page": None}, experiment)
        table = request.query_params.get("table", "")
        table = table if table in tables else tables[0]
        levels = read_levels(client, run.run_id, table)
        content = {
            "page": fields_page(levels, run.metrics, _levels_of(request)),
            "run": run,
            "runs": runs[:MOST_LISTED],
            "n_hidden": max(0, len(runs) - MOST_LISTED),
            "table": table,
            "tables": tables,
            "orders": LEVEL_ORDERS,
        }
        return pages.html(request, "fields.html", "fields", content, experiment)

    return [Route("/experiment/{experiment}/fields", show)]


def _levels_of(request: Request) -> AskedLevels:
    """Return what the query asks for."""
    query = request.query_params
    order = query.get("order", LEVEL_ORDERS[0])
    page = query.get("page", "1")
    return AskedLevels(
        query.get("field", ""),
        order if order in LEVEL_ORDERS else LEVEL_ORDERS[0],
        query.get("search", ""),
        int(page) if page.isdecimal() and len(page) < 9 else 1,
    )
