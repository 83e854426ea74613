"""The objective: one configuration over seeds, scored on the calibrated metric."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from trueup.arguments import check_one_of, whole_number
from trueup.errors import InvalidInputError, StateMismatchError
from trueup.losses import Loss
from trueup.splits import CrossFit, Split
from trueup.user_warning import pass_over, warn_user
from trueup_optuna.budget import BudgetedSearch, keep_further_seed, pin_budget
from trueup_optuna.epochs import EpochRule, EpochTrial
from trueup_optuna.metric import pin_metric
from trueup_optuna.pruner import SeedRacePruner
from trueup_optuna.runtime.heartbeat import (
    GRACE,
    INTERVAL,
    beating,
    check_liveness,
    mark_interrupted,
    recover_stale,
)
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.scoring import (
    Catch,
    FailedSeedError,
    OnError,
    RowCheck,
    SameResults,
    SeedScorer,
    Train,
)
from trueup_optuna.seeds import SeedList
from trueup_optuna.study.companions import pin_identity
from trueup_optuna.study.study_state import (
    RULE,
    SEEDS,
    PinnedStudies,
    check_direction,
    goes_by,
    pin,
    restore,
    seed_position,
    seeds_fact,
    single_objective,
)
from trueup_optuna.study.trial_state import (
    FAILED,
    STATUS,
    STOPPED_IN_EPOCH,
    Metric,
    SeedRecord,
    seed_key,
)

pass_over("optuna")  # warnings point at the call of study.optimize

_STARTUP_TRIALS = 5


class SeedObjective:
    """An Optuna objective that trains each configuration under several seeds.

    Parameters
    ----------
    train : callable
        ``train(trial, seed)`` calls the ``suggest_*`` methods of the trial alone and returns
        ``(y_true, y_pred)``, a :class:`trueup.Evaluation` or a number. All its randomness must come
        from ``seed``: initialization, data order and, where wanted, its own split of the data.
    seeds : SeedList or sequence of int
        Every configuration meets them in the same order. Only a SeedList reserves seeds for
        ``confirm``.
    n_base : int, default 2
        Seeds of a configuration in the search; ``finals`` adds more where it matters.
    n_startup_seeds : int, default 3
        Seeds of each of the first five trials, so that the variance over seeds is known early.
    budget : int, optional
        Trainings of search and finals together, in place of ``n_base`` and ``n_startup_seeds``:
        one seed a configuration to begin with, and the noise of a few repeated ones decides, on the
        way, when the search stops by itself for ``finals`` to spend the rest. Seeds take turns,
        unless a SeedRacePruner has to compare under the same.
    split : Split, optional
        For ``(y_true, y_pred)``; CrossFit() by default.
    loss : str or Loss, default "log_loss"
        For ``(y_true, y_pred)``.
    goes_by : {"calibrated", "vanilla"}, optional
        The metric of ``(y_true, y_pred)`` that ranks configurations, by default the calibrated one.
        With a budget, calibrated where its early repeats are less noisy relative to its spread,
        beyond chance, else vanilla; the attribute ``trueup:goes_by_reason`` says why.
    epoch_pruner : optuna.pruners.BasePruner, optional
        Stops configurations inside their first seed, by what ``train`` reports per epoch on the
        trial; by default the pruner of the study, where that isn't a SeedRacePruner. Curves cross,
        so this has no guarantee. A stopped trial is PRUNED, without a value.
    catch : exception class or tuple of them, optional
        Exceptions of ``train`` that make a failed seed instead of ending the study. A result that
        isn't finite twice always makes one.
    on_error : {"drop", "keep"}, default "drop"
        A failed seed fails the trial, or the trial keeps the seeds it has and gets no further ones:
        that flatters configurations that fail for a reason.
    heartbeat : float, default 30
        Seconds between two signs of life in the storage.
    grace : float, default 120
        Seconds without a sign of life after which a trial is queued again, with its finished seeds.

    Notes
    -----
    The value of a trial is its running mean, also when the pruner eliminates it.
    ``study.best_value`` is therefore the value of a lucky configuration: use
    :func:`trueup_optuna.select_best` and :func:`trueup_optuna.confirm`.

    Examples
    --------
    >>> import optuna
    >>> from trueup_optuna import SeedList, SeedObjective, SeedRacePruner
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def train(trial, seed):
    ...     return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2 + 0.01 * (seed % 3)
    >>> sampler = optuna.samplers.RandomSampler(0)
    >>> study = optuna.create_study(sampler=sampler, pruner=SeedRacePruner(n_configs=6))
    >>> study.optimize(SeedObjective(train, seeds=SeedList(6, confirm=3)), n_trials=6)
    >>> len(study.trials)
    6
    """

    def __init__(
        self,
        train: Train,
        *,
        seeds: SeedList | Sequence[int],
        n_base: int = 2,
        n_startup_seeds: int = 3,
        budget: int | None = None,
        split: Split | None = None,
        loss: str | Loss = "log_loss",
        goes_by: Metric | None = None,
        epoch_pruner: optuna.pruners.BasePruner | None = None,
        catch: Catch = (),
        on_error: OnError = "drop",
        heartbeat: float = INTERVAL,
        grace: float = GRACE,
    ) -> None:
        self.seeds = SeedList.of(seeds)
        split = CrossFit() if split is None else split
        self._score = SeedScorer(train, loss, split, catch, on_error)
        self._goes_by = goes_by
        fix = "A trial needs a seed."
        self.n_base = whole_number("n_base", n_base, 1, fix)
        self.n_startup_seeds = whole_number("n_startup_seeds", n_startup_seeds, 1, fix)
        self._budget = None if budget is None else BudgetedSearch(budget, self.seeds.n)
        if self.n_base > self.seeds.n:
            raise InvalidInputError(
                f"n_base must be at most the number of search seeds, {self.seeds.n}",
                str(n_base),
                "Give more seeds.",
            )
        check_liveness(heartbeat, grace)
        if goes_by is not None:
            check_one_of("goes_by", goes_by, ("calibrated", "vanilla"), "Check the spelling.")
        self._epochs, self.heartbeat, self.grace = EpochRule(epoch_pruner), heartbeat, grace
        self._pinned, self._check_rows = PinnedStudies(), RowCheck()
        self._check_same = SameResults()
        self._recovered_at = -math.inf

    def __call__(self, trial: optuna.Trial) -> float:
        """Train the configuration under its seeds and return the mean of their results."""
        study = trial.study
        try:
            with hold_signals():
                self._prepare(study)
                with beating(study._storage, trial._trial_id, self.heartbeat):
                    return self._run(trial)
        except (KeyboardInterrupt, SystemExit) as stop:
            mark_interrupted(study._storage, trial._trial_id)
            if isinstance(stop, SystemExit):  # which study.optimize doesn't catch
                study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            raise
        except UpdateFinishedTrialError:
            warn_user(
                f"trial {trial.number} gave no sign of life for {self.grace:g} seconds, so another "
                "worker has taken it over: raise grace if that happens often."
            )
            raise

    def _prepare(self, study: optuna.Study) -> None:
        """Pin the attributes of the study once, and look for dead workers within their grace."""
        if study not in self._pinned:
            self.pin(study)
            self._pinned.add(study)
        shared = not isinstance(study._storage, InMemoryStorage)
        if shared and time.monotonic() - self._recovered_at > self.grace / 4.0:
            self._recovered_at = time.monotonic()
            recover_stale(study, self.grace)

    def pin(self, study: optuna.Study) -> None:
        """Keep seeds, metric, split and rule in the study; refuse a study that has others.

        Raises
        ------
        StateMismatchError
            If the study was begun with something else, naming both.
        """
        single_objective(study)
        pin_identity(study)
        pin(study, {SEEDS: seeds_fact(self.seeds)})
        pin_budget(study, None if self._budget is None else self._budget.trainings)
        pin_metric(study, self._goes_by)
        self._score.pin(study)
        if isinstance(study.pruner, SeedRacePruner):
            study.pruner.pin(study)
        elif RULE in study.user_attrs:
            raise StateMismatchError(
                "pruner must be the SeedRacePruner that the study was begun with",
                f"{type(study.pruner).__name__}",
                "Load it with pruner=SeedRacePruner(...).",
            )

    def _wants_seed(self, trial: optuna.Trial, n_done: int) -> bool:
        if self._budget is None or n_done == 0:
            return n_done < self._n_seeds(trial.number)
        return n_done < self.seeds.n and self._budget.repeats(trial, n_done)

    def _n_seeds(self, number: int) -> int:
        wanted = max(self.n_base, self.n_startup_seeds) if number < _STARTUP_TRIALS else self.n_base
        return min(wanted, self.seeds.n)

    def _run(self, trial: optuna.Trial) -> float:
        origin = trial.study._storage.get_trial(trial._trial_id)
        values = restore(trial, origin)
        if self._budget is not None and not values:
            earlier = self._budget.begin(trial)
            if earlier is not None:
                return self._run_repeat(trial, earlier)
        while self._wants_seed(trial, len(values)):
            index = len(values)
            try:
                record = self._checked(trial, index, origin)
            except FailedSeedError as failure:
                return self._without(trial, values, failure)
            trial.set_user_attr(seed_key(index), record.to_attribute())
            values.append(record.by(goes_by(trial.study)))
            trial.report(float(np.mean(values)), index)
            if self._epochs.prunes_seeds(trial.study) and trial.should_prune():
                break
        self._check_same(values)
        return float(np.mean(values)) if self._budget is None else self._budget.end(trial)

    def _run_repeat(self, trial: optuna.Trial, number: int) -> float:
        """Train the next seed of the earlier trial that has these parameters."""
        assert self._budget is not None
        index = self._budget.next_seed(trial, number)
        origin = trial.study.get_trials(deepcopy=False)[number]
        try:
            record = self._checked(trial, index, origin)
        except FailedSeedError as failure:
            return self._without(trial, [], failure)
        keep_further_seed(trial.study, number, index, record)
        return self._budget.end(trial)

    def _checked(self, trial: optuna.Trial, index: int, origin: FrozenTrial) -> SeedRecord:
        position = seed_position(trial.study, origin, index)
        record = self._train(trial, index, self.seeds.search[position])
        if record.vanilla is not None:
            check_direction(trial.study)
        elif self._goes_by is not None:
            warn_user("goes_by has no effect: train returns a number, and that is what is tuned.")
            self._goes_by = None
        self._check_rows(trial.study, position, record)
        return record

    def _train(self, trial: optuna.Trial, index: int, seed: int) -> SeedRecord:
        inner = EpochTrial(trial, self._epochs.study_of(trial.study) if index == 0 else None)
        state = TrialState.FAIL
        try:
            record = self._score(inner, seed)
            state = TrialState.COMPLETE
        except optuna.TrialPruned:
            state = TrialState.PRUNED
            if inner.reported:
                trial.set_user_attr(STATUS, STOPPED_IN_EPOCH)
            raise
        finally:
            inner.close(state)
        if index == 0:
            value = record.value if record.vanilla is None else record.vanilla
            self._epochs.check(trial.study, inner, value)
        return record

    def _without(self, trial: optuna.Trial, values: list[float], failure: FailedSeedError) -> float:
        """Return what a trial with a failed seed is worth: NaN fails it, and the study goes on."""
        trial.set_user_attr(FAILED, str(failure))
        return float(np.mean(values)) if values and self._score.on_error == "keep" else math.nan
