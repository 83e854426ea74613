"""How far ``trueup tune`` is: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from threading import Event, Thread

import optuna
from optuna.trial import TrialState
from tqdm import tqdm

from trueup.errors import InvalidInputError
from trueup_cli.shell.output import echo
from trueup_cli.tune.plan import Stage, TunePlan
from trueup_cli.tune.storage import load_study
from trueup_optuna.budget import Spending
from trueup_optuna.final.race_table import count_finals

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
_REDRAW = 0.5
_FIRST_LINE, _LONGEST_WAIT = 15.0, 600.0
"""Seconds to the first line and at most between two; each wait is twice the one before."""


@contextmanager
def progress(plan: TunePlan, stage: Stage) -> Iterator[None]:
    """Say on the standard error how far a stage is, until it ends."""
    stop = Event()
    follow = _draw if sys.stderr.isatty() else _write_lines
    thread = Thread(target=follow, args=(_Stage(plan, stage), stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass
class _Stage:
    """A stage that other processes work on, read from their storage."""

    plan: TunePlan
    name: Stage

    @cached_property
    def study(self) -> optuna.Study:
        return load_study(self.plan.storage, self.plan.study_name)

    @property
    def unit(self) -> str:
        return "trial" if self.name == "search" and self.plan.budget is None else "training"

    @property
    def total(self) -> int | None:
        plan = self.plan
        if plan.budget is not None:
            return plan.budget
        return plan.trials if self.name == "search" else plan.finals

    @property
    def done(self) -> int:
        if self.plan.budget is not None:
            return Spending(self.study).spent
        if self.name == "finals":
            return count_finals(self.study)
        return len(self.study.get_trials(deepcopy=False, states=FINISHED))


def _draw(stage: _Stage, stop: Event) -> None:
    with tqdm(total=stage.total, desc=stage.name, unit=stage.unit) as bar:
        over = False
        while not over:
            over = stop.wait(_REDRAW)
            with suppress(InvalidInputError):  # a storage that another process has just begun
                bar.n = stage.done
            bar.refresh()


def _write_lines(stage: _Stage, stop: Event) -> None:
    began, wait, over = time.monotonic(), _FIRST_LINE, stop.wait(_FIRST_LINE)
    while not over:
        _write_line(stage, began)
        wait = min(2.0 * wait, _LONGEST_WAIT)
        over = stop.wait(wait)
    if wait > _FIRST_LINE:  # who read of the beginning reads of the end
        _write_line(stage, began)


def _write_line(stage: _Stage, began: float) -> None:
    passed = timedelta(seconds=round(time.monotonic() - began))
    with suppress(InvalidInputError):
        echo(f"{stage.name}: {stage.done} of {stage.total} {stage.unit}s after {passed}", err=True)
