"""Pages of an experiment (pipelines, a comparison, levels of fields) and of monitored models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

from mlflow.entities import Experiment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from trueup_mlflow.write.items import calibrated_key
from trueup_ui.read.levels import level_tables, read_levels
from trueup_ui.read.monitors import monitored_versions
from trueup_ui.read.store import MOST_RUNS, Snapshot, Store, read_histories
from trueup_ui.view.charts import curves
from trueup_ui.view.compare import Asked, ComparePage, as_markdown, compare_page
from trueup_ui.view.experiment import ORDERS, Choice, experiment_page, find_pipeline, pipeline_page
from trueup_ui.view.fields import (
    LEVEL_ORDERS,
    AskedLevels,
    fields_page,
    runs_with_fields,
)
from trueup_ui.view.models import version_row
from trueup_ui.view.pipelines import Pipeline, choices
from trueup_ui.web.pages import Answer, Pages
from trueup_ui.web.rendering import Links

_BETTER: Mapping[bool | None, str] = {None: "", True: "higher", False: "lower"}
_HIGHER = {word: higher for higher, word in _BETTER.items()}


def _chosen(pages: Pages, request: Request) -> Response:
    experiment = request.query_params.get("experiment", "")
    return RedirectResponse(pages.links(request)("experiment", experiment))


def _overview(pages: Pages, request: Request) -> Response:
    experiment, snapshot = pages.snapshot(request, anew="anew" in request.query_params)
    content = {
        "page": experiment_page(snapshot.runs, _choice(request)),
        "orders": ORDERS,
        "groupings": choices(snapshot.runs),
        "live": pages.live(request, experiment, snapshot),
    }
    return pages.html(request, "experiment.html", "experiment", content, experiment)


def _version(pages: Pages, request: Request) -> Response:
    return JSONResponse({"version": pages.snapshot(request)[1].version})


def _choice(request: Request) -> Choice:
    """Return what the query says; unknown orders fall back to the first."""
    asked = request.query_params
    order = asked.get("order", ORDERS[0])
    return Choice(
        asked.get("metric", ""),
        asked.get("by", ""),
        order if order in ORDERS else ORDERS[0],
        _HIGHER.get(asked.get("better", "")),
    )


def _page_of(pages: Pages, request: Request) -> tuple[Experiment, Snapshot, ComparePage]:
    experiment, snapshot = pages.snapshot(request)
    return experiment, snapshot, compare_page(snapshot.runs, _compared(request))


def _comparison(pages: Pages, request: Request) -> Response:
    experiment, snapshot, page = _page_of(pages, request)
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


def _markdown(pages: Pages, request: Request) -> Response:
    experiment, _, page = _page_of(pages, request)
    path = _link(pages.links(request), experiment.experiment_id, page.asked, "compare")
    address = f"{request.url.scheme}://{request.url.netloc}{path}"
    return PlainTextResponse(as_markdown(page, address))


def _outlook(pages: Pages, request: Request) -> Response:
    _, _, page = _page_of(pages, request)
    pairs = [pair for row in page.matrix for pair in row if pair is not None]
    return JSONResponse(
        {
            f"{pair.first.key} {pair.second.key}": pair.outlook
            for pair in pairs
            if pair.outcome == "inconclusive"
        }
    )


def _compared(request: Request) -> Asked:
    query = request.query_params
    return Asked(
        query.get("metric", ""),
        query.get("by", ""),
        _HIGHER.get(query.get("better", "")),
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
        better=_BETTER[asked.higher],
        p=asked.chosen,
        a=asked.first,
        b=asked.second,
    )


def _pipeline(pages: Pages, request: Request) -> Response:
    experiment, pipeline, snapshot = _asked_for(pages, request)
    page = pipeline_page(pipeline, _choice(request))
    live = pages.live(request, experiment, snapshot)
    content = {"page": page, "live": live, "most_curves": MOST_RUNS}
    return pages.html(request, "pipeline.html", "experiment", content, experiment)


def _steps(pages: Pages, request: Request) -> Response:
    store = pages.store_of(request)
    _, pipeline, _ = _asked_for(pages, request)
    metric = request.query_params.get("metric", "")
    keys = {"vanilla": metric, "calibrated": calibrated_key(metric)}
    return JSONResponse({name: _curves(store, pipeline, key) for name, key in keys.items()})


def _asked_for(pages: Pages, request: Request) -> tuple[Experiment, Pipeline, Snapshot]:
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
    return asdict(curves({names[run_id]: history for run_id, history in found.items()}))


MOST_LISTED = 200
"""As many runs can be chosen on the page."""


def _fields(pages: Pages, request: Request) -> Response:
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


def _levels_of(request: Request) -> AskedLevels:
    query = request.query_params
    order = query.get("order", LEVEL_ORDERS[0])
    page = query.get("page", "1")
    return AskedLevels(
        query.get("field", ""),
        order if order in LEVEL_ORDERS else LEVEL_ORDERS[0],
        query.get("search", ""),
        int(page) if page.isdecimal() and len(page) < 9 else 1,
    )


def _models(pages: Pages, request: Request) -> Response:
    now = datetime.now(UTC)
    found = monitored_versions(pages.store_of(request).client)
    rows = [version_row(version, now) for version in found]
    return pages.html(request, "models.html", "models", {"rows": rows})


def _model(pages: Pages, request: Request) -> Response:
    query = request.query_params
    asked = query.get("name", ""), query.get("version", "")
    for version in monitored_versions(pages.store_of(request).client):
        if (version.model, version.version) == asked:
            content = {"row": version_row(version, datetime.now(UTC))}
            return pages.html(request, "model.html", "models", content)
    raise HTTPException(404, "This version is not monitored (any more).")


ROUTES: Mapping[str, Answer] = {
    "/experiments": _chosen,
    "/experiment/{experiment}": _overview,
    "/experiment/{experiment}/version.json": _version,
    "/experiment/{experiment}/compare": _comparison,
    "/experiment/{experiment}/compare.md": _markdown,
    "/experiment/{experiment}/outlook.json": _outlook,
    "/experiment/{experiment}/pipeline": _pipeline,
    "/experiment/{experiment}/curves.json": _steps,
    "/experiment/{experiment}/fields": _fields,
    "/models": _models,
    "/model": _model,
}
