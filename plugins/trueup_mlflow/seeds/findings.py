"""What the seeds of a parent say against their summary: rows that differ, seeds without effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueup.comparison import variance_reduction
from trueup.errors import TrueupError
from trueup_mlflow.write.items import calibrated_key, fingerprint_tag

SAME_ROWS = "equal"
_MIN_SEEDS_OF_REDUCTION = 3


@dataclass(frozen=True)
class SeedOutcome:
    """One seed that has finished, called such as "seed 3", with what its run holds."""

    name: str
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


@dataclass(frozen=True)
class SeedFindings:
    """What is to be said of the summary of seeds.

    Attributes
    ----------
    rows : str
        Value of the parent's tag: "equal", where they differ, or "" without any fingerprint.
    notes : tuple of str
        Sentences for the table and the description.
    """

    rows: str
    notes: tuple[str, ...]

    @property
    def rows_differ(self) -> bool:
        """Whether seeds were scored on different rows."""
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
    notes += [*_unused_seed(outcomes), *_noisier_calibrated(outcomes)]
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
