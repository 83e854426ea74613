"""The figure of a comparison: both distributions over seeds, and the pairs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from trueup.comparison import Comparison

_COLOURS = {"candidate": "#1b6ca8", "baseline": "#8a8a8a"}


def comparison_figure(
    comparison: Comparison,
    values: dict[str, dict[int | str, float]],
    metric: str,
    names: tuple[str, str] = ("candidate", "baseline"),
) -> Figure:
    """Draw each finished run of both arms, its mean, and a line between runs that share a seed.

    Parameters
    ----------
    comparison : Comparison
        The decision, which becomes the title.
    values : mapping arm -> (mapping seed -> finite value)
        Arms in the order "candidate", "baseline".
    metric : str
        Label of the axis.
    names : tuple of str
        What the candidate and the baseline are called.
    """
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    heights = {"candidate": 1.0, "baseline": 0.0}
    if comparison.estimand == "paired":
        for seed, _ in comparison.pairs:
            ends = [values[arm][seed] for arm in heights]  # type: ignore[index]
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
