"""Champion against challenger before all labels are there. Pure; needs no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trueup.comparison import Comparison
from trueup.comparison import compare as compare_values
from trueup.monitoring import MSEEstimate
from trueup_mlflow.write.monitor_items import BatchRecord

MIN_PAIRS = 5
"""Below it no anytime-valid interval at 95% is finite."""

Verdict = Literal["champion", "challenger", "inconclusive"]
Pairs = Mapping[tuple[int, int], tuple[BatchRecord, BatchRecord]]


@dataclass(frozen=True)
class ModelComparison:
    """Decision between two monitored models.

    Attributes
    ----------
    verdict : {"champion", "challenger", "inconclusive"}
        The model with the lower error.
    reason : str
        Why there is no verdict; empty if there is one.
    champion, challenger : MSEEstimate
        Estimates on the batch at hand.
    basis : {"estimated", "realized"}
        Whether the series are of estimates or, with labels of five shared batches, of realized
        errors.
    series : Comparison or None
        Challenger (its candidate) minus champion over the shared batches; None without any. On
        estimates its interval lacks the error that all batches of a model share through its
        reference, which is why ``verdict`` asks for more.
    """

    verdict: Verdict
    reason: str
    champion: MSEEstimate
    challenger: MSEEstimate
    basis: Literal["estimated", "realized"]
    series: Comparison | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "basis": self.basis,
            "champion": self.champion.to_dict(),
            "challenger": self.challenger.to_dict(),
            "series": None if self.series is None else self.series.to_dict(),
        }


def decide(
    champion: MSEEstimate,
    challenger: MSEEstimate,
    champion_records: Sequence[BatchRecord],
    challenger_records: Sequence[BatchRecord],
) -> ModelComparison:
    """Decide from the estimates on one batch and the series of both models.

    Batches are paired by their second and number of rows; two that cannot be told apart by these
    are left out, and so are estimates that are not trusted.
    """
    pairs = paired_batches(champion_records, challenger_records)
    labelled = {key: pair for key, pair in pairs.items() if None not in [r.realized for r in pair]}
    realized = len(labelled) >= MIN_PAIRS
    trusted = {k: pair for k, pair in pairs.items() if all(r.estimate["trusted"] for r in pair)}
    if realized:
        series = _series(labelled, lambda record: float(record.realized or 0.0))
    else:
        series = _series(trusted, lambda record: record.value)
    reason = _objection(champion, challenger, series, realized)
    verdict: Verdict = "inconclusive"
    if series is not None and not reason:
        verdict = "challenger" if series.verdict == "candidate" else "champion"
    basis: Literal["estimated", "realized"] = "realized" if realized else "estimated"
    return ModelComparison(verdict, reason, champion, challenger, basis, series)


def paired_batches(first: Sequence[BatchRecord], second: Sequence[BatchRecord]) -> Pairs:
    """Return the batches that both series have, by their second and number of rows."""
    one, other = _by_moment(first), _by_moment(second)
    return {key: (one[key], other[key]) for key in sorted(one.keys() & other.keys())}


def _by_moment(records: Sequence[BatchRecord]) -> dict[tuple[int, int], BatchRecord]:
    keys = [(record.timestamp // 1000, record.n) for record in records]
    count = Counter(keys)
    return {key: record for key, record in zip(keys, records, strict=True) if count[key] == 1}


def _series(pairs: Pairs, value: Callable[[BatchRecord], float]) -> Comparison | None:
    if not pairs:
        return None
    champion = {str(key): value(pair[0]) for key, pair in pairs.items()}
    challenger = {str(key): value(pair[1]) for key, pair in pairs.items()}
    return compare_values(challenger, champion, paired=True)


def _objection(
    champion: MSEEstimate, challenger: MSEEstimate, series: Comparison | None, realized: bool
) -> str:
    """Return why there is no verdict, or nothing."""
    if not (realized or (champion.trusted and challenger.trusted)):
        return "an estimate on this batch is not to be trusted"
    if series is None or series.n_pairs < MIN_PAIRS:
        n = 0 if series is None else series.n_pairs
        return f"{n} shared batches (same time, same rows), and {MIN_PAIRS} are needed at least"
    if series.verdict == "inconclusive":
        return f"the difference over {series.n_pairs} shared batches may be 0"
    better, worse = champion, challenger
    if series.verdict == "candidate":
        better, worse = challenger, champion
    if not realized and better.high >= worse.low:
        return "the intervals on this batch overlap, and all estimates share the references"
    return ""
