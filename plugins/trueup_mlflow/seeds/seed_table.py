"""What the seeds of a parent run say, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trueup_mlflow.write.items import COUNT_KEY, SPREAD_ENDS, calibrated_key, is_own_key

_NO_VALUE = "-"
_MOST_DECIMALS = 12
_MOST_IN_HEADLINE = 3


def seed_table(metrics: Mapping[str, float]) -> str:
    """Return mean ± standard deviation over seeds of each metric and of its calibrated twin.

    There is a line for each ``K`` that ``log_seed_summary`` logs, under a line of titles.

    Examples
    --------
    >>> print(seed_table({"loss": 0.51234, "loss_std": 0.0123, "n_seeds": 3.0}))
    metric  vanilla        calibrated
    loss    0.512 ± 0.012  -
    """
    summaries = {key + end for key in metrics for end in SPREAD_ENDS} | {COUNT_KEY}
    lines = [("metric", "vanilla", "calibrated")]
    for key in sorted(metrics):
        if key not in summaries and not is_own_key(key):
            lines.append((key, _cell(metrics, key), _cell(metrics, calibrated_key(key))))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def seed_headline(metrics: Mapping[str, float]) -> str:
    """Return mean ± standard deviation of the calibrated metrics, else of all, as one line.

    Examples
    --------
    >>> seed_headline({"loss": 0.51234, "loss_std": 0.0123, "n_seeds": 3.0})
    'loss 0.512 ± 0.012'
    """
    keys = [key for key in metrics if f"{key}_low" in metrics and not is_own_key(key)] or [
        key for key in metrics if key != COUNT_KEY and not is_own_key(key)
    ]
    keys = [key for key in keys if not key.endswith(SPREAD_ENDS)]
    twins = [key for key in keys if calibrated_key(key) in metrics]
    parts = [
        f"{key} {_cell(metrics, key)}, calibrated {_cell(metrics, calibrated_key(key))}"
        if key in twins
        else f"{key} {_cell(metrics, key)}"
        for key in (twins or keys)[:_MOST_IN_HEADLINE]
    ]
    return "; ".join(parts)


def _cell(metrics: Mapping[str, float], key: str) -> str:
    if key not in metrics:
        return _NO_VALUE
    mean, spread = metrics[key], metrics.get(f"{key}_std")
    if spread is None:  # of a single seed
        return f"{mean:.6g}"
    decimals = 1 - math.floor(math.log10(float(f"{spread:.1e}"))) if spread else 0
    if not 0 < decimals <= _MOST_DECIMALS:
        return f"{mean:.6g} ± {spread:.2g}"
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"  # two digits of the standard deviation
