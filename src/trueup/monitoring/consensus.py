"""The headline number: a median of five estimators that fail in different places."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from trueup.errors import InvalidInputError, NotFittedError
from trueup.monitoring import members as member
from trueup.monitoring.direct_loss import DirectLossEstimator
from trueup.monitoring.disagreement import DisagreementModel, fit_disagreement, training_plan
from trueup.monitoring.features import FeatureEncoder
from trueup.monitoring.importance import effective_sample_size
from trueup.monitoring.inputs import FloatArray, finite_vector, is_binary
from trueup.monitoring.interval import (
    log_interval,
    log_spread,
    log_variance,
    weighted_sampling_variance,
)
from trueup.monitoring.members import Batch, Reference, Replicated
from trueup.monitoring.one_step import OneStepCheckModel
from trueup.monitoring.out_of_fold import is_refittable, out_of_fold_predictions
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import Arrays, nest, read, text, unnest, untext, write
from trueup.monitoring.support import Support, SupportCheck

ReferenceKind = Literal["held-out", "train"]

MIN_ROWS = 30
_MAX_ROWS = 20_000
_OFFSET_ROWS = 5_000
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

    Notes
    -----
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
        self, model: Any = None, *, reference: ReferenceKind = "held-out", random_state: int = 0
    ) -> None:
        if reference not in get_args(ReferenceKind):
            raise InvalidInputError(
                f"reference must be 'held-out' or 'train'; got {reference!r}. "
                "Say whether the model has seen the rows."
            )
        self.model = model
        self.reference = reference
        self.random_state = random_state
        self._encoder = FeatureEncoder()
        self._support: SupportCheck | None = None
        self._binary = False
        self._skipped: tuple[str, ...] = ()
        self._reference: Reference | None = None
        self._disagreement: DisagreementModel | None = None
        self._checks: dict[str, OneStepCheckModel] = {}
        self._direct: DirectLossEstimator | None = None

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
        x = self._encoder.fit(X).transform(X)
        y_pred = finite_vector("y_pred", y_pred, len(x))
        y_true = finite_vector("y_true", y_true, len(x))
        if len(x) < MIN_ROWS:
            raise InvalidInputError(
                f"reference must have at least {MIN_ROWS} rows; got {len(x)}. "
                "Give more labelled rows."
            )
        self._binary = is_binary(y_true)
        self._skipped, self._checks, self._direct = (), {}, None
        self._reference = self._disagreement = None
        self._support = SupportCheck().fit(x, self.random_state)
        unseen = self._out_of_sample(X, y_pred, y_true)
        if unseen is None:
            self._fit_training_only(x, y_pred, y_true)
        else:
            self._fit_members(x, y_pred, unseen, y_true)
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
        if self._support is None:
            raise NotFittedError("consensus must be fitted; got no fit. Call fit first.")
        x = self._encoder.transform(X)
        batch = Batch(x, finite_vector("y_pred", y_pred, len(x)))
        support = self._support.judge(x, self.random_state)
        notes = (*support.reasons, *self._skipped, *self._encoder.novelties(X))
        if self._reference is None:
            return self._training_only(batch, support, notes)
        return self._consensus(batch, support, notes)

    def save(self, path: str | Path) -> None:
        """Write the fitted state, without ``model``, to an ``.npz`` file that holds no pickles."""
        if self._support is None:
            raise NotFittedError("consensus must be fitted; got no fit. Call fit first.")
        settings = {
            "reference": self.reference,
            "random_state": self.random_state,
            "binary": self._binary,
            "skipped": self._skipped,
            "checks": sorted(self._checks),
        }
        arrays: Arrays = {"state": text(settings)}
        arrays |= nest("encoder", self._encoder.to_arrays())
        arrays |= nest("support", self._support.to_arrays())
        for name, check in self._checks.items():
            arrays |= nest(f"check/{name}", check.to_arrays())
        if self._reference is not None:
            arrays |= nest("reference", vars(self._reference))
        if self._disagreement is not None:
            arrays |= nest("disagreement", self._disagreement.to_arrays())
        if self._direct is not None:
            arrays |= nest("direct", self._direct.to_arrays())
        write(path, type(self).__name__, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the estimator that ``save`` wrote; its estimates are the same.

        Raises
        ------
        InvalidInputError
            If the file holds something else.
        """
        arrays = read(path, cls.__name__)
        state = untext(arrays["state"])
        loaded = cls(reference=state["reference"], random_state=state["random_state"])
        loaded._binary, loaded._skipped = state["binary"], tuple(state["skipped"])
        loaded._encoder = FeatureEncoder.from_arrays(unnest("encoder", arrays))
        loaded._support = SupportCheck.from_arrays(unnest("support", arrays))
        loaded._checks = {
            name: OneStepCheckModel.from_arrays(unnest(f"check/{name}", arrays))
            for name in state["checks"]
        }
        if reference := unnest("reference", arrays):
            loaded._reference = Reference(**reference)
        if disagreement := unnest("disagreement", arrays):
            loaded._disagreement = DisagreementModel.from_arrays(disagreement)
        if direct := unnest("direct", arrays):
            loaded._direct = DirectLossEstimator.from_arrays(direct)
        return loaded

    def _out_of_sample(self, X: Any, y_pred: FloatArray, y_true: FloatArray) -> FloatArray | None:
        if self.reference == "held-out":
            return y_pred
        if not is_refittable(self.model):
            return None
        return out_of_fold_predictions(
            self.model, X, y_true, probability=self._binary, random_state=self.random_state
        )

    def _fit_training_only(self, x: FloatArray, y_pred: FloatArray, y_true: FloatArray) -> None:
        self._skipped = (BIASED_LOW,)
        self._checks["one_step_l"] = self._check("l", "plain", x).fit_encoded(x, y_pred, y_true)

    def _fit_members(
        self, x: FloatArray, y_pred: FloatArray, unseen: FloatArray, y_true: FloatArray
    ) -> None:
        errors = (y_true - unseen) ** 2
        if self._binary:
            check = self._check("k", "offset", x).fit_encoded(x, unseen, y_true)
            self._checks["one_step_offset"] = check
            self._fit_direct(x, unseen, errors)
            disagreement = np.zeros(len(x))
        else:
            self._disagreement, disagreement = fit_disagreement(
                x, unseen, y_true, self.random_state
            )
            self._fit_checks(x, y_pred, unseen, y_true)
        rows = np.arange(len(x))
        if len(x) > _MAX_ROWS:
            rng = np.random.default_rng(self.random_state)
            rows = rng.choice(len(x), _MAX_ROWS, replace=False)
        self._reference = Reference(x[rows], errors[rows], disagreement[rows])

    def _fit_checks(
        self, x: FloatArray, y_pred: FloatArray, unseen: FloatArray, y_true: FloatArray
    ) -> None:
        large, trained = len(x) >= _OFFSET_ROWS, self.reference == "train"
        if large or not trained:
            check = self._check("k", "offset", x)
            self._checks["one_step_offset"] = check.fit_encoded(x, unseen, y_true)
        if not large:
            check = self._check("k_star", "plain", x)
            self._checks["one_step"] = check.fit_encoded(x, unseen, y_true)
        if trained:
            check = self._check("k_star", "plain", x)
            self._checks["one_step_train"] = check.fit_encoded(x, y_pred, y_true)

    def _fit_direct(self, x: FloatArray, y_pred: FloatArray, errors: FloatArray) -> None:
        try:
            self._direct = DirectLossEstimator(self.random_state).fit(x, y_pred, errors)
        except ImportError as error:
            self._skipped = (f"direct_loss left out: {error}",)

    def _check(
        self,
        objective: Literal["k", "k_star", "l"],
        head: Literal["plain", "offset"],
        x: FloatArray,
    ) -> OneStepCheckModel:
        plan = training_plan(len(x))
        return OneStepCheckModel(
            objective, head, epochs=plan.epochs, random_state=self.random_state
        )

    def _training_only(self, batch: Batch, support: Support, notes: tuple[str, ...]) -> MSEEstimate:
        rows = self._checks["one_step_l"].squared_errors(batch.x, batch.y_pred)
        mse = float(rows.mean())
        ones = np.ones(len(rows))
        low, high = log_interval(mse, weighted_sampling_variance(rows, ones, len(rows)))
        found = {"one_step_l": mse}
        return MSEEstimate(mse, low, high, found, False, notes, len(rows), support.diagnostics)

    def _consensus(self, batch: Batch, support: Support, notes: tuple[str, ...]) -> MSEEstimate:
        assert self._reference is not None
        reference = self._reference
        weights = member.importance_weights(reference, batch, self.random_state)
        found, ratio = self._members(reference, batch, weights)
        values = np.array([one.value for one in found.values()])
        mse = float(np.median(values))
        medians = np.median([one.replicates for one in found.values()], axis=0)
        variance = (
            log_variance(medians)
            + weighted_sampling_variance(reference.errors, weights, len(batch.x))
            + log_spread(values)
        )
        low, high = log_interval(mse, variance)
        diagnostics = {
            **support.diagnostics,
            "effective_sample_size": effective_sample_size(weights),
            **({} if ratio is None else {"disagreement_ratio": ratio}),
        }
        return MSEEstimate(
            mse=mse,
            low=low,
            high=high,
            members={name: one.value for name, one in found.items()},
            trusted=support.trusted,
            reasons=notes,
            n=len(batch.x),
            diagnostics=diagnostics,
        )

    def _members(
        self, reference: Reference, batch: Batch, weights: FloatArray
    ) -> tuple[dict[str, Replicated], float | None]:
        multiplicity = member.bayesian_bootstrap(len(reference.x), self.random_state)
        ratio = None
        found = {
            "importance": member.weighted(reference, weights, multiplicity),
            "neighbours": member.neighbours(reference, batch, multiplicity, self.random_state),
        }
        if self._disagreement is not None:
            found["disagreement"], ratio = member.doubly_robust(
                reference, self._disagreement, batch, weights, multiplicity
            )
        networks = {name: check.squared_errors for name, check in self._checks.items()}
        if self._direct is not None:
            networks["direct_loss"] = self._direct.squared_errors
        for name, squared_errors in networks.items():
            value = float(squared_errors(batch.x, batch.y_pred).mean())
            found[name] = member.rescaled(value, reference, multiplicity)
        return found, ratio
