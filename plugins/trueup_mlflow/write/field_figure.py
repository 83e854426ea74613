"""The figure of the worst levels of fields: who over-, who under-predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from trueup import FieldCalibration, FieldCells
from trueup.errors import InvalidInputError
from trueup.fields.worst import FALSE_DISCOVERY_RATE
from trueup.losses import FloatArray

_OVER, _UNDER, _CHANCE = "#d1701a", "#1b6ca8", "#8a8a8a"
_LONGEST_NAME = 24
_DPI = 120
_WIDTH, _ROW, _LETTER = 7.0, 0.24, 0.058  # inches, of which a letter of a label takes the last
_TITLE, _TICKS, _XLABEL = 0.32, 0.32, 0.2


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
    drawn = list(fields.items())[:n_fields]
    if not drawn:
        raise InvalidInputError("fields must hold at least one field", "none", "Name the fields.")
    shown = [(name, cal, _Shown.of(cal.cells, n_cells)) for name, cal in drawn]
    widest = max(len(label) for _, _, levels in shown for label in levels.labels)
    heights = [_ROW * len(levels.labels) + _TITLE + _TICKS for _, _, levels in shown]
    height, left = sum(heights) + _XLABEL, 0.2 + _LETTER * widest
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
    top = height
    for name, calibration, levels in shown:  # a layout engine takes longer than all else together
        body = _ROW * len(levels.labels)
        bottom, width = top - _TITLE - body, _WIDTH - left - 0.2
        place = (left / _WIDTH, bottom / height, width / _WIDTH, body / height)
        axes = figure.add_axes(place)
        _draw_levels(axes, levels)
        axes.set_title(
            _title(name, calibration),
            fontsize=8,
            loc="left",
            x=0.01 - left / width,
            y=1.0 + 0.06 / body,
            parse_math=False,
        )
        top = bottom - _TICKS
    axes.set_xlabel(
        "observed - predicted rate:  < 0 over-predicted,  > 0 under-predicted", fontsize=8
    )
    return figure


@dataclass(frozen=True)
class _Shown:
    """The levels of a panel, the largest over-prediction first."""

    labels: list[str]
    low: FloatArray
    middle: FloatArray
    high: FloatArray
    colours: list[str]

    @classmethod
    def of(cls, cells: FieldCells, n: int) -> _Shown:
        order = np.argsort(cells.difference[:n], kind="stable")
        names, counts = cells.level[order].tolist(), cells.n[order].tolist()
        is_off = cells.q_value[order] <= FALSE_DISCOVERY_RATE
        sides = np.where(cells.difference[order] > 0.0, _UNDER, _OVER)
        return cls(
            [f"{_short(name)}  (n = {n:,})" for name, n in zip(names, counts, strict=True)],
            cells.low[order],
            cells.difference[order],
            cells.high[order],
            np.where(is_off, sides, _CHANCE).tolist(),
        )


def _draw_levels(axes: Axes, levels: _Shown) -> None:
    heights = np.arange(len(levels.labels))
    axes.hlines(heights, levels.low, levels.high, colors=levels.colours, linewidth=1.4)
    for height, middle, colour in zip(heights, levels.middle, levels.colours, strict=True):
        axes.plot([middle], [height], "o", color=colour, markersize=4)
    axes.set_yticks(heights, levels.labels, fontsize=7, parse_math=False)
    axes.set_ylim(-0.6, len(heights) - 0.4)
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
