"""The finals: more seeds for the configurations that may still be the best.

They live in a companion study ``<name>::finals``, because a finished trial can't be changed: one
trial per (configuration, seed). Any number of workers and processes may take part, and any of them
may stop.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState, create_trial

from trueup.arguments import whole_number
from trueup.errors import InvalidInputError
from trueup.executor import Executor, as_executor
from trueup.losses import Loss
from trueup.splits import Split
from trueup_optuna.budget import Spending
from trueup_optuna.final.allocation import Claim, next_claim
from trueup_optuna.final.race_table import RaceTable, claim_of, race_table
from trueup_optuna.final.race_trial import RaceTrial, score_seed
from trueup_optuna.metric import choose_metric
from trueup_optuna.runtime.heartbeat import GRACE, INTERVAL, beating, check_liveness, fail_stale
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.scoring import (
    Catch,
    FailedSeedError,
    OnError,
    RowCheck,
    SeedScorer,
    Train,
    scorer_of,
)
from trueup_optuna.study.companions import open_companion, pin_identity
from trueup_optuna.study.ranking import (
    CLOSED,
    CONFIG,
    DROPPED,
    OUT,
    RECORD,
    SEED_INDEX,
    ranking_of,
)
from trueup_optuna.study.selection import write_selection
from trueup_optuna.study.study_state import (
    BUDGET,
    goes_by,
    rule_of,
    seed_position,
    seeds_of,
    single_objective,
)
from trueup_optuna.study.trial_state import BEAT, FAILED, SeedRecord

_POLL = 0.2


def finals(
    study: optuna.Study,
    train: Train,
    *,
    budget: int | None = None,
    workers: int = 1,
    loss: str | Loss | None = None,
    split: Split | None = None,
    catch: Catch = (),
    on_error: OnError = "drop",
    executor: Executor | None = None,
    heartbeat: float = INTERVAL,
    grace: float = GRACE,
) -> RaceTable:
    """Spend further seeds on the leader and its closest rivals.

    Parameters
    ----------
    study : optuna.Study
        Run with a SeedObjective. Call again to resume; call from several processes to share the
        work.
    train : callable
        The same as in the search; its trial is an ``optuna.trial.FixedTrial`` with the study, the
        number and the user attributes of the search. Attributes set here are kept beside the seed.
    budget : int, optional
        Trainings of the finals in all, those of earlier calls and of other workers included; by
        default what the search left of the budget of its SeedObjective, or else the larger of 60
        and 1.25 times the number of configurations. A call returns when they are finished or nobody
        is left to race.
    workers : int, default 1
        Threads of this process.
    loss, split : optional
        Only where the study was begun with a loss or a split of your own.
    catch, on_error
        As for SeedObjective; "drop" takes a configuration with a failed seed out of the race. So
        does a broken constraint, and ``optuna.TrialPruned``.
    executor : optional
        A client with ``submit``, such as ``distributed.Client``, or a SparkSession: trainings run
        on its workers, as many at once as ``workers`` says. ``train`` must be importable there, or
        picklable.
    heartbeat, grace : float
        As for SeedObjective.

    Returns
    -------
    RaceTable
        All configurations with their seeds.

    Raises
    ------
    InvalidInputError
        If the study has no finished configuration or wasn't run with a SeedObjective, or a number
        is out of its range.

    Notes
    -----
    Configurations are eliminated by the rule of the study's SeedRacePruner, if it has one; its
    alpha covers search and finals together. Without the eliminator the same configuration is
    selected for the same trainings nearly always: it is insurance.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import finals
    >>> finals(study, train, budget=4).final_trainings <= 4
    True
    """
    single_objective(study)
    check_liveness(heartbeat, grace)
    workers = whole_number("workers", workers, 1, "Give a number of threads.")
    if budget is not None:
        budget = whole_number("budget", budget, 0, "Give a number of trainings in all.")
    score = scorer_of(study, train, loss, split, catch, on_error)
    race = _FinalRace(study, score, heartbeat, grace, as_executor(executor))
    race.run(race.default_budget() if budget is None else budget, workers)
    table = race_table(study)
    write_selection(study)
    return table


class _FinalRace:
    def __init__(
        self,
        study: optuna.Study,
        score: SeedScorer,
        heartbeat: float,
        grace: float,
        executor: Executor | None,
    ) -> None:
        self.executor = executor
        self.study, self.score, self._check_rows = study, score, RowCheck()
        self.heartbeat, self.grace = heartbeat, grace
        self._storage = study._storage
        self.seeds = seeds_of(study).search
        self.rule = rule_of(study)
        finished = (TrialState.COMPLETE, TrialState.PRUNED)
        self.n_finished = len(study.get_trials(deepcopy=False, states=finished))
        if self.n_finished == 0:
            raise _nothing_finished(study)
        pin_identity(study)
        self.companion = open_companion(study, "finals")
        choose_metric(study)

    def default_budget(self) -> int:
        if BUDGET in self.study.user_attrs:
            spending = Spending(self.study)
            return max(0, spending.budget - spending.searched)
        return max(60, math.ceil(1.25 * self.n_finished))

    def run(self, budget: int, workers: int) -> None:
        stop = Event()
        if workers == 1:
            self._work(budget, stop)  # in the caller's thread, where an interrupt stops it at once
            return
        with ThreadPoolExecutor(workers) as pool:
            try:
                for done in [pool.submit(self._work, budget, stop) for _ in range(workers)]:
                    done.result()
            finally:
                stop.set()

    def _work(self, budget: int, stop: Event) -> None:
        while not stop.is_set():
            fail_stale(self.companion, self.grace)
            claimed = self._claimed()
            left = len(claimed) < budget
            wanted = next_claim(ranking_of(self.study), claimed, len(self.seeds)) if left else None
            if wanted is None:
                if not self.companion.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                    return
                stop.wait(_POLL)  # until they finish, or count as dead and leave their seed
                continue
            with hold_signals():
                trial = self._claim(*wanted)
                if self._is_mine(trial, budget):
                    self._train(trial)
                else:
                    self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)

    def _claim(self, number: int, index: int) -> FrozenTrial:
        """Begin a trial that carries its claim from the start: no other worker can miss it."""
        attributes = {CONFIG: number, SEED_INDEX: index, BEAT: time.time()}
        template = create_trial(state=TrialState.RUNNING, user_attrs=attributes)
        trial_id = self._storage.create_new_trial(self.companion._study_id, template)
        return self._storage.get_trial(trial_id)

    def _claimed(self) -> dict[Claim, int]:
        """Return who holds each (configuration, seed index): the first trial to claim it."""
        claimed: dict[Claim, int] = {}
        for trial in self.companion.get_trials(deepcopy=False):
            if trial.state != TrialState.FAIL:
                claimed.setdefault(claim_of(trial), trial.number)
        return claimed

    def _is_mine(self, trial: FrozenTrial, budget: int) -> bool:
        """Say whether the trial is the first to claim its seed, within the budget."""
        claimed = self._claimed()
        before = sum(number < trial.number for number in claimed.values())
        return claimed[claim_of(trial)] == trial.number and before < budget

    def _train(self, trial: FrozenTrial) -> None:
        number, index = claim_of(trial)
        origin = next(t for t in self.study.get_trials(deepcopy=False) if t.number == number)
        position = seed_position(self.study, origin, index)
        fixed = RaceTrial(origin.params, self.study, origin, trial._trial_id)
        try:
            with beating(self._storage, trial._trial_id, self.heartbeat):
                record = score_seed(self.score, fixed, self.seeds[position], self.executor)
            self._check_rows(self.study, position, record)
        except (FailedSeedError, optuna.TrialPruned) as failure:
            self._give_up(trial, str(failure) or "pruned by train", self.score.on_error)
            return
        except BaseException:
            with suppress(UpdateFinishedTrialError):
                self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            raise
        with suppress(UpdateFinishedTrialError):  # counted as dead: the seed is somebody else's
            self._keep(trial, record, fixed.given)
            if fixed.violates:
                self.companion.set_user_attr(
                    f"{DROPPED}{number}", f"constraints {fixed.constraints}"
                )
            self._eliminate(number)

    def _give_up(self, trial: FrozenTrial, reason: str, on_error: OnError) -> None:
        """Let no other worker begin this seed again: the configuration gets no further one."""
        number, _ = claim_of(trial)
        mark = DROPPED if on_error == "drop" else CLOSED
        self.companion.set_user_attr(f"{mark}{number}", reason)
        with suppress(UpdateFinishedTrialError):
            self._storage.set_trial_user_attr(trial._trial_id, FAILED, reason)
            self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)

    def _keep(self, trial: FrozenTrial, record: SeedRecord, given: dict[str, Any]) -> None:
        for key, value in given.items():
            self._storage.set_trial_user_attr(trial._trial_id, key, value)
        self._storage.set_trial_user_attr(trial._trial_id, RECORD, record.to_attribute())
        self._storage.set_trial_state_values(
            trial._trial_id, TrialState.COMPLETE, [record.by(goes_by(self.study))]
        )

    def _eliminate(self, number: int) -> None:
        """Let the configuration that has a new seed meet all others again."""
        if self.rule is None:
            return
        table, raced = ranking_of(self.study), slice(0, self.rule.n_configs)
        if number not in table.numbers[raced]:
            return
        challenger = table.numbers.index(number)
        evidence = self.rule.log_evidence(table.values[raced], table.n_seeds[raced], challenger)
        evidence = np.where(table.contenders[raced], evidence, -np.inf)
        strongest = int(evidence.argmax())
        if evidence[strongest] >= -math.log(self.rule.alpha):
            self._mark(number, table.numbers[strongest], float(evidence[strongest]))

    def _mark(self, number: int, by: int, log_e: float) -> None:
        """Keep the elimination, unless another worker has eliminated everybody else meanwhile."""
        self.companion.set_user_attr(f"{OUT}{number}", {"by": by, "log_e": log_e})
        if not ranking_of(self.study).contenders.any():
            self.companion.set_user_attr(f"{OUT}{number}", None)


def _nothing_finished(study: optuna.Study) -> InvalidInputError:
    got = f"none in {study.study_name!r}"
    mend = "Run study.optimize(objective, n_trials=...) first."
    attributes = [trial.user_attrs for trial in study.get_trials(deepcopy=False)]
    failures = [one[FAILED] for one in attributes if FAILED in one]
    if failures:
        got = f"{len(failures)} that failed, the last by {failures[-1]}"
        mend = "Mend the training, and begin a study of another name."
    return InvalidInputError("study must hold a finished trial", got, mend)
