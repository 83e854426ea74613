"""Optional pruning inside a seed, kept apart from the seed race and without any guarantee.

The curve of a configuration's first seed lives in a companion study ``<name>::epochs`` with a
pruner of its own, so an unfinished seed never enters the race.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import optuna
from optuna.trial import TrialState

from trueup_optuna.signals import hold_signals


class EpochTrial:
    """The trial that ``train`` sees: suggestions of the study, reports of the companion study.

    ``report(value, step)`` and ``should_prune()`` mean epochs, and do something in the first seed
    only.

    Parameters
    ----------
    trial : optuna.Trial
        The trial of the study.
    epochs : optuna.Study, optional
        The companion study; None switches the reports off.
    """

    def __init__(self, trial: optuna.Trial, epochs: optuna.Study | None = None) -> None:
        self._trial, self._epochs = trial, epochs
        self._curve = None if epochs is None else epochs.ask()
        if self._curve is not None:
            self._curve.set_user_attr("trueup:trial", trial.number)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._trial, name)
        return _held(found) if callable(found) else found

    def report(self, value: float, step: int) -> None:
        """Report the metric after an epoch."""
        if self._curve is not None:
            self._curve.report(value, step)

    def should_prune(self) -> bool:
        """Say whether the epoch pruner stops this configuration."""
        return self._curve is not None and self._curve.should_prune()

    def close(self, *, pruned: bool) -> float | None:
        """Finish the curve and return its last value, None where there was no report."""
        if self._curve is None or self._epochs is None:
            return None
        curve = self._epochs._storage.get_trial(self._curve._trial_id)
        last = None if curve.last_step is None else curve.intermediate_values[curve.last_step]
        if last is None:
            self._epochs.tell(self._curve, state=TrialState.FAIL)
        elif pruned:
            self._epochs.tell(self._curve, state=TrialState.PRUNED)
        else:
            self._epochs.tell(self._curve, last)
        return last


def _held(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let no signal stop a call half-way, between the storage and what is remembered of it."""

    @wraps(call)
    def held(*arguments: Any, **options: Any) -> Any:
        with hold_signals():
            return call(*arguments, **options)

    return held


def epoch_study(study: optuna.Study, pruner: optuna.pruners.BasePruner | None) -> optuna.Study:
    """Return the companion study of the curves of a study."""
    return optuna.create_study(
        study_name=f"{study.study_name}::epochs",
        storage=study._storage,
        direction=study.direction,
        pruner=pruner,
        sampler=optuna.samplers.RandomSampler(seed=0),
        load_if_exists=True,
    )
