"""One HTML page about a monitored version that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueup import __version__
from trueup.monitoring.metrics import metric_of
from trueup_mlflow.monitor.page.coverage import Coverage
from trueup_mlflow.monitor.page.report_figure import draw_series
from trueup_mlflow.monitor.page.state import State, state_of
from trueup_mlflow.write.monitor_items import BatchRecord

__all__ = ["Coverage", "draw_series", "render_report"]

_TOP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{{ model_uri }}</title>
<style>
body{font:15px system-ui;margin:2em auto;max-width:64em}table{border-collapse:collapse}
td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}
td:last-child,th:last-child,td:first-child{text-align:left}.bad{color:#b00020}.note{color:#666}
.verdict{padding:.6em 1em;border-left:.4em solid}
.fine{border-color:#2e7d32}.watch{border-color:#ed9b00}.act{border-color:#b00020}
</style><h1>{{ model_uri }}</h1>
<p class="verdict {{ state.verdict }}"><b>{{ state.verdict }}</b>: {{ state.why }}</p>
<p class="note">{% if aliases %}{{ aliases | join(", ") }}; {% endif %}
{{ records[0].day }} to {{ records[-1].day }}, {{ records | length }} batches, {{ quantity }},
trueup {{ version }}
</p>
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
<tr><td>{{ record.time[:16] | replace("T", " ") }}</td><td>{{ record.n }}</td>
<td>{{ record.estimated | short }}</td>
<td>{{ estimate.low | short }} to {{ estimate.high | short }}</td>
<td>{% if record.realized is not none %}
<span class="{{ "bad" if record.covered == false }}">{{ record.realized | short }}
{{- " (above)" if record.side > 0 }}{{ " (below)" if record.side < 0 }}</span>
{% elif record.labelled %}{{ record.labelled }} labels{% endif %}</td>
<td>{% for name, shift in record.moved %}
{{ name }} {{ shift | signed }} sd{{ ", " if not loop.last }}
{%- endfor %}<div class="{{ "note" if estimate.trusted else "bad" }}">
{{- "" if estimate.trusted else "not to be trusted: " }}
{{- estimate.reasons | join("; ") }}</div></td></tr>
{% endfor %}
</table>
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
) -> str:
    """Return the page: verdict, an SVG figure, coverage, and each batch with its flags.

    Everything but the figure goes through a template that escapes it: what a store gives back may
    hold markup. The figure is drawn here, of numbers.
    """
    from jinja2 import Environment

    pages = Environment(autoescape=True, trim_blocks=True)
    pages.filters |= {"short": _short, "signed": lambda value: _short(value, "+.1f")}
    values = {
        "model_uri": model_uri,
        "records": records,
        "coverage": Coverage.of(records),
        "state": state or state_of(records),
        "aliases": aliases,
        "quantity": metric_of(records[0].metric).words,
        "version": __version__,
    }
    top, bottom = (pages.from_string(part).render(values) for part in (_TOP, _BOTTOM))
    return f"{top}{figure}{bottom}\n"


def _short(value: Any, digits: str = ".4g") -> str:
    """Return a number with few digits, and anything else as it is."""
    return format(value, digits) if isinstance(value, (int, float)) else str(value)
