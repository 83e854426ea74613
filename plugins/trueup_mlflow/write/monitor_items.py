"""Keys and tags of monitoring, and the result of a batch as metrics, without MLflow."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate

CHECK_ROLE = "check_train"
MONITOR_ROLE = "monitor"
CHECK_URI_TAG = "trueup.check_model_uri"
CHECK_ID_TAG = "trueup.checks_model_id"
CHECKED_URI_TAG = "trueup.checks_model_uri"
VERSION_OF_MODEL_TAG = "trueup.model_version"
MODEL_TAG = "trueup.model"
BATCH_TAG = "trueup.batch."
CLAIM_PARAM = "trueup.claim."

ESTIMATED = "estimated_mse"
ONE_STEP = "estimated_mse_one_step"
REALIZED = "realized_mse"
ESTIMATION_ERROR = "estimation_error"
TRUSTED = "trusted"


@dataclass(frozen=True)
class BatchRecord:
    """What the monitor run keeps of one batch, as JSON in the tag ``trueup.batch.<digest>``.

    Attributes
    ----------
    digest : str
        Hash of row ids, features and predictions: the same batch is logged once.
    step : int
        Number of the batch in the run, from 0.
    timestamp : int
        Milliseconds since 1970 of the batch's own time.
    n : int
        Number of rows.
    estimate : dict
        ``MSEEstimate.to_dict()`` without members that do not fit; None until it is logged.
    moved : list of [str, float]
        Features whose mean moved most, in standard deviations of the reference.
    realized : float or None
        Mean squared error once labels have arrived.
    """

    digest: str
    step: int
    timestamp: int
    n: int
    estimate: dict[str, Any]
    moved: tuple[tuple[str, float], ...] = ()
    logged: bool = False
    realized: float | None = None

    @property
    def time(self) -> str:
        """The batch's time as an ISO date."""
        return datetime.fromtimestamp(self.timestamp / 1000.0, UTC).isoformat(timespec="seconds")

    @property
    def covered(self) -> bool | None:
        """Whether the interval held the realized error; None before labels."""
        low, high = self.estimate["low"], self.estimate["high"]
        if not all(isinstance(value, (int, float)) for value in (low, high, self.realized)):
            return None
        return bool(low <= self.realized <= high)

    def mark(self, **changes: Any) -> BatchRecord:
        """Return the record with other values."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> BatchRecord:
        """Return the record that ``to_json`` gave.

        Raises
        ------
        InvalidInputError
            If it has no time or lacks another part. Other values stay as somebody may have changed
            them: whoever shows a record takes none of them for a number.
        """
        try:
            moved = tuple((str(name), shift) for name, shift in values["moved"])
            record = cls(**{**values, "moved": moved})
            _ = record.time, [record.estimate[name] for name in ("mse", "low", "high", "trusted")]
        except (LookupError, TypeError, ValueError, OverflowError, OSError) as error:
            raise InvalidInputError(
                f"a batch of the monitor run must be a record of trueup; got one that is none "
                f"({type(error).__name__}: {error}). Delete its tag, {BATCH_TAG}<digest>."
            ) from None
        return record


def estimate_metrics(estimate: MSEEstimate, one_step: float) -> dict[str, float]:
    """Return the metrics of one batch; values that are not finite are left out."""
    values = {
        ESTIMATED: estimate.mse,
        f"{ESTIMATED}_low": estimate.low,
        f"{ESTIMATED}_high": estimate.high,
        ONE_STEP: one_step,
        TRUSTED: float(estimate.trusted),
        **{f"support/{name}": value for name, value in estimate.diagnostics.items()},
    }
    return {key: value for key, value in values.items() if math.isfinite(value)}


def realized_metrics(estimated: float, realized: float) -> dict[str, float]:
    """Return the realized error and how far the estimate was from it."""
    return {REALIZED: realized, ESTIMATION_ERROR: estimated - realized}


def check_name(model: str) -> str:
    """Return the registered name of a model's checks."""
    return f"{model}__trueup_check"


def check_alias(version: str) -> str:
    """Return the alias of the check of a version."""
    return f"for-v{version}"


def timestamp_of(at: str | datetime | None, digest: str) -> int:
    """Return milliseconds since 1970; below a second the digest decides.

    Two batches of the same second then have different points, and a replay has the same one.

    Raises
    ------
    InvalidInputError
        If ``at`` is not an ISO date.
    """
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise InvalidInputError(
            f"at must be an ISO date; got {at!r}. Write it as 2026-01-31 or 2026-01-31T12:00:00."
        ) from None
    moment = datetime.now(UTC) if moment is None else moment
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 + int(digest[:8], 16) % 1000
