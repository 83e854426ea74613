"""Keys and tags of monitoring, and the result of a batch as metrics, without MLflow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.monitoring.metrics import DEFAULT_METRIC, metric_of

CHECK_ROLE = "check_train"
MONITOR_ROLE = "monitor"
CHECK_URI_TAG = "trueup.check_model_uri"
CHECK_ID_TAG = "trueup.checks_model_id"
CHECKED_URI_TAG = "trueup.checks_model_uri"
VERSION_OF_MODEL_TAG = "trueup.model_version"
MODEL_TAG = "trueup.model"
BATCH_TAG = "trueup.batch."
CLAIM_PARAM = "trueup.claim."
FAIL_ABOVE_TAG = "trueup.fail_above"

METRIC_TAG = "trueup.metric"

ESTIMATED = "estimated_mse"
UNLEARNED = "estimated_mse_unlearned"
ONE_STEP = "estimated_mse_one_step"
REALIZED = "realized_mse"
ESTIMATION_ERROR = "estimation_error"
TRUSTED = "trusted"


def of_metric(key: str, metric: str) -> str:
    """Return the key of the MSE under the name of another metric."""
    return key.replace("_mse", f"_{metric}")


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
        ``MSEEstimate.to_dict()``, learned from the batches that were realized by then.
    moved : list of [str, float]
        Features whose mean moved most, in standard deviations of the reference.
    logged : bool
        Whether its metrics are in the store.
    realized : float or None
        Error of the labelled rows by the metric, once enough labels have arrived.
    raw : dict
        ``mse``, ``low`` and ``high`` before learning, and the error of the ``reference``.
    outlook : dict
        ``log_mean`` and ``log_sd`` that later batches are scored by.
    labelled : int
        Rows whose label has arrived.
    corrections : tuple of float
        Realized values that later labels replaced, the oldest first.
    """

    digest: str
    step: int
    timestamp: int
    n: int
    estimate: dict[str, Any]
    moved: tuple[tuple[str, float], ...] = ()
    logged: bool = False
    realized: float | None = None
    raw: Mapping[str, float] = field(default_factory=dict)
    outlook: Mapping[str, float] = field(default_factory=dict)
    labelled: int = 0
    corrections: tuple[float, ...] = ()

    @property
    def time(self) -> str:
        """The batch's time as an ISO date."""
        return datetime.fromtimestamp(self.timestamp / 1000.0, UTC).isoformat(timespec="seconds")

    @property
    def day(self) -> str:
        """The batch's day."""
        return self.time[:10]

    @property
    def metric(self) -> str:
        """What was estimated; records of earlier versions have the mean squared error."""
        return str(self.estimate.get("metric", DEFAULT_METRIC))

    @property
    def estimated(self) -> Any:
        """The estimate as it is stored."""
        return self.estimate[self.metric]

    @property
    def value(self) -> float:
        """The estimate; NaN where it is no number."""
        return self.number(self.metric)

    @property
    def usable(self) -> bool:
        """Whether the estimate is a number that is to be trusted."""
        return self.estimate["trusted"] is True and not math.isnan(self.value)

    @property
    def covered(self) -> bool | None:
        """Whether the interval held the realized error; None before labels."""
        if not isinstance(self.realized, (int, float)):  # nearly always, and so asked first
            return None
        low, high = self.estimate["low"], self.estimate["high"]
        if not (isinstance(low, (int, float)) and isinstance(high, (int, float))):
            return None
        return bool(low <= self.realized <= high)

    @property
    def side(self) -> int:
        """1 where the realized error is above the interval, -1 below it, else 0."""
        if self.covered is not False or self.realized is None:
            return 0
        return 1 if self.realized > self.estimate["high"] else -1

    def mark(self, **changes: Any) -> BatchRecord:
        """Return the record with other values."""
        return replace(self, **changes)

    def decided_by(self, claim: Mapping[str, Any]) -> BatchRecord:
        """Return the record with what the first process to claim the batch decided."""
        logged = claim["metrics"]
        key = of_metric(ESTIMATED, self.metric)
        names = {self.metric: key, "low": f"{key}_low", "high": f"{key}_high"}
        values = {name: logged[key] for name, key in names.items() if key in logged}
        return replace(
            self,
            step=claim["step"],
            timestamp=claim["timestamp"],
            estimate={**self.estimate, **values},
            outlook=claim.get("outlook", {}),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> BatchRecord:
        """Return the record that ``to_json`` gave.

        Raises InvalidInputError if it has no time or lacks another part. Other values stay as
        somebody may have changed them: whoever shows a record takes none of them for a number.
        """
        try:
            moved = tuple([(str(name), shift) for name, shift in values["moved"]])
            corrections = tuple(values.get("corrections", ()))
            record = cls(**{**values, "moved": moved, "corrections": corrections})
            _ = datetime.fromtimestamp(record.timestamp / 1000.0, UTC)
            _ = record.estimate["low"], record.estimate["high"], record.estimate["trusted"]
            _ = metric_of(record.metric), record.estimated
        except (LookupError, TypeError, ValueError, OverflowError, OSError) as error:
            raise InvalidInputError(
                "a batch of the monitor run must be a record of trueup",
                f"one that is none ({type(error).__name__}: {error})",
                f"Delete its tag, {BATCH_TAG}<digest>.",
            ) from None
        return record

    def number(self, name: str) -> float:
        """Return ``low`` or ``high`` of the estimate; NaN where it is no number."""
        value = self.estimate[name]
        return float(value) if isinstance(value, (int, float)) else math.nan

    def as_estimate(self) -> MSEEstimate:
        """Return the estimate that was logged; what was not finite is NaN again."""
        return MSEEstimate(
            mse=self.value,
            low=self.number("low"),
            high=self.number("high"),
            members=self.estimate["members"],
            trusted=bool(self.estimate["trusted"]),
            reasons=tuple(self.estimate["reasons"]),
            n=self.estimate["n"],
            diagnostics=self.estimate["diagnostics"],
            metric=self.metric,
        )


def estimate_metrics(estimate: MSEEstimate, one_step: float, unlearned: float) -> dict[str, float]:
    """Return the metrics of one batch; values that are not finite are left out."""
    values = {
        ESTIMATED: estimate.value,
        UNLEARNED: unlearned,
        f"{ESTIMATED}_low": estimate.low,
        f"{ESTIMATED}_high": estimate.high,
        ONE_STEP: one_step,
        TRUSTED: float(estimate.trusted),
    }
    support = {f"support/{name}": value for name, value in estimate.diagnostics.items()}
    named = {of_metric(key, estimate.metric): value for key, value in values.items()} | support
    return {key: value for key, value in named.items() if math.isfinite(value)}


def realized_metrics(metric: str, estimated: float, realized: float) -> dict[str, float]:
    """Return the realized error and how far the estimate was from it."""
    values = {REALIZED: realized, ESTIMATION_ERROR: estimated - realized}
    return {of_metric(key, metric): value for key, value in values.items()}


def of_newest_metric(records: Sequence[BatchRecord]) -> list[BatchRecord]:
    """Return the batches whose metric is that of the last one logged.

    A version whose check was made anew for another metric has batches of both.
    """
    newest = max(records, key=lambda record: record.step, default=None)
    return [record for record in records if newest is not None and record.metric == newest.metric]


def check_name(model: str) -> str:
    """Return the registered name of a model's checks."""
    return f"{model}__trueup_check"


def check_alias(version: str) -> str:
    """Return the alias of the check of a version."""
    return f"for-v{version}"


def timestamp_of(at: str | datetime | None, digest: str) -> int:
    """Return milliseconds since 1970; below a second the digest decides.

    Two batches of the same second then have different points, and a replay has the same one.

    Raises InvalidInputError if ``at`` is not an ISO date, or lies before 1970.
    """
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise InvalidInputError(
            "at must be an ISO date", repr(at), "Write it as 2026-01-31 or 2026-01-31T12:00:00."
        ) from None
    moment = datetime.now(UTC) if moment is None else moment
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if moment.timestamp() < 0.0:
        raise InvalidInputError(
            "at must be 1970 or later, as MLflow keeps no earlier times",
            f"{moment:%Y-%m-%d}",
            "Check the date.",
        )
    return int(moment.timestamp()) * 1000 + int(digest[:8], 16) % 1000
