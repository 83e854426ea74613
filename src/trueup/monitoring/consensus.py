"""The headline number: a median of five estimators that fail in different places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from trueup.arguments import check_one_of
from trueup.arrays import Arrays
from trueup.errors import InvalidInputError
from trueup.extras import require_installed
from trueup.monitoring.estimator import Estimator
from trueup.monitoring.features import Batch
from trueup.monitoring.inputs import FloatArray, is_binary
from trueup.monitoring.learning import PeriodShift, period_shifts
from trueup.monitoring.metrics import DEFAULT_METRIC, SquaredForm, metric_of
from trueup.monitoring.panel.fitting import (
    Labelled,
    fit_binary_panel,
    fit_panel,
    fit_training_panel,
    is_refittable,
    out_of_fold_predictions,
    reference_positions,
)
from trueup.monitoring.panel.members import Panel
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import text, untext

ReferenceKind = Literal["held-out", "train"]

MIN_ROWS = 30
BIASED_LOW = (
    "biased low: the only errors known are those of the training data, and the model cannot be "
    "refitted. Give a held-out reference or a model with fit and predict"
)


class ConsensusEstimator(Estimator):
    """Median of importance weighting, neighbours, disagreement and two one-step check models.

    Parameters
    ----------
    model : estimator, optional
        The monitored model, with ``fit`` and ``predict``; used with ``reference="train"`` only,
        where clones of it are refitted five-fold to get errors on rows that they did not see.
    reference : {"held-out", "train"}, default "held-out"
        Whether the model has seen the rows that ``fit`` is given.
    random_state : int, default 0
        Seed of everything random; the same batch gives the same estimate.
    metric : str, default "mse"
        What is estimated: "mse", "mae", or a loss of :data:`trueup.losses.LOSSES`.

    Notes
    -----
    Other metrics than the MSE are estimated as squared errors of labels that lie the root of the
    row's loss away from the prediction: all that follows holds for them. For labels in {0, 1} the
    MSE is the Brier score.

    Members for a numeric target: RuLSIF-weighted error (``importance``), mean error of the nearest
    neighbours (``neighbours``), doubly robust calibrated disagreement (``disagreement``), and two
    check models: K* on out-of-sample errors (``one_step``), and K* on training errors
    (``one_step_train``) with ``reference="train"``, K with the offset head (``one_step_offset``)
    with a held-out one. From 5,000 rows on K* overstates held-out errors more than the median
    should bear, and the offset head takes its place. For labels in {0, 1}: ``one_step_offset``,
    ``direct_loss`` (gradient boosting of the errors), ``importance`` and ``neighbours``.

    The interval adds three variances on the log scale: of the reference (Bayesian bootstrap), of
    the sampling of the batch, and the spread of the members. It assumes that the target given the
    features has not changed; nothing here can see such a change. Large data are sampled: 20,000
    reference rows, 5,000 rows of a batch for neighbours, 1,000 for importance weights; networks
    judge every row.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + rng.normal(scale=0.5, size=300)
    >>> estimate = ConsensusEstimator().fit(X, X[:, 0], y).estimate(X[:100], X[:100, 0])
    >>> estimate.low < 0.25 < estimate.high, estimate.trusted
    (True, True)
    """

    what = "consensus"

    def __init__(
        self,
        model: Any = None,
        *,
        reference: ReferenceKind = "held-out",
        random_state: int = 0,
        metric: str = DEFAULT_METRIC,
    ) -> None:
        fix = "Say whether the model has seen the rows."
        check_one_of("reference", reference, ("held-out", "train"), fix)
        super().__init__()
        self.model = model
        self.reference = reference
        self.random_state = random_state
        self.metric = metric_of(metric).name
        self.form = SquaredForm(metric_of(metric))
        self._binary = False
        self._skipped: tuple[str, ...] = ()
        self._panel: Panel | None = None

    def _fit(self, X: Any, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> None:
        require_installed("sklearn", "ConsensusEstimator")  # for an estimate; imports take .6 s
        if len(x) < MIN_ROWS:
            raise InvalidInputError(
                f"reference must have at least {MIN_ROWS} rows",
                f"{len(x)}",
                "Give more labelled rows.",
            )
        self._binary = is_binary(y_true)
        self.form.metric.require(y_true, y_pred)  # before clones are fitted
        unseen = self._out_of_sample(X, y_pred, y_true)
        self.form = SquaredForm.fitted(self.metric, y_true, y_pred if unseen is None else unseen)
        if unseen is None:
            labels = self.form.labels(y_true, y_pred)
            self._panel = fit_training_panel(x, y_pred, labels, self.random_state)
            self._skipped = (BIASED_LOW,)
            return
        rows = Labelled(x, y_pred, unseen, y_true, self.reference == "train", self.form)
        if self._binary:
            self._panel, self._skipped = fit_binary_panel(rows, self.random_state)
        else:
            self._panel, self._skipped = fit_panel(rows, self.random_state), ()

    def _estimate(self, batch: Batch) -> tuple[MSEEstimate, tuple[str, ...]]:
        panel = self._fitted(self._panel)
        self.form.metric.require_predictions(batch.y_pred)
        found = panel.judge(batch, self.random_state).scaled(1.0 / self.form.unit)
        found = replace(found, reasons=self._skipped, metric=self.metric)
        return found, panel.any_check.far_reasons(batch)

    @property
    def reference_error(self) -> float | None:
        """Error on the reference; None where only training errors are known."""
        reference = self._fitted(self._panel).reference
        return None if reference is None else float(reference.errors.mean()) / self.form.unit

    def period_shifts(self, times: Any) -> tuple[PeriodShift, ...]:
        """Return how the error moves between the periods of the reference.

        Parameters
        ----------
        times : array-like of shape (n,)
            Numbers or dates of the rows that ``fit`` was given, in their order.
        """
        reference = self._fitted(self._panel).reference
        if reference is None:
            return ()
        kept = reference_positions(len(times), self.random_state)
        return period_shifts(reference.x, reference.errors, np.asarray(times)[kept])

    def widths(self) -> list[int]:
        return self._fitted(self._panel).widths()

    def to_arrays(self) -> Arrays:
        panel = self._fitted(self._panel)
        settings = {
            "reference": self.reference,
            "random_state": self.random_state,
            "binary": self._binary,
            "skipped": self._skipped,
            "checks": sorted(panel.checks),
            "metric": self.metric,
            "unit": self.form.unit,
        }
        return {"state": text(settings)} | panel.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        state = untext(arrays["state"])
        loaded = cls(
            reference=state["reference"],
            random_state=state["random_state"],
            metric=state.get("metric", DEFAULT_METRIC),  # kept by a version that had but one
        )
        loaded.form = SquaredForm(loaded.form.metric, float(state.get("unit", 1.0)))
        loaded._binary, loaded._skipped = state["binary"], tuple(state["skipped"])
        loaded._panel = Panel.from_arrays(arrays, state["checks"])
        return loaded

    def _out_of_sample(self, X: Any, y_pred: FloatArray, y_true: FloatArray) -> FloatArray | None:
        if self.reference == "held-out":
            return y_pred
        if not is_refittable(self.model):
            return None
        return out_of_fold_predictions(
            self.model, X, y_true, probability=self._binary, random_state=self.random_state
        )
