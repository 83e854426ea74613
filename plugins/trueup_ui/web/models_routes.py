"""Routes of the monitored models: all versions, and one of them."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trueup_ui.read.monitors import monitored_versions
from trueup_ui.view.models import version_row
from trueup_ui.web.pages import Pages


def models_routes(pages: Pages) -> list[BaseRoute]:
    """Return the routes."""

    def table(request: Request) -> Response:
        now = datetime.now(UTC)
        found = monitored_versions(pages.store_of(request).client)
        rows = [version_row(version, now) for version in found]
        return pages.html(request, "models.html", "models", {"rows": rows})

    def one(request: Request) -> Response:
        query = request.query_params
        asked = query.get("name", ""), query.get("version", "")
        for version in monitored_versions(pages.store_of(request).client):
            if (version.model, version.version) == asked:
                content = {"row": version_row(version, datetime.now(UTC))}
                return pages.html(request, "model.html", "models", content)
        raise HTTPException(404, "This version is not monitored (any more).")

    return [Route("/models", table), Route("/model", one)]
