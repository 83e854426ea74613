"""What the seeds of a parent say: a table, and what speaks against their summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trueup.comparison import variance_reduction
from trueup.errors import TrueupError
from trueup_mlflow.write.items import (
    COUNT_KEY,
    SPREAD_ENDS,
    calibrated_key,
    fingerprint_tag,
    is_own_key,
)

SAME_ROWS = "equal"
_MIN_SEEDS_OF_REDUCTION = 3
_CALIBRATED = calibrated_key("")


@dataclass(frozen=True)
class SeedOutcome:
    """One seed that has finished, called such as "seed 3", with what its run holds."""

    name: str
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    # keys left out of the metrics, since they are of another step than their metric
    late: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SeedFindings:
    """What is to be said of the summary of seeds."""

    # value of the parent's tag: "equal", where they differ, or "" without any fingerprint
    rows: str
    notes: tuple[str, ...]  # sentences for the table and the description

    @property
    def rows_differ(self) -> bool:
        return self.rows not in ("", SAME_ROWS)


def seed_findings(outcomes: Sequence[SeedOutcome]) -> SeedFindings:
    """Return what the seeds of a parent say against their summary."""
    differing = _keys_with_other_rows(outcomes)
    has_rows = any(tag.startswith(fingerprint_tag("")) for one in outcomes for tag in one.tags)
    rows = SAME_ROWS if has_rows else ""
    notes = []
    if differing:
        key, first, other = differing[0]
        rows = f"differ: {', '.join(key for key, _, _ in differing)}"
        notes.append(
            f"The seeds were scored on different rows ({key}: {first} and {other}), so their "
            "spread is also that of drawing rows. The usual cause is a split drawn from the seed: "
            "draw the validation rows once, with a random_state that is not the seed."
        )
    notes += [*_late(outcomes), *_unused_seed(outcomes), *_noisier_calibrated(outcomes)]
    return SeedFindings(rows, tuple(notes))


def _keys_with_other_rows(outcomes: Sequence[SeedOutcome]) -> list[tuple[str, str, str]]:
    """Return the metrics whose fingerprints differ, each with two seeds that do."""
    found = []
    tags = sorted(
        {tag for one in outcomes for tag in one.tags if tag.startswith(fingerprint_tag(""))}
    )
    for tag in tags:
        having = [one for one in outcomes if tag in one.tags]
        other = next((one for one in having if one.tags[tag] != having[0].tags[tag]), None)
        if other is not None:
            found.append((tag.removeprefix(fingerprint_tag("")), having[0].name, other.name))
    return found


def _late(outcomes: Sequence[SeedOutcome]) -> list[str]:
    """Return a note for each metric whose calibrated value stopped before it in some seed."""
    keys = sorted({key for one in outcomes for key in one.late if key.startswith(_CALIBRATED)})
    notes = []
    for key in keys:
        having = [one for one in outcomes if key in one.late]
        notes.append(
            f"{key} is not summarised: in {len(having)} of {len(outcomes)} seeds its step is not "
            f"that of its metric ({having[0].name}: {having[0].late[key]}). Ask trueup doctor "
            "RUN_ID why later steps have none."
        )
    return notes


def _unused_seed(outcomes: Sequence[SeedOutcome]) -> list[str]:
    shared = _shared_keys(outcomes)
    scored = [key for key in shared if calibrated_key(key) in shared] or shared
    if len(outcomes) < 2 or not scored:
        return []
    if any(len({one.metrics[key] for one in outcomes}) > 1 for key in scored):
        return []
    return [
        f"All seeds gave the same {', '.join(scored[:3])}: the seed is not used. Declare the "
        "parameter seed in the entry point and pass it to every generator, or read TRUEUP_SEED."
    ]


def _noisier_calibrated(outcomes: Sequence[SeedOutcome]) -> list[str]:
    """Return a note for each metric whose calibrated value varies more, beyond chance."""
    shared = _shared_keys(outcomes)
    notes = []
    for key in (key for key in shared if calibrated_key(key) in shared):
        if len(outcomes) < _MIN_SEEDS_OF_REDUCTION:
            continue
        vanilla = [one.metrics[key] for one in outcomes]
        calibrated = [one.metrics[calibrated_key(key)] for one in outcomes]
        try:
            reduction = variance_reduction(vanilla, calibrated)
        except TrueupError:  # a value that is the same for all seeds, or not finite
            continue
        if reduction.high < 0.0:
            notes.append(
                f"calibrated_{key} varies {-reduction.value:.0%} more over seeds than {key}, "
                "beyond chance: the bias is fitted on too few rows (its noise is about 1 over "
                f"their number), or moves with the seed. Read {key}, or score more rows."
            )
    return notes


def _shared_keys(outcomes: Sequence[SeedOutcome]) -> list[str]:
    if not outcomes:
        return []
    return sorted(set.intersection(*(set(one.metrics) for one in outcomes)))


_NO_VALUE = "-"
_MOST_DECIMALS = 12
_MOST_IN_HEADLINE = 3


def seed_table(metrics: Mapping[str, float]) -> str:
    """Return mean ± standard deviation over seeds of each metric and of its calibrated twin.

    There is a line for each ``K`` that ``log_seed_summary`` logs, under a line of titles.

    Examples
    --------
    >>> print(seed_table({"loss": 0.51234, "loss_std": 0.0123, "n_seeds": 3.0}))
    metric  vanilla        calibrated
    loss    0.512 ± 0.012  -
    """
    summaries = {key + end for key in metrics for end in SPREAD_ENDS} | {COUNT_KEY}
    lines = [("metric", "vanilla", "calibrated")]
    for key in sorted(metrics):
        if key not in summaries and not is_own_key(key):
            lines.append((key, _cell(metrics, key), _cell(metrics, calibrated_key(key))))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def seed_headline(metrics: Mapping[str, float]) -> str:
    """Return mean ± standard deviation of the calibrated metrics, else of all, as one line.

    Examples
    --------
    >>> seed_headline({"loss": 0.51234, "loss_std": 0.0123, "n_seeds": 3.0})
    'loss 0.512 ± 0.012'
    """
    keys = [key for key in metrics if f"{key}_low" in metrics and not is_own_key(key)] or [
        key for key in metrics if key != COUNT_KEY and not is_own_key(key)
    ]
    keys = [key for key in keys if not key.endswith(SPREAD_ENDS)]
    twins = [key for key in keys if calibrated_key(key) in metrics]
    parts = [
        f"{key} {_cell(metrics, key)}, calibrated {_cell(metrics, calibrated_key(key))}"
        if key in twins
        else f"{key} {_cell(metrics, key)}"
        for key in (twins or keys)[:_MOST_IN_HEADLINE]
    ]
    return "; ".join(parts)


def _cell(metrics: Mapping[str, float], key: str) -> str:
    if key not in metrics:
        return _NO_VALUE
    mean, spread = metrics[key], metrics.get(f"{key}_std")
    if spread is None:  # of a single seed
        return f"{mean:.6g}"
    decimals = 1 - math.floor(math.log10(float(f"{spread:.1e}"))) if spread else 0
    if not 0 < decimals <= _MOST_DECIMALS:
        return f"{mean:.6g} ± {spread:.2g}"
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"  # two digits of the standard deviation
