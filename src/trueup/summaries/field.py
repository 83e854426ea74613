"""Sums over the levels of a field, mergeable by level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import trueup._kernels as kernels
from trueup.errors import InvalidInputError, StateMismatchError
from trueup.fields.calibration import FieldCalibration, calibration_of
from trueup.fields.cells import TABLE_COLUMNS, LevelSums
from trueup.fields.columns import sums_by_code
from trueup.fields.distribution import binomial_deviation, binomial_p_values
from trueup.fields.levels import Levels, read_levels, require_few_levels
from trueup.fields.noise import measure_noise
from trueup.losses import FloatArray
from trueup.read.columns import column, read_weight, require_rows
from trueup.read.frames import by_position
from trueup.read.targets import read_binary_labels, read_probabilities
from trueup.summaries.points import require_total_weight
from trueup.summaries.storage import corrupt

_EPSILON, _SEED = 0.01, 0


class FieldSummary:
    """Summary of one field; its size grows with the number of levels and not with the rows.

    Parameters
    ----------
    name : str
        Name of the field.
    levels : iterable of str
        Levels known before the first row.
    sums : float array of shape (n_levels, 8), optional
        What the kernels' ``add_cells`` summed for them so far.

    Examples
    --------
    >>> from trueup.summaries import FieldSummary
    >>> summary = FieldSummary("site")
    >>> summary.update([0, 1] * 50, [0.3, 0.6] * 50, ["news", "shop"] * 50)
    >>> round(summary.compute().ece, 3)
    0.35
    """

    def __init__(
        self, name: str, levels: Iterable[str] = (), sums: FloatArray | None = None
    ) -> None:
        self.name = name
        self.levels = {level: i for i, level in enumerate(levels)}
        self.sums = np.zeros((len(self.levels), TABLE_COLUMNS)) if sums is None else sums

    @classmethod
    def restored(cls, name: str, levels: Iterable[str], sums: FloatArray) -> FieldSummary:
        """Return the summary with stored sums; a CorruptFileError if no rows could have these."""
        total, label, proba, proba_square, weight_square, count, uncertain = sums.T[:7]
        possible = (sums >= 0.0).all() and np.isfinite(sums).all()
        bounded = [part <= total * (1.0 + 1e-9) for part in (label, proba, proba_square)]
        has_weight = (weight_square > 0.0) == (total > 0.0)
        least = (proba - proba_square) ** 2 * (1.0 - 1e-6)  # by Cauchy's inequality
        spread = (uncertain * count >= least) & (uncertain <= weight_square)
        if not (possible and np.all(bounded) and has_weight.all() and spread.all()):
            raise corrupt(f"sums over the levels of {name!r} that rows could have")
        return cls(name, levels, sums)

    def update(self, y_true: Any, y_proba: Any, field: Any, *, sample_weight: Any = None) -> None:
        """Add a batch: labels 0/1, probabilities and levels, each of shape (n,)."""
        sums = sums_by_code(y_true, y_proba, field, sample_weight, whole=True)
        if sums is not None:
            present = np.flatnonzero(sums[:, 0])
            self.merge(FieldSummary(self.name, map(str, present.tolist()), sums[present]))
            return
        columns = {"y_true": y_true, "y_proba": y_proba, "sample_weight": sample_weight}
        y_true, y_proba, sample_weight = by_position(columns, others={"field": field}).values()
        label = read_binary_labels(y_true)
        if len(label) == 0:
            return
        proba, levels = read_probabilities(y_proba), read_whole_levels(field, self.name, len(label))
        weight, batch = (
            read_weight(sample_weight, len(label)),
            FieldSummary(self.name, levels.names),
        )
        kernels.engine.add_cells(levels.codes, label, proba, weight, batch.sums)
        self.merge(batch)

    def merge(self, other: FieldSummary) -> None:
        """Add the rows of another summary of the same field.

        Raises
        ------
        StateMismatchError
            If the other summary is of another field.
        UnscorableInputError
            If both have too many levels; nothing is added.
        """
        if self.name != other.name:
            raise StateMismatchError(
                "summaries must be of one field",
                f"{self.name!r} and {other.name!r}",
                "Merge each field with its own.",
            )
        self.require_room(other)
        position = [self.levels.setdefault(level, len(self.levels)) for level in other.levels]
        grown = np.zeros((len(self.levels), TABLE_COLUMNS))
        grown[: len(self.sums)] = self.sums
        grown[position] += other.sums
        self.sums = grown

    def require_room(self, other: FieldSummary) -> None:
        """Refuse the levels of another summary where both have too many to judge each of them."""
        n_new = sum(level not in self.levels for level in other.levels)
        require_few_levels(len(self.levels) + n_new, self.name)

    def compute(self) -> FieldCalibration:
        """Return the calibration error over the levels of positive weight.

        The floor is that of the binomial with the mean and the variance of each level, with weights
        from that of Kish's effective number of rows.

        Raises
        ------
        InexactSummaryError
            If the weights are so large or so small that their squares leave float64.
        """
        require_total_weight(self.sums[:, 0])
        kept = self.sums[:, 0] > 0.0
        names = tuple(name for name, stays in zip(self.levels, kept, strict=True) if stays)
        sums = LevelSums.of_table(names, self.sums[kept])
        row_weight = sums.weight_square / sums.total  # of a row if all rows had the same
        deviation = binomial_deviation(sums.proba / row_weight, sums.square / row_weight)
        floor = float((row_weight * deviation).sum() / sums.total.sum())
        noise = measure_noise(sums, _EPSILON, _SEED, floor=floor)
        return calibration_of(sums, _EPSILON, noise, binomial_p_values(sums))


def require_same_fields(
    own: Mapping[str, FieldSummary], others: Mapping[str, FieldSummary]
) -> None:
    """Refuse summaries of other fields than these, or whose levels are too many in all."""
    if own.keys() != others.keys():
        raise StateMismatchError(
            "fields must be the same in every batch and summary",
            f"{list(own)} and {list(others)}",
            "Pass the same fields everywhere.",
        )
    for name, field in own.items():
        field.require_room(others[name])


def read_whole_levels(field: Any, name: str, n: int) -> Levels:
    """Return the level of each of n rows; fractional numbers are refused.

    Their quantiles depend on rows that other summaries hold.
    """
    is_categorical = hasattr(field, "cat") or hasattr(field, "categories")
    values = None if is_categorical else column(field, name, may_miss=True)
    if values is not None and values.dtype.kind == "f":
        fractional = np.isfinite(values) & (np.mod(values, 1.0) != 0.0)
        if fractional.any():
            index = int(np.flatnonzero(fractional)[0])
            raise InvalidInputError(
                f"{name} must be whole numbers or categories in a summary",
                f"{values[index]} at index {index}",
                "Cut it into bins first.",
            )
    levels = read_levels(field, name)
    require_rows(n, name, len(levels.codes))
    return levels
