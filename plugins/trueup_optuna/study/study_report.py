"""What a study says: its seeds, who eliminated whom, who was left out, and the vanilla choice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial
from scipy.stats import norm

from trueup.presentation import Line, Presented
from trueup_optuna.final.race_table import RaceRow, count_finals, race_table, row_lines
from trueup_optuna.study.companions import companion
from trueup_optuna.study.ranking import DROPPED, Elimination, Ranking, ranking_of
from trueup_optuna.study.selection import BestConfig, select_best
from trueup_optuna.study.study_state import GOES_BY_REASON, METRIC, goes_by, single_objective
from trueup_optuna.study.trial_state import (
    FAILED,
    REPEAT_OF,
    STATUS,
    STOPPED_IN_EPOCH,
    Metric,
    is_feasible,
)

Kind = Literal["failed", "stopped", "infeasible"]


@dataclass(frozen=True)
class LeftOut:
    """Why a trial can't be selected, other than by elimination.

    Attributes
    ----------
    kind : {"failed", "stopped", "infeasible"}
        A seed failed, in the search or the finals; the epoch pruner stopped it; or it breaks a
        constraint.
    reason : str
        In words.
    """

    kind: Kind
    reason: str


def left_out(study: optuna.Study, table: Ranking) -> dict[int, LeftOut]:
    """Return the finished trials that are neither in the race nor eliminated, by number."""
    ranked = {n for n, stays in zip(table.numbers, table.contenders, strict=True) if stays}
    ranked |= set(table.eliminations)
    race = companion(study, "finals")
    dropped = {} if race is None else race.user_attrs
    found = {}
    for trial in study.get_trials(deepcopy=False):
        why = _why(trial, dropped.get(f"{DROPPED}{trial.number}"))
        if trial.number not in ranked and why is not None:
            found[trial.number] = why
    return found


def _why(trial: FrozenTrial, dropped: str | None) -> LeftOut | None:
    if (
        not trial.state.is_finished() or REPEAT_OF in trial.user_attrs
    ):  # a repeat has none of its own
        return None
    if FAILED in trial.user_attrs:
        return LeftOut("failed", str(trial.user_attrs[FAILED]))
    if trial.user_attrs.get(STATUS) == STOPPED_IN_EPOCH:
        return LeftOut("stopped", "worse than others after as many epochs")
    if not is_feasible(trial) or (dropped or "").startswith("constraints"):
        return LeftOut("infeasible", dropped or "breaks a constraint")
    return None if dropped is None else LeftOut("failed", dropped)


FloatArray = NDArray[np.float64]
FINALIST_SEEDS = 5
"""Seeds from which on a configuration counts as a finalist in the report."""


@dataclass(frozen=True)
class VanillaChoice:
    """What the vanilla metric would have chosen from the same trainings.

    Attributes
    ----------
    number : int
        The trial that the same rule selects on the vanilla values.
    same : bool
        Whether that is the trial that the calibrated metric selects.
    cost : float
        Calibrated mean of the vanilla choice minus that of the calibrated one, times the direction:
        positive = the vanilla choice is worse, in units of the metric. It favours the calibrated
        choice, which was selected on these values; a confirmation against ``number`` does not.
    cost_standard_error : float
        From the moderated variances, without the gain from shared seeds.
    seed_sd, vanilla_seed_sd : float
        Pooled standard deviation over seeds of either metric.
    """

    number: int
    same: bool
    cost: float
    cost_standard_error: float
    seed_sd: float
    vanilla_seed_sd: float


@dataclass(frozen=True)
class StudyReport(Presented):
    """What is known of a finished or running study.

    Attributes
    ----------
    name : str
        Of the study.
    loss : str
        Of the metric; "value" where ``train`` returned numbers, whose meaning isn't known.
    rows : tuple of RaceRow
        Configurations, survivors first, best first.
    p_best : mapping of int to float
        For the survivors with at least five seeds: the probability of having the lowest true mean
        among them, from independent normal posteriors with a flat prior.
    eliminations : mapping of int to Elimination
        By the number of the eliminated trial.
    best : BestConfig
        The selected configuration beside Optuna's optimistic value.
    vanilla : VanillaChoice or None
        None where ``train`` returned numbers, so that there is no vanilla metric.
    search_trainings, final_trainings : int
        Finished trainings.
    goes_by : {"calibrated", "vanilla"}
        The metric that ranks the rows; "calibrated" where ``train`` returned numbers.
    goes_by_reason : str or None
        Why, where nobody said it and there is a budget.
    left_out : mapping of int to LeftOut
        By the number of the trial: what failed, was stopped inside an epoch or breaks a constraint.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import report_study
    >>> report_study(study).search_trainings >= 6
    True
    """

    name: str
    loss: str
    rows: tuple[RaceRow, ...]
    p_best: dict[int, float]
    eliminations: dict[int, Elimination]
    best: BestConfig
    vanilla: VanillaChoice | None
    search_trainings: int
    final_trainings: int
    goes_by: Metric = "calibrated"
    goes_by_reason: str | None = None
    left_out: dict[int, LeftOut] = field(default_factory=dict)

    def summary(self) -> str:
        """Return what was selected, and what the vanilla metric would have chosen, in words."""
        if self.vanilla is None:
            return self.best.summary()
        choice = "the same" if self.vanilla.same else f"trial {self.vanilla.number}"
        other = f"; the vanilla one would have chosen {choice}"
        other = other if self.goes_by == "calibrated" else ""
        return f"{self.best.summary()} By the {self.goes_by} metric{other}."

    def lines(self) -> list[Line]:
        """Return the mean of the best configurations, give or take its standard error."""
        return row_lines(self.rows, self.best.trial.number)


def report_study(study: optuna.Study) -> StudyReport:
    """Collect what is known of a study.

    Parameters
    ----------
    study : optuna.Study
        With or without finals.

    Returns
    -------
    StudyReport
        See there.

    Raises
    ------
    UndefinedMetricError
        If no finished configuration has two seeds.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import report_study
    >>> len(report_study(study).rows)
    6
    """
    single_objective(study)
    table = ranking_of(study)
    race = race_table(study)
    vanilla = _vanilla_choice(table)
    return StudyReport(
        study.study_name,
        "value" if vanilla is None else study.user_attrs[METRIC],
        race.rows,
        _p_best(table),
        table.eliminations,
        select_best(study),
        vanilla,
        race.search_trainings,
        count_finals(study),
        "calibrated" if vanilla is None else goes_by(study),
        None if vanilla is None else study.user_attrs.get(GOES_BY_REASON),
        left_out(study, table),
    )


def _vanilla_choice(table: Ranking) -> VanillaChoice | None:
    counted = np.arange(table.values.shape[1]) < table.n_seeds[:, None]
    if np.isnan(table.vanilla[counted]).any():
        return None
    vanilla = replace(table, values=table.vanilla)
    calibrated = replace(table, values=table.calibrated)
    ours, theirs = calibrated.best(), vanilla.best()
    return VanillaChoice(
        table.numbers[theirs],
        ours == theirs,
        float(calibrated.means[theirs] - calibrated.means[ours]),
        0.0 if ours == theirs else float(np.hypot(*calibrated.standard_errors[[ours, theirs]])),
        float(np.sqrt(calibrated.noise.pooled)),
        float(np.sqrt(vanilla.noise.pooled)),
    )


def _p_best(table: Ranking) -> dict[int, float]:
    chosen = np.flatnonzero(table.contenders & (table.n_seeds >= FINALIST_SEEDS))
    if len(chosen) == 0:
        return {}
    shares = probability_of_lowest(table.means[chosen], table.standard_errors[chosen])
    return {table.numbers[index]: float(p) for index, p in zip(chosen, shares, strict=True)}


def probability_of_lowest(mean: FloatArray, standard_error: FloatArray) -> FloatArray:
    """Return the probability that each of independent normal variables is the lowest.

    Parameters
    ----------
    mean, standard_error : array of shape (k,)
        Of the variables.

    Returns
    -------
    array of shape (k,)
        Sums to 1; by the midpoint rule over 2,000 quantiles of each variable.

    Examples
    --------
    >>> probability_of_lowest(np.array([0.0, 0.0]), np.array([1.0, 1.0])).round(6).tolist()
    [0.5, 0.5]
    """
    scale = np.maximum(standard_error, np.finfo(float).tiny)
    quantiles = norm.ppf((np.arange(2000) + 0.5) / 2000)
    points = mean[:, None] + scale[:, None] * quantiles
    above = norm.sf((points[:, :, None] - mean) / scale)
    own = np.arange(len(mean))
    above[own, :, own] = 1.0
    shares = above.prod(-1).mean(-1)
    return np.asarray(shares / shares.sum())
