"""The stages of ``trueup tune``, as any number of processes may run them together."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Event, Thread
from typing import Any, Literal

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState
from tqdm import tqdm

from trueup.errors import InvalidInputError
from trueup_cli.tune_begun import check_begun
from trueup_cli.tune_plan import TunePlan
from trueup_cli.tune_space import load_space, load_train, with_space
from trueup_cli.tune_storage import load_study, open_storage
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, recover_stale
from trueup_optuna.scoring import Train
from trueup_optuna.signals import hold_signals

Stage = Literal["search", "finals"]
STAGES: tuple[Stage, ...] = ("search", "finals")

SAMPLERS: dict[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "tpe": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
    "gp": optuna.samplers.GPSampler,
    "cmaes": optuna.samplers.CmaEsSampler,
    "nsga2": optuna.samplers.NSGAIISampler,
}
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
            f"study must be new; got {plan.study_name!r}, which exists in {plan.storage}. "
            "Add --resume or choose another --study-name."
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
        pruner=SeedRacePruner(plan.trials, plan.alpha, plan.epsilon, plan.variance),
        load_if_exists=load_if_exists,
    )


def plan_sampler(plan: TunePlan, worker: int, begun: int) -> optuna.samplers.BaseSampler:
    """Return the sampler of one worker; no other worker or resumed run repeats its draws."""
    seed = None
    if plan.sampler_seed is not None:
        key = np.random.SeedSequence([plan.sampler_seed, worker, begun])
        seed = int(key.generate_state(1)[0])
    return SAMPLERS[plan.sampler](seed=seed)


def plan_train(plan: TunePlan) -> Train:
    """Return the train function of a plan."""
    return _train_of(plan.target, plan.space)


@cache
def _train_of(target: str, space: str | None) -> Train:
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
        finals(study, train, budget=plan.finals, heartbeat=plan.heartbeat, grace=plan.grace)
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
        loss=plan.loss,
        heartbeat=plan.heartbeat,
        grace=plan.grace,
    )


def _search(study: optuna.Study, plan: TunePlan, objective: SeedObjective, stop: Event) -> None:
    while count_finished(study) < plan.trials:
        _check(stop)
        recover_stale(study, plan.grace)
        begun = study.get_trials(deepcopy=False, states=(*_FINISHED, TrialState.RUNNING))
        waiting = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if waiting or len(begun) < plan.trials:
            with hold_signals():
                _run_trial(study, objective)
        else:
            time.sleep(0.2)  # the last trials belong to other workers, or to dead ones


def _run_trial(study: optuna.Study, objective: SeedObjective) -> None:
    """Run a trial as ``study.optimize`` does; one that was taken over is left to its new owner."""
    trial = study.ask()
    try:
        value = objective(trial)
    except UpdateFinishedTrialError:
        return
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
    except BaseException:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise
    else:
        study.tell(trial, value, skip_if_finished=True)


def count_finished(study: optuna.Study) -> int:
    """Return the number of finished trials."""
    return len(study.get_trials(deepcopy=False, states=_FINISHED))


@contextmanager
def progress(plan: TunePlan, stage: Stage) -> Iterator[None]:
    """Show how far a stage is, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    total = plan.trials if stage == "search" else plan.finals
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
