"""Calibration errors: over the levels of a field, and over bins of the probability."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import engine
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.inputs import column, read_binary_labels, read_probabilities, read_weight
from trueup.losses import FloatArray, Loss


@dataclass(frozen=True)
class FieldCalibration:
    """Calibration error over the levels of one field.

    Attributes
    ----------
    ece, rce : float
        Field-ECE (absolute, in probability units) and Field-RCE (relative to the rate of a level).
    n_levels : int
        Number of levels, a missing value counted as one.
    """

    ece: float
    rce: float
    n_levels: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        return asdict(self)


@dataclass(frozen=True)
class Cells:
    """Sums over the rows of each level: weights, w label, w probability, and the row count."""

    weight: FloatArray
    label_sum: FloatArray
    proba_sum: FloatArray
    count: NDArray[np.intp]


def field_calibration(
    y_true: Any, y_proba: Any, field: Any, *, sample_weight: Any = None, name: str = "field"
) -> FieldCalibration:
    """Measure the calibration error over the levels of one field.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row: strings, integers, categories; a missing value is a level of its own.
    sample_weight : array-like of shape (n,), optional
        Weights.
    name : str
        Name of the field, for messages.
    """
    codes, _ = encode(field, name)
    return calibration_of_cells(_collect(y_true, y_proba, codes, sample_weight, name))


def calibration_of_cells(cells: Cells) -> FieldCalibration:
    """Return the calibration error of sums over levels; levels without rows don't count."""
    return FieldCalibration(
        ece=_absolute_error(cells),
        rce=_relative_error(cells, 0.01),
        n_levels=int(np.count_nonzero(cells.count)),
    )


def field_calibration_error(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    relative: bool = False,
    epsilon: float = 0.01,
    min_count: int = 0,
    sample_weight: Any = None,
) -> float:
    """Return the Field-ECE, or the Field-RCE; lower is better.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row; a missing value is a level of its own.
    relative : bool, default False
        False: Field-ECE, Eq. 5. True: Field-RCE, Eq. 6.
    epsilon : float, default 0.01
        Added to the label rate in the denominator of the Field-RCE; positive.
    min_count : int, default 0
        Levels with fewer rows are left out.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration: a simple and empirically strong method for reliable probabilistic
    predictions", Eq. 5 and 6.

    Examples
    --------
    >>> field_calibration_error([0, 1, 1, 0], [0.25, 0.5, 0.75, 0.5], ["a", "a", "b", "b"])
    0.125
    """
    if not epsilon > 0.0:
        raise InvalidInputError(
            f"epsilon must be positive; got {epsilon!r}. The paper's setting is 0.01."
        )
    cells = _collect(y_true, y_proba, encode(field, "field")[0], sample_weight, "field")
    keep = (cells.count >= min_count) & (cells.weight > 0.0)
    if not keep.any():
        raise UndefinedMetricError(
            f"field must have a level with at least min_count={min_count} rows; got none. "
            "Lower min_count."
        )
    kept = Cells(
        cells.weight[keep], cells.label_sum[keep], cells.proba_sum[keep], cells.count[keep]
    )
    return _relative_error(kept, epsilon) if relative else _absolute_error(kept)


def expected_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    sample_weight: Any = None,
) -> float:
    """Return the probability-level calibration error (Prob-ECE), in [0, 1]; lower is better.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    n_bins : int, default 15
        Number of bins of [0, 1], each open below and closed above.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal numbers of rows.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration", Eq. 4.
    """
    if n_bins < 1:
        raise InvalidInputError(f"n_bins must be at least 1; got {n_bins!r}. 15 is usual.")
    if strategy not in ("uniform", "quantile"):
        raise InvalidInputError(
            f'strategy must be "uniform" or "quantile"; got {strategy!r}. Choose one of the two.'
        )
    proba = read_probabilities(y_proba)
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    edges = inner if strategy == "uniform" else np.quantile(proba, inner)
    bins = np.searchsorted(edges, proba, side="left")
    return _absolute_error(_collect(y_true, proba, bins, sample_weight, "y_proba"))


def require_fields(fields: Any, loss: Loss) -> None:
    """Refuse fields that are no mapping, or that go with a loss without probabilities."""
    if not hasattr(fields, "items"):
        raise InvalidInputError(
            f"fields must be a mapping of name to column; got {type(fields).__name__}. "
            "Pass a dict or a data frame."
        )
    if loss.task != "binary":
        raise InvalidInputError(
            f"fields must go with a loss of binary probabilities; got loss {loss.name!r}. "
            "Drop fields."
        )


def encode(field: Any, name: str) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the code of each row and the value of each code; a missing value has a code too.

    Categories of pandas and small non-negative integers are codes already, which saves a sort.
    """
    categories = getattr(getattr(field, "cat", field), "categories", None)
    if categories is not None:
        codes = np.asarray(getattr(field, "cat", field).codes).astype(np.intp)
        values = np.array([*categories, None], dtype=object)
        return np.where(codes < 0, len(values) - 1, codes), values
    values = column(field, name)
    if _are_codes(values):
        return values.astype(np.intp, copy=False), np.arange(int(values.max()) + 1)
    if values.dtype.kind == "O":
        marked = ["" if _missing(v) else f"={v}" for v in values.tolist()]
        names, codes = np.unique(np.array(marked), return_inverse=True)
        return codes, np.array([name[1:] if name else None for name in names.tolist()], object)
    values, codes = np.unique(values, return_inverse=True)
    return codes, values


def level_name(value: object) -> str:
    """Return the name of a level, empty for a missing value."""
    return "" if _missing(value) else f"={value}"


def _are_codes(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iu" or len(values) == 0:
        return False
    return bool(values.min() >= 0 and values.max() <= max(1_000, len(values)))


def _missing(value: object) -> bool:
    return value is None or value != value  # only a missing value differs from itself


def _collect(
    y_true: Any, y_proba: Any, codes: NDArray[np.intp], sample_weight: Any, name: str
) -> Cells:
    label, proba = read_binary_labels(y_true), read_probabilities(y_proba)
    if not len(label) == len(proba) == len(codes):
        raise InvalidInputError(
            f"{name} must have as many rows as y_true ({len(label)}); got {len(codes)}. "
            "Pass all rows."
        )
    weight = read_weight(sample_weight, len(label))
    n_cells = int(codes.max()) + 1 if len(codes) else 0
    sums = np.zeros((n_cells, 4))
    engine(len(codes)).add_cells(codes, label, proba, weight, sums)
    return cells_of_sums(sums)


def cells_of_sums(sums: FloatArray) -> Cells:
    """Return the cells of what ``add_cells`` of the kernels summed, shape (n_cells, 4)."""
    return Cells(sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3].astype(np.intp))


def _absolute_error(cells: Cells) -> float:
    return float(np.abs(cells.label_sum - cells.proba_sum).sum() / cells.weight.sum())


def _relative_error(cells: Cells, epsilon: float) -> float:
    gap = np.abs(cells.label_sum - cells.proba_sum)
    occupied = cells.weight > 0.0
    rate = cells.label_sum[occupied] / cells.weight[occupied]
    return float((gap[occupied] / (rate + epsilon)).sum() / cells.weight.sum())
