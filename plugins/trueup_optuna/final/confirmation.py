"""The value to publish: seeds that neither search nor finals could draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial
from scipy import stats

from trueup.arguments import check_fraction, whole_number
from trueup.comparison import paired_win_rate
from trueup.errors import InvalidInputError
from trueup.executor import Executor
from trueup.losses import Loss
from trueup.presentation import Line, Presented
from trueup.splits import Split
from trueup_optuna.final.fresh_seeds import FreshSeeds, kept_values, reserved_seeds, shared_seeds
from trueup_optuna.scoring import Catch, Train, scorer_of
from trueup_optuna.study.companions import companion
from trueup_optuna.study.ranking import Ranking, ranking_of
from trueup_optuna.study.selection import write_selection
from trueup_optuna.study.study_state import seeds_of, sign, single_objective

FloatArray = NDArray[np.float64]
Against = Mapping[str, Any] | FrozenTrial | int


@dataclass(frozen=True)
class Confirmation(Presented):
    """The selected configuration on fresh seeds, next to a rival on the same ones.

    Attributes
    ----------
    mean, low, high : float
        Unbiased mean over the fresh seeds, in units of the metric, and its Student interval, mean
        ± t s / sqrt(n) with n - 1 degrees of freedom, of ``values``: those of the metric that the
        study goes by.
    n : int
        Fresh seeds.
    p_better, p_better_low, p_better_high : float or None
        Share of the seeds under which the configuration is better than the rival, ties half;
        estimates the probability that a training of it beats a training of the rival. None without
        a rival.
    difference, difference_low, difference_high : float or None
        Mean of (configuration - rival) over the seeds, in units of the metric, and its Student
        interval.
    better : bool or None
        Whether the mean difference favours the configuration. The decision rests on it, not on the
        interval: of two, one has to be used.
    params, rival : dict, dict or None
        The parameters of both.
    values, rival_values : tuple of float
        Result under each fresh seed.
    failed : tuple of int
        Seeds that are left out, because a training under them failed.
    rival_number : int or None
        Number of the rival's trial; None without a rival, or with one that no trial has.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import confirm
    >>> confirmed = confirm(study, train, n_seeds=3)
    >>> bool(confirmed.low <= confirmed.mean <= confirmed.high)
    True
    """

    mean: float
    low: float
    high: float
    n: int
    p_better: float | None
    p_better_low: float | None
    p_better_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    better: bool | None
    params: dict[str, Any]
    rival: dict[str, Any] | None
    values: tuple[float, ...]
    rival_values: tuple[float, ...]
    failed: tuple[int, ...] = ()
    rival_number: int | None = None

    @property
    def rival_name(self) -> str:
        """Which configuration the rival is, in words."""
        return "the rival" if self.rival_number is None else f"trial {self.rival_number}"

    def summary(self) -> str:
        """Return what the configuration is worth on fresh seeds, in words."""
        return (
            f"On {self.n} fresh seeds the mean is {self.mean:.5g} "
            f"[{self.low:.5g}, {self.high:.5g}]."
        )

    def lines(self) -> list[Line]:
        """Return the mean and, beside a rival, the difference and how likely it is better."""
        found = [Line("mean", self.mean, self.low, self.high)]
        if self.difference is not None:
            found.append(
                Line(
                    f"less {self.rival_name}",
                    self.difference,
                    self.difference_low,
                    self.difference_high,
                )
            )
        if self.p_better is not None:
            found.append(Line("P(better)", self.p_better, self.p_better_low, self.p_better_high))
        return found


def confirm(
    study: optuna.Study,
    train: Train,
    *,
    n_seeds: int | None = None,
    against: Against | None = None,
    confidence_level: float = 0.95,
    loss: str | Loss | None = None,
    split: Split | None = None,
    catch: Catch = (),
    executor: Executor | None = None,
) -> Confirmation:
    """Train the selected configuration and a rival under reserved seeds.

    Parameters
    ----------
    study : optuna.Study
        Run with ``SeedObjective(seeds=SeedList(n, confirm=m))``.
    train : callable
        The same as in the search; its trial is an ``optuna.trial.FixedTrial`` with the study, the
        number and the user attributes of the search. Attributes set here are kept beside the seed.
    n_seeds : int, optional
        Reserved seeds to use, 2 to m; by default five, or all m where it is less. Finished
        trainings are kept in the study ``<name>::confirm`` and not repeated.
    against : mapping, FrozenTrial or int, optional
        Parameters of a baseline, a trial, or the number of a trial, other than the selected
        configuration; by default the runner-up, the best other one.
    confidence_level : float, default 0.95
        Of both intervals, in (0, 1).
    loss, split : optional
        Only where the study was begun with a loss or a split of your own.
    catch : exception class or tuple of them, optional
        Exceptions of ``train`` that leave a seed out, as a result that isn't finite twice does,
        with a warning: what fails may not be chance.
    executor : optional
        A client with ``submit``, such as ``distributed.Client``, or a SparkSession: the seeds are
        trained on its workers, all at once.

    Returns
    -------
    Confirmation
        With None for everything about the rival where the study has a single configuration.

    Raises
    ------
    InvalidInputError
        If the study reserved fewer seeds, or ``against`` is the selected configuration or lacks
        parameters.
    UndefinedMetricError
        If fewer than two seeds have a result.

    Notes
    -----
    Unbiased as long as the selection was finished before: what is selected after a look at these
    seeds needs other ones.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import confirm
    >>> confirm(study, train, n_seeds=3).n
    3
    """
    single_objective(study)
    if n_seeds is not None:
        whole_number("n_seeds", n_seeds, 2, "An interval needs two values.")
    check_fraction("confidence_level", confidence_level, "Use 0.95.")
    seeds = reserved_seeds(study, n_seeds)
    table = ranking_of(study)
    best = table.best()
    params = dict(table.trials[best].params)
    rival = _rival(table, best, against)
    origin = next((trial for trial in table.trials if trial.params == rival), None)
    runs = FreshSeeds(study, scorer_of(study, train, loss, split, catch), seeds, executor)
    ours = runs.values(params, table.trials[best])
    theirs = None if rival is None else runs.values(rival, origin)
    kept, failed = shared_seeds(seeds, ours, theirs)
    write_selection(study)
    return _confirmation(
        np.array([ours[index] for index in kept]),
        np.array([] if theirs is None else [theirs[index] for index in kept]),
        (params, rival),
        sign(study),
        confidence_level,
        failed=failed,
        rival_number=None if origin is None else origin.number,
    )


def kept_confirmation(study: optuna.Study) -> Confirmation | None:
    """Return what an earlier :func:`confirm` found of the configuration that is selected now.

    Nothing is trained. None without two of its seeds; the rival is the runner-up, where it has the
    same ones.
    """
    store = companion(study, "confirm")
    if store is None:
        return None
    table = ranking_of(study)
    best = table.best()
    params, rival = dict(table.trials[best].params), _runner_up(table, best)
    found = kept_values(store, params)
    kept = [index for index in sorted(found) if found[index] is not None]
    if len(kept) < 2:
        return None
    theirs = {} if rival is None else kept_values(store, rival)
    has_rival = all(theirs.get(index) is not None for index in kept)
    reserved = seeds_of(study).reserved
    return _confirmation(
        np.array([found[index] for index in kept]),
        np.array([theirs[index] for index in kept] if has_rival else []),
        (params, rival if has_rival else None),
        sign(study),
        0.95,
        failed=tuple(reserved[index] for index in sorted(found) if index not in kept),
        rival_number=next(
            (one.number for one in table.trials if has_rival and one.params == rival), None
        ),
    )


def _confirmation(
    values: FloatArray,
    rival_values: FloatArray,
    both: tuple[dict[str, Any], dict[str, Any] | None],
    sign: float,
    level: float,
    *,
    failed: tuple[int, ...],
    rival_number: int | None,
) -> Confirmation:
    low, high = _student_interval(values, level)
    return Confirmation(
        mean=float(values.mean()),
        low=low,
        high=high,
        n=len(values),
        **_contrast(values, rival_values, sign, level),
        params=both[0],
        rival=both[1],
        values=tuple(values.tolist()),
        rival_values=tuple(rival_values.tolist()),
        failed=failed,
        rival_number=rival_number,
    )


def _rival(table: Ranking, best: int, against: Against | None) -> dict[str, Any] | None:
    if against is None:
        return _runner_up(table, best)
    rival = _given_rival(table, against)
    chosen = table.trials[best].params
    trained = [trial.params for trial, n in zip(table.trials, table.n_seeds, strict=True) if n > 0]
    if not any(params.keys() <= rival.keys() for params in trained):
        raise InvalidInputError(
            f"against must hold all parameters of a configuration, as {chosen!r} does",
            repr(rival),
            "Add those that are missing.",
        )
    if chosen.items() <= rival.items():
        raise InvalidInputError(
            "against must be another configuration than the selected one, trial "
            f"{table.numbers[best]}",
            repr(against),
            "Leave against out to meet the runner-up.",
        )
    return rival


def _given_rival(table: Ranking, against: Against) -> dict[str, Any]:
    if isinstance(against, Mapping):
        return dict(against)
    if isinstance(against, FrozenTrial):
        return dict(against.params)
    if isinstance(against, bool) or against not in table.numbers:
        raise InvalidInputError(
            "against must be the number of a trial of the study",
            repr(against),
            "Pass one of its numbers or a mapping of parameters.",
        )
    return dict(table.trials[table.numbers.index(against)].params)


def _runner_up(table: Ranking, best: int) -> dict[str, Any] | None:
    """Return the best other parameters: of a contender, or else of an eliminated configuration."""
    chosen = table.trials[best].params
    for index in np.lexsort((table.score, ~table.contenders)):
        params = table.trials[index].params
        if table.n_seeds[index] > 0 and params != chosen:  # a small space repeats parameters
            return dict(params)
    return None


def _student_interval(values: FloatArray, level: float) -> tuple[float, float]:
    half = stats.sem(values) * stats.t.ppf(0.5 + level / 2.0, len(values) - 1)
    return float(values.mean() - half), float(values.mean() + half)


def _contrast(values: FloatArray, rival: FloatArray, sign: float, level: float) -> dict[str, Any]:
    if rival.size == 0:
        return dict.fromkeys(_CONTRAST)
    share = paired_win_rate(sign * values, sign * rival, confidence_level=level)
    difference = values - rival
    mean = float(difference.mean())
    interval = _student_interval(difference, level)
    found = (share.value, share.low, share.high, mean, *interval, sign * mean < 0.0)
    return dict(zip(_CONTRAST, found, strict=True))


_CONTRAST = (
    "p_better",
    "p_better_low",
    "p_better_high",
    "difference",
    "difference_low",
    "difference_high",
    "better",
)
