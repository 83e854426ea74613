"""The noise of a field calibration error: its floor, and an estimate without it.

The floor is what the very same probabilities would score if they were right, ``y ~ p``. The
debiased error has the noise taken out of the square of each level's error. Labels are drawn for
each row, or as the sum of a level: from the binomial with the same mean and variance, which is
exact where the probabilities and the weights of a level are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import is_real
from trueup.errors import InvalidInputError
from trueup.fields.cells import Cells, LevelSums, squared_error
from trueup.losses import FloatArray
from trueup.losses.elementary import LARGEST, SMALLEST, dot

_CONFIDENCE = 0.95
_FEW_ROWS = 10_000
_ROWS_OF_A_SMALL_LEVEL = 20
_NUMBERS_AT_ONCE = 1 << 17  # fit into a core's cache
_MANY_TRIALS = 50  # one more or less moves their variance by 2% at most
_MOST_DRAWS, _FEWEST_DRAWS, _NUMBERS_DRAWN = 200, 40, 1_000_000


@dataclass(frozen=True)
class Noise:
    """What chance alone does to the errors of a field; see ``FieldCalibration`` for each number.

    The interval of the debiased error is a parametric bootstrap around the truth, inverted; None
    twice where no level has two rows of uncertain label.
    """

    floor: float
    floor_low: float
    floor_high: float
    rce_floor: float
    rce_floor_low: float
    rce_floor_high: float
    debiased: float
    debiased_low: float | None
    debiased_high: float | None


def measure_noise(
    sums: LevelSums,
    epsilon: float,
    random_state: int,
    *,
    rows: Cells | None = None,
    floor: float | None = None,
) -> Noise:
    """Simulate labels from the probabilities and summarise what the errors do.

    Without ``rows`` the sums over all levels are drawn. The floor of the Field-ECE is the mean of
    the simulated errors where it is not known.
    """
    debiased = squared_error(sums)
    plan = Plan(_plausible_shift(sums, debiased), sums.pair_share, epsilon)
    draws = _draw(sums, rows, plan, np.random.default_rng(random_state))
    total = float(sums.total.sum())
    ece, rce = draws.gap / total, draws.relative_gap / total
    floor = float(ece.mean()) if floor is None else floor
    interval = _invert(sums, debiased, draws.truth / total, draws.pairs)
    relative = float(rce.mean()), *_central(rce)
    return Noise(floor, *_central(ece), *relative, debiased, *interval)


def _draw(sums: LevelSums, rows: Cells | None, plan: Plan, rng: np.random.Generator) -> Draws:
    """Draw the labels of rows where they are few, or their level's sum is far from a binomial's."""
    if rows is not None and len(rows.y_true) <= _FEW_ROWS:
        return draw_rows(rows, plan, _MOST_DRAWS, rng)
    small = sums.count <= (0 if rows is None else _ROWS_OF_A_SMALL_LEVEL)
    cost = int(sums.count[small].sum()) + 10 * len(small)
    n_draws = int(np.clip(_NUMBERS_DRAWN // cost, _FEWEST_DRAWS, _MOST_DRAWS))
    draws = draw_levels(sums.only(~small), plan.only(~small), n_draws, rng)
    if rows is None or not small.any():
        return draws
    return draws + draw_rows(rows.keep(small), plan.only(small), n_draws, rng)


def _plausible_shift(sums: LevelSums, debiased: float) -> FloatArray:
    """Return by how much the probabilities of each level are plausibly wrong.

    Each level moves towards its observed rate, so far that the squared biases are the debiased: all
    the way would count the noise of the observed rates twice.
    """
    bias = (sums.label - sums.proba) / sums.total
    raw = sums.mean_over_rows(bias**2)
    share = np.sqrt(max(debiased, 0.0) / raw) if raw > 0.0 else 0.0
    return np.asarray(min(share, 1.0) * bias)


def _invert(
    sums: LevelSums, debiased: float, truth: float, drawn: FloatArray
) -> tuple[float, float] | tuple[None, None]:
    """Return the true errors that the debiased one is plausible for.

    The variance of the debiased error grows with the true error T, as ``base + slope T``: the slope
    is 4 mean(p (1 - p)) / n, the base comes from the errors drawn at ``truth``. An interval of
    constant width would miss large errors.
    """
    miss = drawn - truth
    slope = 4.0 * float(sums.variance.sum()) / float(sums.total.sum()) ** 2
    base = max(float(miss.var()) - slope * truth, 0.05 * float(miss.var()))
    if slope * truth + base <= 0.0:
        return None, None
    low, high = np.array(_central(miss)) / np.sqrt(slope * truth + base)

    def end(quantile: float) -> float:
        shift = 0.5 * quantile**2 * slope
        variance = max(0.25 * (quantile * slope) ** 2 + slope * debiased + base, 0.0)
        return float(debiased + shift - quantile * np.sqrt(variance))

    return end(high), end(low)


def _central(values: FloatArray) -> tuple[float, float]:
    tail = 0.5 * (1.0 - _CONFIDENCE)
    low, high = np.quantile(values, [tail, 1.0 - tail], method="weibull")
    return float(low), float(high)


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon of the Field-RCE that is not positive, or leaves no finite error."""
    if not (is_real(epsilon) and epsilon > 0.0):
        raise InvalidInputError(
            "epsilon must be positive", repr(epsilon), "The paper's setting is 0.01."
        )
    if not SMALLEST <= epsilon <= LARGEST:  # beyond, float64 can't hold the error
        raise InvalidInputError(
            f"epsilon must be between {SMALLEST} and {LARGEST}",
            repr(epsilon),
            "The paper's setting is 0.01.",
        )


