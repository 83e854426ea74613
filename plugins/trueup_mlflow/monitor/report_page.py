"""One HTML page about a monitored version that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from trueup import __version__
from trueup_mlflow.monitor.coverage import Coverage
from trueup_mlflow.monitor.state import State
from trueup_mlflow.write.monitor_items import BatchRecord

__all__ = ["Coverage", "render_report"]

_STYLE = (
    "body{font:15px system-ui;margin:2em auto;max-width:64em}table{border-collapse:collapse}"
    "td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td:last-child,th:last-child,td:first-child{text-align:left}.bad{color:#b00020}"
    ".note{color:#666}.verdict{padding:.6em 1em;border-left:.4em solid}"
    ".fine{border-color:#2e7d32}.watch{border-color:#ed9b00}.act{border-color:#b00020}"
)
_HEAD = ("time (UTC)", "rows", "estimated", "90% interval", "realized", "moved, flags")
_NOTES = (
    "Moved: how far the mean of a feature lies from that of the reference, in standard deviations "
    "(sd) of the reference; time alone moves most of them, which is no alarm.",
    "Estimates are learned from the batches before whose labels were there; until labels come they "
    "use features and predictions only, and none can see a change of the target given the features.",
)


def render_report(
    model_uri: str,
    records: Sequence[BatchRecord],
    figure: str,
    state: State,
    aliases: Sequence[str] = (),
) -> str:
    """Return the page: verdict, an SVG figure, coverage, and each batch with what moved in it.

    Everything that is stored comes out escaped, whatever type it has.
    """
    named = f" ({', '.join(aliases)})" if aliases else ""
    title = _text(model_uri + named)
    span = f"{records[0].day} to {records[-1].day}, {len(records)} batches, trueup {__version__}"
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    rows = "".join(_row(record) for record in records)
    notes = "".join(f"<p class='note'>{note}</p>" for note in _NOTES)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p class='verdict {state.verdict}'><b>{state.verdict}</b>: {_text(state.why)}</p>"
        f"<p class='note'>{_text(span)}</p>{figure}<p>{_counted(Coverage.of(records))}</p>"
        f"<table><tr>{head}</tr>{rows}</table>{notes}</html>\n"
    )


def _counted(coverage: Coverage) -> str:
    if not coverage.n:
        return "No labels have arrived yet."
    return (
        f"{coverage.inside} of {coverage.n} realized batches lie in their 90% interval "
        f"(95% interval {coverage.low:.0%} to {coverage.high:.0%} if batches were independent; "
        "they share one reference, so they are not)."
    )


def _row(record: BatchRecord) -> str:
    estimate = record.estimate
    moved = ", ".join(f"{_text(name)} {shift:+.1f} sd" for name, shift in record.moved)
    cells = (
        _text(record.time[:16].replace("T", " ")),
        _text(record.n),
        _number(estimate["mse"]),
        f"{_number(estimate['low'])} to {_number(estimate['high'])}",
        _realized(record),
        moved + _flags(estimate),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _realized(record: BatchRecord) -> str:
    """Return the realized error; outside of the interval it is red and says so."""
    if record.realized is None:
        return f"{_text(record.labelled)} labels" if record.labelled else ""
    value = _number(record.realized)
    if record.covered:
        return value
    side = "above" if record.realized > record.estimate["high"] else "below"
    return f"<span class='bad'>{value} ({side})</span>"


def _flags(estimate: dict[str, Any]) -> str:
    if not estimate["reasons"]:
        return ""
    words = _text("; ".join(map(str, estimate["reasons"])))
    if estimate["trusted"]:  # said, and no reason for alarm
        return f"<div class='note'>{words}</div>"
    return f"<div class='bad'>not to be trusted: {words}</div>"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else _text(value)


def _text(value: Any) -> str:
    return escape(str(value))
