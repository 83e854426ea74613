"""The members that the consensus is the median of, all on one labelled reference.

A member gives its estimate for a batch together with its Bayesian-bootstrap replicates over the
reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trueup.arrays import Arrays
from trueup.monitoring.features import Batch, Judge
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.one_step import OneStepCheckModel
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.panel.disagreement import DisagreementModel, calibrated_disagreement
from trueup.monitoring.panel.importance import (
    effective_sample_size,
    neighbour_weights,
    rulsif_weights,
)
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.storage import finite, nest, unnest
from trueup.monitoring.trust.interval import (
    log_interval,
    log_spread,
    log_variance,
    weighted_sampling_variance,
)

TRAINING_ONLY = "one_step_l"
REPLICATES = 200
_NEIGHBOUR_ROWS = 5_000
_IMPORTANCE_ROWS = 1_000


@dataclass(frozen=True)
class Reference:
    """Labelled rows with out-of-sample errors.

    ``x`` are encoded features (n, d); ``errors`` (n,) the squared error of f on each row, which f
    did not see; ``disagreement`` (n,) that of f with networks which did not see the row.
    """

    x: FloatArray
    errors: FloatArray
    disagreement: FloatArray

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Reference:
        columns = (finite(arrays[name], 1) for name in ("errors", "disagreement"))
        reference = cls(finite(arrays["x"], 2), *columns)
        if not 0 < len(reference.x) == len(reference.errors) == len(reference.disagreement):
            raise ValueError("errors and disagreements of the rows of a reference expected")
        return reference


@dataclass(frozen=True)
class Replicated:
    """An estimate with its bootstrap replicates of shape (replicates,)."""

    value: float
    replicates: FloatArray


def bayesian_bootstrap(n: int, random_state: int) -> FloatArray:
    """Return weights of shape (1 + replicates, n) with row sums n; the first row is ones."""
    draws = np.random.default_rng(random_state).standard_exponential((REPLICATES, n))
    draws *= n / draws.sum(axis=1, keepdims=True)
    return np.concatenate([np.ones((1, n)), draws])


def importance_weights(reference: Reference, batch: Batch, random_state: int) -> FloatArray:
    """Return the RuLSIF weights of the reference against at most 1,000 rows of the batch."""
    rows = batch.sample(_IMPORTANCE_ROWS, random_state)
    return rulsif_weights(reference.x, rows, random_state)


def weighted(reference: Reference, weights: FloatArray, multiplicity: FloatArray) -> Replicated:
    """Return the mean error of the reference under the weights (self-normalised)."""
    total = np.maximum(multiplicity @ weights, np.finfo(np.float64).tiny)
    values = multiplicity @ (weights * reference.errors) / total
    return Replicated(float(values[0]), values[1:])


def neighbours(
    reference: Reference, batch: Batch, multiplicity: FloatArray, random_state: int
) -> Replicated:
    """Return the mean error of the nearest reference rows of at most 5,000 rows of the batch."""
    rows = batch.sample(_NEIGHBOUR_ROWS, random_state)
    return weighted(reference, neighbour_weights(reference.x, rows), multiplicity)


def doubly_robust(
    reference: Reference, operational: float, weights: FloatArray, multiplicity: FloatArray
) -> tuple[Replicated, float]:
    """Return DR-CALD and the mean disagreement on the batch in units of that on the reference."""
    values = calibrated_disagreement(
        reference.errors, reference.disagreement, weights, operational, multiplicity
    )
    ratio = operational / max(float(reference.disagreement.mean()), np.finfo(np.float64).tiny)
    return Replicated(float(values[0]), values[1:]), ratio


def rescaled(value: float, reference: Reference, multiplicity: FloatArray) -> Replicated:
    """Return a network's estimate; replicates scale it by the mean error of the reference."""
    mean = float(reference.errors.mean())
    if mean <= 0.0:
        return Replicated(value, np.full(len(multiplicity) - 1, value))
    level = multiplicity[1:] @ reference.errors / len(reference.errors)
    return Replicated(value, value * level / mean)


