"""Which metric a study goes by: the calibrated one, or the vanilla loss of the same trainings.

Both are kept of each seed, so a study can change over once its first repeated configurations have
shown the noise of either; what the sampler was told before stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import optuna
from numpy.typing import NDArray
from scipy.stats import sem, t

from trueup_optuna.pruner import SeedRacePruner
from trueup_optuna.study.ranking import Ranking, prefix_means, ranking_of
from trueup_optuna.study.study_state import BUDGET, GOES_BY, GOES_BY_REASON, goes_by, pin
from trueup_optuna.study.trial_state import Metric, has_seeds

FloatArray = NDArray[np.float64]

_LEAST = 3
"""Repeated configurations from which on their noise can be compared."""
_LEVEL = 0.9
"""Of the bound on the ratio of the noises: a tenth of the choices would be calibrated by chance."""
_RACED = (
    "its SeedRacePruner compares what is reported from the first trial on, so the study did not "
    "choose by the noise, as it does without that pruner"
)


@dataclass(frozen=True)
class Choice:
    """A metric, and why."""

    metric: Metric
    reason: str


def pin_metric(study: optuna.Study, asked: Metric | None) -> None:
    """Keep the metric that was asked for; a study that goes by another one is refused."""
    kept = study.user_attrs
    if asked is None and BUDGET in kept and isinstance(study.pruner, SeedRacePruner):
        asked = "calibrated"
        if GOES_BY not in kept:
            _say(study, Choice("calibrated", _RACED))
    if asked is None:
        return
    if BUDGET not in kept and has_seeds(study):
        pin(study, {GOES_BY: goes_by(study)})  # it was begun without saying so
    pin(study, {GOES_BY: asked})


def choose_metric(study: optuna.Study, table: Ranking | None = None) -> bool:
    """Choose where a study with a budget has not done so; say whether it has now.

    The metric and the reason are kept in the study, and said once. ``table`` are its ranking_of,
    where they are known.
    """
    kept = study.user_attrs
    if BUDGET not in kept or GOES_BY in kept:
        return False
    table = ranking_of(study) if table is None else table
    if np.isnan(table.vanilla).all():  # numbers, of which there is one metric
        return False
    choice = better_metric(table)
    _say(study, choice)
    study.set_user_attr(GOES_BY, choice.metric)
    return True


def _say(study: optuna.Study, choice: Choice) -> None:
    study.set_user_attr(GOES_BY_REASON, choice.reason)
    optuna.logging.get_logger("optuna.trueup").info(
        f"The study {study.study_name!r} goes by the {choice.metric} metric: {choice.reason}. "
        'SeedObjective(goes_by="calibrated") or goes_by="vanilla" says it beforehand.'
    )


def better_metric(table: Ranking) -> Choice:
    """Return the metric with the smaller noise, relative to the spread of configurations.

    The calibrated metric only where its noise is smaller beyond chance, since few repeats show
    hardly more than that; else the vanilla loss. Noise is the variance of a seed within the
    repeated configurations, spread the variance of the means of all. Both metrics come from the
    same trainings, so the ratio of their noises is known better than either. The bound on its
    logarithm is the jackknife's over configurations, with a t quantile.
    """
    rows = np.flatnonzero(table.n_seeds >= 2)
    if len(rows) < _LEAST:
        return Choice("vanilla", f"only {len(rows)} configurations have two seeds")
    noises = [
        (np.diff(values[rows, :2]) ** 2)[:, 0] for values in (table.calibrated, table.vanilla)
    ]
    trained = table.n_seeds > 0
    spreads = [
        float(prefix_means(values, table.n_seeds)[trained].var())
        for values in (table.calibrated, table.vanilla)
    ]
    if min(*map(max, noises), *spreads) <= 0.0:
        return Choice("vanilla", "seeds or configurations change nothing in one of the metrics")
    log_ratio, bound = log_ratio_and_bound(*noises)
    log_relative = float(np.log(spreads[1] / spreads[0]))
    reason = (
        f"the variance over seeds in {len(rows)} repeated configurations, relative to that between "
        f"all, is {np.exp(log_ratio + log_relative):.2g} times as large for the calibrated metric"
    )
    if bound + log_relative < 0.0:
        return Choice("calibrated", reason)
    return Choice("vanilla", f"{reason}, which isn't less beyond chance")


def log_ratio_and_bound(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Return the logarithm of the ratio of two means of the same cases, and its upper bound."""
    n = len(first)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.log(first.sum() - first) - np.log(second.sum() - second)
    whole = float(np.log(first.sum() / second.sum()))
    pseudo = n * whole - (n - 1) * without
    if not np.isfinite(pseudo).all():  # a single configuration holds all of one of the noises
        return whole, np.inf
    return whole, float(pseudo.mean() + t.ppf(_LEVEL, n - 1) * sem(pseudo))
