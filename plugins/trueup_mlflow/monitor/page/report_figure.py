"""The series of a monitored version as a figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.monitoring.metrics import metric_of
from trueup_mlflow.write.monitor_items import BatchRecord

_LOG_RANGE = 30.0  # largest over smallest value from which on a linear axis hides the small ones
_FEW_ROWS = 0.25  # of the median batch


def draw_series(records: Sequence[BatchRecord], thresholds: Sequence[float] = ()) -> str:
    """Return the series as inline SVG; drawn without pyplot, so no backend is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.add_subplot()
    times = np.array([record.timestamp for record in records]).astype("datetime64[ms]")
    value = np.array([record.value for record in records])
    low, high = (np.array([record.number(end) for record in records]) for end in ("low", "high"))
    axes.fill_between(times, low, high, alpha=0.2, label="90% interval")
    axes.plot(times, value, color="C0", label="estimated")
    few = _few_rows(records)
    axes.plot(times[~few], value[~few], "o", color="C0")
    if few.any():
        axes.plot(times[few], value[few], "o", color="C0", mfc="white", label="few rows")
    _draw_realized(axes, records, times)
    doubtful = np.array([not record.estimate["trusted"] for record in records])
    if doubtful.any():
        axes.plot(times[doubtful], value[doubtful], "rs", mfc="none", label="not to be trusted")
    for threshold in thresholds:
        axes.axhline(threshold, color="#b00020", ls="--", label=f"threshold {threshold:g}")
    axes.set_ylabel(metric_of(records[0].metric).words)
    _scale(axes, np.concatenate([low, high, _realized(records)]))
    axes.legend()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


def _draw_realized(axes: Any, records: Sequence[BatchRecord], times: Any) -> None:
    realized = _realized(records)
    outside = np.array([record.covered is False for record in records])
    inside = np.isfinite(realized) & ~outside
    axes.plot(times[inside], realized[inside], "kx", label="realized")
    if outside.any():
        label = "realized, outside of its interval"
        axes.plot(times[outside], realized[outside], "X", color="#b00020", ms=9, label=label)


def _realized(records: Sequence[BatchRecord]) -> Any:
    return np.array([_number(record.realized) for record in records])


def _few_rows(records: Sequence[BatchRecord]) -> Any:
    rows = np.array([_number(record.n) for record in records])
    usual = np.median(rows[np.isfinite(rows)]) if np.isfinite(rows).any() else 0.0
    return rows < _FEW_ROWS * usual


def _number(value: Any) -> float:
    """Return what the figure shows of a stored value; nothing where it is no number."""
    return float(value) if isinstance(value, (int, float)) else np.nan


def _scale(axes: Any, values: Any) -> None:
    positive = values[np.isfinite(values) & (values > 0.0)]
    if len(positive) and positive.max() > _LOG_RANGE * positive.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0)
