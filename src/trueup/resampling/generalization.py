"""Train on each training set, score each test set, aggregate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, delayed
from sklearn.utils import indexable

from trueup.errors import InvalidInputError
from trueup.losses import Loss
from trueup.read.columns import column
from trueup.resampling.aggregation import Aggregate, Plan, aggregated, check_aggregate
from trueup.resampling.estimate import GEEstimate
from trueup.resampling.inducers import Induce, check_inducer, is_classifying, predict_split, train
from trueup.resampling.measures import SetFunction, read_measure
from trueup.resampling.strategies import read_splits
from trueup.splits import CrossFit, Split

_DEFAULT_SPLIT = CrossFit()


def generalization_error(
    inducer: Any,
    X: Any,
    y: Any,
    resampling: Any,
    *,
    loss: str | Loss | SetFunction = "log_loss",
    aggregate: Aggregate = "mean",
    calibrated: bool = True,
    n_jobs: int | None = None,
    groups: Any = None,
    labels: Sequence[Any] | None = None,
    split: Split = _DEFAULT_SPLIT,
    confidence_level: float = 0.95,
    on_test_set: Callable[[int], object] | None = None,
) -> GEEstimate:
    """Estimate the error of an inducer on training sets of one size.

    Parameters
    ----------
    inducer : estimator or callable
        A scikit-learn estimator, which is cloned, or a training function
        ``inducer(X_train, y_train)`` that returns a function of X (or an object with ``predict``):
        probabilities of the positive class or of each class in the order of ``labels``, or targets.
    X : array-like, data frame or sparse matrix of n rows
        Features.
    y : array-like of shape (n,)
        Labels of any type, targets or counts.
    resampling : splitter, int or iterable of pairs of index arrays
        Any splitter of scikit-learn, :class:`Bootstrap`, a number of folds (stratified, not
        shuffled, for classifiers), or the splits themselves.
    loss : str, Loss or callable, default "log_loss"
        A loss per row as in :func:`trueup.evaluate`; "roc_auc" or "average_precision"; or a
        function ``measure(y_true, y_score)`` of a set of rows (an attribute ``greater_is_better``
        gives its direction; lower is better otherwise).
    aggregate : {"mean", "median", "pool"} or callable, default "mean"
        How the values of the test sets are brought together; "pool" measures all predictions as
        one set.
    calibrated : bool, default True
        Also measure after the bias correction, whose bias is fitted within each test set. A
        set-based measure has none.
    n_jobs : int, optional
        Processes, as in joblib; the result does not depend on it.
    groups : array-like of shape (n,), optional
        Groups of the rows, for grouped splitters.
    labels : sequence, optional
        The classes in order, the positive one last; sorted by default. It must be given where the
        result depends on which class is positive and y is not 0 and 1: for "average_precision", for
        a function with ``pos_label=1``, and for predictions of one column that a function returns.
        A ``measure`` then gets the places of the classes, 0 and 1, as ``y_true``.
    split : Split, default CrossFit(5)
        Which rows of a test set fit the bias and which are scored.
    confidence_level : float, default 0.95
        Of the interval.
    on_test_set : callable, optional
        Called with 1 after each test set, for a progress bar.

    Returns
    -------
    GEEstimate
        ``.value`` is the calibrated value where there is one; ``.low`` and ``.high`` are None where
        no interval is known, and ``.reasons`` says why.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range, or the positive class is not known.
    UndefinedMetricError
        If a test set has no value: one class only for AUC, too few rows for the bias.

    Notes
    -----
    The estimand is GE(inducer, n_train), the mean over training sets of that size. A model that is
    trained on all n rows is usually a little better. The interval (:func:`corrected_t_interval`)
    is given for the mean over k-fold, repeated k-fold and subsampling.
    Where each test set is one row, a set-based measure and the calibrated loss are measured on the
    pooled predictions, with a warning: scores of different models are then compared.

    The calibrated value of a test set pays for fitting its bias: for log loss about
    ``1 / (2 n_bias)`` nats, the same for inducers on the same test sets.

    References
    ----------
    "12ML: Evaluation and Tuning", generalization error, data splitting and resampling. Losses are
    averaged over the rows of a test set where the sheet sums them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from trueup.resampling import generalization_error
    >>> X = np.linspace(-2.0, 2.0, 200)[:, None]
    >>> y = (np.sin(9.0 * X[:, 0]) + X[:, 0] > 0.0).astype(int)
    >>> folds = StratifiedKFold(5, shuffle=True, random_state=0)
    >>> estimate = generalization_error(LogisticRegression(), X, y, folds)
    >>> estimate.n_splits, estimate.n_train, estimate.low < estimate.value < estimate.high
    (5, 160.0, True)
    """
    fix = "A function takes (X_train, y_train) and returns a function of X."
    check_inducer(inducer, "inducer must be an estimator with fit, or a function", fix)

    def induce(X_train: Any, y_train: Any, rows: Any) -> Any:  # noqa: ARG001
        return train(inducer, X_train, y_train)

    return resample(
        induce,
        (X, y, groups),
        resampling,
        loss=loss,
        aggregate=aggregate,
        labels=labels,
        bias_split=split if calibrated else None,
        confidence_level=confidence_level,
        classifier=is_classifying(inducer),
        n_jobs=n_jobs,
        on_test_set=on_test_set,
    )


def read_data(X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Return X, y and groups such that they can be indexed; refuse other lengths."""
    column(y, "y")
    try:
        found: tuple[Any, Any, Any] = tuple(indexable(X, y, groups))
    except ValueError as error:
        raise InvalidInputError(
            "X, y and groups must have one entry for each row",
            f"other lengths ({error})",
            "Pass the same rows.",
        ) from None
    return found


def resample(
    induce: Induce,
    data: tuple[Any, Any, Any],
    resampling: Any,
    *,
    loss: Any,
    aggregate: Aggregate,
    labels: Sequence[Any] | None,
    bias_split: Split | None,
    confidence_level: float,
    classifier: bool,
    n_jobs: int | None,
    on_test_set: Callable[[int], object] | None = None,
) -> GEEstimate:
    """Check the arguments, draw the splits of X, y and groups, and carry them out."""
    X, y, groups = read_data(*data)
    y_true = column(y, "y")
    check_aggregate(aggregate)
    if bias_split is not None and not isinstance(bias_split, Split):
        raise InvalidInputError(
            "split must be a Split", repr(bias_split), "Pass CrossFit(), HoldOut() or InSample()."
        )
    measure = read_measure(loss, y_true, labels)
    classifier = classifier or measure.classes is not None
    splits = read_splits(resampling, X, y_true, groups, classifier=classifier)
    bias_split = bias_split if measure.point_wise else None
    plan = Plan(measure, splits, aggregate, bias_split, confidence_level)
    how = "list" if on_test_set is None else "generator"  # which not every backend knows
    predicted = []
    for one in Parallel(n_jobs=n_jobs, return_as=how)(
        delayed(predict_split)(induce, X, y, pair, measure) for pair in splits.pairs
    ):
        predicted.append(one)
        if on_test_set is not None:
            on_test_set(1)
    return aggregated(predicted, y_true, plan)
