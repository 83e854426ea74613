"""What the guard found at each origin, and what it decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Priority = Literal["field", "log_loss"]
Refusal = Literal["", "not fitted", "log loss", "spread", "newest", "field error"]


@dataclass(frozen=True)
class OriginChange:
    """What calibrating changed on the rows after one origin.

    Attributes
    ----------
    until, checked_until : str
        Times of the last fitted and of the last checked row; empty for random halves.
    n_fit, n_check : int
        Rows that fitted and rows that were checked.
    log_loss, log_loss_standard_error : float
        Calibrated minus uncalibrated, in nats.
    field_error, field_error_standard_error : float
        Change of the debiased squared field error, the mean over the fields; 0 without fields.
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
