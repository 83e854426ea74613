"""Templates: every value is escaped, links are built from our own paths, scripts are files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trueup_mlflow.compare.direction import is_score_by_name
from trueup_ui.view import numbers
from trueup_ui.view.models import reasons_of

HOME = Path(__file__).parents[1]
STATIC = HOME / "static"


def environment() -> Environment:
    """Return the templates, which escape every value and know no undefined name."""
    found = Environment(
        loader=FileSystemLoader(HOME / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "plain": numbers.plain,
        "short": numbers.short,
        "reasons": reasons_of,
        "signed": numbers.signed,
        "percent": numbers.percent,
        "json": json_text,
        "when": when,
        "day": day,
        "is_score": is_score_by_name,
    }
    return found


def json_text(value: Any) -> Markup:
    """Return JSON that stands inside of a script element and cannot end it."""
    text = json.dumps(value, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # nothing in it is markup any more


def when(milliseconds: int) -> Markup:
    """Return a time element in UTC, which a script turns into the reader's zone."""
    moment = datetime.fromtimestamp(milliseconds / 1000.0, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M UTC")
    )


def day(milliseconds: int) -> str:
    """Return a date in UTC, for the tick of an axis."""
    return datetime.fromtimestamp(milliseconds / 1000.0, UTC).strftime("%Y-%m-%d")


class Links:
    """Addresses of our pages below ``base``, and of runs on an MLflow server if there is one."""

    def __init__(self, base: str, mlflow: str | None) -> None:
        self.base = base.rstrip("/")
        self._mlflow = None if mlflow is None else _web_address(mlflow)

    def __call__(self, *parts: str, **query: Any) -> str:
        """Return the path of a page; parts and values may hold any sign."""
        path = "/".join([self.base, *(quote(str(part), safe="") for part in parts)]) or "/"
        asked = {name: value for name, value in query.items() if value not in ("", None, False)}
        return f"{path}?{urlencode(asked, doseq=True)}" if asked else path

    def run(self, experiment_id: str, run_id: str) -> str | None:
        """Return the address of a run on MLflow's page."""
        if self._mlflow is None:
            return None
        experiment, run = quote(experiment_id, safe=""), quote(run_id, safe="")
        return f"{self._mlflow.rstrip('/')}/#/experiments/{experiment}/runs/{run}"


def _web_address(uri: str) -> str | None:
    """Return an address of the web without name and password, None for another kind of store.

    Examples
    --------
    >>> _web_address("https://me:secret@host:5000/mlflow"), _web_address("sqlite:///mlflow.db")
    ('https://host:5000/mlflow', None)
    """
    parts = urlsplit(uri)
    if uri and parts.scheme not in ("http", "https"):
        return None
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


class Templates:
    """Renders a template with what all pages share."""

    def __init__(self) -> None:
        self._environment = environment()

    def render(self, template: str, links: Links, content: Mapping[str, Any]) -> str:
        shared = {"link": links, "static": False, "shell": None, "live": None}
        return self._environment.get_template(template).render({**shared, **content})
