"""The hook on the MLflow client: twins go into the request of the metric that they belong to.

Every way to log a metric ends in ``MlflowClient.log_metric`` or ``MlflowClient.log_batch``, and
every end of a run in ``MlflowClient.set_terminated``. The user's call fails only where it fails
without the hook: all that is trueup's runs under ``suppress``, so that not even a failure in
telling of a failure gets through.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trueup_mlflow.autologging.calibrated_metrics import TwinMaker
from trueup_mlflow.autologging.hooking import replaced
from trueup_mlflow.autologging.requests import TwinRequest, TwinRequests
from trueup_mlflow.write.failures import told
from trueup_mlflow.write.items import COVERAGE_TAG, late_tag

_NOTHING = "nothing was added to a logged metric"
Read = Callable[[tuple[Any, ...], Mapping[str, Any]], TwinRequest | None]


def hook_client(maker: TwinMaker) -> Callable[[], None]:
    """Make ``MlflowClient`` add the twins of each recognised metric; return what takes it back."""
    from mlflow.tracking.client import MlflowClient

    log_metric, log_batch = MlflowClient.log_metric, MlflowClient.log_batch
    requests = TwinRequests(maker, log_batch)
    read_metric = functools.partial(requests.of_metric, inspect.signature(log_metric))
    hooks = {
        "log_metric": _hooked(log_metric, log_batch, read_metric, requests),
        "log_batch": _hooked(log_batch, log_batch, requests.of_batch, requests),
        "set_terminated": _hooked_end(MlflowClient.set_terminated, requests),
    }
    return replaced([(MlflowClient, name, hook) for name, hook in hooks.items()])


def _hooked(
    original: Callable[..., Any],
    log_batch: Callable[..., Any],
    read: Read,
    requests: TwinRequests,
) -> Callable[..., Any]:
    """Return a method that sends what is read from a call, or the call itself where refused."""

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        request = None
        with suppress(Exception), told(_NOTHING):
            request = read(args, kwargs)
        if request is None:
            return original(*args, **kwargs)
        if request.call is None or request.is_asynchronous:
            result = original(*args, **kwargs)
            with suppress(Exception), told(_NOTHING):
                result = requests.send_aside(request, result)
            return result
        try:
            result = log_batch(**request.call)
        except Exception as failure:
            answered = True
            with suppress(Exception):
                answered = requests.is_answer(request, failure)
            if not answered:  # the user's own call would wait as long, and fail as well
                raise
            result = original(*args, **{**kwargs, **request.again})
            with suppress(Exception):
                requests.put_off(request, failure)
            return result
        with suppress(Exception), told(_NOTHING):
            requests.sent(request)
        return result

    return hooked


def _hooked_end(original: Callable[..., Any], requests: TwinRequests) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def set_terminated(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        with suppress(Exception), told(_NOTHING):
            call = signature.bind(*args, **kwargs).arguments
            _report(call["self"], call["run_id"], requests)
        return result

    return set_terminated


def _report(client: Any, run_id: str, requests: TwinRequests) -> None:
    """Tell what a run gained: a tag of the run and a line of the user's terminal."""
    sentence = requests.finish(client, run_id)
    if sentence is None:
        return
    print(f"trueup: run {run_id}: {sentence}", file=sys.stderr, flush=True)
    if requests.takes(run_id):
        client.set_tag(run_id, COVERAGE_TAG, sentence)
        for key, reason in requests.overwritten(run_id).items():
            client.set_tag(run_id, late_tag(key), reason)
