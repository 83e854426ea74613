"""Real storages, samplers and objectives that stop at a chosen point of a study."""

from __future__ import annotations

import signal
from collections import Counter
from functools import wraps

import optuna
from optuna.storages import RDBStorage

from trueup_cli.tune import run as tune_run
from trueup_cli.tune.storage import open_storage
from trueup_optuna import SeedObjective

WRITES = (
    "create_new_trial",
    "_create_new_trial",
    "set_trial_param",
    "set_trial_state_values",
    "set_trial_intermediate_value",
    "set_trial_user_attr",
    "set_study_user_attr",
)


class Stop:
    """Raises a real signal when it has been called with a point for the nth time.

    The point "write" is each of the writes.
    """

    def __init__(self, point, nth, number=signal.SIGINT):
        self.point, self.nth, self.number = point, nth, number
        self.passed = Counter()

    def __call__(self, *points):
        self.passed.update(points)
        if self.point in points and self.passed[self.point] == self.nth:
            signal.raise_signal(self.number)

    @property
    def happened(self):
        return self.passed[self.point] >= self.nth


def stopping_storage(storage, stop):
    """Make the storage one of a subclass that passes a point before and after each write."""
    kind = type(storage)

    def passing(name):
        inherited = getattr(kind, name)
        short = name.removeprefix("_")

        @wraps(inherited)
        def write(self, *arguments, **options):
            stop(f"before {short}", "before a write")
            try:
                return inherited(self, *arguments, **options)
            finally:
                stop(f"after {short}", "after a write")

        return write

    own = {name: passing(name) for name in WRITES if hasattr(kind, name)}
    if kind is RDBStorage:
        del own["create_new_trial"]  # which calls the other one
    storage.__class__ = type(f"Stopping{kind.__name__}", (kind,), own)
    return storage


def stopping_sampler(stop):
    class StoppingSampler(optuna.samplers.RandomSampler):
        def before_trial(self, study, trial):
            stop("before_trial")
            super().before_trial(study, trial)

        def sample_independent(self, *arguments):
            stop("sample")
            return super().sample_independent(*arguments)

        def after_trial(self, *arguments):
            stop("after_trial")
            super().after_trial(*arguments)

    return StoppingSampler


def stopping_objective(stop):
    class StoppingObjective(SeedObjective):
        def __call__(self, trial):
            stop("before objective")
            try:
                return super().__call__(trial)
            finally:
                stop("after objective")

    return StoppingObjective


def stop_study(monkeypatch, stop):
    """Let ``trueup tune`` work on a storage, a sampler and an objective that stop."""
    monkeypatch.setattr(
        tune_run, "open_storage", lambda where: stopping_storage(open_storage(where), stop)
    )
    monkeypatch.setitem(tune_run.SAMPLERS, "random", stopping_sampler(stop))
    monkeypatch.setattr(tune_run, "SeedObjective", stopping_objective(stop))
