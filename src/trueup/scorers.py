"""The calibrated metrics as scorers of scikit-learn, for ``cross_val_score`` and grid searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueup.errors import UndefinedMetricError
from trueup.evaluation.evaluate import evaluate
from trueup.extras import needed_by
from trueup.losses import Loss, get_loss
from trueup.read.rows import read_rows
from trueup.splits import CrossFit, Split
from trueup.user_warning import warn_user

with needed_by("trueup.scorers"):
    from sklearn.metrics import make_scorer

Scorer = Callable[..., float]
_DEFAULT_SPLIT = CrossFit()


def calibrated_scorer(
    loss: str | Loss = "log_loss",
    *,
    split: Split = _DEFAULT_SPLIT,
    labels: Sequence[Any] | None = None,
) -> Scorer:
    """Return a scorer ``scorer(estimator, X, y, sample_weight=None)``.

    Parameters
    ----------
    loss : {"log_loss", "brier_score", "mean_squared_error", "poisson_deviance"} or Loss
        The metric; losses of probabilities take ``predict_proba``.
    split : Split, default CrossFit(5)
        Which of the given rows fit the bias and which are scored.
    labels : sequence, optional
        All classes in sorted order, where some rows to score may lack one of more than two.

    Returns
    -------
    callable
        Minus the calibrated metric of the rows that it is given, one test fold in
        cross-validation: scikit-learn maximises scores, so greater is better. Rows that are too few
        for the bias, as in the first rung of a halving search, are scored without, with a warning.

    Raises
    ------
    InvalidInputError
        If no loss has the name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from trueup.scorers import calibrated_scorer
    >>> X = np.arange(40.0)[:, None]
    >>> y = X[:, 0] + np.tile([0.0, 1.0], 20)
    >>> scores = cross_val_score(
    ...     LinearRegression(), X, y, scoring=calibrated_scorer("mean_squared_error"), cv=2
    ... )
    >>> bool((scores < 0.0).all())
    True
    """
    chosen = get_loss(loss)
    scorer: Scorer = make_scorer(
        _calibrated,
        response_method="predict_proba" if _takes_probabilities(chosen) else "predict",
        greater_is_better=False,
        loss=chosen,
        split=split,
        labels=None if labels is None else tuple(labels),
    )
    return scorer


def _calibrated(
    y_true: Any,
    y_pred: Any,
    *,
    loss: Loss,
    split: Split,
    labels: Sequence[Any] | None,
    sample_weight: Any = None,
) -> float:
    if labels is None and _takes_probabilities(loss):
        labels = np.unique(y_true).tolist()
    given = {"loss": loss, "labels": labels, "sample_weight": sample_weight}
    try:
        return evaluate(y_true, y_pred, split=split, **given).calibrated
    except UndefinedMetricError as error:
        return _vanilla(y_true, y_pred, error, **given)


def _vanilla(y_true: Any, y_pred: Any, reason: UndefinedMetricError, **given: Any) -> float:
    """Return the vanilla loss of a test set that is too small for a bias.

    Whether it is depends on the labels alone, so a search compares its candidates on one scale.
    """
    rows = read_rows(y_true, y_pred, **given)
    warn_user(
        f"a test set of {len(rows.y_true)} rows is too small to fit a bias, so its score is the "
        f"vanilla loss, for each candidate alike: {reason} In a halving search, raise "
        "min_resources."
    )
    return float(np.average(rows.loss.values(rows.y_true, rows.margin), weights=rows.weight))


def _takes_probabilities(loss: Loss) -> bool:
    return loss.task in ("binary", "multiclass")


SCORERS: dict[str, Scorer] = {
    f"neg_calibrated_{name}": calibrated_scorer(name)
    for name in ("log_loss", "brier_score", "mean_squared_error", "poisson_deviance")
}
"""Scorers with the default split, by the name that scikit-learn would give them."""
