"""The grid of logits on which rows are summarised."""

from __future__ import annotations

N_BINS = 192
"""Bins of a grid."""

WIDTH = 0.4
"""Width of a bin, in logits."""

LIMIT = 0.5 * N_BINS * WIDTH
"""The grid reaches from -LIMIT to LIMIT; float64 probabilities lie inside, at most 36.05."""

ORDER = 8
"""Moments of a bin: functions with a Taylor radius of pi are integrated to about 1e-12."""
