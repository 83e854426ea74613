"""``trueup ui``: the pages of one store on this machine."""

from __future__ import annotations

import os

import uvicorn
from mlflow import MlflowClient
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from trueup_ui.read.store import Store
from trueup_ui.read.studies import open_study_storage
from trueup_ui.web.app import create_app

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def local_app(
    tracking_uri: str | None = None, host: str = LOOPBACK[0], study_storage: str | None = None
) -> Starlette:
    """Return the application for one store, read with the credentials of this process.

    On a loopback address it answers only to the names of this machine, so that no page of the web
    can reach it by a name of its own that points here.
    """
    client = MlflowClient(tracking_uri)
    store = Store(client)
    uri = client.tracking_uri
    middleware = []
    if host in LOOPBACK:
        allowed = ["127.0.0.1", "localhost", "::1", "[::1]"]
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=allowed))
    return create_app(
        lambda _: store,
        mlflow=uri,
        studies=None if study_storage is None else open_study_storage(study_storage),
        middleware=middleware,
    )


def serve(tracking_uri: str | None, host: str, port: int, study_storage: str | None) -> None:
    """Serve until interrupted."""
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # this process is ours
    uvicorn.run(
        local_app(tracking_uri, host, study_storage), host=host, port=port, log_level="warning"
    )
