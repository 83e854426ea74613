"""Pruning inside a seed, kept apart from the seed race and without any guarantee.

The curve of a configuration's first seed lives in a companion study ``<name>::epochs`` with a
pruner of its own, so an unfinished seed never enters the race.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import optuna
from optuna.study._constrained_optimization import _CONSTRAINTS_KEY
from optuna.trial import TrialState

from trueup.user_warning import warn_user
from trueup_optuna.pruner import SeedRacePruner
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.study.companions import companion, open_companion
from trueup_optuna.study.study_state import sign

_SCALE = 2.0
"""Factor between the last report and the result from which on they are no longer the same scale."""
_RISING = 3
"""Curves in a row that end worse than they began, from which on the direction is doubted."""


class EpochTrial:
    """The trial that ``train`` sees: suggestions of the study, reports of the companion study.

    ``report(value, step)`` and ``should_prune()`` mean epochs, and do something in the first seed
    only, where ``epochs`` returns the companion. A constraint keeps the worst value of all seeds.
    """

    def __init__(
        self, trial: optuna.Trial, epochs: Callable[[], optuna.Study] | None = None
    ) -> None:
        self._trial, self._epochs = trial, epochs
        self._study: optuna.Study | None = None
        self._curve: optuna.Trial | None = None
        self.reported: list[float] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._trial, name)
        return _held(found) if callable(found) else found

    def report(self, value: float, step: int) -> None:
        """Report the metric after an epoch."""
        self.reported.append(float(value))
        if self._epochs is None:
            return
        with hold_signals():
            if self._curve is None:
                self._study = self._epochs()
                self._curve = self._study.ask()
                self._curve.set_user_attr("trueup:trial", self._trial.number)
            self._curve.report(value, step)

    def should_prune(self) -> bool:
        """Say whether the epoch pruner stops this configuration."""
        return self._curve is not None and self._curve.should_prune()

    def set_constraint(self, key: str, value: float) -> None:
        """Keep the worst value that a constraint takes over the seeds."""
        with hold_signals():
            known = self._trial.constraints.get(key)
            if known is None:
                self._trial.set_constraint(key, value)
            elif float(value) > known:  # Optuna keeps the first value: here, that of the first seed
                storage, name = self._trial.study._storage, f"{_CONSTRAINTS_KEY}:{key}"
                storage.set_trial_system_attr(self._trial._trial_id, name, float(value))

    def close(self, state: TrialState) -> None:
        """Finish the curve, if anything was reported; a failed training's is not compared with."""
        if self._curve is None or self._study is None:
            return
        finite = state == TrialState.COMPLETE and math.isfinite(self.reported[-1])
        if state == TrialState.COMPLETE and not finite:
            state = TrialState.FAIL
        self._study.tell(self._curve, self.reported[-1] if finite else None, state=state)
        self._curve = None


def _held(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let no signal stop a call half-way, between the storage and what is remembered of it."""

    @wraps(call)
    def held(*arguments: Any, **options: Any) -> Any:
        with hold_signals():
            return call(*arguments, **options)

    return held


class EpochRule:
    """Which pruner reads the reports of epochs, and what is said about them.

    Without one that was asked for, a pruner of the study that isn't a SeedRacePruner reads them:
    that is what a script means that reports epochs to it.
    """

    def __init__(self, pruner: optuna.pruners.BasePruner | None) -> None:
        self.pruner = pruner
        self._seen, self._told, self._rising = False, set[str](), 0

    def study_of(self, study: optuna.Study) -> Callable[[], optuna.Study] | None:
        """Return how to open the study of the curves; None where no pruner reads them."""
        foreign = None if _races(study.pruner) else study.pruner
        pruner = foreign if self.pruner is None else self.pruner
        if pruner is None:
            return None
        return lambda: open_companion(study, "epochs", pruner)

    def prunes_seeds(self, study: optuna.Study) -> bool:
        """Say whether the pruner of the study is about seeds: not one that reads epochs."""
        if _races(study.pruner):
            return True
        if not self._seen:
            self._seen = companion(study, "epochs") is not None
        return not self._seen

    def check(self, study: optuna.Study, inner: EpochTrial, result: float) -> None:
        """Look at the reports of a finished first seed; each sentence is said once."""
        if not inner.reported:
            return
        if inner._epochs is None:
            if isinstance(study.pruner, SeedRacePruner):
                self._tell(
                    "train reports epochs, and nothing reads them: the SeedRacePruner compares "
                    "seeds. Pass epoch_pruner=optuna.pruners.MedianPruner() to SeedObjective, or "
                    "leave the reports out."
                )
            return
        self._seen = True
        self._check_scale(inner.reported[-1], result)
        self._check_direction(sign(study), inner.reported)

    def _check_scale(self, last: float, result: float) -> None:
        low, high = sorted((abs(last), abs(result)))
        if last * result < 0.0 or high > _SCALE * low:
            self._tell(
                f"the last report of a training must be on the scale of its result; got {last:.6g} "
                f"and {result:.6g}. The epoch pruner compares reports: report the metric that is "
                "tuned, on the same validation rows."
            )

    def _check_direction(self, sign: float, reported: list[float]) -> None:
        worse = len(reported) > 1 and sign * (reported[-1] - reported[0]) > 0.0
        self._rising = self._rising + 1 if worse else 0
        if self._rising == _RISING:
            self._tell(
                f"the reports of {_RISING} trainings in a row end worse than they began; got "
                f"{reported[0]:.6g} to {reported[-1]:.6g}. The epoch pruner takes them in the "
                "direction of the study: report a metric that is better in the same direction."
            )

    def _tell(self, message: str) -> None:
        if message.partition(";")[0] not in self._told:
            self._told.add(message.partition(";")[0])
            warn_user(message)


def _races(pruner: optuna.pruners.BasePruner) -> bool:
    """Say whether a pruner is about seeds, or about nothing."""
    return isinstance(pruner, (SeedRacePruner, optuna.pruners.NopPruner))
