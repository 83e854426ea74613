"""The model inside of a pyfunc."""

from __future__ import annotations

from typing import Any


def raw_model(model: Any) -> Any:
    """Return the model inside of a pyfunc; None where there is none to be had."""
    from mlflow.exceptions import MlflowException

    get_raw_model = getattr(model, "get_raw_model", None)  # a plain function has none
    if get_raw_model is None:
        return None
    try:
        return get_raw_model()
    # MLflow has no other question: in each of these ways a flavour says that it has none.
    except (NotImplementedError, MlflowException, AttributeError):
        return None
