"""Figures of decisions: between two pipelines over seeds, and of the guard at each origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from trueup.comparison import Comparison
from trueup.decide.pairing import Seed

if TYPE_CHECKING:
    from trueup.calibrators import GuardDecision

_COLOURS = {"candidate": "#1b6ca8", "baseline": "#8a8a8a"}


def comparison_figure(
    comparison: Comparison,
    values: Mapping[str, Mapping[Seed, float]],
    metric: str,
    names: tuple[str, str] = ("candidate", "baseline"),
) -> Figure:
    """Draw each finished run of both sides, its mean, and a line between runs that share a seed.

    The decision becomes the title; candidate and baseline have values by seed, in this order, and
    may have names.
    """
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    heights = {"candidate": 1.0, "baseline": 0.0}
    if comparison.estimand == "paired":
        for seed, _ in comparison.pairs:
            ends = [values[arm][seed] for arm in heights]
            axes.plot(ends, list(heights.values()), color="#d0d0d0", linewidth=0.8, zorder=1)
    for arm, height in heights.items():
        points = np.array(list(values[arm].values()))
        axes.scatter(points, np.full(len(points), height), s=22, color=_COLOURS[arm], zorder=2)
        axes.scatter([points.mean()], [height], marker="|", s=600, color="black", zorder=3)
    axes.set_yticks(list(heights.values()), names)
    axes.set_ylim(-0.6, 1.6)
    axes.set_xlabel(metric)
    axes.set_title(comparison.sentence(*names), fontsize=8, wrap=True)
    return figure


def guard_figure(decisions: Mapping[str, GuardDecision]) -> Figure:
    """Draw the change of the log loss at each origin with two standard errors, 0 as a line.

    The decisions, by calibrator, are on rows with times.
    """
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for k, (name, decision) in enumerate(decisions.items()):
        place = np.arange(len(decision.origins)) + 0.6 * (k + 0.5) / len(decisions) - 0.3
        axes.errorbar(
            place,
            [origin.log_loss for origin in decision.origins],
            [2.0 * origin.log_loss_standard_error for origin in decision.origins],
            fmt="o" if decision.kept else "x",
            markersize=4,
            linewidth=1.0,
            label=f"{name}: {'kept' if decision.kept else 'not kept'}",
        )
    first = next(iter(decisions.values()))
    names = [origin.until for origin in first.origins]
    axes.set_xticks(np.arange(len(names)), names, rotation=30, ha="right", fontsize=7)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel("fitted up to")
    axes.set_ylabel("log loss change on the rows that follow")
    axes.legend(fontsize=7, frameon=False)
    return figure
