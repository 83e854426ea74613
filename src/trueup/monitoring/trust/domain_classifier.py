"""A logistic regression that tells one sample of rows from another, and how well it does.

It takes the steps of scikit-learn's ``newton-cholesky``, whose import alone takes several times as
long as all that is asked of a batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueup.monitoring.inputs import FloatArray

_FOLDS = 5
_MOST_STEPS = 100
_TOLERANCE, _ARMIJO = 1e-4, 2.0**-11
_LENGTHS = 0.5 ** np.arange(21)
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)


def cross_fitted_area(x: FloatArray, is_second: NDArray[np.bool_], random_state: int) -> float:
    """Return the area under the curve of scores that did not see their row.

    Parameters
    ----------
    x : array of shape (n, d)
        Standardised rows of both samples, of the first one before those of the second.
    is_second : bool array of shape (n,)
        Whether a row is of the second sample.
    random_state : int
        Draws the five folds, which hold both samples in the same shares.

    Returns
    -------
    float
        In [0, 1]; 0.5 means that nothing tells the samples apart, or that one has fewer than five
        rows.
    """
    if min(is_second.sum(), (~is_second).sum()) < _FOLDS:
        return 0.5
    fold, score = _folds(is_second, random_state), np.empty(len(x))
    for out in (fold == one for one in range(_FOLDS)):
        coefficients = _logistic(x[~out], is_second[~out])
        # the product with a matrix rounds equal rows differently at its end: no ties any more
        score[out] = (x[out] * coefficients[:-1]).sum(axis=1) + coefficients[-1]
    return roc_area(score[~is_second], score[is_second])


def roc_area(negative: FloatArray, positive: FloatArray) -> float:
    """Return the area under the ROC curve: how often a positive score is the higher one."""
    lower = np.sort(negative)
    twice = sum(np.searchsorted(lower, positive, side).sum() for side in ("left", "right"))
    return float(twice / 2.0 / (len(negative) * len(positive)))


def _folds(is_second: NDArray[np.bool_], random_state: int) -> NDArray[np.intp]:
    """Return the fold of each row, as scikit-learn's ``StratifiedKFold`` shuffles them."""
    generator = np.random.RandomState(random_state)
    fold, start = np.empty(len(is_second), dtype=np.intp), 0
    for rows in (~is_second, is_second):
        n = int(rows.sum())
        labels = np.sort(np.arange(start, start + n) % _FOLDS)
        generator.shuffle(labels)
        fold[rows], start = labels, start + n
    return fold


def _logistic(x: FloatArray, is_second: NDArray[np.bool_]) -> FloatArray:
    """Return coefficients and intercept that minimise the mean log loss and ``|c|^2 / (2 n)``."""
    n, width = x.shape
    design, ridge = np.column_stack([x, np.ones(n)]), np.append(np.full(width, 1.0 / n), 0.0)
    sign = np.where(is_second, -1.0, 1.0)

    def at(place: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        margin = design @ place
        p = expit(margin)
        loss = np.logaddexp(0.0, sign * margin).mean() + ridge @ place**2 / 2.0
        return float(loss), (p - is_second) @ design / n + ridge * place, p * (1.0 - p) / n

    place = np.zeros(width + 1)
    loss, gradient, curvature = at(place)
    for _ in range(_MOST_STEPS):
        hessian = (design.T * curvature) @ design + np.diag(ridge)
        step = np.linalg.solve(hessian, -gradient)
        for length in _LENGTHS:
            found = at(place + length * step)
            gain, least = loss - found[0], -length * _ARMIJO * float(gradient @ step)
            is_flat = abs(gain) <= _ROUNDING * loss
            if gain >= least or (is_flat and np.abs(found[1]).sum() < np.abs(gradient).sum()):
                break
        place, (loss, gradient, curvature) = place + length * step, found
        if np.abs(gradient).max() <= _TOLERANCE and step @ hessian @ step / 2.0 <= _TOLERANCE:
            break
    return place
