"""When the sums of a summary can stand for its rows, and when they can't."""

from __future__ import annotations

import numpy as np

from trueup.errors import InexactSummaryError, UndefinedMetricError
from trueup.losses import FloatArray
from trueup.losses.elementary import LARGEST, SMALLEST
from trueup.scoring.result import Evaluation
from trueup.summaries.points import State


@np.errstate(over="ignore", invalid="ignore")
def require_total_weight(weight: FloatArray) -> None:
    """Refuse weights whose squares have left float64; none at all are left to others."""
    total = float(weight.sum())
    if weight.any() and not SMALLEST <= total <= LARGEST:
        raise InexactSummaryError(
            f"sample_weight must add up to a number between {SMALLEST} and {LARGEST} in a summary",
            f"{total:g}",
            "Rescale the weights, or pass the rows to evaluate().",
        )


def require_magnitude(state: State, weight: FloatArray) -> None:
    """Refuse weights and numbers whose powers have left float64, and no weight at all."""
    if not state.keeps_digits():
        raise InexactSummaryError(
            (
                "targets, predictions and weights must be such that float64 can hold their powers "
                "in a summary"
            ),
            "some too large or too small",
            "Rescale them, or pass the rows to evaluate().",
        )
    if not weight.any():  # only of forged bytes
        raise UndefinedMetricError(
            "summary must hold a positive weight", "zeros only", "Compute it again."
        )
    require_total_weight(weight)


def require_exact_biases(state: State, evaluation: Evaluation) -> None:
    """Refuse a bias term that moves far logits to where the loss is curved."""
    low, high = state.exact_biases()
    biases = np.array([evaluation.bias_term, *evaluation.fold_bias_terms])
    outside = (biases < low) | (biases > high)
    if outside.any():
        raise InexactSummaryError(
            "y_logit must be within 38 of 0 in a summary whose bias is beyond 10",
            f"a bias of {biases[outside][0]:g}",
            (
                "Check that they are natural log-odds, or pass the rows, or a sample of them, to "
                "evaluate()."
            ),
        )
