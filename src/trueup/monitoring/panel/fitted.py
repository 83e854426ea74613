"""The fitted members of the consensus and what they say about a batch together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trueup.arrays import Arrays
from trueup.monitoring.batch import Batch, Judge
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.one_step import OneStepCheckModel
from trueup.monitoring.panel import members as member
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.panel.disagreement import DisagreementModel
from trueup.monitoring.panel.importance import effective_sample_size
from trueup.monitoring.panel.members import Reference, Replicated
from trueup.monitoring.storage import finite, nest, unnest
from trueup.monitoring.trust.interval import (
    log_interval,
    log_spread,
    log_variance,
    weighted_sampling_variance,
)

TRAINING_ONLY = "one_step_l"


@dataclass(frozen=True)
class Finding:
    """Headline, interval, values of the members and diagnostics of one batch."""

    mse: float
    low: float
    high: float
    members: Mapping[str, float]
    diagnostics: Mapping[str, float]


@dataclass(frozen=True)
class TrainingPanel:
    """The one member that training errors allow: the paper's L."""

    check: OneStepCheckModel

    def judge(self, batch: Batch, random_state: int) -> Finding:  # noqa: ARG002
        """Return the estimate of L; the interval holds the sampling of the batch only."""
        rows = batch.rows({TRAINING_ONLY: self.check.squared_errors})[TRAINING_ONLY]
        mse = float(rows.mean())
        variance = weighted_sampling_variance(rows, np.ones(len(rows)), len(rows))
        low, high = log_interval(mse, variance)
        return Finding(mse, low, high, {TRAINING_ONLY: mse}, {})

    @property
    def any_check(self) -> OneStepCheckModel:
        """A check model, which knows the scale of the target."""
        return self.check

    def check_names(self) -> list[str]:
        """Return the name of L."""
        return [TRAINING_ONLY]

    def widths(self) -> list[int]:
        """Return the width of L."""
        return [self.check.width]

    def to_arrays(self) -> Arrays:
        """Return the fitted state."""
        return nest(f"check/{TRAINING_ONLY}", self.check.to_arrays())


@dataclass(frozen=True)
class ConsensusPanel:
    """Members that know errors on rows which the model did not see.

    Attributes
    ----------
    reference : Reference
        Those rows.
    checks : mapping of str to OneStepCheckModel
        Check models by the name of their member.
    disagreement : DisagreementModel or None
        None for labels in {0, 1}.
    direct : DirectLossEstimator or None
        For labels in {0, 1}, where its package is installed.
    """

    reference: Reference
    checks: Mapping[str, OneStepCheckModel]
    disagreement: DisagreementModel | None = None
    direct: DirectLossEstimator | None = None

    def judge(self, batch: Batch, random_state: int) -> Finding:
        """Return the median of the members with the interval of three variances."""
        weights = member.importance_weights(self.reference, batch, random_state)
        multiplicity = member.bayesian_bootstrap(len(self.reference.x), random_state)
        diagnostics = {"effective_sample_size": effective_sample_size(weights)}
        found = {
            "importance": member.weighted(self.reference, weights, multiplicity),
            "neighbours": member.neighbours(self.reference, batch, multiplicity, random_state),
        }
        means = {name: float(rows.mean()) for name, rows in batch.rows(self._judges()).items()}
        if self.disagreement is not None:
            found["disagreement"], ratio = member.doubly_robust(
                self.reference, means.pop("disagreement"), weights, multiplicity
            )
            diagnostics["disagreement_ratio"] = ratio
        for name, mean in means.items():
            found[name] = member.rescaled(mean, self.reference, multiplicity)
        values = {name: one.value for name, one in found.items()}
        mse = float(np.median(list(values.values())))
        variance = _variance(self.reference, found, weights, len(batch))
        return Finding(mse, *log_interval(mse, variance), values, diagnostics)

    @property
    def mean_error(self) -> float:
        """Mean squared error on the reference."""
        return float(self.reference.errors.mean())

    @property
    def any_check(self) -> OneStepCheckModel:
        """A check model, which knows the scale of the target."""
        return next(iter(self.checks.values()))

    def check_names(self) -> list[str]:
        """Return the names of the check models, sorted."""
        return sorted(self.checks)

    def widths(self) -> list[int]:
        """Return the widths of all members."""
        found = [self.reference.x.shape[1], *(check.width for check in self.checks.values())]
        if self.disagreement is not None:
            found.append(self.disagreement.network.width)
        if self.direct is not None:
            found.append(self.direct.width)
        return found

    def to_arrays(self) -> Arrays:
        """Return the fitted state."""
        arrays = nest("reference", vars(self.reference))
        for name, check in self.checks.items():
            arrays |= nest(f"check/{name}", check.to_arrays())
        if self.disagreement is not None:
            arrays |= nest("disagreement", self.disagreement.to_arrays())
        if self.direct is not None:
            arrays |= nest("direct", self.direct.to_arrays())
        return arrays

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


def panel_from_arrays(arrays: Arrays, check_names: list[str]) -> ConsensusPanel | TrainingPanel:
    """Return the panel that ``to_arrays`` described."""
    checks = {
        name: OneStepCheckModel.from_arrays(unnest(f"check/{name}", arrays)) for name in check_names
    }
    stored = unnest("reference", arrays)
    if not stored:
        return TrainingPanel(checks[TRAINING_ONLY])
    reference = _stored_reference(stored)
    disagreement, direct = unnest("disagreement", arrays), unnest("direct", arrays)
    return ConsensusPanel(
        reference,
        checks,
        DisagreementModel.from_arrays(disagreement) if disagreement else None,
        DirectLossEstimator.from_arrays(direct) if direct else None,
    )


def _stored_reference(arrays: Arrays) -> Reference:
    reference = Reference(
        finite(arrays["x"], 2), finite(arrays["errors"], 1), finite(arrays["disagreement"], 1)
    )
    if not 0 < len(reference.x) == len(reference.errors) == len(reference.disagreement):
        raise ValueError("errors and disagreements of the rows of a reference expected")
    return reference


def _variance(
    reference: Reference, found: Mapping[str, Replicated], weights: FloatArray, m: int
) -> float:
    """Return the variance of the log: of the reference, of the batch, and among the members."""
    medians = np.median([one.replicates for one in found.values()], axis=0)
    return (
        log_variance(medians)
        + weighted_sampling_variance(reference.errors, weights, m)
        + log_spread(np.array([one.value for one in found.values()]))
    )
