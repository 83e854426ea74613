"""The figure of the guard: what each calibrator changed after each origin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from trueup.calibrators import GuardDecision


def guard_figure(decisions: Mapping[str, GuardDecision]) -> Figure:
    """Draw the change of the log loss at each origin with two standard errors, 0 as a line.

    Parameters
    ----------
    decisions : mapping from calibrator to GuardDecision
        Decisions on rows with times.
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
