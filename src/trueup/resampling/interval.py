"""The corrected resampled t interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t

from trueup.arguments import check_fraction
from trueup.errors import InvalidInputError


def corrected_t_interval(
    fold_values: Sequence[float],
    n_train: float,
    n_test: float,
    *,
    confidence_level: float = 0.95,
) -> tuple[float, float]:
    """Return an interval of the mean error over training sets of one size.

    Parameters
    ----------
    fold_values : sequence of float
        The measure on each test set, at least two.
    n_train, n_test : float
        Rows of a training set and of a test set, both positive.
    confidence_level : float, default 0.95
        In (0, 1).

    Returns
    -------
    tuple of float
        Low and high end, in units of the measure.

    Raises
    ------
    InvalidInputError
        If there are fewer than two values, or an argument is out of range.

    Notes
    -----
    ``mean +- t[B - 1] * sqrt((1 / B + n_test / n_train) * var)`` over B test sets. The values are
    correlated, since training sets overlap; the second term stands for that correlation, taken as
    ``n_test / (n_train + n_test)``. It is a heuristic: no unbiased estimator of the variance of
    k-fold cross-validation exists. The interval is exact for no inducer, and it is wide.

    References
    ----------
    Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52 (2003), the
    corrected resampled t test; Bouckaert and Frank (2004) for repeated k-fold.

    Examples
    --------
    >>> low, high = corrected_t_interval([0.4, 0.5, 0.6], n_train=90, n_test=10)
    >>> round(low, 4), round(high, 4)
    (0.2132, 0.7868)
    """
    values = np.asarray(fold_values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InvalidInputError(
            "fold_values must be at least two numbers",
            f"shape {values.shape}",
            "Use more test sets.",
        )
    for name, size in (("n_train", n_train), ("n_test", n_test)):
        if not size > 0:
            raise InvalidInputError(
                f"{name} must be positive", repr(size), "Pass a number of rows."
            )
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    n = len(values)
    error = np.sqrt((1.0 / n + n_test / n_train) * values.var(ddof=1))
    margin = t.ppf(0.5 + confidence_level / 2.0, n - 1) * error
    return float(values.mean() - margin), float(values.mean() + margin)
