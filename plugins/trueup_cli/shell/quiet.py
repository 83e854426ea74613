"""What MLflow prints of its own that says nothing to a user of the command line."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

_RUN_URLS = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
_PROGRESS_BAR = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"


@contextmanager
def quiet_mlflow() -> Iterator[None]:
    """Leave out progress bars of artifacts, and the warning that a check has no signature.

    A user who set the variable of the progress bar keeps it. A check has no signature because
    MLflow would refuse missing values for it, which the check can take.
    """
    logger, chosen = logging.getLogger("mlflow.pyfunc"), os.environ.get(_PROGRESS_BAR)
    os.environ.setdefault(_PROGRESS_BAR, "false")
    logger.addFilter(_says_something)
    try:
        yield
    finally:
        logger.removeFilter(_says_something)
        if chosen is None:
            del os.environ[_PROGRESS_BAR]


@contextmanager
def without_run_urls() -> Iterator[None]:
    """Keep MLflow from printing the address of each run that ends, password and all.

    It would stand between the lines of ``--json``. A user who set the variable keeps it.
    """
    chosen = os.environ.get(_RUN_URLS)
    os.environ.setdefault(_RUN_URLS, "true")
    try:
        yield
    finally:
        if chosen is None:
            os.environ.pop(_RUN_URLS, None)


def _says_something(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Failed to infer model signature")
