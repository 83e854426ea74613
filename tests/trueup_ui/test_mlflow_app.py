"""Inside of MLflow's server, with a password: nobody sees what he may not read."""

from __future__ import annotations

import base64
import urllib.request

import pytest
from mlflow import MlflowClient
from tests.databases import new_database
from tests.mlflow_server import mlflow_server
from tests.trueup_ui.stores import log_seeds
from tests.trueup_ui.test_server import ask

ADMIN = ("admin", "a-long-password-1")
READER = ("reader", "a-long-password-2")
CONFIG = """[mlflow]
default_permission = NO_PERMISSIONS
database_uri = sqlite:///{folder}/auth.db
admin_username = {admin[0]}
admin_password = {admin[1]}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""


def basic(who: tuple[str, str]) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(":".join(who).encode()).decode()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Address of a server with an experiment that only the admin may read."""
    folder = tmp_path_factory.mktemp("guarded")
    store = new_database(folder)
    client = MlflowClient(store)
    secret = client.create_experiment("secret", artifact_location=(folder / "files").as_uri())
    log_seeds(client, secret, "hidden pipeline", 0.5, range(2))
    (folder / "auth.ini").write_text(CONFIG.format(folder=folder, admin=ADMIN))
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(folder / "auth.ini"),
        "MLFLOW_AUTH_ADMIN_PASSWORD": ADMIN[1],
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "0123456789abcdef",
    }
    app = ("--app-name", "trueup-basic-auth")
    with mlflow_server(folder, store, *app, environment=environment) as address:
        _create_user(address)
        yield address, secret


def _create_user(address: str) -> None:
    body = f'{{"username": "{READER[0]}", "password": "{READER[1]}"}}'.encode()
    headers = {"Content-Type": "application/json", **basic(ADMIN)}
    request = urllib.request.Request(f"{address}/api/2.0/mlflow/users/create", body, headers)
    with urllib.request.urlopen(request):
        pass


@pytest.mark.slow
def test_nobody_sees_what_he_may_not_read(guarded):
    address, secret = guarded
    page = f"{address}/trueup/experiment/{secret}"
    status, headers, text = ask(page)
    assert status == 401
    assert headers["www-authenticate"].startswith("Basic")
    assert "hidden" not in text
    assert ask(page, **basic((ADMIN[0], "wrong")))[0] == 401
    assert ask(page, Authorization="Bearer token")[0] == 401
    status, _, text = ask(page, **basic(ADMIN))
    assert status == 200
    assert "hidden pipeline" in text
    assert f'href="/trueup/experiment/{secret}/compare"' in text
    for below in ("", "/compare", "/studies", "/fields", "/version.json", "/curves.json"):
        status, _, text = ask(page + below, **basic(READER))
        assert status == 403, below
        assert "hidden" not in text
    status, _, text = ask(f"{address}/trueup/models", **basic(READER))
    assert status == 200
    assert "secret" not in text
    assert ask(f"{address}/trueup/", **basic(READER))[0] == 200
    assert ask(page, **basic(ADMIN), Host="evil.example")[0] == 403
