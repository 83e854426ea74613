"""The figure of the worst levels of fields: who over-, who under-predicts.

It is drawn with Pillow. matplotlib takes a quarter of a second of processor time for the same
picture, four times all that is measured and written beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import ceil, floor, log10
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from trueup import FieldCalibration
from trueup.errors import InvalidInputError
from trueup.fields.calibration import FALSE_DISCOVERY_RATE
from trueup.losses import FloatArray

_OVER, _UNDER, _CHANCE, _FRAME = "#d1701a", "#1b6ca8", "#8a8a8a", "#d0d0d0"
_LONGEST_NAME = 24
_WIDTH, _ROW, _MARGIN = 840, 28, 24  # pixels
_TITLE, _TICKS, _XLABEL = 40, 36, 30
_LARGE, _SMALL = 13, 12
_MOST_TICKS = 7


def worst_cells(
    fields: Mapping[str, FieldCalibration], *, n_cells: int = 12, n_fields: int = 6
) -> Image.Image:
    """Draw the most surprising levels of each field, the largest over-prediction at the bottom.

    A panel for each of the first ``n_fields``, with ``n_cells`` levels: observed minus predicted
    rate with its interval. Grey levels may be off by chance (q > 0.05). The title holds the
    Field-ECE beside what a perfect model would score.
    """
    panels = [Panel.of(name, cal, n_cells) for name, cal in list(fields.items())[:n_fields]]
    if not panels:
        raise InvalidInputError("fields must hold at least one field", "none", "Name the fields.")
    height = sum(panel.height for panel in panels) + _XLABEL
    image = Image.new("RGB", (_WIDTH, height), "white")
    draw = ImageDraw.Draw(image)
    widest = max(draw.textlength(label, _font(_SMALL)) for p in panels for label in p.labels)
    left, top = _MARGIN + ceil(widest), 0
    for panel in panels:
        _draw_panel(draw, panel, left, top)
        top += panel.height
    middle = (left + _WIDTH - _MARGIN) / 2
    title = "observed - predicted rate:  < 0 over-predicted,  > 0 under-predicted"
    draw.text((middle, top), title, "black", _font(_LARGE), anchor="ma")
    return image


@dataclass(frozen=True)
class Panel:
    """What is shown of a field: its levels, the largest over-prediction first."""

    title: str
    labels: list[str]
    low: FloatArray
    middle: FloatArray
    high: FloatArray
    colours: list[str]

    @classmethod
    def of(cls, name: str, calibration: FieldCalibration, n_cells: int) -> Panel:
        """Return the most surprising levels of a field."""
        cells = calibration.cells
        order = np.argsort(cells.difference[:n_cells], kind="stable")
        levels, counts = cells.level[order].tolist(), cells.n[order].tolist()
        is_off = cells.q_value[order] <= FALSE_DISCOVERY_RATE
        sides = np.where(cells.difference[order] > 0.0, _UNDER, _OVER)
        return cls(
            _title(name, calibration),
            [f"{_short(level)}  (n = {n:,})" for level, n in zip(levels, counts, strict=True)],
            cells.low[order],
            cells.difference[order],
            cells.high[order],
            np.where(is_off, sides, _CHANCE).tolist(),
        )

    @property
    def height(self) -> int:
        """Pixels from its title to the numbers of its axis."""
        return _TITLE + _ROW * len(self.labels) + _TICKS


def _draw_panel(draw: ImageDraw.ImageDraw, panel: Panel, left: int, top: int) -> None:
    least, most = min(float(panel.low.min()), 0.0), max(float(panel.high.max()), 0.0)
    room = 0.03 * (most - least) or 1.0
    least, most = least - room, most + room
    right, bottom = _WIDTH - _MARGIN, top + _TITLE + _ROW * len(panel.labels)

    def place(value: float) -> int:
        return round(left + 10 + (value - least) / (most - least) * (right - left - 10))

    draw.text((_MARGIN // 2, top + 12), panel.title, "black", _font(_LARGE))
    draw.rectangle((left + 10, top + _TITLE, right, bottom), outline=_FRAME)
    draw.line((place(0.0), top + _TITLE, place(0.0), bottom), "black")
    for tick in ticks(least, most):
        draw.line((place(tick), bottom, place(tick), bottom + 4), "black")
        draw.text((place(tick), bottom + 7), f"{tick:.6g}", "black", _font(_SMALL), anchor="ma")
    levels = zip(panel.labels, panel.low, panel.middle, panel.high, panel.colours, strict=True)
    for i, (label, low, middle, high, colour) in enumerate(levels):
        y = bottom - _ROW * i - _ROW // 2
        draw.text((left, y), label, "black", _font(_SMALL), anchor="rm")
        draw.line((place(low), y, place(high), y), colour, 2)
        draw.rectangle((place(middle) - 3, y - 3, place(middle) + 3, y + 3), colour)


def ticks(low: float, high: float) -> Iterator[float]:
    """Yield the round numbers of an axis.

    Examples
    --------
    >>> [round(tick, 3) for tick in ticks(-0.07, 0.21)]
    [-0.05, 0.0, 0.05, 0.1, 0.15, 0.2]
    """
    least = (high - low) / _MOST_TICKS
    power = 10.0 ** floor(log10(least))
    step = next(power * part for part in (1.0, 2.0, 2.5, 5.0, 10.0) if power * part >= least)
    for k in range(ceil(low / step), floor(high / step) + 1):
        yield k * step


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return matplotlib's font, which knows more letters than Pillow's own."""
    spec = find_spec("matplotlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        file = Path(folder) / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
        if file.is_file():
            return ImageFont.truetype(str(file), size)
    return ImageFont.load_default(size)


def _title(name: str, calibration: FieldCalibration) -> str:
    return (
        f"{_short(name)}: Field-ECE {calibration.ece:.4f}, a perfect model {calibration.floor:.4f} "
        f"({calibration.floor_low:.4f} to {calibration.floor_high:.4f}); "
        f"{calibration.n_discoveries} of {calibration.n_levels} levels off"
    )


def _short(text: str) -> str:
    """Return a name on one line, cut where it is long."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."
