"""Algorithm 1: split the rows, fit the bias on one part, correct and score the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.evaluation import BiasTerm, Evaluation, EvaluationSpec, StandardErrors
from trueup.fields import FieldCalibration, field_calibration
from trueup.inputs import Rows, read_rows
from trueup.losses import FloatArray, Loss
from trueup.row_hash import rows_fingerprint
from trueup.splits import CrossFit, Part, Split

_DEFAULT_SPLIT = CrossFit()


def evaluate(
    y_true: Any,
    y_pred: Any = None,
    *,
    loss: str | Loss = "log_loss",
    y_logit: Any = None,
    split: Split = _DEFAULT_SPLIT,
    labels: Sequence[Any] | None = None,
    row_id: Any = None,
    times: Any = None,
    sample_weight: Any = None,
    fields: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Score predictions before and after the correction of one bias term.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels 0/1, bool or, with ``labels``, two named classes; class labels for predictions with
        k > 2 columns; targets; counts.
    y_pred : array-like of shape (n,), (n, 2) or (n, k)
        Probabilities in [0, 1], predicted targets, or positive rates.
    loss : {"log_loss", "brier_score", "mean_squared_error", "poisson_deviance"} or Loss
        What is scored; "log_loss" of k > 2 columns is the softmax log loss.
    y_logit : array-like of shape (n,) or (n, k)
        Log-odds or logits, in place of ``y_pred``.
    split : Split, default CrossFit(5)
        Which rows fit the bias and which are scored.
    labels : sequence, optional
        The classes in the order of the columns; for two classes the positive one last.
    row_id : array-like of shape (n,), optional
        Integers or strings that identify the rows; the position by default. The fold of a row
        depends on its id alone.
    times : array-like of shape (n,), optional
        Time of each row, for ``Rolling``.
    sample_weight : array-like of shape (n,), optional
        Weights; for the metric, integer weights equal repeated rows exactly.
    fields : mapping of str to array-like of shape (n,), optional
        Columns over whose levels the calibration error is measured (probabilities only).

    Returns
    -------
    Evaluation
        Vanilla and calibrated loss (lower is better), bias terms, standard errors, fingerprint.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.
    UndefinedMetricError
        If the bias rows hold one class only, or too few of one class with ``HoldOut``.

    Notes
    -----
    ``vanilla_on_scored_rows = calibrated + bias_cost``. Ranking metrics such as AUC do not change
    under one bias term. The standard errors are ``sd(loss per row) / sqrt(n)`` with the
    out-of-fold losses, and for weights their linearised form: they say how much the number would
    move on other validation rows, not with another training seed.

    References
    ----------
    "Towards accurate deep learning model selection: a calibrated metric approach", Algorithm 1;
    the default split rotates its partition so that every row is scored once.

    Examples
    --------
    >>> from trueup import InSample, evaluate
    >>> result = evaluate([0, 1, 1, 0], [0.4, 0.7, 0.9, 0.5], split=InSample())
    >>> round(result.vanilla, 4), round(result.calibrated, 4), round(result.bias_term, 4)
    (0.4165, 0.3777, 0.6189)
    """
    rows = read_rows(
        y_true,
        y_pred,
        loss=loss,
        y_logit=y_logit,
        labels=labels,
        row_id=row_id,
        times=times,
        sample_weight=sample_weight,
    )
    if not isinstance(split, Split):
        raise InvalidInputError(
            f"split must be a Split; got {split!r}. "
            "Pass CrossFit(), HoldOut(), Rolling(period) or InSample()."
        )
    groups = split.groups(rows.row_id, rows.times)
    parts = tuple(split.parts(int(groups.max()) + 1))
    biases = tuple(_fit_bias(rows, np.isin(groups, part.fitted_on), split) for part in parts)
    scored, corrected = _score(rows, groups, parts, biases)
    vanilla = rows.loss.values(rows.y_true, rows.margin)
    return Evaluation(
        vanilla=_mean(vanilla, rows.weight),
        calibrated=_mean(corrected[scored], _take(rows.weight, scored)),
        vanilla_on_scored_rows=_mean(vanilla[scored], _take(rows.weight, scored)),
        bias_term=_plain(rows.loss.fit_bias(rows.y_true, rows.margin, rows.weight)),
        fold_bias_terms=tuple(_plain(bias) for bias in biases),
        standard_errors=StandardErrors(
            vanilla=_standard_error(vanilla, rows.weight),
            calibrated=_standard_error(corrected[scored], _take(rows.weight, scored)),
        ),
        fields={} if fields is None else _field_calibrations(rows, fields),
        n=len(rows.y_true),
        n_scored=int(scored.sum()),
        fingerprint=f"{rows_fingerprint(rows.row_id, rows.y_true, rows.weight):032x}:{split!r}",
        spec=EvaluationSpec(rows.loss.name, repr(split), _n_classes(rows)),
    )


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
    """
    return evaluate(y_true, y_proba, y_logit=y_logit, loss="brier_score", **options).calibrated


def calibrated_mean_squared_error(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Return the mean squared error after the mean residual was added; lower is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.
    """
    return evaluate(y_true, y_pred, loss="mean_squared_error", **options).calibrated


