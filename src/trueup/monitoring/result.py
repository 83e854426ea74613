"""The result of every estimator of operational error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from trueup.presentation import Line, Presented


@dataclass(frozen=True)
class MSEEstimate(Presented):
    """Estimated mean squared error of a model on rows whose labels are not known yet.

    Attributes
    ----------
    mse : float
        The estimate, at least 0: of the mean squared error, in squared units of the target (for
        labels in {0, 1} the Brier score), or of another ``metric``, which ``value`` is no misnomer
        for.
    low, high : float
        90% interval for the error that these rows will realize, ``low <= mse <= high``.
    members : mapping of str to float
        The estimates that ``mse`` is the median of.
    trusted : bool
        False where the estimate must not be acted on; ``reasons`` says why.
    reasons : tuple of str
        What was left out or looks wrong, in words.
    n : int
        Number of rows that were judged.
    diagnostics : mapping of str to float
        The numbers behind the support flags: ``domain_auc`` (0.5 = same distribution), ``outside``
        (share of rows outside of the reference, 0 to 1), ``effective_sample_size`` (share of the
        reference, 0 to 1), ``disagreement_ratio`` (1 = as on the reference).
    metric : str, default "mse"
        What was estimated.

    Notes
    -----
    No diagnostic looks at labels, so none can see a change of the target given the features.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.monitoring import OneStepCheckModel
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> check = OneStepCheckModel(epochs=5).fit(X, X[:, 0], X[:, 0] + 0.1)
    >>> estimate = check.estimate(X, X[:, 0])
    >>> bool(estimate.low <= estimate.mse <= estimate.high), estimate.n
    (True, 60)
    """

    mse: float
    low: float
    high: float
    members: Mapping[str, float]
    trusted: bool
    reasons: tuple[str, ...]
    n: int
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    metric: str = "mse"

    @property
    def value(self) -> float:
        """The estimate of ``metric``."""
        return self.mse

    @property
    def is_finite(self) -> bool:
        """Whether there is an estimate at all, with an interval."""
        return all(isfinite(value) for value in (self.mse, self.low, self.high))

    def checked(self) -> MSEEstimate:
        """Return the estimate, which is never trusted where it is no finite number."""
        if self.is_finite:
            return self
        reason = "the estimate is not finite: numbers of the batch are too large"
        return replace(self, trusted=False, reasons=(reason, *self.reasons))

    def summary(self) -> str:
        """Return the estimate and whether to trust it, in a sentence."""
        trust = "trusted" if self.trusted else f"not trusted: {'; '.join(self.reasons)}"
        what = "error" if self.metric == "mse" else self.metric.replace("_", " ")
        return (
            f"Estimated {what} {self.mse:.4g} [{self.low:.4g}, {self.high:.4g}] of {self.n} rows, "
            f"{trust}."
        )

    def lines(self) -> list[Line]:
        """Return the estimate with its interval, and the members that it is the median of."""
        members = [Line(name, value) for name, value in self.members.items()]
        return [Line("estimate", self.mse, self.low, self.high), *members]

    def scaled(self, factor: float) -> MSEEstimate:
        """Return the estimate, its interval and the members times a factor."""
        members = {name: value * factor for name, value in self.members.items()}
        low, high = self.low * factor, self.high * factor
        return replace(self, mse=self.mse * factor, low=low, high=high, members=members)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, ready for JSON; what is not finite is None.

        The estimate has the name of its metric.
        """
        return {
            "metric": self.metric,
            self.metric: _finite(self.mse),
            "low": _finite(self.low),
            "high": _finite(self.high),
            "members": {name: _finite(value) for name, value in self.members.items()},
            "trusted": self.trusted,
            "reasons": list(self.reasons),
            "n": self.n,
            "diagnostics": {name: _finite(value) for name, value in self.diagnostics.items()},
        }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