@dataclass(frozen=True)
class Panel:
    """The fitted members: of training errors alone, or of errors on rows which f did not see.

    ``checks`` are check models by the name of their member. ``reference`` has the rows, None where
    only training errors are known: the paper's L is then the one member. ``disagreement`` is None
    for labels in {0, 1}, and ``direct`` for all others, or where its package is not installed.
    """

    checks: Mapping[str, OneStepCheckModel]
    reference: Reference | None = None
    disagreement: DisagreementModel | None = None
    direct: DirectLossEstimator | None = None

    def judge(self, batch: Batch, random_state: int) -> MSEEstimate:
        """Return the median of the members with the interval of three variances.

        Of training errors it is not trusted, and the interval holds the sampling of the batch only.
        """
        judged = batch.rows(self._judges())
        means = {name: float(rows.mean()) for name, rows in judged.items()}
        if self.reference is None:
            ((name, rows),) = judged.items()
            variance = weighted_sampling_variance(rows, np.ones(len(rows)), len(rows))
            low, high = log_interval(means[name], variance)
            return MSEEstimate(means[name], low, high, means, False, (), len(batch))
        weights = importance_weights(self.reference, batch, random_state)
        multiplicity = bayesian_bootstrap(len(self.reference.x), random_state)
        diagnostics = {"effective_sample_size": effective_sample_size(weights)}
        found = {
            "importance": weighted(self.reference, weights, multiplicity),
            "neighbours": neighbours(self.reference, batch, multiplicity, random_state),
        }
        if self.disagreement is not None:
            found["disagreement"], ratio = doubly_robust(
                self.reference, means.pop("disagreement"), weights, multiplicity
            )
            diagnostics["disagreement_ratio"] = ratio
        for name, mean in means.items():
            found[name] = rescaled(mean, self.reference, multiplicity)
        values = {name: one.value for name, one in found.items()}
        mse = float(np.median(list(values.values())))
        medians = np.median([one.replicates for one in found.values()], axis=0)
        variance = (
            log_variance(medians)
            + weighted_sampling_variance(self.reference.errors, weights, len(batch))
            + log_spread(np.array(list(values.values())))
        )
        ends = log_interval(mse, variance)
        return MSEEstimate(mse, *ends, values, True, (), len(batch), diagnostics)

    @property
    def any_check(self) -> OneStepCheckModel:
        """A check model, which knows the scale of the target."""
        return next(iter(self.checks.values()))

    def widths(self) -> list[int]:
        found = [width for check in self.checks.values() for width in check.widths()]
        if self.reference is not None:
            found.append(self.reference.x.shape[1])
        if self.disagreement is not None:
            found.append(self.disagreement.network.width)
        if self.direct is not None:
            found.append(self.direct.width)
        return found

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {} if self.reference is None else nest("reference", vars(self.reference))
        for name, check in self.checks.items():
            arrays |= nest(f"check/{name}", check.to_arrays())
        if self.disagreement is not None:
            arrays |= nest("disagreement", self.disagreement.to_arrays())
        if self.direct is not None:
            arrays |= nest("direct", self.direct.to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, check_names: list[str]) -> Panel:
        checks = {
            name: OneStepCheckModel.from_arrays(unnest(f"check/{name}", arrays))
            for name in check_names
        }
        reference = unnest("reference", arrays)
        if not reference:
            return cls({TRAINING_ONLY: checks[TRAINING_ONLY]})
        disagreement, direct = unnest("disagreement", arrays), unnest("direct", arrays)
        return cls(
            checks,
            Reference.from_arrays(reference),
            DisagreementModel.from_arrays(disagreement) if disagreement else None,
            DirectLossEstimator.from_arrays(direct) if direct else None,
        )

    def _judges(self) -> dict[str, Judge]:
        """Return the members that look at every row of a batch."""
        judges: dict[str, Judge] = {
            name: check.squared_errors for name, check in self.checks.items()
        }
        if self.disagreement is not None:
            judges["disagreement"] = self.disagreement.squared
        if self.direct is not None:
            judges["direct_loss"] = self.direct.squared_errors
        return judges