def calibrated_poisson_deviance(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Return the mean Poisson deviance after one factor made the mean rate right; lower is better.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Counts and positive predicted rates.
    **options
        Every other keyword of :func:`evaluate` but ``loss``.
    """
    return evaluate(y_true, y_pred, loss="poisson_deviance", **options).calibrated


def _fit_bias(rows: Rows, in_bias: NDArray[np.bool_], split: Split) -> FloatArray:
    if rows.weight is not None:
        in_bias = in_bias & (rows.weight > 0.0)  # a row of weight zero is a row that is not there
    y_true, weight = rows.y_true[in_bias], _take(rows.weight, in_bias)
    _require_classes(y_true, rows, split)
    return rows.loss.fit_bias(y_true, rows.margin[in_bias], weight)


def _require_classes(y_true: FloatArray, rows: Rows, split: Split) -> None:
    """Refuse bias rows in which a class is missing or too rare for its bias to mean something."""
    if rows.loss.task in ("binary", "multiclass"):
        n_classes = 2 if rows.loss.task == "binary" else rows.margin.shape[1]
        counts = np.bincount(y_true.astype(np.intp), minlength=n_classes)
        rarest = int(counts.argmin())
        if counts[rarest] < split.min_class_count:
            raise UndefinedMetricError(
                f"y_true must hold at least {split.min_class_count} rows of each class where "
                f"{split!r} fits the bias; got {counts[rarest]} of class {rarest}. "
                "Use more rows, or split=InSample() if all rows together hold enough."
            )
    elif len(y_true) == 0:
        raise UndefinedMetricError(
            f"split must leave rows to fit the bias on; got none with {split!r}. "
            "Use more rows or split=InSample()."
        )


def _score(
    rows: Rows, groups: NDArray[np.intp], parts: tuple[Part, ...], biases: tuple[FloatArray, ...]
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which rows are scored, and the corrected loss of each of those."""
    scored = np.zeros(len(groups), dtype=bool)
    corrected = np.zeros(len(groups))
    for part, bias in zip(parts, biases, strict=True):
        mine = groups == part.scored
        scored |= mine
        corrected[mine] = rows.loss.values(
            rows.y_true[mine], rows.loss.correct(rows.margin[mine], bias)
        )
    if not np.any(scored if rows.weight is None else rows.weight[scored]):
        raise UndefinedMetricError(
            "split must leave rows to score; got none. Use more rows or split=InSample()."
        )
    return scored, corrected


def _mean(values: FloatArray, weight: FloatArray | None) -> float:
    return float(np.average(values, weights=weight))


def _standard_error(values: FloatArray, weight: FloatArray | None) -> float:
    """Return the linearised standard error of a (weighted) mean; nan for a single row."""
    weight = np.ones(len(values)) if weight is None else weight
    n = int(np.count_nonzero(weight))
    if n < 2:
        return float("nan")
    residual = weight * (values - np.average(values, weights=weight))
    return float(np.sqrt(residual @ residual * n / (n - 1)) / weight.sum())


def _take(weight: FloatArray | None, mask: NDArray[np.bool_]) -> FloatArray | None:
    return None if weight is None else weight[mask]


def _plain(bias: FloatArray) -> BiasTerm:
    return float(bias) if bias.ndim == 0 else tuple(float(term) for term in bias)


def _n_classes(rows: Rows) -> int | None:
    return {"binary": 2, "multiclass": _n_columns(rows)}.get(rows.loss.task)


def _n_columns(rows: Rows) -> int:
    return rows.margin.shape[1] if rows.margin.ndim == 2 else 1


def _field_calibrations(rows: Rows, fields: Mapping[str, Any]) -> dict[str, FieldCalibration]:
    if not hasattr(fields, "items"):
        raise InvalidInputError(
            f"fields must be a mapping of name to column; got {type(fields).__name__}. "
            "Pass a dict or a data frame."
        )
    if rows.loss.task != "binary":
        raise InvalidInputError(
            f"fields must go with a loss of binary probabilities; got loss {rows.loss.name!r}. "
            "Drop fields."
        )
    return {
        name: field_calibration(
            rows.y_true, expit(rows.margin), values, sample_weight=rows.weight, name=name
        )
        for name, values in fields.items()
    }
