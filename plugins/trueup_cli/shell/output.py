"""What the command prints: results, how far it is, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any

import click

from trueup.redact import without_credentials

# All control characters but tab and line feed, those that turn the direction of a line, and halves
# of a character, which stand for bytes of an argument that are no text and can't be printed.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PATIENCE = 2.0  # seconds after which somebody wants to know that something happens


def shown(text: str) -> str:
    """Return a text for a terminal; what the terminal would obey is spelled out."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], without_credentials(text))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output, or on standard error, above a bar that is shown."""
    with _above_bars():
        click.echo(shown(text), err=err, nl=nl)


def show_traceback(
    kind: type[BaseException], failure: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of what nobody expected, for ``sys.excepthook``, without passwords."""
    echo("".join(traceback.format_exception(kind, failure, trace)), err=True, nl=False)


def json_text(content: Any) -> str:
    """Return a result as one JSON object; a number that is not finite becomes null."""
    return json.dumps(_finite(content), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value  # a scalar of NumPy
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(
    what: str, unit: str = "step", total: int | None = None
) -> Iterator[Callable[..., Any]]:
    """Yield a function that counts steps; after two seconds a terminal shows how far they are.

    Without a step that is counted, the seconds that have passed are shown. Where standard error is
    no terminal nothing is.
    """
    counted, stop = [0], threading.Event()

    def count(n: int = 1) -> None:
        counted[0] += n

    if not sys.stderr.isatty():
        yield count
        return
    bar = {"desc": what, "unit": unit, "total": total, "unit_scale": unit == "row"}
    thread = threading.Thread(target=_show, args=(bar, counted, stop), daemon=True)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def _show(bar_arguments: dict[str, Any], counted: list[int], stop: threading.Event) -> None:
    """Draw a bar each second until the work is done, from when it takes long."""
    started = time.time()
    if stop.wait(_PATIENCE):
        return
    from tqdm import tqdm

    with tqdm(**bar_arguments, leave=False, delay=1e-9) as bar:  # not drawn before it knows when
        bar.start_t = started
        while True:
            bar.n = counted[0]
            bar.bar_format = None if bar.n or bar.total else "{desc}: {elapsed}"
            bar.refresh()
            if stop.wait(1.0):
                return


def _above_bars() -> AbstractContextManager[Any]:
    loaded = sys.modules.get("tqdm")
    return nullcontext() if loaded is None else loaded.tqdm.external_write_mode()


@contextmanager
def quiet_mlflow() -> Iterator[None]:
    """Leave out progress bars of artifacts, and the warning that a check has no signature.

    A user who set the variable of the progress bar keeps it. A check has no signature because
    MLflow would refuse missing values for it, which the check can take.
    """
    logger = logging.getLogger("mlflow.pyfunc")
    logger.addFilter(_says_something)
    try:
        with _unless_chosen("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false"):
            yield
    finally:
        logger.removeFilter(_says_something)


@contextmanager
def without_run_urls(*, if_secret: bool = False) -> Iterator[None]:
    """Keep MLflow from printing the address of each run that ends, password and all.

    It would stand between the lines of ``--json``. A user who set the variable keeps it. With
    ``if_secret`` only where the address of the store holds a password.
    """
    address = os.environ.get("MLFLOW_TRACKING_URI", "")
    if if_secret and without_credentials(address) == address:
        yield
        return
    with _unless_chosen("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true"):
        yield


@contextmanager
def _unless_chosen(variable: str, value: str) -> Iterator[None]:
    """Set a variable of the environment meanwhile, unless the user did."""
    chosen = os.environ.get(variable)
    os.environ.setdefault(variable, value)
    try:
        yield
    finally:
        if chosen is None:
            os.environ.pop(variable, None)


def _says_something(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Failed to infer model signature")
