"""Cells of given codes, without a field."""

from __future__ import annotations

import numpy as np

from trueup.fields.cells import group_rows
from trueup.fields.levels import Levels


def cells_of(codes, y_true, y_proba, weight=None):
    codes = np.asarray(codes)
    levels = Levels(codes, tuple(str(k) for k in range(codes.max() + 1)))
    y_proba = np.asarray(y_proba, dtype=float)
    return group_rows(levels, np.asarray(y_true, dtype=float), y_proba, weight)
