"""What all pages share: the store of a request, the frame around a page, failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from mlflow.entities import Experiment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trueup.redact import without_credentials
from trueup_ui.read.store import Snapshot, Store
from trueup_ui.web.rendering import Links, Templates

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

StoreOf = Callable[[Request], Store]
"""Request -> the store as the user of that request sees it."""
Answer = Callable[["Pages", Request], Response]
"""What answers the requests for a page."""


class Pages:
    """Renders pages for requests; ``studies`` is Optuna's storage of studies at work."""

    def __init__(
        self, store_of: StoreOf, mlflow: str | None, studies: BaseStorage | None = None
    ) -> None:
        self.store_of = store_of
        self.studies = studies
        self._mlflow = mlflow
        self._templates = Templates()

    def home(self, request: Request) -> Response:
        """Send the reader to the experiment with the latest run."""
        newest = self.store_of(request).newest_experiment()
        if newest is None:
            return self.html(request, "empty_store.html", "experiment")
        return RedirectResponse(self.links(request)("experiment", newest))

    def html(
        self,
        request: Request,
        template: str,
        here: str,
        content: Mapping[str, Any] | None = None,
        experiment: Experiment | None = None,
    ) -> HTMLResponse:
        others = self.store_of(request).experiments()
        shell = {"here": here, "experiment": experiment, "experiments": others}
        inside = {"shell": shell, **(content or {})}
        return HTMLResponse(self._templates.render(template, self.links(request), inside))

    def snapshot(self, request: Request, *, anew: bool = False) -> tuple[Experiment, Snapshot]:
        """Return the experiment that a path names, and its runs as the user sees them."""
        store = self.store_of(request)
        experiment = store.experiment(request.path_params["experiment"])
        return experiment, store.runs(experiment.experiment_id, anew=anew)

    def links(self, request: Request) -> Links:
        return Links(request.scope.get("root_path", ""), self._mlflow)

    def live(self, request: Request, experiment: Experiment, snapshot: Snapshot) -> dict[str, str]:
        """Return what a page was made from, and where the browser asks for anything newer."""
        url = self.links(request)("experiment", experiment.experiment_id, "version.json")
        return {"version": snapshot.version, "url": url}

    def failure(self, request: Request, failure: Exception, status: HTTPStatus) -> Response:
        """Return what went wrong, without the frame: the store may be what failed."""
        text = getattr(failure, "message", "") or getattr(failure, "detail", "") or str(failure)
        content = {"status": status, "text": without_credentials(text)}
        page = self._templates.render("failure.html", self.links(request), content)
        asks = {"WWW-Authenticate": 'Basic realm="mlflow"'} if status == 401 else None
        return HTMLResponse(page, status, headers=asks)
