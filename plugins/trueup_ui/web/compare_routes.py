"""Routes of the comparisons of one experiment; the address of a page holds all that was chosen."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trueup_ui.view.compare import Asked, compare_page
from trueup_ui.view.markdown import as_markdown
from trueup_ui.view.pipelines import choices
from trueup_ui.web.pages import Pages


def compare_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def show(request: Request) -> Response:
        store = pages.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        snapshot = store.runs(experiment.experiment_id)
        page = compare_page(snapshot.runs, asked_of(request))
        permanent = _permanent(request, pages, experiment.experiment_id, page.asked)
        content = {
            "page": page,
            "groupings": choices(snapshot.runs),
            "markdown": as_markdown(page, permanent),
            "permanent": permanent,
            "live": pages.live(request, experiment, snapshot),
        }
        return pages.html(request, "compare.html", "compare", content, experiment)

    return [Route("/experiment/{experiment}/compare", show)]


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


def _permanent(request: Request, pages: Pages, experiment: str, asked: Asked) -> str:
    path = pages.links(request)(
        "experiment",
        experiment,
        "compare",
        metric=asked.metric,
        by=asked.by,
        better="higher" if asked.higher else "",
        p=asked.chosen,
        a=asked.first,
        b=asked.second,
    )
    return f"{request.url.scheme}://{request.url.netloc}{path}"
