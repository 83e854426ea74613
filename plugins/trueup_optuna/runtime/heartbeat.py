"""Crashes: find the trials of workers that died, and queue them again with their finished seeds.

Optuna's own heartbeat knows relational storages only. This one is a user attribute, the time of the
last beat, so it works on every storage, the journal file included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Thread
from typing import Any
from weakref import WeakKeyDictionary

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from trueup.arguments import is_real
from trueup.errors import InvalidInputError
from trueup_optuna.runtime.signals import hold_signals
from trueup_optuna.study.trial_state import BEAT, RETRY_OF, STATUS, root_number

INTERVAL = 30.0
"""Seconds between two beats of a running trial."""
FIRST = 1.0
"""Seconds until the first beat, so that short trials cost no write; until then the start counts."""
GRACE = 120.0
"""Seconds without a beat after which a trial's worker counts as dead."""

ABANDONED = "abandoned"
_DUPLICATE = "duplicate"
_ABANDONED_AT = "trueup:abandoned_at"

_OWN: WeakKeyDictionary[BaseStorage, set[tuple[int, int]]] = WeakKeyDictionary()
"""Process and trial id of what trains in this process: alive, however old its last beat is."""


def check_liveness(heartbeat: float, grace: float) -> None:
    """Refuse beats that show no life: numbers must be with ``0 < heartbeat < grace``."""
    if not (is_real(heartbeat) and is_real(grace) and 0.0 < heartbeat < grace):
        raise InvalidInputError(
            "heartbeat must be above 0 and below grace",
            f"heartbeat {heartbeat!r} and grace {grace!r}",
            "Give seconds, such as 30 and 120.",
        )


@contextmanager
def beating(storage: BaseStorage, trial_id: int, interval: float = INTERVAL) -> Iterator[None]:
    """Keep writing the time into a trial of a second or more.

    A study in memory dies with its only process, so nothing is written there.
    """
    if isinstance(storage, InMemoryStorage):
        yield
        return
    stop, own = Event(), (os.getpid(), trial_id)
    thread = Thread(target=_beat, args=(storage, trial_id, interval, stop), daemon=True)
    thread.start()
    _OWN.setdefault(storage, set()).add(own)
    try:
        yield
    finally:
        _OWN[storage].discard(own)
        stop.set()
        thread.join()


def _beat(storage: BaseStorage, trial_id: int, interval: float, stop: Event) -> None:
    wait = min(interval, FIRST)
    while not stop.wait(wait):
        wait = interval
        try:
            storage.set_trial_user_attr(trial_id, BEAT, time.time())
        except UpdateFinishedTrialError:
            return
        except Exception:  # whatever a storage raises that is away for a moment
            continue  # the next beat will do; the training itself finds a lasting failure


def mark_interrupted(storage: BaseStorage, trial_id: int) -> None:
    """Let whoever resumes queue a trial again at once, with no grace to wait for."""
    if not isinstance(storage, InMemoryStorage):
        with suppress(UpdateFinishedTrialError):
            _abandon(storage, trial_id, at=0.0)


def _abandon(storage: BaseStorage, trial_id: int, at: float) -> None:
    storage.set_trial_user_attr(trial_id, _ABANDONED_AT, at)
    storage.set_trial_user_attr(trial_id, STATUS, ABANDONED)


def recover_stale(study: optuna.Study, grace: float = GRACE) -> tuple[int, ...]:
    """Fail the trials whose worker died, and queue each again with the seeds that it had finished.

    Parameters
    ----------
    study : optuna.Study
        On any storage. ``SeedObjective`` and ``finals`` call this themselves.
    grace : float, default 120
        Seconds without a beat after which a worker counts as dead. The clocks of the machines must
        agree to well within it, and on a database their time zones too, because Optuna keeps the
        start of a trial there as local time.

    Returns
    -------
    tuple of int
        Numbers of the trials that were queued again.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import recover_stale
    >>> recover_stale(study)
    ()
    """
    with hold_signals():
        return _recover(study, grace)


def _recover(study: optuna.Study, grace: float) -> tuple[int, ...]:
    recovered = fail_stale(study, grace)
    trials = study.get_trials(deepcopy=False)
    alive = {root_number(trial) for trial in trials if trial.state != TrialState.FAIL}
    alive |= {root_number(trial) for trial in recovered}
    attempts = [trial for trial in trials if trial.user_attrs.get(STATUS) != _DUPLICATE]
    latest = {root_number(trial): trial for trial in attempts}
    recovered += [
        trial for root, trial in latest.items() if root not in alive and _is_orphan(trial, grace)
    ]
    return tuple(trial.number for trial in recovered if queue_again(study, trial))


def fail_stale(study: optuna.Study, grace: float = GRACE) -> list[FrozenTrial]:
    """Fail the trials whose worker died and return those that this call was the first to fail."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    own = {trial_id for process, trial_id in _OWN.get(study._storage, ()) if process == os.getpid()}
    others = [trial for trial in running if trial._trial_id not in own]
    return [trial for trial in others if _age(trial) > grace and _fail(study, trial)]


def _age(trial: FrozenTrial) -> float:
    beat = trial.user_attrs.get(BEAT)
    if beat is not None:
        return time.time() - float(beat)
    started = trial.datetime_start
    return 0.0 if started is None else (datetime.now() - started).total_seconds()


def _is_orphan(trial: FrozenTrial, grace: float) -> bool:
    """Say whether a trial was failed for recovery, but not yet queued again."""
    if trial.state != TrialState.FAIL or trial.user_attrs.get(STATUS) != ABANDONED:
        return False
    return time.time() - float(trial.user_attrs[_ABANDONED_AT]) > grace


def _fail(study: optuna.Study, trial: FrozenTrial) -> bool:
    try:
        _abandon(study._storage, trial._trial_id, at=time.time())
        return study._storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
    except UpdateFinishedTrialError:
        return False


def queue_again(study: optuna.Study, trial: FrozenTrial) -> bool:
    """Queue another attempt, unless another worker was faster; say whether this one counts."""
    queued = _add_attempt(study, trial)
    root = root_number(trial)
    before = [
        other
        for other in study.get_trials(deepcopy=False)
        if trial.number < other.number < queued.number and root_number(other) == root
    ]
    if all(other.state == TrialState.FAIL for other in before):
        return True
    study._storage.set_trial_user_attr(queued._trial_id, STATUS, _DUPLICATE)
    study._storage.set_trial_state_values(queued._trial_id, TrialState.FAIL)
    return False


def _add_attempt(study: optuna.Study, trial: FrozenTrial) -> FrozenTrial:
    dropped = {BEAT, STATUS, _ABANDONED_AT}
    attributes: dict[str, Any] = {
        key: value for key, value in trial.user_attrs.items() if key not in dropped
    }
    template = create_trial(
        state=TrialState.WAITING,
        params=trial.params,
        distributions=trial.distributions,
        user_attrs={**attributes, RETRY_OF: root_number(trial)},
        system_attrs=trial.system_attrs,
        intermediate_values=trial.intermediate_values,
    )
    return study._storage.get_trial(study._storage.create_new_trial(study._study_id, template))
