"""One HTML page about a monitored version that needs no network, and its figure."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup import __version__
from trueup.monitoring.metrics import metric_of
from trueup_mlflow.monitor.judging.verdict import Coverage, State, short, state_of
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_mlflow.write.segment_items import FEW_ROWS, MIN_ROWS, Segment

_LOG_RANGE = 30.0  # largest over smallest value from which on a linear axis hides the small ones
_FEW_ROWS = 30
_FEW_OF_USUAL = 0.25  # of the median batch
_DAY = 86_400_000


def render_report(
    model_uri: str,
    records: Sequence[BatchRecord],
    figure: str,
    state: State | None = None,
    aliases: Sequence[str] = (),
    segments: Sequence[Segment] = (),
) -> str:
    """Return the page: verdict, an SVG figure, coverage, each batch with its flags, and levels.

    Everything but the figure goes through a template that escapes it: what a store gives back may
    hold markup. The figure is drawn here, of numbers.
    """
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    home = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=home, autoescape=True, trim_blocks=True, keep_trailing_newline=True)
    pages.filters |= {"short": short, "signed": _signed}
    values = {
        "model_uri": model_uri,
        "figure": Markup(figure),
        "records": records,
        "quantity": metric_of(records[0].metric).words,
        "few": _few_rows(records)[0],
        "by_day": all(record.timestamp % _DAY < 1_000 for record in records),
        "coverage": Coverage.of(records),
        "state": state or state_of(records),
        "aliases": aliases,
        "segments": segments,
        "days": defaultdict(str, {record.step: record.day for record in records}),
        "least": MIN_ROWS,
        "few_rows": FEW_ROWS,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "version": __version__,
    }
    return pages.get_template("report.html").render(values)


def draw_series(records: Sequence[BatchRecord], thresholds: Sequence[float] = ()) -> str:
    """Return the series as inline SVG; drawn without pyplot, so no backend is touched."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.5), layout="constrained")
    axes = figure.add_subplot()
    times = np.array([record.timestamp for record in records]).astype("datetime64[ms]")
    low, value, high, realized = _columns(records)
    axes.fill_between(times, low, high, alpha=0.2, lw=0, label="90% interval")
    axes.vlines(times, low, high, alpha=0.3, lw=1.5)  # a batch between two that failed has no area
    axes.plot(times, value, color="C0", label="estimated")
    few, limit = _few_rows(records)
    axes.plot(times[~few], value[~few], "o", color="C0")
    if few.any():
        label = f"estimated, fewer than {limit:.0f} rows"
        axes.plot(times[few], value[few], "o", color="C0", mfc="white", label=label)
    _draw_realized(axes, records, times, realized)
    doubtful = np.array([not record.estimate["trusted"] for record in records])
    if doubtful.any():
        axes.plot(
            times[doubtful], value[doubtful], "rs", mfc="none", ms=9, label="not to be trusted"
        )
    for threshold in thresholds:
        axes.axhline(threshold, color="#b00020", ls="--", label=f"threshold {short(threshold)}")
    axes.set_ylabel(metric_of(records[0].metric).words)
    if np.ptp(times.astype(np.int64)) < 1_000:  # one moment: the axis would span years
        axes.set_xlim(times[0] - np.timedelta64(_DAY, "ms"), times[0] + np.timedelta64(_DAY, "ms"))
    ticks = AutoDateLocator(minticks=4, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(ticks)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(ticks))  # type: ignore[no-untyped-call]
    _scale(axes, np.concatenate([low, high, realized, np.asarray(thresholds, dtype=np.float64)]))
    figure.legend(loc="outside right upper", frameon=False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


def _draw_realized(axes: Any, records: Sequence[BatchRecord], times: Any, realized: Any) -> None:
    outside = np.array([record.covered is False for record in records])
    inside = np.isfinite(realized) & ~outside
    if inside.any():
        axes.plot(times[inside], realized[inside], "kx", label="realized")
    if outside.any():
        label = "realized, outside of its interval"
        axes.plot(times[outside], realized[outside], "X", color="#b00020", ms=9, label=label)


def _columns(records: Sequence[BatchRecord]) -> NDArray[np.float64]:
    """Return low ends, estimates, high ends and realized errors."""
    rows = [
        [record.number("low"), record.value, record.number("high"), _number(record.realized)]
        for record in records
    ]
    return np.array(rows).T


def _few_rows(records: Sequence[BatchRecord]) -> tuple[NDArray[np.bool_], float]:
    """Return which batches have few rows, and below how many that is."""
    rows = np.array([_number(record.n) for record in records])
    usual = np.median(rows[np.isfinite(rows)]) if np.isfinite(rows).any() else 0.0
    limit = max(_FEW_OF_USUAL * float(usual), _FEW_ROWS)
    return rows < limit, limit


def _number(value: Any) -> float:
    """Return what the figure shows of a stored value; nothing where it is no number."""
    return float(value) if isinstance(value, (int, float)) else np.nan


def _scale(axes: Any, values: Any) -> None:
    positive = values[np.isfinite(values) & (values > 0.0)]
    if len(positive) and positive.max() > _LOG_RANGE * positive.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0)


def _signed(value: Any) -> str:
    return format(value, "+.1f") if isinstance(value, (int, float)) else str(value)
