"""Figures of one run and of the parent of seeds.

They are drawn with matplotlib's ``Figure`` alone: no window, no backend and no global state of the
user is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import gaussian_kde

from trueup import expected_calibration_error
from trueup.errors import InvalidInputError
from trueup.fields.reliability import ReliabilityCurve, reliability_curve
from trueup.read.columns import column
from trueup.read.targets import read_probabilities

_COLOURS = ("#1b6ca8", "#d1701a", "#3a8f4d", "#8a4fa3", "#8a8a8a")
_MIN_SEEDS_OF_A_DENSITY = 5
_DPI = 120
_MARGIN = 0.35  # of the range of all seeds, on either side

Pipelines = dict[str, NDArray[np.float64]]


def seed_distributions(vanilla: Any, calibrated: Any, *, metric: str = "log_loss") -> Figure:
    """Draw how a metric varies over seeds, before and after the calibration.

    Parameters
    ----------
    vanilla, calibrated : array-like of shape (n_seeds,), or mapping name -> such an array
        One value for each seed; a mapping draws several pipelines over each other.
    metric : str
        Key of the vanilla metric, for the labels.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels with one and the same horizontal axis, so that widths and places compare. A mark
        for each seed, a kernel density from five seeds on, the standard deviation in the legend;
        the title names the pipelines and the number of seeds.

    Raises
    ------
    InvalidInputError
        If there is no value, one is not finite, or the pipelines of both mappings differ.

    References
    ----------
    "Towards accurate deep learning model selection: a calibrated metric approach", Figure 1.
    """
    panels = {
        metric: _pipelines(vanilla, "vanilla"),
        f"calibrated_{metric}": _pipelines(calibrated, "calibrated"),
    }
    names = [list(pipelines) for pipelines in panels.values()]
    if names[0] != names[1]:
        raise InvalidInputError(
            f"calibrated must hold the pipelines of vanilla, {names[0]}",
            f"{names[1]}",
            "Pass both metrics of each pipeline.",
        )
    figure = Figure(figsize=(8.0, 3.2), layout="constrained", dpi=_DPI)
    all_axes = figure.subplots(1, 2, sharey=True)
    grid = _common_grid(panels.values())
    for axes, (label, pipelines) in zip(all_axes, panels.items(), strict=True):
        _draw_seeds(axes, pipelines, grid)
        axes.set_xlabel(label)
    figure.suptitle(_title(panels[metric]), fontsize=9)
    all_axes[0].set_ylim(0.0, 1.25 * all_axes[0].get_ylim()[1])  # shared; room for the legend
    all_axes[0].set_ylabel("density over seeds")
    return figure


def reliability_diagram(
    y_true: Any,
    y_proba: Any = None,
    *,
    y_logit: Any = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "quantile",
    sample_weight: Any = None,
) -> Figure:
    """Draw observed rates against predicted probabilities.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    y_logit : array-like of shape (n,), optional
        Log-odds, in place of ``y_proba``.
    n_bins, strategy, sample_weight
        As in :func:`trueup.fields.reliability.reliability_curve`.

    Returns
    -------
    matplotlib.figure.Figure
        A point with its 95% interval for each bin, over a histogram of the probabilities; the title
        gives the expected calibration error on these bins.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.
    """
    if (y_proba is None) == (y_logit is None):
        got = "neither" if y_proba is None else "both"
        raise InvalidInputError(
            "y_proba must be given, or y_logit in its place", got, "Pass exactly one."
        )
    proba = read_probabilities(expit(column(y_logit, "y_logit")) if y_proba is None else y_proba)
    curve = reliability_curve(
        y_true, proba, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight
    )
    error = expected_calibration_error(
        y_true, proba, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight
    )
    figure = Figure(figsize=(4.6, 5.2), layout="constrained", dpi=_DPI)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    limit = min(1.0, 1.05 * float(max(curve.mean_proba.max(), curve.high.max())))
    _draw_curve(upper, curve, limit)
    upper.set_title(f"expected calibration error {error:.4f} ({strategy} bins)", fontsize=9)
    lower.hist(proba, bins=50, range=(0.0, limit), weights=sample_weight, color=_COLOURS[-1])
    above = int(np.count_nonzero(proba > limit))
    beyond = f" ({above} rows above {limit:.2g})" if above else ""
    lower.set(xlabel=f"predicted probability{beyond}", ylabel="rows", xlim=(0.0, limit))
    return figure


def _pipelines(values: Any, name: str) -> Pipelines:
    named = values if isinstance(values, Mapping) else {"": values}
    arrays = {key: np.asarray(column(seeds, name), np.float64) for key, seeds in named.items()}
    if not arrays or not all(len(array) and np.isfinite(array).all() for array in arrays.values()):
        raise InvalidInputError(
            f"{name} must hold a finite value of at least one seed",
            repr(values),
            "Leave failed seeds out.",
        )
    return arrays


def _common_grid(panels: Iterable[Pipelines]) -> NDArray[np.float64]:
    every = np.concatenate([seeds for pipelines in panels for seeds in pipelines.values()])
    margin = _MARGIN * (float(np.ptp(every)) or float(np.abs(every).max()) or 1.0)
    return np.linspace(every.min() - margin, every.max() + margin, 800)


def _title(pipelines: Pipelines) -> str:
    counts = {
        name: f"{len(seeds)} seed{'s' * (len(seeds) > 1)}" for name, seeds in pipelines.items()
    }
    if len(set(counts.values())) > 1:
        return ", ".join(f"{name} ({count})" for name, count in counts.items())
    names = ", ".join(name for name in counts if name)
    return ": ".join(filter(None, (names, next(iter(counts.values())))))


def _draw_seeds(axes: Axes, pipelines: Pipelines, grid: NDArray[np.float64]) -> None:
    for index, (name, seeds) in enumerate(pipelines.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        axes.plot(
            seeds,
            np.full(len(seeds), -0.04),
            "|",
            color=colour,
            markersize=9,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
        )
        if len(seeds) >= _MIN_SEEDS_OF_A_DENSITY and np.ptp(seeds) > 0.0:
            axes.fill_between(grid, gaussian_kde(seeds)(grid), color=colour, alpha=0.4)
        axes.plot([], [], color=colour, label=_legend_entry(name, seeds))
    axes.set_xlim(grid[0], grid[-1])
    axes.set_yticks([])
    axes.tick_params(axis="x", pad=10, labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.legend(loc="upper right", fontsize=7, frameon=False)


def _legend_entry(name: str, seeds: NDArray[np.float64]) -> str:
    if len(seeds) == 1:
        return name or "one seed"
    spread = f"sd {np.std(seeds, ddof=1):.2g}, {len(seeds)} seeds"
    return f"{name}: {spread}" if name else spread


def _draw_curve(axes: Axes, curve: ReliabilityCurve, limit: float) -> None:
    axes.plot([0.0, limit], [0.0, limit], color=_COLOURS[-1], linewidth=0.8, linestyle="--")
    errors = np.maximum([curve.rate - curve.low, curve.high - curve.rate], 0.0)
    axes.errorbar(
        curve.mean_proba, curve.rate, yerr=errors, fmt="o", markersize=4, color=_COLOURS[0]
    )
    axes.set(ylabel="observed rate", ylim=(0.0, limit))
