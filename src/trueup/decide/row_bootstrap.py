"""An interval of a difference over seeds and validation rows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueup.decide.pairing import FloatArray, Seed, check_values
from trueup.errors import InvalidInputError

RowLosses = tuple[Mapping[Any, ArrayLike], Mapping[Any, ArrayLike]]

N_RESAMPLES = 2000


@dataclass(frozen=True)
class RowInterval:
    """Bootstrap interval of E[candidate - baseline] over fresh seeds and fresh rows.

    Attributes
    ----------
    difference : float
        Mean over pairs and rows of the loss of the candidate minus that of the baseline.
    low, high : float
        Percentile interval; seeds and rows are drawn anew, the same rows for both arms.
    standard_error_rows : float
        Part of the standard error that comes from the rows alone, with the seeds fixed.
    n_rows : int
        Number of validation rows.

    Examples
    --------
    >>> from trueup.comparison import compare
    >>> losses = {seed: [0.4, 0.5, 0.6, 0.5] for seed in range(3)}
    >>> lower = {seed: [0.3, 0.4, 0.6, 0.4] for seed in range(3)}
    >>> means = {seed: 0.5 for seed in range(3)}, {seed: 0.425 for seed in range(3)}
    >>> found = compare(means[1], means[0], rows=(lower, losses))
    >>> round(found.rows.difference, 3)
    -0.075
    """

    difference: float
    low: float
    high: float
    standard_error_rows: float
    n_rows: int


def row_interval(
    rows: RowLosses,
    pairs: Sequence[tuple[Seed, Seed]],
    *,
    confidence_level: float,
    random_state: int = 0,
) -> RowInterval:
    """Resample pairs of runs and rows independently, the same rows for both arms.

    Notes
    -----
    Resampling both factors of the crossed design is slightly conservative: the variance of the
    interaction of seed and row is counted more than once.
    """
    losses = _row_differences(rows, pairs)
    n_pairs, n_rows = losses.shape
    rng = np.random.default_rng(random_state)
    means = np.empty(N_RESAMPLES)
    for k in range(N_RESAMPLES):
        row_weight = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows) / n_rows
        means[k] = (losses @ row_weight)[rng.integers(n_pairs, size=n_pairs)].mean()
    tail = (1.0 - confidence_level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    per_row = losses.mean(axis=0)
    return RowInterval(
        difference=float(per_row.mean()),
        low=float(low),
        high=float(high),
        standard_error_rows=float(per_row.std(ddof=1) / np.sqrt(n_rows)),
        n_rows=n_rows,
    )


def _row_differences(rows: RowLosses, pairs: Sequence[tuple[Seed, Seed]]) -> FloatArray:
    candidate, baseline = rows
    first = [_losses("candidate", candidate, seed) for seed, _ in pairs]
    second = [_losses("baseline", baseline, seed) for _, seed in pairs]
    lengths = {len(losses) for losses in (*first, *second)}
    if len(lengths) > 1:
        raise InvalidInputError(
            "rows must hold the same rows for each run",
            f"lengths {sorted(lengths)}",
            "Score all runs on one validation set.",
        )
    return np.array(first) - np.array(second)


def _losses(arm: str, rows: Mapping[Any, ArrayLike], seed: Seed) -> FloatArray:
    if seed not in rows:
        raise InvalidInputError(
            "rows must hold the row losses of each compared run",
            f"none at {arm} seed {seed!r}",
            "Pass (candidate, baseline) mappings seed -> losses.",
        )
    return check_values(f"rows of {arm} seed {seed!r}", rows[seed], minimum=2)
