"""How far a share over simulated runs may be from the true one."""

from __future__ import annotations

import math


def three_errors(share: float, runs: int) -> float:
    """Return three standard errors of a share over independent runs."""
    return 3.0 * math.sqrt(share * (1.0 - share) / runs)
