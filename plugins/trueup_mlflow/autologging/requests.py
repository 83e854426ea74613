"""The request that carries twins: what it holds beside the user's, and what becomes of it.

The user's own call is never changed: where the store refuses the request with twins, what was added
is taken back and the call goes out as the user made it. Twins of an asynchronous call go in a
request of their own, for MLflow merges what waits, and a refusal would hit all of it.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from trueup_mlflow.autologging.calibrated_metrics import Additions, TwinMaker
from trueup_mlflow.autologging.coverage import Note
from trueup_mlflow.write.failures import OWN_WRITING, Breaker, describe, is_unanswered, warn
from trueup_mlflow.write.items import skipped_tag

_ASIDE_THREADS = 2
_MAX_KEPT = 200  # requests of one run that wait for its end


@dataclass(frozen=True)
class TwinRequest:
    """A ``log_batch`` call that carries twins in place of what the user called.

    Without a call the user's own is made. ``own`` is the call with what is trueup's alone, and
    ``notes`` are what the coverage of the run gains once the store took the user's values. The
    keywords ``again`` make the user's own call, if it has to be repeated, name the same point.
    """

    run_id: str
    call: Mapping[str, Any] | None
    own: Mapping[str, Any]
    again: Mapping[str, Any]
    is_asynchronous: bool
    notes: Sequence[Note] = ()


class TwinRequests:
    """Makes the requests that carry twins, and keeps what becomes of them.

    ``log_batch`` is that of ``MlflowClient`` as it is without the hook.
    """

    def __init__(self, maker: TwinMaker, log_batch: Callable[..., Any]) -> None:
        self._maker = maker
        self._log_batch = log_batch
        self._batch = inspect.signature(log_batch)
        self._breaker = Breaker()  # of runs whose latest request was not taken
        self._silent = Breaker()  # of runs whose store did not answer
        self._aside: ThreadPoolExecutor | None = None
        self._waiting: dict[str, list[Future[bool]]] = {}
        self._kept: dict[str, list[Mapping[str, Any]]] = {}
        self._told: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def of_metric(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> TwinRequest | None:
        """Return the request in place of a call of ``log_metric``; None where nothing is added."""
        call = signature.bind(*args, **kwargs).arguments
        batch = _as_batch(call)
        by_position = list(signature.parameters)[: len(args)]
        fixed = call.get("timestamp") is not None or "timestamp" in by_position
        return self._request(batch, {} if fixed else {"timestamp": batch["metrics"][0].timestamp})

    def of_batch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TwinRequest | None:
        """Return the request in place of a call of ``log_batch``; None where nothing is added."""
        return self._request(dict(self._batch.bind(*args, **kwargs).arguments), {})

    def sent(self, request: TwinRequest) -> None:
        self._note(request)
        self._mark(request.own)

    def is_answer(self, request: TwinRequest, failure: Exception) -> bool:
        """Return whether the store has answered; if it has not, it is left alone for a while."""
        if not is_unanswered(failure):
            return True
        self._tell(request.run_id, failure)
        return False

    def put_off(self, request: TwinRequest, failure: Exception) -> None:
        """Note that the store took the user's call and not the twins, which wait for the end."""
        self._note(request)
        self._tell(request.run_id, failure)
        self._keep(request)

    def send_aside(self, request: TwinRequest, operations: Any) -> Any:
        """Send what is trueup's in a thread, and let the user's operations wait for it."""
        self._note(request)
        if request.call is None:
            self._mark(request.own)
            return operations
        from mlflow.utils.async_logging.run_operations import RunOperations

        with self._lock:
            if self._aside is None:
                self._aside = ThreadPoolExecutor(_ASIDE_THREADS, "trueup")
            future = self._aside.submit(self._send_own, request.own)
            self._waiting.setdefault(request.run_id, []).append(future)
        return RunOperations([*operations._operation_futures, future])

    def finish(self, client: Any, run_id: str) -> str | None:
        """Write what was put off, and return what the run gained; None for nothing new."""
        for future in self._waiting.pop(run_id, ()):
            future.result()
        kept = self._kept.pop(run_id, [])
        if kept and self.takes(run_id) and self._send_own(_joined(client, run_id, kept)):
            self._maker.coverage.put_off(run_id, None)
        sentence = self._maker.coverage.sentence(run_id)
        if sentence == self._told.get(run_id):
            return None
        self._told[run_id] = sentence
        return sentence

    def overwritten(self, run_id: str) -> dict[str, str]:
        """Return key -> reason where the last value has no twin, and another at its step has."""
        return self._maker.coverage.overwritten(run_id)

    def takes(self, run_id: str) -> bool:
        """Return whether the store has answered lately, as far as is known."""
        return not self._silent.is_open(run_id)

    def _tell(self, run_id: str, failure: Exception) -> None:
        reason = describe(failure)
        if is_unanswered(failure):
            self._silent.trip(run_id)
        self._maker.coverage.put_off(run_id, reason)
        if self._breaker.trip(run_id):
            warn(f"twins of run {run_id} are put off until its end: {reason}")

    def _keep(self, request: TwinRequest) -> None:
        kept = self._kept.setdefault(request.run_id, [])
        if len(kept) < _MAX_KEPT:
            kept.append(request.own)

    def _send_own(self, own: Mapping[str, Any]) -> bool:
        """Send what is trueup's alone and return whether the store took it; never raise."""
        with suppress(Exception):
            try:
                self._log_batch(**own)
            except Exception as failure:  # the user's metrics went in a request of their own
                self._tell(own["run_id"], failure)
            else:
                self._mark(own)
                return True
        return False

    def _request(self, call: dict[str, Any], again: Mapping[str, Any]) -> TwinRequest | None:
        run_id, metrics = call["run_id"], list(call.get("metrics") or ())
        is_ours = OWN_WRITING.get()
        if not metrics and not is_ours:
            return None
        additions = self._maker.additions(run_id, metrics, is_ours=is_ours)
        notes = [*additions.notes, *(_skipped(call.get("tags") or ()) if is_ours else ())]
        if not additions:
            return TwinRequest(
                run_id, None, {"run_id": run_id, "metrics": metrics, "tags": []}, {}, False, notes
            )
        own = _own(call, additions)
        repeated = {id(metric) for metric in additions.repeated}
        kept = [metric for metric in metrics if id(metric) not in repeated]
        request = TwinRequest(
            run_id=run_id,
            call={
                **call,
                "metrics": [*kept, *own["metrics"]],
                "tags": [*(call.get("tags") or ()), *own["tags"]],
            },
            own=own,
            again=again,
            is_asynchronous=_is_asynchronous(call.get("synchronous")),
            notes=notes,
        )
        if self._breaker.is_open(run_id):
            self._keep(request)
            nothing = {"run_id": run_id, "metrics": [], "tags": []}
            return replace(request, call=None, own=nothing)
        return request

    def _note(self, request: TwinRequest) -> None:
        self._maker.coverage.add(request.run_id, request.notes)

    def _mark(self, own: Mapping[str, Any]) -> None:
        tags = {tag.key: tag.value for tag in own["tags"]}
        self._maker.mark(own["run_id"], own["metrics"], tags)


