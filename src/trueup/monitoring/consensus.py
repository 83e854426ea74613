"""The headline number: a median of five estimators that fail in different places."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from trueup.arrays import Arrays
from trueup.errors import InvalidInputError, NotFittedError
from trueup.extras import needed_by
from trueup.monitoring.batch import Batch
from trueup.monitoring.features import FeatureEncoder
from trueup.monitoring.inputs import FloatArray, finite_vector, is_binary
from trueup.monitoring.metrics import DEFAULT_METRIC, SquaredForm, metric_of
from trueup.monitoring.networks.out_of_fold import is_refittable, out_of_fold_predictions
from trueup.monitoring.panel.fitted import ConsensusPanel, TrainingPanel, panel_from_arrays
from trueup.monitoring.panel.fitting import (
    Labelled,
    fit_binary_panel,
    fit_panel,
    fit_training_panel,
    reference_positions,
)
from trueup.monitoring.reference_periods import PeriodShift, period_shifts
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import (
    nest,
    read,
    require_same_names,
    require_width,
    text,
    unnest,
    untext,
    write,
)
from trueup.monitoring.trust.support import SUPPORT_ROWS, SupportCheck
from trueup.read.frames import require_one_order

ReferenceKind = Literal["held-out", "train"]

MIN_ROWS = 30
BIASED_LOW = (
    "biased low: the only errors known are those of the training data, and the model cannot be "
    "refitted. Give a held-out reference or a model with fit and predict"
)


class ConsensusEstimator:
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

    def __init__(
        self,
        model: Any = None,
        *,
        reference: ReferenceKind = "held-out",
        random_state: int = 0,
        metric: str = DEFAULT_METRIC,
    ) -> None:
        if reference not in get_args(ReferenceKind):
            raise InvalidInputError(
                "reference must be 'held-out' or 'train'",
                repr(reference),
                "Say whether the model has seen the rows.",
            )
        self.model = model
        self.reference = reference
        self.random_state = random_state
        self._encoder = FeatureEncoder()
        self._support = SupportCheck()
        self.metric = metric_of(metric).name
        self.form = SquaredForm(metric_of(metric))
        self._binary = False
        self._skipped: tuple[str, ...] = ()
        self._panel: ConsensusPanel | TrainingPanel | None = None

    def fit(self, X: Any, y_pred: Any, y_true: Any) -> Self:
        """Fit all members on labelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d) or data frame
            Features: numbers, categories, missing values and dates.
        y_pred : array-like of shape (n,)
            Predictions of the monitored model; probabilities if the labels are 0 and 1.
        y_true : array-like of shape (n,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If shapes differ, values are not finite, or there are fewer than 30 rows.
        """
        require_one_order({"X": X, "y_pred": y_pred, "y_true": y_true})
        x = self._encoder.fit(X).transform(X)
        y_pred = finite_vector("y_pred", y_pred, len(x))
        y_true = finite_vector("y_true", y_true, len(x))
        if len(x) < MIN_ROWS:
            raise InvalidInputError(
                f"reference must have at least {MIN_ROWS} rows",
                f"{len(x)}",
                "Give more labelled rows.",
            )
        self._binary = is_binary(y_true)
        self.form.metric.require(y_true, y_pred)  # before clones are fitted
        self._support = SupportCheck().fit(x, self.random_state)
        unseen = self._out_of_sample(X, y_pred, y_true)
        self.form = SquaredForm.fitted(self.metric, y_true, y_pred if unseen is None else unseen)
        if unseen is None:
            labels = self.form.labels(y_true, y_pred)
            self._panel = fit_training_panel(x, y_pred, labels, self.random_state)
            self._skipped = (BIASED_LOW,)
        else:
            trained = self.reference == "train"
            self._fit_panel(Labelled(x, y_pred, unseen, y_true, trained, self.form))
        return self

    def estimate(self, X: Any, y_pred: Any) -> MSEEstimate:
        """Return the estimated mean squared error of the model on X.

        Parameters
        ----------
        X : array-like of shape (m, d) or data frame
            Features of the operational rows, with the columns of the reference.
        y_pred : array-like of shape (m,)
            Predictions of the model for them.

        Returns
        -------
        MSEEstimate
            With ``trusted=False`` where the rows lie outside of the reference, or where only
            training errors were known.

        Raises
        ------
        NotFittedError
            If ``fit`` was not called.
        InvalidInputError
            If the columns differ from those of the reference.
        """
        panel = self._fitted()
        batch = Batch(self._encoder, X, y_pred)
        self.form.metric.require_predictions(batch.y_pred)
        support = self._support.judge(
            batch.sample(SUPPORT_ROWS, self.random_state), self.random_state
        )
        found = panel.judge(batch, self.random_state)
        far = panel.any_check.far_reasons(batch)
        return (
            MSEEstimate(
                mse=found.mse,
                low=found.low,
                high=found.high,
                members=found.members,
                trusted=support.trusted and not far and not isinstance(panel, TrainingPanel),
                reasons=(*support.reasons, *far, *self._skipped, *batch.novelties()),
                n=len(batch),
                diagnostics={**support.diagnostics, **found.diagnostics},
                metric=self.metric,
            )
            .checked()
            .scaled(1.0 / self.form.unit)
        )

    @property
    def reference_error(self) -> float | None:
        """Error on the reference; None where only training errors are known."""
        panel = self._fitted()
        return None if isinstance(panel, TrainingPanel) else panel.mean_error / self.form.unit

    def period_shifts(self, times: Any) -> tuple[PeriodShift, ...]:
        """Return how the error moves between the periods of the reference.

        Parameters
        ----------
        times : array-like of shape (n,)
            Numbers or dates of the rows that ``fit`` was given, in their order.
        """
        panel = self._fitted()
        if isinstance(panel, TrainingPanel):
            return ()
        kept = reference_positions(len(times), self.random_state)
        return period_shifts(panel.reference.x, panel.reference.errors, np.asarray(times)[kept])

    def save(self, path: str | Path) -> None:
        """Write the fitted state, without ``model``, to an ``.npz`` file that holds no pickles."""
        write(path, type(self).__name__, self._all_arrays())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the estimator that ``save`` wrote; its estimates are the same.

        Raises
        ------
        CorruptFileError
            If the file holds something else, is damaged or forged; it is an InvalidInputError.
        """
        return read(path, cls.__name__, cls._restored)

    @classmethod
    def _restored(cls, arrays: Arrays) -> Self:
        state = untext(arrays["state"])
        loaded = cls(
            reference=state["reference"],
            random_state=state["random_state"],
            metric=state.get("metric", DEFAULT_METRIC),  # kept by a version that had but one
        )
        loaded.form = SquaredForm(loaded.form.metric, float(state.get("unit", 1.0)))
        loaded._binary, loaded._skipped = state["binary"], tuple(state["skipped"])
        loaded._encoder = FeatureEncoder.from_arrays(unnest("encoder", arrays))
        loaded._support = SupportCheck.from_arrays(unnest("support", arrays))
        loaded._panel = panel_from_arrays(arrays, state["checks"])
        require_width(loaded._encoder.width, loaded._support.width, *loaded._panel.widths())
        require_same_names(arrays, loaded._all_arrays())
        return loaded

    def _all_arrays(self) -> Arrays:
        panel = self._fitted()
        settings = {
            "reference": self.reference,
            "random_state": self.random_state,
            "binary": self._binary,
            "skipped": self._skipped,
            "checks": panel.check_names(),
            "metric": self.metric,
            "unit": self.form.unit,
        }
        parts = nest("encoder", self._encoder.to_arrays()) | panel.to_arrays()
        return {"state": text(settings)} | parts | nest("support", self._support.to_arrays())

    def _fitted(self) -> ConsensusPanel | TrainingPanel:
        if self._panel is None:
            raise NotFittedError("consensus must be fitted", "no fit", "Call fit first.")
        return self._panel

    def _out_of_sample(self, X: Any, y_pred: FloatArray, y_true: FloatArray) -> FloatArray | None:
        if self.reference == "held-out":
            return y_pred
        if not is_refittable(self.model):
            return None
        with needed_by("ConsensusEstimator"):
            import_module("sklearn")
        return out_of_fold_predictions(
            self.model, X, y_true, probability=self._binary, random_state=self.random_state
        )

    def _fit_panel(self, rows: Labelled) -> None:
        if self._binary:
            self._panel, self._skipped = fit_binary_panel(rows, self.random_state)
        else:
            self._panel, self._skipped = fit_panel(rows, self.random_state), ()
