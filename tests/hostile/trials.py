"""Trials of one target: what came of each spoilt input, and the memory that it took."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pyarrow as pa
from tests.hostile.readers import Target

from trueup.errors import TrueupError

_POOL = pa.default_memory_pool()
_POOLS: list[pa.MemoryPool] = []  # what Arrow has allocated refers to them as long as it lives
LARGEST_RATIO = 10.0
"""Of the memory of a spoilt input to that of the honest one, or to its own size."""


@dataclass
class Counts:
    """Outcomes of the trials of one target.

    ``failures`` holds the seed of each, and what happened: ``trial(target, seed)`` shows it again.
    """

    name: str
    trials: int = 0
    refused: int = 0
    ratio: float = 0.0
    failures: list[str] = field(default_factory=list)


def spoilt(target: Target, seed: int) -> bytes:
    """Return the input of a trial."""
    rng = Random(f"{target.name} {seed}")
    return rng.choice(target.changes)(target.honest, rng)


def run(target: Target, n: int, first_seed: int = 0) -> Counts:
    """Return the outcomes of n trials."""
    tracemalloc.start()
    try:
        honest = _peak(target, target.honest)[1]
        counts = Counts(target.name)
        for seed in range(first_seed, first_seed + n):
            _count(counts, target, spoilt(target, seed), seed, honest)
    finally:
        tracemalloc.stop()
    return counts


def _count(counts: Counts, target: Target, data: bytes, seed: int, honest: int) -> None:
    outcome, peak = _peak(target, data)
    allowed = max(honest, len(data), target.room)
    if peak > LARGEST_RATIO * allowed:  # what is allocated once in a process is not the input's
        peak = min(peak, _peak(target, data)[1])
    ratio = peak / allowed
    counts.trials += 1
    counts.refused += isinstance(outcome, TrueupError)
    counts.ratio = max(counts.ratio, ratio)
    if outcome is not None and not isinstance(outcome, TrueupError):
        counts.failures.append(f"seed {seed}: {type(outcome).__name__}: {outcome}"[:200])
    if ratio > LARGEST_RATIO:
        counts.failures.append(f"seed {seed}: {ratio:.0f} times the memory")


def _peak(target: Target, data: bytes) -> tuple[Exception | None, int]:
    pool = pa.proxy_memory_pool(_POOL)
    _POOLS.append(pool)  # the list grows before the peak is measured: after 100,000 trials by much
    pa.set_memory_pool(pool)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    outcome: Exception | None = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            target.read(data)
        except Exception as error:  # the point of the trial is which one it is
            outcome = error.with_traceback(None)
    return outcome, tracemalloc.get_traced_memory()[1] - before + pool.max_memory()
