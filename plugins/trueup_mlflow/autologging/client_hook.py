"""The hook on the MLflow client: twins go into the request of the metric that they belong to.

Every way to log a metric ends in ``MlflowClient.log_metric`` or ``MlflowClient.log_batch``. A
metric that is not recognised passes through them untouched.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

from trueup_mlflow.autologging.calibrated_metrics import Additions, TwinMaker
from trueup_mlflow.write.failures import describe, warn

_NOTHING = "nothing was added to a logged metric"


def hook_client(maker: TwinMaker) -> Callable[[], None]:
    """Make ``MlflowClient`` add the twins of each recognised metric.

    Parameters
    ----------
    maker : TwinMaker
        Finds the twins.

    Returns
    -------
    callable
        Takes the hooks off again, where nobody has put others on top of them.
    """
    from mlflow.tracking.client import MlflowClient

    log_metric, log_batch = MlflowClient.log_metric, MlflowClient.log_batch
    hooked_batch = _hooked_log_batch(log_batch, maker)
    hooked_metric = _hooked_log_metric(log_metric, hooked_batch, maker)
    MlflowClient.log_metric, MlflowClient.log_batch = hooked_metric, hooked_batch

    def unhook() -> None:
        if MlflowClient.log_metric is hooked_metric:
            MlflowClient.log_metric = log_metric
        if MlflowClient.log_batch is hooked_batch:
            MlflowClient.log_batch = log_batch

    return unhook


def _hooked_log_metric(
    original: Callable[..., Any], hooked_batch: Callable[..., Any], maker: TwinMaker
) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def log_metric(self: Any, *args: Any, **kwargs: Any) -> Any:
        batch = None
        try:
            call = signature.bind(self, *args, **kwargs).arguments
            if maker.recognises(call["key"], call["value"]):
                batch = _as_batch(call)
        except Exception as failure:  # the user's own call goes on below
            warn(f"{_NOTHING}: {describe(failure)}")
        if batch is None:
            return original(self, *args, **kwargs)
        return hooked_batch(self, **batch)

    return log_metric


def _hooked_log_batch(original: Callable[..., Any], maker: TwinMaker) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def log_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        extended = None
        try:
            call = signature.bind(self, *args, **kwargs).arguments
            extended = _extended(call, maker)
        except Exception as failure:  # the user's own call goes on below
            warn(f"{_NOTHING}: {describe(failure)}")
        if extended is None:
            return original(self, *args, **kwargs)
        try:
            result = original(**extended)
        except Exception as failure:
            if not _is_refusal(failure):
                raise
            warn(f"{_NOTHING}: {describe(failure)}")
            return original(self, *args, **kwargs)
        _mark(extended, maker)
        return result

    return log_batch


def _as_batch(call: dict[str, Any]) -> dict[str, Any]:
    """Return the ``log_batch`` call that logs one metric as ``log_metric`` does."""
    from mlflow.entities import Metric

    timestamp, step = call.get("timestamp"), call.get("step")
    metric = Metric(
        call["key"],
        call["value"],
        time.time_ns() // 1_000_000 if timestamp is None else timestamp,
        0 if step is None else step,
        model_id=_model_id(call.get("model_id")),
        dataset_name=call.get("dataset_name"),
        dataset_digest=call.get("dataset_digest"),
        run_id=call["run_id"],
    )
    return {
        "run_id": call["run_id"],
        "metrics": [metric],
        "synchronous": call.get("synchronous"),
    }


def _extended(call: dict[str, Any], maker: TwinMaker) -> dict[str, Any] | None:
    """Return the ``log_batch`` call with all that the request gains; None where it gains nothing.

    What is of ours in the request is marked as logged even then.
    """
    metrics = list(call.get("metrics") or ())
    if not metrics:
        return None
    additions = maker.additions(call["run_id"], metrics)
    if not additions:
        maker.mark(call["run_id"], metrics, {})
        return None
    return {
        **call,
        "metrics": _with_twins(metrics, additions),
        "tags": [*(call.get("tags") or ()), *_run_tags(additions)],
    }


def _with_twins(metrics: list[Any], additions: Additions) -> list[Any]:
    from mlflow.entities import Metric

    repeated = {id(metric) for metric in additions.repeated}
    twins = [
        Metric(
            key,
            value,
            metric.timestamp,
            metric.step,
            model_id=metric.model_id,
            dataset_name=metric.dataset_name,
            dataset_digest=metric.dataset_digest,
            run_id=metric.run_id,
        )
        for metric, values in additions.metrics
        for key, value in values.items()
    ]
    return [metric for metric in metrics if id(metric) not in repeated] + twins


def _run_tags(additions: Additions) -> list[Any]:
    from mlflow.entities import RunTag

    return [RunTag(tag, text) for tag, text in additions.tags.items()]


def _model_id(model_id: str | None) -> str | None:
    """Return the model that MLflow will file the metric under."""
    from mlflow.tracking.fluent import get_active_model_id

    return model_id or get_active_model_id()


def _mark(call: dict[str, Any], maker: TwinMaker) -> None:
    maker.mark(call["run_id"], call["metrics"], {tag.key: tag.value for tag in call["tags"]})


def _is_refusal(failure: Exception) -> bool:
    """Return whether the store has looked at the request and refused it as invalid."""
    return getattr(failure, "error_code", None) == "INVALID_PARAMETER_VALUE"
