"""One HTML page about a monitored version that needs no network, and the coverage so far."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from scipy.stats import binomtest

from trueup_mlflow.write.monitor_items import BatchRecord

_STYLE = (
    "body{font:15px system-ui;margin:2em auto;max-width:60em}table{border-collapse:collapse}"
    "td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td:last-child,th:last-child,td:first-child{text-align:left}.bad{color:#b00020}"
)


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
        realized = [record for record in records if record.realized is not None]
        inside = sum(bool(record.covered) for record in realized)
        if not realized:
            return cls(0, 0, 0.0, 1.0)
        interval = binomtest(inside, len(realized)).proportion_ci(0.95)
        return cls(inside, len(realized), float(interval.low), float(interval.high))


def render_report(model_uri: str, records: Sequence[BatchRecord], figure: str) -> str:
    """Return the page: an SVG figure, coverage, and each batch with its flags and what moved."""
    coverage = Coverage.of(records)
    counted = (
        f"{coverage.inside} of {coverage.n} realized batches lie in their 90% interval "
        f"(95% interval {coverage.low:.0%} to {coverage.high:.0%} if batches were independent; "
        "they share one reference, so they are not)."
        if coverage.n
        else "No labels have arrived yet."
    )
    rows = "".join(_row(record) for record in records)
    head = "".join(
        f"<th>{name}</th>"
        for name in ("time", "rows", "estimated", "90% interval", "realized", "moved, flags")
    )
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(model_uri)}</title>"
        f"<style>{_STYLE}</style><h1>{escape(model_uri)}</h1>"
        f"{figure}<p>{counted}</p>"
        f"<table><tr>{head}</tr>{rows}</table>"
        "<p>Estimates use features and predictions only: none can see a change of the target given "
        "the features.</p></html>\n"
    )


def _row(record: BatchRecord) -> str:
    estimate = record.estimate
    realized = "" if record.realized is None else f"{record.realized:.4g}"
    moved = ", ".join(f"{escape(name)} {shift:+.1f} sd" for name, shift in record.moved)
    doubt = "" if estimate["trusted"] else "not to be trusted: "
    flags = doubt + "; ".join(estimate["reasons"])
    return (
        f"<tr><td>{escape(record.time)}</td><td>{record.n}</td><td>{estimate['mse']:.4g}</td>"
        f"<td>{estimate['low']:.4g} to {estimate['high']:.4g}</td><td>{realized}</td>"
        f"<td>{moved}<div class='bad'>{escape(flags)}</div></td></tr>"
    )


def draw_series(records: Sequence[BatchRecord], thresholds: Sequence[float] = ()) -> str:
    """Return the series as inline SVG; drawn without pyplot, so no backend is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.add_subplot()
    times = np.array([record.timestamp for record in records]).astype("datetime64[ms]")
    low, mse, high = (
        np.array([record.estimate[name] for record in records]) for name in ("low", "mse", "high")
    )
    axes.fill_between(times, low, high, alpha=0.2, label="90% interval")
    axes.plot(times, mse, marker="o", label="estimated")
    realized = np.array([np.nan if r.realized is None else r.realized for r in records])
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
