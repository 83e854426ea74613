"""The noise of a field calibration error: its floor, and an estimate without it.

The floor is what the very same probabilities would score if they were right, ``y ~ p``. The
debiased error has the noise taken out of the square of each level's error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.arguments import is_real
from trueup.errors import InvalidInputError
from trueup.fields.cells import Cells
from trueup.fields.drawn_labels import Draws, Plan, draw_levels, draw_rows
from trueup.fields.sums import LevelSums, squared_error
from trueup.losses import FloatArray
from trueup.losses.elementary import LARGEST, SMALLEST

_CONFIDENCE = 0.95
_FEW_ROWS = 10_000
_ROWS_OF_A_SMALL_LEVEL = 20
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
