"""The application: routes, the headers of every answer, and what is said when something fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trueup.errors import TrueupError
from trueup_ui.web.pages import Pages, StoreOf
from trueup_ui.web.rendering import STATIC
from trueup_ui.web.routes import ROUTES
from trueup_ui.web.study_routes import STUDY_ROUTES

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": CONTENT_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
}


def create_app(
    store_of: StoreOf,
    *,
    mlflow: str | None = None,
    studies: BaseStorage | None = None,
    middleware: list[Middleware] | None = None,
) -> Starlette:
    """Return the application.

    A request sees the store as its user does. Links to runs lead to the address ``mlflow``; studies
    at work are read from a storage of Optuna; ``middleware`` runs before everything else.
    """
    pages = Pages(store_of, mlflow, studies)
    answers = {"/": Pages.home, **ROUTES, **STUDY_ROUTES}
    return Starlette(
        routes=[
            *(Route(path, partial(answer, pages)) for path, answer in answers.items()),
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
        ],
        middleware=[*(middleware or ()), Middleware(_SafeHeaders)],
        exception_handlers={
            MlflowException: _failure(pages, _status_of),
            TrueupError: _failure(pages, lambda _: HTTPStatus.BAD_REQUEST),
            404: _failure(pages, lambda _: HTTPStatus.NOT_FOUND),
        },
    )


def _status_of(failure: Exception) -> HTTPStatus:
    code = getattr(failure, "get_http_status_code", lambda: 500)()
    return HTTPStatus(code) if code in {401, 403, 404, 400} else HTTPStatus.BAD_GATEWAY


def _failure(
    pages: Pages, status_of: Callable[[Exception], HTTPStatus]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, failure: Exception) -> Response:
        return pages.failure(request, failure, status_of(failure))

    return answer


class _SafeHeaders:
    """Adds the content policy and its like to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)
