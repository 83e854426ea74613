"""The stages of ``trueup tune``, as any number of processes may run them together."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Event, Thread
from typing import Any, Literal

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState
from tqdm import tqdm

from trueup.errors import InvalidInputError
from trueup_cli.tune.begun import check_begun
from trueup_cli.tune.plan import TunePlan
from trueup_cli.tune.samplers import SAMPLERS, epoch_pruner_of, grid_sampler
from trueup_cli.tune.space import load_exceptions, load_space, load_train, with_space
from trueup_cli.tune.storage import load_study, open_storage
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, recover_stale
from trueup_optuna.budget import Spending
from trueup_optuna.runtime.heartbeat import ABANDONED
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.scoring import Train
from trueup_optuna.study.trial_state import FAILED, STATUS, root_number

Stage = Literal["search", "finals"]
STAGES: tuple[Stage, ...] = ("search", "finals")

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def prepare_study(plan: TunePlan, *, resume: bool) -> optuna.Study:
    """Create the study, or find the one to resume.

    Raises
    ------
    InvalidInputError
        If there is nothing to resume, or something that would be resumed without being asked to.
    """
    if resume:
        load_study(plan.storage, plan.study_name)
    try:
        study = open_study(plan, load_if_exists=resume)
    except optuna.exceptions.DuplicatedStudyError:
        raise InvalidInputError(
            "study must be new",
            f"{plan.study_name!r}, which exists in {plan.storage}",
            "Add --resume or choose another --study-name.",
        ) from None
    check_begun(study, plan)
    plan_objective(plan).pin(study)
    return study


def open_study(plan: TunePlan, *, load_if_exists: bool = True) -> optuna.Study:
    """Return the study of a plan, with its pruner."""
    return optuna.create_study(
        storage=open_storage(plan.storage),
        study_name=plan.study_name,
        direction=plan.direction,
        pruner=SeedRacePruner(
            plan.trials if plan.budget is None else None, plan.alpha, plan.epsilon, plan.variance
        ),
        load_if_exists=load_if_exists,
    )


def plan_sampler(plan: TunePlan, worker: int, begun: int) -> optuna.samplers.BaseSampler:
    """Return the sampler of one worker; no other worker or resumed run repeats its draws."""
    seed = None
    if plan.sampler_seed is not None:
        key = np.random.SeedSequence([plan.sampler_seed, worker, begun])
        seed = int(key.generate_state(1)[0])
    if plan.sampler == "grid":
        return grid_sampler(plan.space, plan.trials, seed)
    return SAMPLERS[plan.sampler](seed=seed)


def plan_train(plan: TunePlan) -> Train:
    """Return the train function of a plan."""
    return loaded_train(plan.target, plan.space)


@cache
def loaded_train(target: str, space: str | None) -> Train:
    """Run the script once a process: it may load data."""
    return with_space(load_train(target), None if space is None else load_space(space))


def run_stage(plan: TunePlan, stage: Stage, worker: int = 0, stop: Event | None = None) -> None:
    """Work on one stage of a plan until it is done; any number of processes may do so.

    Raises
    ------
    KeyboardInterrupt
        Between two seeds, once ``stop`` is set.
    """
    study, stop = open_study(plan), stop or Event()
    train = _until(stop, plan_train(plan))
    if stage == "finals":
        finals(
            study,
            train,
            budget=plan.finals,
            catch=load_exceptions(plan.catch),
            on_error=plan.on_error,
            heartbeat=plan.heartbeat,
            grace=plan.grace,
        )
    else:
        study.sampler = plan_sampler(plan, worker, len(study.get_trials(deepcopy=False)))
        _search(study, plan, plan_objective(plan, train), stop)


def _until(stop: Event, train: Train) -> Train:
    def train_if_wanted(trial: Any, seed: int) -> Any:
        _check(stop)
        return train(trial, seed)

    return train_if_wanted


def _check(stop: Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt


def plan_objective(plan: TunePlan, train: Train | None = None) -> SeedObjective:
    """Return the objective of a plan, with its train function or one that stands for it."""
    return SeedObjective(
        plan_train(plan) if train is None else train,
        seeds=SeedList(plan.seeds, confirm=plan.confirm),
        n_base=plan.n_base,
        budget=plan.budget,
        loss=plan.loss,
        epoch_pruner=epoch_pruner_of(plan.epoch_pruner),
        catch=load_exceptions(plan.catch),
        on_error=plan.on_error,
        heartbeat=plan.heartbeat,
        grace=plan.grace,
    )


def _search(study: optuna.Study, plan: TunePlan, objective: SeedObjective, stop: Event) -> None:
    while not _search_is_over(study, plan):
        _check(stop)
        recover_stale(study, plan.grace)
        waiting = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if waiting or plan.budget is not None or len(claims(study)) < plan.trials:
            with hold_signals():
                _run_trial(study, objective, plan)
        else:
            time.sleep(0.2)  # the last trials belong to other workers, or to dead ones


def _search_is_over(study: optuna.Study, plan: TunePlan) -> bool:
    if plan.budget is not None:
        return Spending(study).search_is_over
    return count_finished(study) + count_failed(study) >= plan.trials


def claims(study: optuna.Study) -> list[int]:
    """Return the configurations that are begun, by the number of their first attempt.

    A trial whose worker died stands for its configuration from the first attempt to the last, also
    between its failure and the moment when it is queued again.
    """
    trials = study.get_trials(deepcopy=False)
    return sorted({root_number(trial) for trial in trials if _is_claim(trial)})


def _is_claim(trial: FrozenTrial) -> bool:
    if trial.state != TrialState.FAIL:
        return True
    return FAILED in trial.user_attrs or trial.user_attrs.get(STATUS) == ABANDONED


def _is_wanted(study: optuna.Study, trial: optuna.Trial, plan: TunePlan) -> bool:
    """Say whether a trial is among the first of its study: numbers are given out one by one."""
    if plan.budget is not None:
        return True
    root = root_number(study._storage.get_trial(trial._trial_id))
    return root in claims(study)[: plan.trials]


def _run_trial(study: optuna.Study, objective: SeedObjective, plan: TunePlan) -> None:
    """Run a trial as ``study.optimize`` does; one that was taken over is left to its new owner."""
    trial = study.ask()
    try:
        if not _is_wanted(study, trial, plan):
            study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            return
        value = objective(trial)
    except UpdateFinishedTrialError:
        return
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
    except BaseException:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise
    else:
        failed = None if math.isfinite(value) else TrialState.FAIL
        study.tell(trial, value if failed is None else None, state=failed, skip_if_finished=True)


def count_finished(study: optuna.Study) -> int:
    """Return the number of finished trials."""
    return len(study.get_trials(deepcopy=False, states=_FINISHED))


def count_failed(study: optuna.Study) -> int:
    """Return the number of trials that a failed seed has ended."""
    failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    return sum(FAILED in trial.user_attrs for trial in failed)


@contextmanager
def progress(plan: TunePlan, stage: Stage) -> Iterator[None]:
    """Show how far a stage is, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    total = plan.trials if stage == "search" and plan.budget is None else plan.finals
    stop = Event()
    thread = Thread(target=_follow, args=(plan, stage, total, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _follow(plan: TunePlan, stage: Stage, total: int | None, stop: Event) -> None:
    name = plan.study_name + ("::finals" if stage == "finals" else "")
    with tqdm(total=total, desc=stage, unit="trial" if stage == "search" else "seed") as bar:
        done = False
        while not done:
            done = stop.wait(0.5)
            with suppress(InvalidInputError):  # the finals' study is made by the first worker
                bar.n = count_finished(load_study(plan.storage, name))
            bar.refresh()
