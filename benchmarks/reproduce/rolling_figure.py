"""The spread over seeds of the vanilla and the rolling metric, by table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rolling_tables import TABLES, Results

STYLE = {"vanilla": ("#1b6ca8", -0.15), "rolling": ("#d1701a", 0.15)}


def draw(results: Results, tables: Sequence[str], path: Path) -> None:
    """Draw a panel for each data set and arm: a dot a pipeline, a dash their geometric mean."""
    groups = results.groups()
    names = list(dict.fromkeys(data for data, _ in groups))
    arms = list(dict.fromkeys(arm for _, arm in groups))
    figure = Figure(figsize=(2.4 * len(arms) + 0.6, 2.3 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(arms), squeeze=False, sharey="row", sharex=True)
    for axes in panels.flat:
        axes.set_visible(False)  # until an arm is finished
    for data, arm in groups:
        axes = panels[names.index(data), arms.index(arm)]
        axes.set_visible(True)
        axes.set_title(f"{data}: {arm}", fontsize=8)
        for metric, (colour, shift) in STYLE.items():
            for place, table in enumerate(tables):
                scores = [results.of(data, arm, name)[metric] for name in TABLES[table].pipelines]
                sds = np.array([values.std(ddof=1) for values in scores])
                x = place + shift
                label = metric if place == 0 else None
                axes.plot([x] * len(sds), sds, "o", color=colour, ms=3, alpha=0.5, label=label)
                mean = np.exp(np.log(sds).mean())
                axes.plot([x - 0.14, x + 0.14], [mean, mean], color=colour, lw=2)
        axes.set_xticks(range(len(tables)), tables)
        axes.set_yscale("log")
        axes.tick_params(which="both", labelsize=7)
    panels[0, 0].legend(fontsize=7)
    figure.supxlabel("table", fontsize=8)
    figure.supylabel("standard deviation over seeds", fontsize=8)
    figure.savefig(path, dpi=110)
