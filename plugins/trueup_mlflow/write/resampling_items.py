"""What the runs of a resampling gain: metrics, tags and parameters. Pure; needs no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup import __version__
from trueup_mlflow.write.items import (
    FOLD_TAG,
    RESAMPLING_TAG,
    VERSION_TAG,
    LogItems,
    calibrated_key,
    metric_key,
)


def resampling_items(estimate: Any, prefix: str = "") -> LogItems:
    """Return the metrics and tags of the run of an estimate.

    ``K`` and ``calibrated_K`` are the aggregated values, ``_low`` and ``_high`` the ends of their
    intervals; the reasons why something is missing are tags.
    """
    key = metric_key(estimate.measure, prefix)
    values = {key: estimate.vanilla, calibrated_key(key): estimate.calibrated}
    intervals = {
        key: estimate.vanilla_interval,
        calibrated_key(key): estimate.calibrated_interval,
    }
    metrics = {
        **{name: value for name, value in values.items() if value is not None},
        **{
            f"{name}_{end}": value
            for name, interval in intervals.items()
            if interval is not None
            for end, value in zip(("low", "high"), interval, strict=True)
        },
        "n_splits": float(estimate.n_splits),
        "n_train": float(estimate.n_train),
    }
    tags = {
        VERSION_TAG: __version__,
        RESAMPLING_TAG: estimate.strategy,
        "trueup.aggregate": estimate.aggregate,
        "mlflow.note.content": " ".join((f"{estimate}.", *(f"{r}." for r in estimate.reasons))),
    }
    return LogItems(key, metrics, tags)


def fold_items(estimate: Any, index: int, prefix: str = "") -> LogItems:
    """Return the metrics and tags of the nested run of one test set."""
    fold, key = estimate.folds[index], metric_key(estimate.measure, prefix)
    values = {key: fold.vanilla, calibrated_key(key): fold.calibrated}
    metrics = {
        **{name: value for name, value in values.items() if value is not None},
        "n_train": float(fold.n_train),
        "n_test": float(fold.n_test),
    }
    return LogItems(key, metrics, {VERSION_TAG: __version__, FOLD_TAG: str(index)})


def fold_params(estimate: Any, index: int) -> Mapping[str, Any]:
    """Return the configuration that a tuner selected for one test set."""
    return dict(estimate.folds[index].selected)
