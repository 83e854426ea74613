"""Which trials have no place in the ranking, and why: nobody should have to count them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import optuna
from optuna.trial import FrozenTrial

from trueup_optuna.study.companions import companion
from trueup_optuna.study.ranking import DROPPED, Standings
from trueup_optuna.study.trial_state import (
    FAILED,
    STATUS,
    STOPPED_IN_EPOCH,
    TWIN_OF,
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


def left_out(study: optuna.Study, table: Standings) -> dict[int, LeftOut]:
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
    if not trial.state.is_finished() or TWIN_OF in trial.user_attrs:  # a repeat has none of its own
        return None
    if FAILED in trial.user_attrs:
        return LeftOut("failed", str(trial.user_attrs[FAILED]))
    if trial.user_attrs.get(STATUS) == STOPPED_IN_EPOCH:
        return LeftOut("stopped", "worse than others after as many epochs")
    if not is_feasible(trial) or (dropped or "").startswith("constraints"):
        return LeftOut("infeasible", dropped or "breaks a constraint")
    return None if dropped is None else LeftOut("failed", dropped)
