"""The stages of ``trueup tune``, as any number of processes may run them together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from trueup.errors import InvalidInputError, StateMismatchError
from trueup_cli.shell.output import echo
from trueup_cli.tune.plan import EPOCH_PRUNERS, SAMPLERS, Grid, Stage, TunePlan, grid_points
from trueup_cli.tune.progress import FINISHED
from trueup_cli.tune.space import load_exceptions, load_space, load_train, with_space
from trueup_cli.tune.storage import load_study, open_storage
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, recover_stale
from trueup_optuna.budget import Spending
from trueup_optuna.runtime.heartbeat import ABANDONED
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.scoring import Train
from trueup_optuna.study.study_state import METRIC, RULE, SEEDS
from trueup_optuna.study.trial_state import FAILED, STATUS, root_number, seed_records


def prepare_study(plan: TunePlan, *, resume: bool) -> optuna.Study:
    """Create the study, or find the one to resume; refuse what was not asked for."""
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


def check_begun(study: optuna.Study, plan: TunePlan) -> None:
    """Refuse a plan whose options differ from those that the study was begun with."""
    for option, begun in _begun(study).items():
        asked = getattr(plan, option.removeprefix("--"))
        if begun is not None and begun != asked:
            raise StateMismatchError(
                f"{option} must be what the study {plan.study_name!r} was begun with, {begun!r}",
                repr(asked),
                "Repeat the options of the first run, or begin another study with --study-name.",
            )


def _begun(study: optuna.Study) -> dict[str, Any]:
    """Return the options that are known; a study made in Python may lack some of them."""
    kept = study.user_attrs
    rule, seeds = kept.get(RULE, {}), kept.get(SEEDS)
    return {
        "--direction": study.direction.name.lower(),
        "--loss": kept.get(METRIC),
        "--trials": rule.get("n_configs"),
        "--seeds": None if seeds is None else len(seeds["search"]),
        "--confirm": None if seeds is None else len(seeds["confirm"]),
        "--alpha": rule.get("alpha"),
        "--epsilon": rule.get("epsilon"),
        "--variance": rule.get("variance"),
    }


@contextmanager
def kept_with_results(study: optuna.Study, *, new: bool) -> Iterator[None]:
    """Delete a new study where an error ends it before its first result; else say that it stays."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        echo("Interrupted; the study is kept. Go on with --resume.", err=True)
        raise
    except Exception:
        if new and _is_empty(study):
            optuna.delete_study(study_name=study.study_name, storage=study._storage)
        else:
            echo("The study is kept. Mend the error and go on with --resume.", err=True)
        raise


def _is_empty(study: optuna.Study) -> bool:
    return all(
        trial.state == TrialState.FAIL and not seed_records(trial.user_attrs)
        for trial in study.get_trials(deepcopy=False)
    )


def open_study(plan: TunePlan, *, load_if_exists: bool = True) -> optuna.Study:
    """Return the study of a plan, with its pruner."""
    return optuna.create_study(
        storage=open_storage(plan.storage),
        study_name=plan.study_name,
        direction=plan.direction,
        pruner=_pruner(plan),
        load_if_exists=load_if_exists,
    )


def _pruner(plan: TunePlan) -> optuna.pruners.BasePruner:
    if plan.budget is not None:  # seeds take turns, so no two configurations can be raced
        return optuna.pruners.NopPruner()
    return SeedRacePruner(plan.trials, plan.alpha, plan.epsilon, plan.variance)


def plan_sampler(plan: TunePlan, worker: int, begun: int) -> optuna.samplers.BaseSampler:
    """Return the sampler of one worker; no other worker or resumed run repeats its draws."""
    seed = None
    if plan.sampler_seed is not None:
        key = np.random.SeedSequence([plan.sampler_seed, worker, begun])
        seed = int(key.generate_state(1)[0])
    if plan.sampler == "grid":
        return Grid(grid_points(plan.space, plan.trials), seed=seed)
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

    Raises KeyboardInterrupt between two seeds, once ``stop`` is set.
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
        goes_by=plan.goes_by,
        epoch_pruner=None if plan.epoch_pruner is None else EPOCH_PRUNERS[plan.epoch_pruner](),
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
    finished = study.get_trials(deepcopy=False, states=FINISHED)
    failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    return len(finished) + sum(FAILED in trial.user_attrs for trial in failed) >= plan.trials


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
