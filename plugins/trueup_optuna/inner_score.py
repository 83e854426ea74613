"""The inner estimate of a self-tuning learner where rows have weights, or a scorer judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from trueup import evaluate
from trueup.errors import InvalidInputError
from trueup.losses import LOSSES, Loss, get_loss
from trueup.read.rows import read_rows
from trueup.resampling.measures import read_measure
from trueup.resampling.positive import check_positive, takes_positive
from trueup.resampling.strategies import Pairs

Scorer = Callable[..., float]
_RANKS = ("average_precision", "roc_auc")


def is_scorer(loss: Any) -> bool:
    """Say whether a loss is a scorer of scikit-learn, or the name of one that isn't ours too."""
    if isinstance(loss, str):
        return loss not in (*LOSSES, *_RANKS) and loss in get_scorer_names()
    return hasattr(loss, "_score_func") and hasattr(loss, "_sign")


def is_maximized(loss: Any, y: Any) -> bool:
    """Say whether a loss that isn't a scorer is better where it is greater."""
    better = read_measure(loss, y).greater_is_better
    if better is None:
        raise InvalidInputError(
            "loss must say its direction",
            repr(loss),
            "Give the function an attribute greater_is_better.",
        )
    return better


def _refuse_guess(loss: Any, y: Any) -> None:
    if np.ndim(y) > 1 or not (callable(loss) or loss in _RANKS or is_scorer(loss)):
        return
    scorer = get_scorer(loss) if isinstance(loss, str) else loss
    function = getattr(scorer, "_score_func", scorer)
    if takes_positive(function, getattr(scorer, "_kwargs", {})):
        name = loss if isinstance(loss, str) else getattr(function, "__name__", repr(function))
        fix = "Write y so, or pass as the loss make_scorer(metric, pos_label=the positive class)."
        check_positive(name, y, fix)


@dataclass(frozen=True)
class InnerScore:
    """A scorer of greater is better, the rows that it judges, and weights for it and for training.

    ``sign`` is -1.0 where the value of a trial is a loss.
    """

    scorer: Scorer
    sign: float
    sample_weight: Any = None

    @classmethod
    def where_needed(
        cls, loss: Any, inducer: Any, y: Any, weight: Any, *, calibrated: bool
    ) -> InnerScore | None:
        """Return None where the generalization error can be the estimate.

        Refused is a loss that would have to guess which of two classes is positive.
        """
        _refuse_guess(loss, y)
        if weight is None and np.ndim(y) == 1 and not is_scorer(loss):
            return None
        return cls.of(loss, inducer, y, weight, calibrated=calibrated)

    @classmethod
    def of(cls, loss: Any, inducer: Any, y: Any, weight: Any, *, calibrated: bool) -> InnerScore:
        """Return what judges the configurations of an inducer."""
        if is_scorer(loss):
            if calibrated:
                raise InvalidInputError(
                    "calibrated must be False with a scorer",
                    repr(loss),
                    "Name one of our losses, or pass calibrated_scorer() as the loss.",
                )
            return cls(get_scorer(loss), 1.0, weight)
        if loss in _RANKS and np.ndim(y) == 1:
            return cls(get_scorer(loss), 1.0, weight)
        if not isinstance(loss, str | Loss) or (np.ndim(y) > 1 and is_classifier(inducer)):
            raise InvalidInputError(
                "loss must be a loss or a scorer of scikit-learn where rows have weights, and a "
                "scorer where a classifier has several outputs",
                repr(loss),
                'Pass for example "accuracy", or sklearn.metrics.make_scorer(your_function).',
            )
        chosen = get_loss(loss)
        probabilities = chosen.task in ("binary", "multiclass")
        scorer = make_scorer(
            partial(
                _mean_loss,
                loss=chosen,
                labels=np.unique(y).tolist() if probabilities else None,
                calibrated=calibrated,
            ),
            response_method="predict_proba" if probabilities else "predict",
            greater_is_better=False,
        )
        return cls(scorer, -1.0, weight)

    def value(self, inducer: Any, X: Any, y: Any, pairs: Pairs, n_jobs: int | None) -> float:
        scores = Parallel(n_jobs=n_jobs)(delayed(self._score)(inducer, X, y, p) for p in pairs)
        return self.sign * float(np.mean(scores))

    def _score(self, inducer: Any, X: Any, y: Any, pair: tuple[Any, Any]) -> float:
        (train, test), weight = pair, self.sample_weight
        fitted = clone(inducer).fit(
            _safe_indexing(X, train),
            y[train],
            **fit_weight(inducer, None if weight is None else weight[train]),
        )
        judged = {} if weight is None else {"sample_weight": weight[test]}
        return float(self.scorer(fitted, _safe_indexing(X, test), y[test], **judged))


def fit_weight(inducer: Any, weight: Any) -> dict[str, Any]:
    """Return the argument of ``fit`` that holds the weights; of a pipeline, its last step's."""
    if weight is None:
        return {}
    last, name = inducer, "sample_weight"
    if isinstance(inducer, Pipeline):
        step, last = inducer.steps[-1]
        name = f"{step}__sample_weight"
    if not has_fit_parameter(last, "sample_weight"):
        raise InvalidInputError(
            "inducer must take sample_weight in fit where rows have weights",
            type(last).__name__,
            "Leave sample_weight out, or take another inducer.",
        )
    return {name: weight}


def _mean_loss(
    y_true: Any,
    y_pred: Any,
    *,
    loss: Loss,
    labels: Any,
    calibrated: bool,
    sample_weight: Any = None,
) -> float:
    """Return the loss, its mean over the outputs where there are several."""
    given = {"loss": loss, "labels": labels, "sample_weight": sample_weight}
    if np.ndim(y_true) > 1:
        columns = zip(np.transpose(y_true), np.transpose(y_pred), strict=True)
        return float(np.mean([_mean_loss(*c, calibrated=calibrated, **given) for c in columns]))
    if calibrated:
        return evaluate(y_true, y_pred, **given).calibrated
    rows = read_rows(y_true, y_pred, **given)
    return float(np.average(rows.loss.values(rows.y_true, rows.margin), weights=rows.weight))
