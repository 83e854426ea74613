"""Nested resampling: tuning is part of what is estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from trueup.errors import InvalidInputError
from trueup.losses import Loss
from trueup.resampling.aggregation import Aggregate
from trueup.resampling.estimate import GEEstimate
from trueup.resampling.generalization import resample
from trueup.resampling.inducers import check_inducer, is_classifying, train
from trueup.resampling.measures import SetFunction
from trueup.resampling.strategies import IndexArray
from trueup.splits import CrossFit, Split

_DEFAULT_SPLIT = CrossFit()
_INNER_NAMES = ("resampling", "cv")
"""Parameters by which a self-tuning estimator takes its inner resampling strategy."""


def nested_resampling(
    tuner: Any,
    X: Any,
    y: Any,
    *,
    outer: Any,
    inner: Any,
    loss: str | Loss | SetFunction = "log_loss",
    aggregate: Aggregate = "mean",
    calibrated: bool = True,
    n_jobs: int | None = None,
    groups: Any = None,
    labels: Sequence[Any] | None = None,
    split: Split = _DEFAULT_SPLIT,
    confidence_level: float = 0.95,
) -> GEEstimate:
    """Estimate the error of an inducer together with its tuning.

    Parameters
    ----------
    tuner : estimator or callable
        A self-tuning estimator, which is cloned and given ``inner`` as its parameter
        ``resampling`` or ``cv`` (``trueup_optuna.SelfTuningLearner``, ``GridSearchCV``, ...); or a
        function ``tuner(X_train, y_train, inner)`` that returns the selected inducer, which is then
        trained on the whole outer training set.
    X : array-like, data frame or sparse matrix of n rows
        Features.
    y : array-like of shape (n,)
        Labels of any type, targets or counts.
    outer, inner : splitter, int or iterable of pairs of index arrays
        Strategies, as in :func:`generalization_error`; ``inner`` is drawn anew on the rows of each
        outer training set, so it can't be given as pairs.
    loss : str, Loss or callable, default "log_loss"
        What is measured on the outer test sets; the tuner has its own measure.
    aggregate, calibrated, n_jobs, labels, split, confidence_level
        As in :func:`generalization_error`.
    groups : array-like of shape (n,), optional
        Groups of the rows; the tuner is given those of its training rows.

    Returns
    -------
    GEEstimate
        ``folds[i].selected`` is the configuration that was selected on outer training set i, where
        the tuner has ``best_params_``.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.
    UndefinedMetricError
        If an outer test set has no value.

    Notes
    -----
    The estimand is GE(self-tuning learner, n_train): each outer training set may select another
    configuration, so it is not the error of one configuration. The tuner is handed the outer
    training rows only. The best value that a tuner reports on all rows is too good, the more so the
    more configurations it tried; this estimate is not.

    References
    ----------
    "12ML: Evaluation and Tuning", tuning and nested resampling.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from trueup.resampling import nested_resampling
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> tuner = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]})
    >>> len(nested_resampling(tuner, X, X[:, 0] > 0, outer=KFold(4), inner=KFold(3)).folds)
    4
    """
    _check(tuner, inner)

    def induce(X_train: Any, y_train: Any, rows: IndexArray) -> Any:
        extra = {} if groups is None else {"groups": np.asarray(groups)[rows]}
        return _tuned(tuner, inner)(X_train, y_train, **extra)

    return resample(
        induce,
        (X, y, groups),
        outer,
        loss=loss,
        aggregate=aggregate,
        labels=labels,
        bias_split=split if calibrated else None,
        confidence_level=confidence_level,
        classifier=is_classifying(tuner),
        n_jobs=n_jobs,
    )


def _tuned(tuner: Any, inner: Any) -> Callable[..., Any]:
    """Return a function that tunes and trains on the rows that it is given."""
    if hasattr(tuner, "fit"):
        return clone(tuner).set_params(**{_inner_name(tuner): inner}).fit  # type: ignore[no-any-return]

    def tune_and_train(X: Any, y: Any, **extra: Any) -> Any:
        return train(tuner(X, y, inner, **extra), X, y)

    return tune_and_train


def _inner_name(tuner: Any) -> str:
    known = tuner.get_params(deep=False)
    for name in _INNER_NAMES:
        if name in known:
            return name
    raise InvalidInputError(
        "tuner must have a parameter resampling or cv",
        f"{type(tuner).__name__}",
        "Pass a function tuner(X, y, inner) that returns the selected inducer.",
    )


def _check(tuner: Any, inner: Any) -> None:
    fix = "Pass for example GridSearchCV(estimator, grid)."
    check_inducer(tuner, "tuner must be a self-tuning estimator or a function", fix)
    if hasattr(tuner, "fit"):
        _inner_name(tuner)
    if not (isinstance(inner, (int, np.integer)) or hasattr(inner, "split")):
        raise InvalidInputError(
            "inner must be a splitter or a number of folds",
            repr(inner),
            "Index arrays can't fit each outer training set.",
        )
