"""One HTML page about a monitored version that needs no network, and its figure."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
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

_TOP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{{ model_uri }}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><style>
body{font:15px system-ui;margin:2em auto;max-width:64em;padding:0 1em}
svg{max-width:100%;height:auto}table{border-collapse:collapse}
td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
td:last-child{white-space:normal}
td:last-child,th:last-child,td:first-child{text-align:left}.bad{color:#b00020}.note{color:#666}
.verdict{padding:.6em 1em;border-left:.4em solid}
.fine{border-color:#2e7d32}.watch{border-color:#ed9b00}.act{border-color:#b00020}
</style><h1>{{ model_uri }}</h1>
<p class="verdict {{ state.verdict }}"><b>{{ state.verdict }}</b>: {{ state.why }}</p>
<p class="note">{% if aliases %}{{ aliases | join(", ") }}; {% endif %}
{{ records | length }} {{ "batch" if records | length == 1 else "batches" }},
{{ records[0].day }}{% if records[0].day != records[-1].day %} to {{ records[-1].day }}{% endif %};
{{ quantity }}; page of {{ made }} UTC by trueup {{ version }}</p>
"""
_BOTTOM = """
<p>{% if coverage.n %}
{{ coverage.inside }} of {{ coverage.n }} realized batches lie in their 90% interval (95% interval
{{ "%.0f%%" | format(100 * coverage.low) }} to {{ "%.0f%%" | format(100 * coverage.high) }}
if batches were independent; they share one reference, so they are not).
{% else %}
No labels have arrived yet.
{% endif %}</p>
<table><tr><th>time (UTC)</th><th>rows</th><th>estimated</th><th>90% interval</th><th>realized</th>
<th>moved, flags</th></tr>
{% for record in records %}
{% set estimate = record.estimate %}
<tr><td>{{ record.day if by_day else record.time[:16] | replace("T", " ") }}</td>
<td>{{ record.n }}{{ " (few)" if few[loop.index0] }}</td>
<td>{{ record.estimated | short }}</td>
<td>{{ estimate.low | short }} to {{ estimate.high | short }}</td>
<td>{% if record.realized is not none %}
<span class="{{ "bad" if record.covered == false }}">{{ record.realized | short }}
{{- " (above)" if record.side > 0 }}{{ " (below)" if record.side < 0 }}</span>
{{- " (corrected)" if record.corrections }}
{% elif record.labelled %}{{ record.labelled }} labels{% endif %}</td>
<td>{% for name, shift in record.moved %}
{{ name }} {{ shift | signed }} sd{{ ", " if not loop.last }}
{%- endfor %}<div class="{{ "note" if estimate.trusted else "bad" }}">
{{- "" if estimate.trusted else "not to be trusted: " }}
{{- estimate.reasons | join("; ") }}</div></td></tr>
{% endfor %}
</table>
{% if segments %}
<h2>Levels of columns</h2>
<table><tr><th>level</th><th>batch of</th><th>rows</th><th>estimated</th><th>90% interval</th>
<th>realized</th></tr>
{% for one in segments %}
<tr><td>{{ one.name }}</td><td>{{ days[one.step] }}</td>
<td>{{ one.rows if one.rows is not none else "" }}{{ " (few)" if one.few }}</td>
<td>{{ one.value | short }}</td><td>{{ one.low | short }} to {{ one.high | short }}
{%- if one.trusted == false %}<div class="bad">not to be trusted</div>{% endif %}</td>
<td>{% if one.realized is not none %}{{ one.realized | short }}
{{- " of " + days[one.realized_step] if one.realized_step != one.step }}{% endif %}</td></tr>
{% endfor %}
</table>
<p class="note">The newest estimate of each level, for its rows of that batch; levels of fewer than
{{ least }} rows have none and count in the whole batch only. What labels taught the whole batch is
taken over: a level learns nothing of its own, so an error that only it has is seen by its labels
alone. Few: fewer than {{ few_rows }} rows, where the mean hangs on single ones.</p>
{% endif %}
<p class="note">Moved: how far the mean of a feature lies from that of the reference, in standard
deviations (sd) of the reference. Time alone moves most features, which is no alarm.</p>
<p class="note">Estimates learn from earlier batches whose labels were there. They use features and
predictions only: none can see a change of the target given the features.</p></html>"""


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
    from jinja2 import Environment

    pages = Environment(autoescape=True, trim_blocks=True)
    pages.filters |= {"short": short, "signed": _signed}
    values = {
        "model_uri": model_uri,
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
    top, bottom = (pages.from_string(part).render(values) for part in (_TOP, _BOTTOM))
    return f"{top}{figure}{bottom}\n"


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