def _as_batch(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``log_batch`` call that logs one metric as ``log_metric`` does."""
    from mlflow.entities import Metric
    from mlflow.tracking.fluent import get_active_model_id

    timestamp, step = call.get("timestamp"), call.get("step")
    metric = Metric(
        call["key"],
        call["value"],
        time.time_ns() // 1_000_000 if timestamp is None else timestamp,
        0 if step is None else step,
        model_id=call.get("model_id") or get_active_model_id(),
        dataset_name=call.get("dataset_name"),
        dataset_digest=call.get("dataset_digest"),
        run_id=call["run_id"],
    )
    return {
        "self": call["self"],
        "run_id": call["run_id"],
        "metrics": [metric],
        "synchronous": call.get("synchronous"),
    }


def _skipped(tags: Sequence[Any]) -> list[Note]:
    """Return why trueup could not log a metric, from the tags that say so."""
    start = skipped_tag("")
    return [
        Note(tag.key.removeprefix(start), None, reason=tag.value)
        for tag in tags
        if tag.key.startswith(start)
    ]


def _own(call: Mapping[str, Any], additions: Additions) -> dict[str, Any]:
    from mlflow.entities import RunTag

    place = {"self": call["self"], "run_id": call["run_id"], "synchronous": True}
    tags = [RunTag(tag, text) for tag, text in additions.tags.items()]
    return {**place, "metrics": _twins(additions), "tags": tags}


def _joined(client: Any, run_id: str, requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    place = {"self": client, "run_id": run_id, "synchronous": True}
    tags = {tag.key: tag for own in requests for tag in own["tags"]}
    metrics = [metric for own in requests for metric in own["metrics"]]
    return {**place, "metrics": metrics, "tags": list(tags.values())}


def _twins(additions: Additions) -> Sequence[Any]:
    from mlflow.entities import Metric

    return [
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


def _is_asynchronous(synchronous: bool | None) -> bool:
    from mlflow.environment_variables import MLFLOW_ENABLE_ASYNC_LOGGING

    if synchronous is None:
        return bool(MLFLOW_ENABLE_ASYNC_LOGGING.get())
    return not synchronous
