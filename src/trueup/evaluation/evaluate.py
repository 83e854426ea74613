"""Algorithm 1: split the rows, fit the bias on one part, correct and score the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from trueup._kernels.hashing import rows_fingerprint, timed_ids
from trueup.arguments import check_keywords, whole_number
from trueup.errors import InexactSummaryError, InvalidInputError
from trueup.evaluation.thin_rows import join_thin_periods, say_if_few
from trueup.fields.calibration import FieldCalibration
from trueup.fields.columns import read_binary_rows, require_fields
from trueup.fields.measure import calibration_of_rows
from trueup.losses import Loss
from trueup.losses.elementary import scaled
from trueup.read.frames import by_position, columns_of
from trueup.read.ids import FewIds
from trueup.read.rows import Rows, read_rows
from trueup.read.times import read_times
from trueup.scoring.algorithm import Sample, score
from trueup.scoring.result import Evaluation
from trueup.splits import CrossFit, Rolling, Split, kernel_rule
from trueup.summaries import LossSummary, summary_type
from trueup.user_warning import warn_user

P = ParamSpec("P")
R = TypeVar("R")
_DEFAULT_SPLIT = CrossFit()
_LONG = 20_000  # up to here rows cost little more one by one, and give the bias to 1e-12
_LONG_GROUP = 1_000  # rows of a group from which its bins cost less than they


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function answer a keyword that it does not take with the one that may be meant."""
    known = dict.fromkeys(signature(function).parameters)

    @wraps(function)
    def called(*args: P.args, **options: P.kwargs) -> R:
        if not options.keys() <= known.keys():
            check_keywords(function.__name__, options, tuple(known))
        return function(*args, **options)

    return called


@suggesting
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
    threads: int = 1,
) -> Evaluation:
    """Score predictions before and after the correction of one bias term.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels 0/1, bool or, with ``labels``, two named classes; class labels for predictions with
        k > 2 columns; targets; counts.
    y_pred : array-like of shape (n,), (n, 2) or (n, k)
        Probabilities in [0, 1], predicted targets, or positive rates.
    loss : str or Loss, default "log_loss"
        "log_loss" or "brier_score", each with a form for k > 2 columns, "mean_squared_error",
        "poisson_deviance", "gamma_deviance" or "tweedie_deviance" (power 1.5; for another one pass
        ``trueup.losses.TweedieDeviance(power)``).
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
        Time of each row, for ``Rolling``; a warning where the split does not read it.
    sample_weight : array-like of shape (n,), optional
        Weights; for the metric, integer weights equal repeated rows exactly.
    fields : mapping of str to array-like of shape (n,), optional
        Columns over whose levels the calibration error is measured (probabilities only).
    threads : int, default 1
        Threads that share the work on long input; no thread waits in a spin.

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
    if not isinstance(split, Split):
        fix = "Pass CrossFit(), HoldOut(), Rolling(period) or InSample()."
        raise InvalidInputError("split must be a Split", repr(split), fix)
    if type(threads) is not int or threads < 1:  # a row's way leads through few files
        whole_number("threads", threads, 1, "Pass the number of free cores.")
    given = {"y_true": y_true, "y_pred": y_pred, "y_logit": y_logit}
    given |= {"sample_weight": sample_weight, "row_id": row_id}
    fields = None if fields is None else columns_of(fields)
    others = dict(fields) if isinstance(fields, Mapping) else {}
    others |= {} if times is None else {"times": times}
    given = by_position(given, labels=labels, others=others)
    row_id = given.pop("row_id")
    columns = {**given, "labels": labels}
    prediction = given["y_pred"] if y_logit is None else given["y_logit"]
    if times is not None and kernel_rule(split) is not None:
        warn_user(
            f"times= has no effect with {split}. Choose a split by time, such as Rolling(period)."
        )
    summary = _summary_for(loss, split, given["y_true"], prediction, times)
    if summary is not None:
        if times is not None:
            read_times(times, len(given["y_true"]))
        summary.add({**given, "row_id": row_id}, labels, None, threads).warn()
        say_if_few(given["sample_weight"], len(given["y_true"]))
        with suppress(InexactSummaryError):  # the rows themselves are at hand
            evaluation = summary.compute()
            return replace(evaluation, fields=_measured(fields, summary.loss, columns))
    rows = read_rows(**columns, loss=loss, row_id=row_id, times=times)
    if row_id is not None and (split.n_groups or 1) > 1:
        ids = FewIds()
        ids.look(rows.row_id)
        ids.warn()
    if rows.weight is not None:
        say_if_few(rows.weight, len(rows.y_true))
    identities = rows.row_id
    if split.n_groups is None and rows.times is not None:  # times tell rows apart too
        identities = timed_ids(rows.row_id, rows.times)
    fingerprint = rows_fingerprint(identities, rows.y_true, rows.weight)
    measured = _measured(fields, rows.loss, columns)
    return score(_sample(rows, split), split, fingerprint, measured)


def _summary_for(
    loss: str | Loss, split: Split, y_true: Any, prediction: Any, times: Any
) -> LossSummary | None:
    """Return an empty summary where it gives the numbers of the rows at less cost, or None."""
    if split.n_groups is None or not _is_long(y_true, split.n_groups):
        return None
    kind = summary_type(loss)
    by_id = times is None or kernel_rule(split) is not None  # summaries know no times
    if kind is None or not (kind.is_as_good_as_rows and by_id and _is_one_column(prediction)):
        return None
    return kind(split)


def _is_long(y_true: Any, n_groups: int) -> bool:
    """Tell whether a summary costs less than passes over all rows; memory is bounded by it too."""
    try:
        return len(y_true) > max(_LONG, _LONG_GROUP * n_groups)
    except TypeError:  # no column, which others say better
        return False


def _is_one_column(predictions: Any) -> bool:
    """Tell whether an array holds one prediction a row, or the two columns of two classes."""
    shape: tuple[int, ...] = getattr(predictions, "shape", ())
    return len(shape) == 1 or (len(shape) == 2 and shape[1] <= 2)


def _sample(rows: Rows, split: Split) -> Sample:
    groups = split.groups(rows.row_id, rows.times)
    if isinstance(split, Rolling):
        groups = join_thin_periods(rows, groups)
    n_groups = split.n_groups or int(groups.max()) + 1
    weight = None if rows.weight is None else scaled(rows.weight)
    return Sample(
        loss=rows.loss,
        y_true=rows.y_true,
        margin=rows.margin,
        weight=weight,
        squared_weight=None if weight is None else weight**2,
        group=groups,
        row_counts=np.bincount(groups, minlength=n_groups),
        support=rows.support(groups, n_groups),
    )


def _measured(
    fields: Mapping[str, Any] | None, loss: Loss, columns: Mapping[str, Any]
) -> dict[str, FieldCalibration]:
    if fields is None:
        return {}
    require_fields(fields, loss)
    rows = read_binary_rows(**columns)
    return {
        str(name): calibration_of_rows(rows, values, str(name)) for name, values in fields.items()
    }
