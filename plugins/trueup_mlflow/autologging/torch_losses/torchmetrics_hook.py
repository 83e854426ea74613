"""The hook on the squared error of torchmetrics: the rows between two resets are kept."""

from __future__ import annotations

import functools
import inspect
import math
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np

from trueup_mlflow.autologging.hooking import Place, modules_with, replaced, watched
from trueup_mlflow.autologging.scored import Scored, snapshot
from trueup_mlflow.autologging.torch_losses.passes import MAX_BYTES

Record = Callable[[Scored], None]
_FUNCTION = "mean_squared_error"


class Rows:
    """Predictions and targets of one metric since it was reset, at most 256 MiB."""

    def __init__(self) -> None:
        self._parts: list[tuple[Any, Any]] = []
        self._nbytes = 0
        self._is_whole = True
        self.in_forward = False

    def add(self, prediction: Any, target: Any) -> None:
        part = prediction.detach().clone().reshape(-1), target.detach().clone().reshape(-1)
        self._nbytes += part[0].nbytes + part[1].nbytes
        if self._nbytes > MAX_BYTES:
            self._parts, self._is_whole = [], False
        if self._is_whole:
            self._parts.append(part)

    @property
    def n(self) -> int:
        return sum(len(target) for _, target in self._parts)

    def clear(self) -> None:
        """Forget all batches, unless the metric resets itself in the midst of ``forward``."""
        if not self.in_forward:
            self._parts, self._nbytes, self._is_whole = [], 0, True

    def count(self) -> int:
        return len(self._parts)

    def keep_latest_after(self, count: int) -> None:
        """Drop all but the last of what came after the first ``count`` batches."""
        self._parts = self._parts[:count] + self._parts[count:][-1:]

    def scored(self, value: float, *, squared: bool) -> Scored | None:
        """Return what a metric has scored; None where not all of it is known."""
        parts = self._parts[-1:] if self.in_forward else self._parts
        if not parts:
            return None
        return Scored(
            loss="mean_squared_error",
            value=value if squared else value * value,
            root=math.sqrt(value) if squared else value,
            y_true=np.concatenate([snapshot(target) for _, target in parts]),
            y_pred=np.concatenate([snapshot(prediction) for prediction, _ in parts]),
        )


class _AllRows:
    """The rows of each metric that lives; a metric's own hash changes with its state."""

    def __init__(self) -> None:
        self._rows: dict[int, Rows] = {}
        self._metrics: dict[int, weakref.ref[Any]] = {}

    def of(self, metric: Any) -> Rows:
        """Return the rows that a metric was given itself."""
        key = id(metric)
        if key not in self._rows:
            self._rows[key], self._metrics[key] = Rows(), weakref.ref(metric)
            weakref.finalize(metric, self._forget, key)
        return self._rows[key]

    def behind(self, metric: Any) -> Rows:
        """Return the rows behind a metric's state: one of its compute group took them for all."""
        own = self.of(metric)
        if own.in_forward or own.n == int(metric.total):
            return own
        for key, reference in list(self._metrics.items()):
            other = reference()
            shares = other is not None and other.sum_squared_error is metric.sum_squared_error
            if shares and self._rows[key].n == int(metric.total):
                return self._rows[key]
        return own

    def _forget(self, key: int) -> None:
        self._rows.pop(key, None)
        self._metrics.pop(key, None)


def hook_torchmetrics(module: ModuleType, record: Record) -> Callable[[], None]:
    """Keep what ``MeanSquaredError`` and ``mean_squared_error`` score; return what undoes it.

    Means of other losses, as by ``MeanMetric``, are recognised by the hook on the losses.
    """
    metric, rows = module.MeanSquaredError, _AllRows()
    function = getattr(module.functional, _FUNCTION)
    signature = inspect.signature(function)

    def updated(_: Any, self: Any, preds: Any, target: Any) -> None:
        if self.num_outputs == 1:
            rows.of(self).add(preds, target)

    def computed(value: Any, self: Any) -> None:
        keep(rows.behind(self).scored(float(value), squared=self.squared))

    def called(value: Any, *args: Any, **kwargs: Any) -> None:
        call = signature.bind(*args, **kwargs).arguments
        own = Rows()
        own.add(call["preds"], call["target"])
        keep(own.scored(float(value), squared=call.get("squared", True)))

    def keep(scored: Scored | None) -> None:
        if scored is not None:
            record(scored)

    places: list[Place] = [
        (metric, "update", watched(metric.update, after=updated)),
        (metric, "compute", watched(metric.compute, after=computed)),
        (metric, "reset", watched(metric.reset, before=lambda self: rows.of(self).clear())),
        (metric, "forward", _watched_forward(metric.forward, rows)),
    ]
    by_function = watched(function, after=called)
    owners = modules_with(_FUNCTION, function, "torch.")
    return replaced([*places, *((owner, _FUNCTION, by_function) for owner in owners)])


def _watched_forward(forward: Callable[..., Any], rows: _AllRows) -> Callable[..., Any]:
    @functools.wraps(forward)
    def forwarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = 0
        with suppress(Exception):
            before = rows.of(self).count()
            rows.of(self).in_forward = True
        try:
            return forward(self, *args, **kwargs)
        finally:
            with suppress(Exception):
                rows.of(self).in_forward = False
                rows.of(self).keep_latest_after(before)

    return forwarded
