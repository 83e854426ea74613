"""Calibration errors of plain columns: checked and summed in one pass, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup._kernels import engine
from trueup.losses import FloatArray
from trueup.read.columns import as_array


def sums_by_code(y_true: Any, y_proba: Any, field: Any, sample_weight: Any) -> FloatArray | None:
    """Return what ``add_cells`` sums, at each integer code of the field.

    None where the columns are not plain, or a row is not valid: they are then read with care.

    Parameters
    ----------
    y_true, y_proba, field, sample_weight : Any
        The raw columns.
    """
    if not _are_plain([(y_true, "fiub"), (y_proba, "f"), (field, "iu")], sample_weight):
        return None
    label, proba, code = as_array(y_true, ""), as_array(y_proba, ""), as_array(field, "")
    n_codes = int(code.max()) + 1
    if not 0 < n_codes <= len(code) + 1:  # a table of other numbers could be as large as any
        return None
    sums = engine(len(code)).code_sums(code, label, proba, n_codes)
    if sums is None:
        return None
    count = sums[:, :1]
    return np.hstack([sums, count, count])


def sums_by_bin(
    y_true: Any, y_proba: Any, sample_weight: Any, inner: FloatArray
) -> FloatArray | None:
    """Return the numbers of rows and the sums of labels and probabilities in bins of equal width.

    None where the columns are not plain, or a row is not valid.

    Parameters
    ----------
    y_true, y_proba, sample_weight : Any
        The raw columns.
    inner : float array of shape (n_bins - 1,)
        Edges between the bins.
    """
    if not _are_plain([(y_true, "fiub"), (y_proba, "f")], sample_weight):
        return None
    label, proba = as_array(y_true, ""), as_array(y_proba, "")
    return engine(len(label)).bin_sums(label, proba, inner)


def _are_plain(columns: list[tuple[Any, str]], sample_weight: Any) -> bool:
    """Tell whether there are no weights, and only numpy's columns of one length and such kinds."""
    arrays = [values for values, _ in columns]
    if sample_weight is not None or not all(type(values) is np.ndarray for values in arrays):
        return False
    return (
        arrays[0].ndim == 1
        and len(arrays[0]) > 0
        and all(values.shape == arrays[0].shape for values in arrays)
        and all(v.dtype.kind in kinds and 1 <= v.dtype.itemsize <= 8 for v, kinds in columns)
        and all(v.dtype.isnative and v.dtype != np.float16 for v in arrays)
    )
