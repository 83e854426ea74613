"""A fitted calibrator as a table of numbers that any program can apply, without trueup."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.calibrators.affine import PlattCalibrator, ShiftCalibrator, TemperatureCalibrator
from trueup.calibrators.base import Calibrator
from trueup.calibrators.field_offset import FieldOffsetCalibrator
from trueup.calibrators.ilps import ILPSCalibrator
from trueup.calibrators.inputs import MISSING, FieldLevels, FloatArray
from trueup.calibrators.judging.guard import Guarded
from trueup.calibrators.line_plot import LinePlot
from trueup.errors import InvalidInputError
from trueup.losses import EPS
from trueup.replace_file import replace_file

FORMAT = 1


@dataclass(frozen=True)
class FieldOffsets:
    """The offsets of one field, in logits, one for each level.

    A value equals a level, or for the kind "bin" lies at or above a lower edge and below the next;
    the first edge is None: no lower edge. ``missing`` is the offset of a missing value; a level
    that is not listed has 0.
    """

    kind: str
    levels: tuple[Any, ...]
    offsets: tuple[float, ...]
    missing: float


@dataclass(frozen=True)
class OffsetTable:
    """Calibrated logit = map(logit) + the offset of each field's level.

    Attributes
    ----------
    logits, mapped : tuple of float
        Knots of the map, which is linear in between.
    tail_slope : float
        Slope of the map below the first and above the last knot.
    fields : mapping from name to FieldOffsets
        What is added.

    Notes
    -----
    The logit is ``log(p / (1 - p))`` with p clipped at float64's eps.

    Examples
    --------
    >>> from trueup.calibrators import ShiftCalibrator, offset_table
    >>> table = offset_table(ShiftCalibrator().fit([0.3, 0.6], [0, 1]))
    >>> len(table.logits) == len(table.mapped)
    True
    """

    logits: tuple[float, ...]
    mapped: tuple[float, ...]
    tail_slope: float
    fields: dict[str, FieldOffsets]

    def to_json(self) -> str:
        """Return the table as JSON."""
        document = {
            "format": FORMAT,
            "formula": "sigmoid(map(logit(p)) + sum of the offsets); map is linear between logits",
            "clip": EPS,
            "map": {
                "logits": self.logits,
                "mapped": self.mapped,
                "tail_slope": self.tail_slope,
            },
            "fields": {name: vars(field) for name, field in self.fields.items()},
        }
        return json.dumps(document, indent=1, allow_nan=False)

    def to_csv(self) -> str:
        """Return the table as CSV: the map's knots, its tail slope, then each level's offset."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["part", "field", "kind", "level", "value"])
        writer.writerows(self._lines())
        return text.getvalue()

    def write(self, path: Path) -> None:
        """Write JSON or CSV, by the ending of the file's name.

        Raises
        ------
        InvalidInputError
            If the name has another ending.
        """
        if path.suffix not in (".json", ".csv"):
            raise InvalidInputError(
                "table must be a .json or .csv file", repr(str(path)), "Name it so."
            )
        text = self.to_json() if path.suffix == ".json" else self.to_csv()
        replace_file(path, text)

    def _lines(self) -> Iterator[tuple[str, str, str, Any, float]]:
        for logit, mapped in zip(self.logits, self.mapped, strict=True):
            yield "map", "", "", logit, mapped
        yield "tail_slope", "", "", "", self.tail_slope
        for name, field in self.fields.items():
            yield "missing", name, field.kind, "", field.missing
            for level, offset in zip(field.levels, field.offsets, strict=True):
                yield "offset", name, field.kind, "" if level is None else level, offset


def offset_table(calibrator: Calibrator) -> OffsetTable:
    """Return what a fitted calibrator adds to the logit.

    Parameters
    ----------
    calibrator : Calibrator
        Shift, Platt, temperature, ILPS or field offsets of two classes, under a guard or not; a
        guard that refused gives the identity.

    Raises
    ------
    InvalidInputError
        If the calibrator is of another kind: its map is no sum of offsets.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import ShiftCalibrator
    >>> fitted = ShiftCalibrator().fit(np.full(4, 0.5), [0, 0, 0, 1])
    >>> table = offset_table(fitted)
    >>> table.logits, round(table.mapped[0], 4), table.tail_slope
    ((0.0,), -1.0986, 1.0)
    """
    if isinstance(calibrator, Guarded):
        inner = calibrator.calibrator_
        return _affine(1.0, 0.0) if inner is None else offset_table(inner)
    if isinstance(calibrator, ShiftCalibrator) and calibrator.n_features_in_ <= 2:
        return _affine(1.0, -float(calibrator.bias_))
    if isinstance(calibrator, TemperatureCalibrator) and calibrator.n_features_in_ <= 2:
        return _affine(1.0 / calibrator.temperature_, 0.0)
    if isinstance(calibrator, PlattCalibrator):
        return _affine(calibrator.slope_, calibrator.intercept_)
    if isinstance(calibrator, ILPSCalibrator):
        return _of_line_plot(calibrator.line_plot_, {})
    if isinstance(calibrator, FieldOffsetCalibrator):
        fields = {
            name: _of_field(levels, calibrator.offsets_[name])
            for name, levels in calibrator.levels_.items()
        }
        return _of_line_plot(calibrator.line_plot_, fields)
    raise InvalidInputError(
        "calibrator must be of two classes and shift, platt, temperature, ilps or field_offset",
        f"{type(calibrator).__name__}",
        "Save it, and apply it with trueup.",
    )


def _affine(slope: float, intercept: float) -> OffsetTable:
    return OffsetTable((0.0,), (intercept,), slope, {})


def _of_line_plot(line_plot: LinePlot, fields: dict[str, FieldOffsets]) -> OffsetTable:
    knots, heights = (tuple(map(float, part)) for part in (line_plot.knots, line_plot.heights))
    return OffsetTable(knots, heights, float(line_plot.unit_tails), fields)


def _of_field(levels: FieldLevels, offsets: FloatArray) -> FieldOffsets:
    values = [value.item() for value in levels.values]
    if levels.kind == "bin":
        values = [None, *values]
    own = tuple(map(float, offsets[MISSING + 1 :]))
    return FieldOffsets(levels.kind, tuple(values), own, float(offsets[MISSING]))
