"""The pages inside of MLflow's own server, under ``/trueup``: ``mlflow server --app-name trueup``.

Everything is read through the REST API of that server with the credentials of the user who asks, so
that MLflow alone decides what he may read. With ``--app-name trueup-basic-auth`` it asks for a name
and a password, as ``basic-auth`` does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections import OrderedDict
from threading import Lock
from typing import Any
from urllib.parse import quote

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import UNAUTHENTICATED
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from trueup_ui.read.store import Store
from trueup_ui.web.app import create_app

PATH = "/trueup"
MOST_USERS = 64
"""Of so many users the runs that they may read are kept in memory."""


def create_mlflow_app() -> Any:
    """Return MLflow's application with the pages; anybody may read, as without them."""
    from mlflow.server.fastapi_app import app

    return with_pages(app)


def create_basic_auth_app() -> Any:
    """Return MLflow's ``basic-auth`` application with the pages."""
    from mlflow.server.auth import create_app as create_auth_app

    return with_pages(create_auth_app())


def with_pages(app: Any) -> Any:
    """Put the pages ahead of MLflow's own routes, behind its checks of hosts and origins.

    Raises MlflowException if the server is another one than uvicorn.
    """
    routes = getattr(getattr(app, "router", None), "routes", None)
    if routes is None:
        raise MlflowException("trueup needs MLflow's default server: leave out --gunicorn-opts.")
    # tables of levels are downloaded for a page, not for a terminal; the process is a server's
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    routes.insert(0, Mount(PATH, create_app(StoreOfUser(), mlflow="")))
    routes.insert(0, Route(PATH, lambda _: RedirectResponse(f"{PATH}/")))
    return app


class StoreOfUser:
    """Gives each user a store that is read with his own credentials.

    A page asks MLflow for the experiment before it shows any of its runs, so a permission that was
    taken away counts at once although runs are kept in memory.
    """

    def __init__(self) -> None:
        self._stores: OrderedDict[bytes, Store] = OrderedDict()
        self._lock = Lock()

    def __call__(self, request: Request) -> Store:
        """Return the store of the user of a request."""
        header = request.headers.get("authorization", "")
        address = _own_address(request)
        user = hashlib.blake2b(f"{address}\0{header}".encode()).digest()
        with self._lock:
            if user not in self._stores:
                self._stores[user] = Store(_client(address, header))
                if len(self._stores) > MOST_USERS:
                    self._stores.popitem(last=False)
            self._stores.move_to_end(user)
            return self._stores[user]


def _own_address(request: Request) -> str:
    """Return host and port on which this process was reached."""
    host, port = request.scope["server"]
    if port is None:
        raise MlflowException("trueup needs a TCP port to ask MLflow; got a socket file.")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _client(address: str, header: str) -> MlflowClient:
    """Return a client that sends what the user sent."""
    credentials = ""
    if header:
        name, password = _name_and_password(header)
        credentials = f"{quote(name, safe='')}:{quote(password, safe='')}@"
    uri = f"http://{credentials}{address}"
    return MlflowClient(uri, uri)


def _name_and_password(header: str) -> tuple[str, str]:
    kind, _, text = header.partition(" ")
    try:
        name, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if kind.lower() != "basic" or not colon:
        raise MlflowException("Name and password are needed.", error_code=UNAUTHENTICATED)
    return name, password
