"""The rule of the guard: from what each origin said to a decision with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from trueup.calibrators.judging.guard_decision import GuardDecision, OriginChange, Priority, Refusal
from trueup.calibrators.judging.origins import LEAST_ORIGINS
from trueup.calibrators.judging.paired_change import Change

NEWEST = 2
"""At how many of the newest origins a resolved harm refuses the calibrator."""


@dataclass(frozen=True)
class Rule:
    """When a calibrator is kept.

    Attributes
    ----------
    confidence_level : float
        Of the one-sided bounds.
    priority : {"field", "log_loss"}
        Whether a rising field error refuses a calibrator that lowers the log loss.
    """

    confidence_level: float
    priority: Priority

    @property
    def quantile(self) -> float:
        """The normal quantile of the bounds."""
        return float(norm.ppf(self.confidence_level))

    def decide(self, origins: Sequence[OriginChange], window: float) -> GuardDecision:
        """Return the decision on what the origins said."""
        loss, spread = over_origins(origins, "log_loss")
        field, field_spread = over_origins(origins, "field_error")
        high = loss.value + self.quantile * loss.standard_error
        field = Change(field.value, max(field.standard_error, field_spread))
        refused_by = self._refusal(origins, loss.value, high, spread, field)
        return GuardDecision(
            kept=not refused_by,
            reason=_sentence(refused_by, origins, loss.value, high, spread, field),
            log_loss_change=loss.value,
            log_loss_change_high=high,
            field_error_change=field.value,
            field_error_change_standard_error=field.standard_error,
            n_fit=origins[0].n_fit,
            n_check=sum(origin.n_check for origin in origins),
            refitted=not refused_by,
            refused_by=refused_by,
            origins=tuple(origins),
            window=window,
        )

    def _refusal(
        self,
        origins: Sequence[OriginChange],
        mean: float,
        high: float,
        spread: float,
        field: Change,
    ) -> Refusal:
        if high >= 0.0:
            return "log loss"
        if len(origins) > 1 and any(self._harms(origin) for origin in origins[-NEWEST:]):
            return "newest"
        if mean + spread >= 0.0:
            return "spread"
        if self.priority == "field" and field.value >= field.standard_error > 0.0:
            return "field error"
        return ""

    def _harms(self, origin: OriginChange) -> bool:
        return origin.log_loss > self.quantile * origin.log_loss_standard_error


def over_origins(origins: Sequence[OriginChange], name: str) -> tuple[Change, float]:
    """Return the mean over the checked rows with its standard error, and that among the origins.

    The first standard error is that of drawing other rows at the same times. The second is the
    standard deviation of the origins' changes over the root of their number: what other times would
    change. It is 0 for a single origin.
    """
    value = np.array([getattr(origin, name) for origin in origins])
    error = np.array([getattr(origin, f"{name}_standard_error") for origin in origins])
    share = np.array([origin.n_check for origin in origins], dtype=np.float64)
    share /= share.sum()
    spread = value.std(ddof=1) / np.sqrt(len(value)) if len(value) > 1 else 0.0
    return Change(float(share @ value), float(np.sqrt(share**2 @ error**2))), float(spread)


def not_fitted(error: Exception, n_fit: int, n_check: int) -> GuardDecision:
    """Return the refusal of what could not be fitted on the rows before an origin."""
    nan = float("nan")
    reason = f"not kept: part one could not be fitted ({error})"
    return GuardDecision(
        False, reason, nan, nan, nan, nan, n_fit, n_check, refitted=False, refused_by="not fitted"
    )


def _sentence(
    refused_by: Refusal,
    origins: Sequence[OriginChange],
    mean: float,
    high: float,
    spread: float,
    field: Change,
) -> str:
    newest = max(origins[-NEWEST:], key=lambda origin: origin.log_loss)
    bound = f"the upper bound of the log loss change is {high:.3g}"
    error = f"{abs(field.value):.3g}, one standard error is {field.standard_error:.3g}"
    moves = f"the field error {'rises' if field.value > 0.0 else 'falls'} by {error}"
    head = {
        "": f"kept: {bound}, below 0",
        "log loss": f"not kept: {bound}, not below 0",
        "newest": f"not kept: the log loss rises by {newest.log_loss:.3g} after {newest.until}, "
        f"one of the {NEWEST} newest origins",
        "spread": f"not kept: the log loss changes by {mean:.3g} on average, but differs from "
        f"origin to origin by a standard error of {spread:.3g}",
        "field error": f"not kept: {moves}",
    }[refused_by]
    also = [f"the log loss changes by {mean:.3g}" if refused_by == "" else ""]
    if refused_by == "field error":
        alone = f"the log loss changes by {mean:.3g} (upper bound {high:.3g})"
        also = [f"{alone} and would keep it by itself"]
    elif field.standard_error > 0.0:
        also.append(moves)
    return "; ".join([head, *filter(None, also), _judged(origins)])


def _judged(origins: Sequence[OriginChange]) -> str:
    """Say which rows decided."""
    n = sum(origin.n_check for origin in origins)
    if not origins[0].until:
        return f"judged on {n} rows of a random half, since no times were given"
    found = f"judged on {n} rows after {origins[0].until} at {len(origins)} origin"
    if len(origins) == 1:
        return f"{found}: the times allow no more, so nothing is known of how it changes over time"
    few = ", which is few: use finer times" if len(origins) < LEAST_ORIGINS else ""
    return f"{found}s{few}"
