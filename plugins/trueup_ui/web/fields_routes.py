"""Routes of the levels of fields of one run."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trueup_ui.read.levels import level_tables, read_levels
from trueup_ui.view.fields import (
    LEVEL_ORDERS,
    AskedLevels,
    fields_page,
    runs_with_fields,
)
from trueup_ui.web.pages import Pages

MOST_RUNS = 200
"""As many runs can be chosen on the page."""


def fields_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def show(request: Request) -> Response:
        store = pages.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        runs = runs_with_fields(store.runs(experiment.experiment_id).runs)
        asked = request.query_params.get("run", "")
        run = next((one for one in runs if asked in ("", one.run_id)), None)
        if run is None and asked:
            raise HTTPException(404, "This run is not in the experiment, or has no fields.")
        tables = [] if run is None else level_tables(store.client, run.run_id)
        if run is None or not tables:
            return pages.html(request, "fields.html", "fields", {"page": None}, experiment)
        table = request.query_params.get("table", "")
        table = table if table in tables else tables[0]
        levels = read_levels(store.client, run.run_id, table)
        content = {
            "page": fields_page(levels, run.metrics, asked_of(request)),
            "run": run,
            "runs": runs[:MOST_RUNS],
            "table": table,
            "tables": tables,
            "orders": LEVEL_ORDERS,
        }
        return pages.html(request, "fields.html", "fields", content, experiment)

    return [Route("/experiment/{experiment}/fields", show)]


def asked_of(request: Request) -> AskedLevels:
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
