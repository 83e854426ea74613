"""What MLflow prints of its own that says nothing to a user of the command line."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

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


def _says_something(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Failed to infer model signature")
