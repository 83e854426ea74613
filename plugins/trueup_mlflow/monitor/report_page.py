"""One HTML page about a monitored version that needs no network, and the coverage so far."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from trueup_mlflow.write.monitor_items import BatchRecord

_TOP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{{ model_uri }}</title>
<style>
body{font:15px system-ui;margin:2em auto;max-width:60em}table{border-collapse:collapse}
td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}
td:last-child,th:last-child,td:first-child{text-align:left}.bad{color:#b00020}
</style><h1>{{ model_uri }}</h1>
"""
_BOTTOM = """
<p>{% if coverage.n %}
{{ coverage.inside }} of {{ coverage.n }} realized batches lie in their 90% interval (95% interval
{{ "%.0f%%" | format(100 * coverage.low) }} to {{ "%.0f%%" | format(100 * coverage.high) }}
if batches were independent; they share one reference, so they are not).
{% else %}
No labels have arrived yet.
{% endif %}</p>
<table><tr><th>time</th><th>rows</th><th>estimated</th><th>90% interval</th><th>realized</th>
<th>moved, flags</th></tr>
{% for record in records %}
{% set estimate = record.estimate %}
<tr><td>{{ record.time }}</td><td>{{ record.n }}</td><td>{{ estimate.mse | short }}</td>
<td>{{ estimate.low | short }} to {{ estimate.high | short }}</td>
<td>{% if record.realized is not none %}{{ record.realized | short }}{% endif %}</td>
<td>{% for name, shift in record.moved %}
{{ name }} {{ shift | signed }} sd{{ ", " if not loop.last }}
{%- endfor %}<div class="bad">{{ "" if estimate.trusted else "not to be trusted: " }}
{{- estimate.reasons | join("; ") }}</div></td></tr>
{% endfor %}
</table>
<p>Estimates use features and predictions only: none can see a change of the target given the
features.</p></html>"""


@dataclass(frozen=True)
class Coverage:
    """How many realized batches lie in their 90% interval.

    Attributes
    ----------
    inside, n : int
        Batches inside, and batches with labels.
    low, high : float
        95% Clopper-Pearson interval of the coverage, as if batches were independent. They share one
        reference, so the truth is less certain than that.
    """

    inside: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, records: Sequence[BatchRecord]) -> Coverage:
        """Count over the batches whose labels have arrived."""
        realized = [record for record in records if record.covered is not None]
        inside = sum(bool(record.covered) for record in realized)
        if not realized:
            return cls(0, 0, 0.0, 1.0)
        interval = binomtest(inside, len(realized)).proportion_ci(0.95)
        return cls(inside, len(realized), float(interval.low), float(interval.high))


def render_report(model_uri: str, records: Sequence[BatchRecord], figure: str) -> str:
    """Return the page: an SVG figure, coverage, and each batch with its flags and what moved.

    Everything but the figure goes through a template that escapes it: what a store gives back may
    hold markup. The figure is drawn here, of numbers.
    """
    from jinja2 import Environment

    pages = Environment(autoescape=True, trim_blocks=True)
    pages.filters |= {"short": _short, "signed": lambda value: _short(value, "+.1f")}
    values = {"model_uri": model_uri, "records": records, "coverage": Coverage.of(records)}
    top, bottom = (pages.from_string(part).render(values) for part in (_TOP, _BOTTOM))
    return f"{top}{figure}{bottom}\n"


def _short(value: Any, digits: str = ".4g") -> str:
    """Return a number with few digits, and anything else as it is."""
    return format(value, digits) if isinstance(value, (int, float)) else str(value)


def _number(value: Any) -> float:
    """Return what the figure shows of a stored value; nothing where it is no number."""
    return float(value) if isinstance(value, (int, float)) else np.nan


def draw_series(records: Sequence[BatchRecord], thresholds: Sequence[float] = ()) -> str:
    """Return the series as inline SVG; drawn without pyplot, so no backend is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.add_subplot()
    times = np.array([record.timestamp for record in records]).astype("datetime64[ms]")
    low, mse, high = (
        np.array([_number(record.estimate[name]) for record in records])
        for name in ("low", "mse", "high")
    )
    axes.fill_between(times, low, high, alpha=0.2, label="90% interval")
    axes.plot(times, mse, marker="o", label="estimated")
    realized = np.array([_number(record.realized) for record in records])
    axes.plot(times, realized, "kx", label="realized")
    doubtful = np.array([not record.estimate["trusted"] for record in records])
    if doubtful.any():
        axes.plot(times[doubtful], mse[doubtful], "rs", label="not to be trusted")
    for threshold in thresholds:
        axes.axhline(threshold, color="#b00020", ls="--", label=f"threshold {threshold:g}")
    axes.set_ylabel("mean squared error")
    axes.set_ylim(bottom=0.0)
    axes.legend()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]
