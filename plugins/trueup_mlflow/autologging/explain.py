"""Why a logged number has no twin, as far as the numbers that were seen tell."""

from __future__ import annotations

import math
from collections.abc import Iterable

UNSEEN = "no loss that trueup watches was computed before it was logged"
UNKNOWN = "no watched loss, and no mean over the batches of a validation pass, has this value"
IN_TRAINING = "losses were seen with gradients only, as in training: validate under torch.no_grad()"
_DIGITS = range(3, 9)  # fewer may be chance
_CLOSE = 1e-5


def explain(number: float, seen: Iterable[float]) -> str:
    """Return why a number was not recognised.

    Parameters
    ----------
    number : float
        What was logged.
    seen : iterable of float
        Numbers that losses have returned, and means of them.
    """
    for known in seen:
        digits = rounded_digits(number, known)
        if digits is not None:
            return f"it is a watched loss rounded to {digits} digits: log it unrounded"
        if number == -known:
            return "it is minus a watched loss: log the loss itself"
        if math.isclose(number, known, rel_tol=_CLOSE):
            return "it is near a watched loss, but no sum over its batches gives it exactly"
        if math.isfinite(known) and known < 100 and math.isclose(number, math.exp(known)):
            return "it is exp of a watched loss: log the loss itself"
    return UNKNOWN


def rounded_digits(number: float, known: float) -> int | None:
    """Return to how many digits a known number was rounded; None where it was not."""
    if number == known or not math.isfinite(known):
        return None
    text = repr(number)
    digits = len(text.partition(".")[2]) if "e" not in text else None
    if digits is None or digits not in _DIGITS:
        return None
    return digits if number in (round(known, digits), float(f"{known:.{digits}f}")) else None
