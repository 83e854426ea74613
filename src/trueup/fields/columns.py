"""Columns of labels, probabilities and weights: read with care, or summed in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup._kernels as kernels
from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import LOSSES, FloatArray, Loss
from trueup.losses.elementary import expit, scaled
from trueup.read.columns import as_array, read_weight, require_rows
from trueup.read.frames import by_position
from trueup.read.targets import check_logit, read_binary_labels, read_probabilities


@dataclass(frozen=True)
class BinaryRows:
    """Checked labels, probabilities and weights (None: all 1), each of shape (n,)."""

    y_true: FloatArray
    y_proba: FloatArray
    weight: FloatArray | None

    def only(self, rows: slice) -> BinaryRows:
        weight = None if self.weight is None else self.weight[rows]
        return BinaryRows(self.y_true[rows], self.y_proba[rows], weight)


def read_binary_rows(
    y_true: Any,
    y_pred: Any = None,
    sample_weight: Any = None,
    *,
    y_logit: Any = None,
    labels: Sequence[Any] | None = None,
    others: Mapping[str, Any] | None = None,
) -> BinaryRows:
    """Return columns of equal length, of at least one row; so must ``others`` be."""
    given = {"y_true": y_true, "y_proba": y_pred, "y_logit": y_logit}
    given = by_position(given | {"sample_weight": sample_weight}, labels=labels, others=others)
    y_true, y_pred, y_logit, sample_weight = given.values()
    label = read_binary_labels(y_true, labels)
    if len(label) == 0:
        raise UnscorableInputError(
            "y_true must hold at least one row", "0", "Pass the validation rows."
        )
    if y_logit is None:
        proba = read_probabilities(y_pred)
    else:
        proba = expit(check_logit(as_array(y_logit, "y_logit"), LOSSES["log_loss"]))
    require_rows(len(label), "y_proba", len(proba))
    weight = read_weight(sample_weight, len(label))
    return BinaryRows(label, proba, None if weight is None else scaled(weight))


def require_fields(fields: Any, loss: Loss) -> None:
    """Refuse fields that are no mapping, or that go with a loss without probabilities."""
    if not hasattr(fields, "items"):
        raise InvalidInputError(
            "fields must be a mapping of name to column",
            f"{type(fields).__name__}",
            "Pass a dict or a data frame.",
        )
    if list(fields) and loss.task != "binary":
        raise InvalidInputError(
            "fields must go with a loss of binary probabilities",
            f"loss {loss.name!r}",
            "Drop fields.",
        )


def sums_over(codes: NDArray[np.intp], rows: BinaryRows, n_codes: int) -> FloatArray:
    """Return the sums of 1, w, w y and w p at each code, shape (n_codes, 4)."""
    y, p, w = rows.y_true, rows.y_proba, rows.weight
    columns = (None, w, y, p) if w is None else (None, w, w * y, w * p)
    return np.column_stack([np.bincount(codes, column, n_codes) for column in columns])


def sums_by_code(
    y_true: Any, y_proba: Any, field: Any, sample_weight: Any, *, whole: bool = False
) -> FloatArray | None:
    """Return the sums of 1, label and probability at each integer code of the field.

    None where the columns are not plain, or a row is not valid: they are then read with care. The
    ``whole`` of what ``add_cells`` sums takes several times as long where levels are many.
    """
    if not _are_plain([(y_true, "fiub"), (y_proba, "f"), (field, "iu")], sample_weight):
        return None
    label, proba, code = as_array(y_true, ""), as_array(y_proba, ""), as_array(field, "")
    n_codes = int(code.max()) + 1
    if not 0 < n_codes <= len(code) + 1:  # a table of other numbers could be as large as any
        return None
    return kernels.engine.code_sums(code, label, proba, n_codes, n_columns=8 if whole else 4)


def sums_by_bin(
    y_true: Any, y_proba: Any, sample_weight: Any, inner: FloatArray
) -> FloatArray | None:
    """Return rows, and sums of labels and probabilities, between ``inner`` edges; None as above."""
    if not _are_plain([(y_true, "fiub"), (y_proba, "f")], sample_weight):
        return None
    label, proba = as_array(y_true, ""), as_array(y_proba, "")
    return kernels.engine.bin_sums(label, proba, inner)


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
