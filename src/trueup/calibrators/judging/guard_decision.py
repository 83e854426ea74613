"""What the guard found at each origin, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import norm

LEAST_ORIGINS = 4
"""Fewer say little about how far a change differs from one stretch of time to the next."""

Priority = Literal["field", "log_loss"]
Refusal = Literal["", "not fitted", "log loss", "spread", "newest", "field error"]


@dataclass(frozen=True)
class Change:
    """After minus before: the value and its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class OriginChange:
    """What calibrating changed on the rows after one origin.

    ``until`` and ``checked_until`` are times of the last fitted and of the last checked row, empty
    for random halves. Changes are calibrated minus uncalibrated: of the log loss in nats, and of
    the debiased squared field error, the mean over the fields; 0 without fields.
    """

    until: str
    checked_until: str
    n_fit: int
    n_check: int
    log_loss: float
    log_loss_standard_error: float
    field_error: float = 0.0
    field_error_standard_error: float = 0.0


@dataclass(frozen=True)
class GuardDecision:
    """What the guard found, and what it did.

    Attributes
    ----------
    kept : bool
        Whether the calibrator is used; if not, predictions pass unchanged.
    reason : str
        The decision in a sentence, with gain and loss together and the rows that were judged.
    log_loss_change, log_loss_change_high : float
        Calibrated minus uncalibrated log loss on the checked rows, in nats, and the upper end of
        its one-sided interval. NaN if part one could not be fitted.
    field_error_change, field_error_change_standard_error : float
        Change of the debiased squared field error, the mean over the fields; 0 without fields.
    n_fit, n_check : int
        Rows up to the first origin, and rows that were checked after it.
    refitted : bool
        Whether the calibrator in use was fitted again, on the newest ``window`` of all rows.
    refused_by : {"", "not fitted", "log loss", "spread", "newest", "field error"}
        The first rule that the calibrator failed.
    origins : tuple of OriginChange
        What each origin said, the oldest first; a single one for random halves.
    window : float
        Share of the rows, the newest, that the calibrator in use was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import Guarded, ShiftCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.1, 0.6, 2_000)
    >>> click = rng.random(2_000) < p / 2
    >>> Guarded(ShiftCalibrator()).fit(p, click).decision_.kept
    True
    """

    kept: bool
    reason: str
    log_loss_change: float
    log_loss_change_high: float
    field_error_change: float
    field_error_change_standard_error: float
    n_fit: int
    n_check: int
    refitted: bool
    refused_by: Refusal = ""
    origins: tuple[OriginChange, ...] = ()
    window: float = 1.0

    @property
    def by_time(self) -> bool:
        """Whether later rows decided; False where the halves were random."""
        return any(origin.until for origin in self.origins)

    def to_markdown(self) -> str:
        """Return the origins as a table in Markdown."""
        head = (
            "| fitted up to | checked up to | checked rows | log loss change ± SE "
            "| field error change ± SE |\n"
            "|---|---|---|---|---|\n"
        )
        return head + "".join(_line(origin) for origin in self.origins)


def _line(origin: OriginChange) -> str:
    cells = (
        origin.until or "a random half",
        origin.checked_until or "the other half",
        str(origin.n_check),
        f"{origin.log_loss:+.5f} ± {origin.log_loss_standard_error:.5f}",
        f"{origin.field_error:+.2g} ± {origin.field_error_standard_error:.1g}",
    )
    return f"| {' | '.join(cells)} |\n"


NEWEST = 2
"""At how many of the newest origins a resolved harm refuses the calibrator."""


@dataclass(frozen=True)
class Rule:
    """When a calibrator is kept, by one-sided bounds; see :class:`Guarded`."""

    confidence_level: float
    priority: Priority

    @property
    def quantile(self) -> float:
        return float(norm.ppf(self.confidence_level))

    def decide(self, origins: Sequence[OriginChange], window: float) -> GuardDecision:
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

    The first is that of drawing other rows at the same times. The second is the standard deviation
    of the origins' changes over the root of their number: what other times would change; 0 for a
    single origin.
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
