"""What is estimated: the mean over the rows of a loss that each row has by itself.

The theory of the check knows the label by the squared error only, so that any loss of a row is
the squared error of *some* label: one that lies the root of the loss away from the prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.losses import LOSSES, Loss
from trueup.monitoring.inputs import FloatArray

DEFAULT_METRIC = "mse"
_SHORT = {"mean_squared_error": "mse", "mean_absolute_error": "mae", "brier": "brier_score"}
_WORDS = {"mse": "mean squared error", "mae": "mean absolute error"}

_Range = tuple[str, Callable[[FloatArray], NDArray[np.bool_]]]
_LABELS: dict[str, _Range] = {
    "binary": ("labels of two classes, as 0 and 1", lambda y: np.isin(y, (0.0, 1.0))),
    "counts": ("labels of 0 or more", lambda y: y >= 0.0),
    "positive": ("labels above 0", lambda y: y > 0.0),
}
_PREDICTIONS: dict[str, _Range] = {
    "binary": ("probabilities as predictions", lambda p: (p >= 0.0) & (p <= 1.0)),
    "counts": ("predictions above 0", lambda p: p > 0.0),
    "positive": ("predictions above 0", lambda p: p > 0.0),
}


@dataclass(frozen=True)
class RowMetric:
    """A mean of losses of rows, each at least 0, with the name that it has in keys.

    ``task`` says what it takes, in the words of :class:`trueup.losses.Loss`.
    """

    name: str
    task: str
    of_rows: Callable[[FloatArray, FloatArray], FloatArray]

    @property
    def is_squared_error(self) -> bool:
        """Whether the loss is the squared error as it is."""
        return self.name in (DEFAULT_METRIC, "brier_score")

    @property
    def words(self) -> str:
        return _WORDS.get(self.name, self.name.replace("_", " "))

    def of(self, y_true: FloatArray, y_pred: FloatArray) -> FloatArray:
        """Return the loss of each row; refuse labels or predictions that it does not take."""
        self.require(y_true, y_pred)
        return self.of_rows(y_true, y_pred)

    def require(self, y_true: FloatArray, y_pred: FloatArray) -> None:
        """Refuse labels and predictions that the metric does not take."""
        self._require(_LABELS, "label", y_true, "Use mse or mae with such labels.")
        self.require_predictions(y_pred)

    def require_predictions(self, y_pred: FloatArray) -> None:
        """Refuse predictions that the metric does not take."""
        self._require(_PREDICTIONS, "prediction", y_pred, "Use mse or mae with such a model.")

    def _require(
        self, ranges: Mapping[str, _Range], what: str, values: FloatArray, fix: str
    ) -> None:
        if self.task not in ranges:
            return
        rule, holds = ranges[self.task]
        wrong = np.flatnonzero(~holds(values))
        if len(wrong):
            raise InvalidInputError(
                f"metric {self.name!r} must have {rule}",
                f"a {what} of {values[wrong[0]]:g} at index {wrong[0]}",
                fix,
            )


@dataclass(frozen=True)
class SquaredForm:
    """Labels whose squared error is the loss of the row, in the unit of the labels.

    ``unit`` are squared units of the labels to one of the loss, so that the loss has the size of a
    squared error: the same data in other units have the same estimate.
    """

    metric: RowMetric
    unit: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.unit < np.inf:
            raise ValueError(f"a unit above 0 expected, got {self.unit}")

    @classmethod
    def fitted(cls, name: str, y_true: FloatArray, y_pred: FloatArray) -> SquaredForm:
        """Return the form of a metric for the rows of a reference."""
        metric = metric_of(name)
        metric.require(y_true, y_pred)
        if metric.is_squared_error:
            return cls(metric)
        mean, squared = metric.of(y_true, y_pred).mean(), ((y_true - y_pred) ** 2).mean()
        return cls(metric, float(squared / mean) if min(mean, squared) > 0.0 else 1.0)

    def labels(self, y_true: FloatArray, y_pred: FloatArray) -> FloatArray:
        """Return labels with ``(label - y_pred)^2 = unit * loss``; of squared errors the labels."""
        if self.metric.is_squared_error:
            return y_true
        return np.asarray(y_pred + np.sqrt(self.unit * self.metric.of(y_true, y_pred)))


def metric_of(name: str) -> RowMetric:
    """Return the metric of a name that is known, short or as of scikit-learn.

    Examples
    --------
    >>> from trueup.monitoring.metrics import metric_of
    >>> metric_of("mean_absolute_error").name, metric_of("log_loss").task
    ('mae', 'binary')
    """
    found = METRICS.get(_SHORT.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise InvalidInputError(
            f"metric must be one of {sorted(METRICS)}", repr(name), "Check the spelling."
        )
    return found


def _of_loss(loss: Loss) -> RowMetric:
    name = _SHORT.get(loss.name, loss.name)
    return RowMetric(name, loss.task, lambda y, p: loss.values(y, loss.link(p)))


METRICS: dict[str, RowMetric] = {
    metric.name: metric
    for metric in (
        *(_of_loss(loss) for loss in LOSSES.values()),
        RowMetric("mae", "regression", lambda y, p: np.asarray(np.abs(y - p))),
    )
}
"""By name: every loss that the registry of losses knows, and the mean absolute error."""
