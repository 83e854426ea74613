"""Which configuration to use: never the luckiest seed."""

from __future__ import annotations

from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial

from trueup_optuna.study.ranking import standings
from trueup_optuna.study.study_state import single_objective


@dataclass(frozen=True)
class BestConfig:
    """The selected configuration.

    Attributes
    ----------
    trial : FrozenTrial
        Its trial in the study; ``trial.params`` are its parameters.
    mean : float
        Mean over its seeds, in units of the metric. It is still optimistic, as the best of many is;
        only :func:`trueup_optuna.confirm` gives an unbiased value.
    standard_error : float
        Of the mean, from the variance moderated over configurations.
    n_seeds : int
        Seeds of search and finals behind the mean.
    optimistic_value : float
        What ``study.best_value`` would have claimed.
    optimism : float
        By how much that is better than ``mean``; negative where it is worse, as after finals whose
        seeds were kinder than those of the search.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import select_best
    >>> select_best(study).n_seeds >= 1
    True
    """

    trial: FrozenTrial
    mean: float
    standard_error: float
    n_seeds: int
    optimistic_value: float
    optimism: float


def select_best(study: optuna.Study) -> BestConfig:
    """Select the survivor with the best mean, one standard error to its disadvantage.

    Parameters
    ----------
    study : optuna.Study
        With or without finals.

    Returns
    -------
    BestConfig
        Chosen among the configurations with at least two seeds.

    Raises
    ------
    UndefinedMetricError
        If no finished configuration has two seeds.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import select_best
    >>> round(select_best(study).trial.params["x"], 1)
    0.4
    """
    single_objective(study)
    table = standings(study)
    best = table.best()
    mean = float(table.sign * table.means[best])
    claimed = study.best_value
    return BestConfig(
        trial=table.trials[best],
        mean=mean,
        standard_error=float(table.standard_errors[best]),
        n_seeds=int(table.n_seeds[best]),
        optimistic_value=claimed,
        optimism=table.sign * (mean - claimed),
    )
