"""Routes of the comparisons of one experiment; the address of a page holds all that was chosen."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from trueup_ui.read.run_cache import Snapshot
from trueup_ui.read.store import StoredExperiment
from trueup_ui.view.compare import Asked, ComparePage, compare_page
from trueup_ui.view.markdown import as_markdown
from trueup_ui.view.pipelines import choices
from trueup_ui.web.pages import Pages
from trueup_ui.web.rendering import Links


def compare_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def page_of(request: Request) -> tuple[StoredExperiment, Snapshot, ComparePage]:
        store = pages.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        snapshot = store.runs(experiment.experiment_id)
        return experiment, snapshot, compare_page(snapshot.runs, asked_of(request))

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


def asked_of(request: Request) -> Asked:
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
