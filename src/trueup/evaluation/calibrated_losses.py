"""The calibrated value alone, of one loss each, as a metric of scikit-learn's grammar."""

from __future__ import annotations

from inspect import signature
from typing import Any

from trueup.arguments import check_keywords
from trueup.evaluation.evaluate import evaluate

_OPTIONS = sorted({*signature(evaluate).parameters} - {"y_true", "y_pred", "loss", "y_logit"})
_OF_PROBABILITIES = ("y_true", "y_proba", "y_logit", *_OPTIONS)
_OF_NUMBERS = ("y_true", "y_pred", *_OPTIONS)


def calibrated_log_loss(
    y_true: Any, y_proba: Any = None, *, y_logit: Any = None, **options: Any
) -> float:
    """Return the calibrated log loss in nats; lower is better.

    Parameters
    ----------
    y_true, y_proba, y_logit : array-like
        As in :func:`evaluate`.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.

    Examples
    --------
    >>> from trueup import InSample, calibrated_log_loss
    >>> round(calibrated_log_loss([0, 1, 1, 0], [0.4, 0.7, 0.9, 0.5], split=InSample()), 4)
    0.3777
    """
    check_keywords("calibrated_log_loss", options, _OF_PROBABILITIES)
    return evaluate(y_true, y_proba, y_logit=y_logit, loss="log_loss", **options).calibrated


def calibrated_brier_score(
    y_true: Any, y_proba: Any = None, *, y_logit: Any = None, **options: Any
) -> float:
    """Return the Brier score after the log loss's shift of the logits; in [0, 1], lower is better.

    Parameters
    ----------
    y_true, y_proba, y_logit : array-like
        As in :func:`evaluate`.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.

    Examples
    --------
    >>> from trueup import InSample, calibrated_brier_score
    >>> round(calibrated_brier_score([0, 1, 0, 1], [0.6, 0.8, 0.5, 0.7], split=InSample()), 4)
    0.1546
    """
    check_keywords("calibrated_brier_score", options, _OF_PROBABILITIES)
    return evaluate(y_true, y_proba, y_logit=y_logit, loss="brier_score", **options).calibrated


def calibrated_mean_squared_error(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Return the mean squared error after the mean residual was added; lower is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.

    Examples
    --------
    >>> from trueup import InSample, calibrated_mean_squared_error
    >>> calibrated_mean_squared_error([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], split=InSample())
    0.0
    """
    check_keywords("calibrated_mean_squared_error", options, _OF_NUMBERS)
    return evaluate(y_true, y_pred, loss="mean_squared_error", **options).calibrated


def calibrated_poisson_deviance(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Return the mean Poisson deviance after one factor made the mean rate right; lower is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Counts and positive predicted rates.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.

    Examples
    --------
    >>> from trueup import InSample, calibrated_poisson_deviance
    >>> round(calibrated_poisson_deviance([1, 2, 3], [2.0, 4.0, 6.0], split=InSample()), 6)
    0.0
    """
    check_keywords("calibrated_poisson_deviance", options, _OF_NUMBERS)
    return evaluate(y_true, y_pred, loss="poisson_deviance", **options).calibrated
