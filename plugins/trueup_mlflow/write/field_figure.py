"""The figure of the worst levels of fields: who over-, who under-predicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from trueup import FieldCalibration, FieldCells
from trueup.errors import InvalidInputError
from trueup.fields.worst import FALSE_DISCOVERY_RATE

_OVER, _UNDER, _CHANCE = "#d1701a", "#1b6ca8", "#8a8a8a"
_LONGEST_NAME = 24
_DPI = 120


def worst_cells(
    fields: Mapping[str, FieldCalibration], *, n_cells: int = 12, n_fields: int = 6
) -> Figure:
    """Draw the most surprising levels of each field, the largest over-prediction at the bottom.

    Parameters
    ----------
    fields : mapping of str to FieldCalibration
        The fields.
    n_cells : int, default 12
        Levels drawn of each field.
    n_fields : int, default 6
        Fields drawn: the first ones.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each field: observed minus predicted rate of each level with its interval. Grey
        levels may be off by chance (q > 0.05). The title holds the Field-ECE beside what a perfect
        model would score.

    Raises
    ------
    InvalidInputError
        If there is no field.
    """
    drawn = [(name, cal, cal.cells) for name, cal in fields.items()][:n_fields]
    if not drawn:
        raise InvalidInputError("fields must hold at least one field; got none. Name the fields.")
    rows = [min(n_cells, len(cells.level)) for _, _, cells in drawn]
    figure = Figure(
        figsize=(7.0, 0.24 * sum(rows) + 1.1 * len(rows)), layout="constrained", dpi=_DPI
    )
    panels = figure.subplots(len(rows), 1, squeeze=False, height_ratios=[n + 1 for n in rows])[:, 0]
    for axes, (name, calibration, cells), n in zip(panels, drawn, rows, strict=True):
        _draw_cells(axes, cells, n)
        axes.set_title(_title(name, calibration), fontsize=8, loc="left", parse_math=False)
    panels[-1].set_xlabel(
        "observed - predicted rate:  < 0 over-predicted,  > 0 under-predicted", fontsize=8
    )
    return figure


def _draw_cells(axes: Axes, cells: FieldCells, n: int) -> None:
    order = np.argsort(cells.difference[:n], kind="stable")
    for height, cell in enumerate(order):
        low, middle, high = cells.low[cell], cells.difference[cell], cells.high[cell]
        side = _UNDER if middle > 0.0 else _OVER
        colour = side if cells.q_value[cell] <= FALSE_DISCOVERY_RATE else _CHANCE
        axes.plot([low, high], [height, height], color=colour, linewidth=1.4)
        axes.plot([middle], [height], "o", color=colour, markersize=4)
    labels = [f"{_short(str(cells.level[cell]))}  (n = {cells.n[cell]:,})" for cell in order]
    axes.set_yticks(range(n), labels, fontsize=7, parse_math=False)
    axes.set_ylim(-0.6, n - 0.4)
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.tick_params(axis="x", labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(7))


def _title(name: str, calibration: FieldCalibration) -> str:
    return (
        f"{_short(name)}: Field-ECE {calibration.ece:.4f}, a perfect model {calibration.floor:.4f} "
        f"({calibration.floor_low:.4f} to {calibration.floor_high:.4f}); "
        f"{calibration.n_discoveries} of {calibration.n_levels} levels off"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."
