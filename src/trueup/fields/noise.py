"""The noise of a field calibration error: its floor, and an estimate without it.

The floor is what the very same probabilities would score if they were right, ``y ~ p``. The
debiased error has the noise taken out of the square of each cell's error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.errors import InvalidInputError
from trueup.fields.cells import Cells
from trueup.fields.distribution import mean_absolute_deviation
from trueup.losses import FloatArray
from trueup.losses.scaling import LARGEST, SMALLEST

_CONFIDENCE = 0.95
_MOST_DRAWS, _FEWEST_DRAWS, _ROWS_DRAWN = 200, 40, 20_000_000


@dataclass(frozen=True)
class Noise:
    """What chance alone does to the errors of a field.

    Attributes
    ----------
    ece_floor, rce_floor : float
        Expected Field-ECE and Field-RCE if the probabilities are right.
    ece_band, rce_band : tuple of float
        Central 95% of those errors.
    debiased : float
        Mean over rows of the squared bias of their cell, in squared probability units, without the
        part that noise adds; may be negative.
    debiased_interval : tuple of float
        95% interval of ``debiased``: parametric bootstrap around the truth, inverted; None twice
        where no cell has two rows of uncertain label.
    """

    ece_floor: float
    rce_floor: float
    ece_band: tuple[float, float]
    rce_band: tuple[float, float]
    debiased: float
    debiased_interval: tuple[float, float] | tuple[None, None]


def absolute_error(cells: Cells, label_sum: FloatArray | None = None) -> float:
    """Return the Field-ECE (Eq. 5), with other labels where their sums are given."""
    observed = cells.label_sum if label_sum is None else label_sum
    return float(np.abs(observed - cells.proba_sum).sum() / cells.total.sum())


def relative_error(cells: Cells, epsilon: float, label_sum: FloatArray | None = None) -> float:
    """Return the Field-RCE (Eq. 6), with other labels where their sums are given."""
    observed = cells.label_sum if label_sum is None else label_sum
    gap = np.abs(observed - cells.proba_sum)
    rate = observed / cells.total
    return float((gap / (rate + epsilon)).sum() / cells.total.sum())


def squared_error(cells: Cells, y_true: FloatArray | None = None) -> float:
    """Return the mean over rows of the squared bias of their cell, unbiased.

    Notes
    -----
    In a cell of n rows with residuals r, ``((sum r)^2 - sum r^2) / (n (n - 1))`` is an unbiased
    estimate of the squared mean of r, whatever the labels are distributed like. Under ``y ~ p`` its
    expectation is 0. Cells of one row say nothing and are left out.
    """
    residual = cells.weight * ((cells.y_true if y_true is None else y_true) - cells.y_proba)
    pairs = cells.sums(residual) ** 2 - cells.sums(residual**2)
    return float(cells.pair_share @ pairs)


def squared_error_slope(cells: Cells, y_proba: FloatArray) -> FloatArray:
    """Return by how much a label moves ``squared_error(y_proba) - squared_error(cells)``, (n,).

    Given both predictions the change is linear in the labels, so its standard error follows from
    the rows' residuals without resampling.
    """
    moved = cells.weight * (y_proba - cells.y_proba)
    others = cells.sums(moved)[cells.levels.codes] - moved
    return -2.0 * cells.weight * others * cells.pair_share[cells.levels.codes]


def measure_noise(cells: Cells, epsilon: float, random_state: int) -> Noise:
    """Simulate labels from the probabilities and summarise what the errors do."""
    debiased = squared_error(cells)
    plausible = _plausible_probabilities(cells, debiased)
    moved = cells.sums(cells.weight * (plausible - cells.y_proba)) / cells.total
    truth = _mean_over_rows(cells, moved**2)
    rng = np.random.default_rng(random_state)
    draws = np.array(
        [_draw(cells, plausible, epsilon, rng) for _ in range(_n_draws(len(cells.y_true)))]
    )
    ece, rce, miss = draws.T - np.array([[0.0], [0.0], [truth]])
    exact = None if cells.is_weighted else mean_absolute_deviation(cells).sum() / len(cells.y_true)
    return Noise(
        ece_floor=float(ece.mean() if exact is None else exact),
        rce_floor=float(rce.mean()),
        ece_band=_central(ece),
        rce_band=_central(rce),
        debiased=debiased,
        debiased_interval=_invert(cells, debiased, truth, miss),
    )


def _invert(
    cells: Cells, debiased: float, truth: float, miss: FloatArray
) -> tuple[float, float] | tuple[None, None]:
    """Return the true errors that the debiased one is plausible for.

    The variance of the debiased error grows with the true error T, as ``base + slope T``: the
    slope is 4 mean(p (1 - p)) / n, the base comes from the simulated misses at ``truth``.
    An interval of constant width would miss large errors.
    """
    slope = 4.0 * float(cells.variance.sum()) / float(cells.total.sum()) ** 2
    base = max(float(miss.var()) - slope * truth, 0.05 * float(miss.var()))
    if slope * truth + base <= 0.0:
        return None, None
    low, high = np.array(_central(miss)) / np.sqrt(slope * truth + base)

    def end(quantile: float) -> float:
        shift = 0.5 * quantile**2 * slope
        variance = max(0.25 * (quantile * slope) ** 2 + slope * debiased + base, 0.0)
        return float(debiased + shift - quantile * np.sqrt(variance))

    return end(high), end(low)


def _n_draws(n: int) -> int:
    return int(np.clip(_ROWS_DRAWN // n, _FEWEST_DRAWS, _MOST_DRAWS))


def _central(values: FloatArray) -> tuple[float, float]:
    tail = 0.5 * (1.0 - _CONFIDENCE)
    low, high = np.quantile(values, [tail, 1.0 - tail], method="weibull")
    return float(low), float(high)


def _draw(
    cells: Cells, plausible: FloatArray, epsilon: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return both errors for labels from the probabilities, and the debiased one for plausible."""
    uniform = rng.random(len(cells.y_true))
    right = cells.sums(cells.weight * (uniform < cells.y_proba))
    return (
        absolute_error(cells, right),
        relative_error(cells, epsilon, right),
        squared_error(cells, (uniform < plausible).astype(np.float64)),
    )


def _plausible_probabilities(cells: Cells, debiased: float) -> FloatArray:
    """Move each cell towards its observed rate, so far that the squared biases are the debiased.

    Moving it all the way would count the noise of the observed rates twice.
    """
    bias = (cells.label_sum - cells.proba_sum) / cells.total
    raw = _mean_over_rows(cells, bias**2)
    share = np.sqrt(max(debiased, 0.0) / raw) if raw > 0.0 else 0.0
    return np.clip(cells.y_proba + min(share, 1.0) * bias[cells.levels.codes], 0.0, 1.0)


def _mean_over_rows(cells: Cells, values: FloatArray) -> float:
    return float(cells.total @ values / cells.total.sum())


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon of the Field-RCE that is not positive, or leaves no finite error."""
    if not epsilon > 0.0:
        raise InvalidInputError(
            f"epsilon must be positive; got {epsilon!r}. The paper's setting is 0.01."
        )
    if not SMALLEST <= epsilon <= LARGEST:  # beyond, float64 can't hold the error
        raise InvalidInputError(
            f"epsilon must be between {SMALLEST} and {LARGEST}; got {epsilon!r}. "
            "The paper's setting is 0.01."
        )
