"""The runs of two arms: checked, and set against each other."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.arguments import LARGEST_FLOAT, check_fraction, is_one_of, is_real
from trueup.errors import InvalidInputError

FloatArray = NDArray[np.float64]


def check_values(name: str, values: ArrayLike, minimum: int = 1) -> FloatArray:
    """Return finite metric values as float64 of shape (n,); refuse anything else."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            f"{name} must be an array of numbers", repr(values), "Pass one metric value per run."
        ) from None
    if array.ndim != 1 or len(array) < minimum:
        raise InvalidInputError(
            f"{name} must be one-dimensional with at least {minimum} values",
            f"shape {array.shape}",
            "Pass one metric value per run.",
        )
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidInputError(
            f"{name} must be finite",
            f"{array[index]} at index {index}",
            "Rerun the failed run or leave it out.",
        )
    return array


def check_same_length(first: FloatArray, second: FloatArray, names: tuple[str, str]) -> None:
    """Raise InvalidInputError unless the two arrays hold one value per pair each."""
    if len(first) != len(second):
        raise InvalidInputError(
            f"{names[0]} and {names[1]} must have equal lengths",
            f"{len(first)} and {len(second)}",
            "Pass one value of each per seed, in the same order.",
        )


def check_level(name: str, level: float) -> None:
    """Raise InvalidInputError unless ``level`` is a probability strictly between 0 and 1."""
    check_fraction(name, level, "The default fits most.")


def check_min_effect(min_effect: float) -> None:
    """Raise InvalidInputError unless ``min_effect`` is finite and not negative."""
    if not (is_real(min_effect) and 0.0 <= min_effect <= LARGEST_FLOAT):
        raise InvalidInputError(
            "min_effect must be finite and at least 0",
            repr(min_effect),
            "Give the smallest difference that matters, in units of the metric.",
        )


Seed = Hashable
Values = Mapping[Any, float | None]
Paired = bool | Literal["auto"]
Estimand = Literal["paired", "all pairs"]

MINIMUM_SHARED = 3
"""``paired="auto"`` pairs exactly when this many seeds are shared; it never looks at the values."""


@dataclass(frozen=True)
class PairedRuns:
    """The finished runs of both arms and the pairs of them, in a fixed order of seeds.

    ``pairs`` are (candidate seed, baseline seed), sorted; without shared seeds the k-th of one arm
    meets the k-th of the other. ``candidate`` and ``baseline`` are values of the pairs if paired,
    else of all runs of the arm; ``differences`` (n_pairs,) is candidate minus baseline.
    ``n_dropped`` counts finished runs in no pair, ``failed_*`` are seeds without a finite value.
    """

    estimand: Estimand
    pairs: tuple[tuple[Seed, Seed], ...]
    candidate: FloatArray
    baseline: FloatArray
    differences: FloatArray
    n_dropped: int
    failed_candidate: tuple[Seed, ...]
    failed_baseline: tuple[Seed, ...]


def pair_up(
    candidate: Values, baseline: Values, *, paired: Paired = "auto", allow_failed: bool = False
) -> PairedRuns:
    """Set the runs of two arms against each other.

    Refused are an arm that is no mapping or holds no finished run, a failed seed where that is not
    allowed, and ``paired=True`` without a shared seed.
    """
    _check_paired(paired)
    first, failed_first = _finished("candidate", candidate, allow_failed)
    second, failed_second = _finished("baseline", baseline, allow_failed)
    shared = in_order(first.keys() & second.keys())
    if paired is True and not shared:
        raise InvalidInputError(
            "candidate and baseline must share seeds with paired=True",
            "none in common",
            'Use paired="auto" or train both with the same seeds.',
        )
    pairs: tuple[tuple[Seed, Seed], ...]
    by_seed = paired is True or (paired == "auto" and len(shared) >= MINIMUM_SHARED)
    if by_seed:
        pairs = tuple((seed, seed) for seed in shared)
        first, second = {s: first[s] for s in shared}, {s: second[s] for s in shared}
    else:
        pairs = tuple(zip(in_order(first), in_order(second), strict=False))
    differences = np.array([first[a] - second[b] for a, b in pairs])
    if not np.isfinite(differences).all():
        a, b = pairs[int(np.flatnonzero(~np.isfinite(differences))[0])]
        raise InvalidInputError(
            "candidate and baseline must be such that float64 holds their differences",
            f"{first[a]} and {second[b]} at seeds {a!r} and {b!r}",
            "Rescale the metric.",
        )
    n_finished = len(candidate) + len(baseline) - len(failed_first) - len(failed_second)
    return PairedRuns(
        estimand="paired" if by_seed else "all pairs",
        pairs=pairs,
        candidate=_values(first),
        baseline=_values(second),
        differences=differences,
        n_dropped=n_finished - 2 * len(pairs),
        failed_candidate=failed_first,
        failed_baseline=failed_second,
    )


def in_order(seeds: Iterable[Seed]) -> list[Seed]:
    """Return the seeds sorted: numbers before everything else, which is sorted by its text."""
    numbers = [seed for seed in seeds if isinstance(seed, (int, float, np.number))]
    others = [seed for seed in seeds if not isinstance(seed, (int, float, np.number))]
    return [*sorted(numbers), *sorted(others, key=str)]


def _values(by_seed: Mapping[Seed, float]) -> FloatArray:
    return np.array([by_seed[seed] for seed in in_order(by_seed)])


def _check_paired(paired: Paired) -> None:
    if not (isinstance(paired, bool | np.bool_) or is_one_of(paired, ("auto",))):
        raise InvalidInputError(
            'paired must be True, False or "auto"', repr(paired), 'The default is "auto".'
        )


def _finished(
    name: str, given: Values, allow_failed: bool
) -> tuple[dict[Seed, float], tuple[Seed, ...]]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"{name} must be a mapping seed -> value",
            f"{type(given).__name__}",
            "Use dict(enumerate(values)) if the position is the seed.",
        )
    values = {seed: _number(name, seed, value) for seed, value in given.items()}
    failed = tuple(in_order(seed for seed, value in values.items() if not math.isfinite(value)))
    if failed and not allow_failed:
        raise InvalidInputError(
            f"{name} must hold a finite value for each seed",
            f"{values[failed[0]]} at seed {failed[0]!r}",
            "Rerun it, or pass allow_failed=True to leave it out of both arms.",
        )
    finished = {seed: value for seed, value in values.items() if seed not in failed}
    if not finished:
        raise InvalidInputError(
            f"{name} must hold at least one finished run", f"{len(given)} failed", "Add seeds."
        )
    return finished, failed


def _number(name: str, seed: Seed, value: float | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must hold numbers", f"{value!r} at seed {seed!r}", "Pass one metric per seed."
        ) from error
