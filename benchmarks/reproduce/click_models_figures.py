"""Figures of docs/does-it-work.md, from the scores of all seeds that lie beside the tables.

python benchmarks/reproduce/click_models_figures.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from click_models_compare import Results
from click_models_tables import TABLES
from click_models_training import Schedule, Scores
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from trueup.comparison import metric_accuracy, variance_reduction

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
DATA = ("flights", "synthetic")
COLOURS: dict[Schedule, str] = {"constant": "#1f77b4", "decay": "#d98324"}
LEGEND = {"loc": "outside lower center", "ncols": 2, "frameon": False}
LABELS: dict[Schedule, str] = {"constant": "constant rate", "decay": "rate decays to zero"}


def main() -> None:
    mpl.use("agg")
    plt.rcParams.update({"font.size": 8, "figure.dpi": 100, "savefig.bbox": "tight"})
    data = {name: read(name) for name in DATA}
    reductions(data).savefig(DOCS / "click_reductions.png")
    accuracies(data).savefig(DOCS / "click_accuracies.png")
    jitter(read("fresh")["constant"]["DeepFM"]).savefig(DOCS / "click_jitter.png")


def read(name: str) -> dict[Schedule, Results]:
    """Return the scores of each pipeline by learning rate."""
    frame = pd.read_parquet(HERE / f"click_models_{name}.parquet")
    found: dict[Schedule, Results] = {}
    for (rate, pipeline), rows in frame.groupby(["rate", "pipeline"], sort=False):
        values = rows.drop(columns=["rate", "pipeline", "seed"])
        found.setdefault(rate, {})[pipeline] = Scores(
            **{k: v.to_numpy() for k, v in values.items()}
        )
    return found


def reductions(data: dict[str, dict[Schedule, Results]]) -> plt.Figure:
    """Draw how much less the calibrated log loss varies, a line per pipeline."""
    names = distinct_names(next(iter(data.values()))["constant"])
    figure, axes = panels(data, len(names))
    for axis, (title, results) in zip(axes, data.items(), strict=True):
        for shift, (rate, by_name) in zip((-0.15, 0.15), results.items(), strict=False):
            found = [variance_reduction(by_name[n].vanilla, by_name[n].crossfit) for n in names]
            value = 100 * np.array([r.value for r in found])
            ends = 100 * np.array([(r.value - r.low, r.high - r.value) for r in found]).T
            rows = np.arange(len(names)) + shift
            style = {"fmt": "o", "ms": 3, "lw": 1, "color": COLOURS[rate], "label": LABELS[rate]}
            axis.errorbar(value, rows, xerr=ends, **style)
        finish(axis, title, names, "reduction of the standard deviation over seeds, %")
        axis.axvline(0.0, color="0.5", lw=0.8)
        axis.set_xlim(-60, 80)
    figure.legend(*axes[0].get_legend_handles_labels(), **LEGEND)
    return figure


def accuracies(data: dict[str, dict[Schedule, Results]]) -> plt.Figure:
    """Draw the accuracy of both metrics, a line per pair, at the constant rate."""
    pairs = distinct_pairs(next(iter(data.values()))["constant"])
    figure, axes = panels(data, len(pairs))
    for axis, (title, results) in zip(axes, data.items(), strict=True):
        scores = results["constant"]
        for row, names in enumerate(pairs):
            a, b = sorted((scores[name] for name in names), key=lambda s: float(s.vanilla.mean()))
            vanilla = 100 * metric_accuracy(a.vanilla, b.vanilla).value
            calibrated = 100 * metric_accuracy(a.crossfit, b.crossfit).value
            axis.plot([vanilla, calibrated], [row, row], color="0.7", lw=1.5, zorder=1)
            axis.plot(vanilla, row, "o", mfc="white", mec="0.3", ms=4)
            axis.plot(calibrated, row, "o", color=COLOURS["constant"], ms=4)
        finish(axis, title, [f"{a} | {b}" for a, b in pairs], "accuracy over all pairs, %")
        axis.axvline(50.0, color="0.5", lw=0.8)
    axes[0].plot([], [], "o", mfc="white", mec="0.3", ms=4, label="log loss")
    axes[0].plot([], [], "o", color=COLOURS["constant"], ms=4, label="calibrated log loss")
    figure.legend(*axes[0].get_legend_handles_labels(), **LEGEND)
    return figure


def distinct_pairs(results: Results) -> list[tuple[str, str]]:
    """Return the pairs of all tables, those with equal scores once."""
    found: dict[frozenset[bytes], tuple[str, str]] = {}
    for table in TABLES:
        for pair in table.pairs:
            names = (pair.a, pair.b)
            found.setdefault(frozenset(results[n].vanilla.tobytes() for n in names), names)
    return list(found.values())


def distinct_names(results: Results) -> list[str]:
    """Return the names of the pipelines, those with equal scores once."""
    found: dict[bytes, str] = {}
    for name, scores in results.items():
        found.setdefault(scores.vanilla.tobytes(), name)
    return list(found.values())


def jitter(scores: Scores) -> plt.Figure:
    """Draw both log losses of each seed over its bias."""
    figure, axis = plt.subplots(figsize=(4.6, 2.6))
    axis.plot(scores.bias_term, scores.vanilla, "o", mfc="white", mec="0.3", ms=4, label="log loss")
    calibrated = {"color": COLOURS["constant"], "ms": 4, "label": "calibrated log loss"}
    axis.plot(scores.bias_term, scores.crossfit, "o", **calibrated)
    axis.set_xlabel("bias of the logits after the last step")
    axis.set_ylabel("on validation")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def panels(data: dict[str, object], n_rows: int) -> tuple[plt.Figure, Sequence[Axes]]:
    """Return one panel per data set, rows as high as their labels need."""
    size = (3.4 * len(data) + 1.5, 0.17 * n_rows + 0.8)
    figure, axes = plt.subplots(1, len(data), sharey=True, figsize=size, layout="constrained")
    return figure, axes


def finish(axis: Axes, title: str, names: Sequence[str], label: str) -> None:
    """Name the rows of a panel from top to bottom."""
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(label)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