@dataclass(frozen=True)
class Plan:
    """What is drawn for each of k levels.

    ``shift`` leads from the probabilities to plausible other ones, ``pair_share`` is the factor of
    the pairs of rows in the squared error.
    """

    shift: FloatArray
    pair_share: FloatArray
    epsilon: float

    def only(self, levels: NDArray[np.bool_]) -> Plan:
        return Plan(self.shift[levels], self.pair_share[levels], self.epsilon)


@dataclass(frozen=True)
class Draws:
    """What levels add to the errors on simulated labels, each array of shape (n_draws,).

    ``gap`` and ``relative_gap`` are what they add to n times the Field-ECE and the Field-RCE, for
    labels from the probabilities; ``pairs`` to the squared error, for labels from plausible other
    probabilities; ``truth`` to n times the squared error if those others were right.
    """

    gap: FloatArray
    relative_gap: FloatArray
    pairs: FloatArray
    truth: float

    def __add__(self, other: Draws) -> Draws:
        own, others = vars(self).values(), vars(other).values()
        return Draws(*(mine + theirs for mine, theirs in zip(own, others, strict=True)))


def draw_rows(cells: Cells, plan: Plan, n_draws: int, rng: np.random.Generator) -> Draws:
    """Draw the label of each row; the same uniform number makes both labels of a row."""
    p, sums, n = cells.y_proba, cells.sums, len(cells.y_proba)
    plausible = np.clip(p + cells.of_rows(plan.shift), 0.0, 1.0)
    moved = cells.weighted(plausible - p, cells.weight) / sums.total
    at_once, found = max(1, _NUMBERS_AT_ONCE // n), []
    for start in range(0, n_draws, at_once):
        uniform = rng.random((min(at_once, n_draws - start), n)).take(cells.order, axis=1)
        right = cells.weighted((uniform < p).astype(np.float64), cells.weight)
        residual = (uniform < plausible) - p
        if cells.weight is not None:
            residual *= cells.weight
        pairs = cells.over(residual) ** 2 - cells.over(residual**2)
        found.append([*_gaps(sums, right, plan.epsilon), _over_levels(pairs, plan.pair_share)])
    gap, relative_gap, pairs = np.concatenate(found, axis=1)
    return Draws(gap, relative_gap, pairs, dot(sums.total, moved**2))


def draw_levels(sums: LevelSums, plan: Plan, n_draws: int, rng: np.random.Generator) -> Draws:
    """Draw the sum of labels of each level."""
    mean = np.clip(sums.proba + plan.shift * sums.total, 0.0, sums.total)
    shift = (mean - sums.proba) / sums.total
    square = sums.square + 2.0 * shift * sums.proba + shift**2 * sums.total
    found, at_once = np.zeros((3, n_draws)), max(1, _NUMBERS_AT_ONCE // n_draws)
    for start in range(0, len(mean), at_once):
        some = slice(start, start + at_once)
        part = sums.only(some)
        right = _label_sums(part, part.proba, part.square, n_draws, rng)
        wrong = _label_sums(part, mean[some], square[some], n_draws, rng)
        pairs = _pairs(part, wrong, mean[some], shift[some])
        found += [*_gaps(part, right, plan.epsilon), _over_levels(pairs, plan.pair_share[some])]
    gap, relative_gap, pairs = found
    return Draws(gap, relative_gap, pairs, dot(sums.total, shift**2))


def _label_sums(
    sums: LevelSums, mean: FloatArray, square: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return sums of labels, shape (n_draws, k), from the sums of their probabilities."""
    slope = sums.slope
    unit = np.divide(sums.variance, slope, np.ones_like(mean), where=slope > 0.0)
    hits, most = mean / unit, sums.total / unit
    chance = np.divide(square, mean, np.zeros_like(mean), where=mean > 0.0)
    trials = np.divide(hits, chance, most.copy(), where=chance > hits / most)
    return np.asarray((unit[:, None] * _draw_counts(hits, trials, n_draws, rng)).T)


def _draw_counts(
    hits: FloatArray, trials: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return whole numbers, shape (k, n_draws), with the mean and variance of each binomial.

    Its trials need not be whole: a draw has the next number below or above, by chance. Where the
    number below is less than the hits, the draw is one of the two counts around the mean instead.
    """
    below = np.maximum(np.floor(trials * (1.0 + 1e-12)), 1.0)
    above, least = below + 1.0, np.floor(hits)
    narrow = below < hits
    fixed, few = np.where(narrow, least, 0.0), np.where(narrow, 1.0, below)
    low_rate, high_rate = (hits - fixed) / few, hits / above
    low, high = few * low_rate * (1.0 - low_rate), hits * (1.0 - high_rate)
    wanted = hits * (1.0 - hits / np.maximum(trials, hits))
    share = np.divide(high - wanted, high - low, np.ones_like(hits), where=high > low)
    share = np.where((below >= _MANY_TRIALS) | (share > 1.0 - 1e-9), 1.0, np.maximum(share, 0.0))
    counts = fixed[:, None] + _binomial(few, low_rate, n_draws, rng)
    mixed = np.flatnonzero(share < 1.0)
    if len(mixed):
        wide = _binomial(above[mixed], high_rate[mixed], n_draws, rng)
        is_wide = rng.random(wide.shape) >= share[mixed, None]
        counts[mixed] = np.where(is_wide, wide, counts[mixed])
    return counts


def _binomial(
    trials: FloatArray, rate: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    drawn = rng.binomial(trials.astype(np.int64)[:, None], rate[:, None], (len(rate), n_draws))
    return drawn.astype(np.float64)


def _over_levels(values: FloatArray, share: FloatArray) -> FloatArray:
    """Return sums over the levels of each draw, without the threads of BLAS."""
    return np.asarray(np.einsum("ij,j->i", values, share))


def _gaps(sums: LevelSums, right: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Return n times both errors for sums of labels of shape (n_draws, k)."""
    gap = np.abs(right - sums.proba)
    return gap.sum(axis=1), (gap / (right / sums.total + epsilon)).sum(axis=1)


def _pairs(sums: LevelSums, label: FloatArray, mean: FloatArray, shift: FloatArray) -> FloatArray:
    """Return the squares of the sums of residuals without the rows' own squares.

    Those are taken at their expectation given the sum of labels.
    """
    row_weight = sums.weight_square / sums.total
    hit = np.divide(sums.square + shift * sums.proba, mean, np.zeros_like(mean), where=mean > 0.0)
    own = sums.variance + shift * row_weight * (sums.total - 2.0 * sums.proba)
    own = own + row_weight * (1.0 - 2.0 * hit) * (label - mean)
    return np.asarray((label - sums.proba) ** 2 - own)
