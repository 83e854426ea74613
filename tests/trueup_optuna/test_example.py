"""The example counts configurations, not attempts, when it resumes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from optuna.trial import TrialState
from tests.trueup_optuna.training import train_classifier

from trueup_optuna import SeedList

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run_study(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    found = runpy.run_path(str(EXAMPLES / "tune.py"))["run_study"]

    def run(train, *arguments):
        monkeypatch.setitem(found.__globals__, "train_flights", train)
        return found(*arguments)

    return run


def test_a_resumed_example_replaces_the_trials_that_failed(run_study, tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    seen = []

    def fails_later(trial, seed):
        seen.append(trial.number)
        if trial.number == 2:
            raise RuntimeError("no memory")
        return train_classifier(trial, seed)

    with pytest.raises(RuntimeError, match="no memory"):
        run_study(fails_later, 4, SeedList(4, confirm=2), 2, storage)
    for _ in range(2):  # a finished study gains nothing
        study = run_study(train_classifier, 4, SeedList(4, confirm=2), 2, storage)
        states = [trial.state for trial in study.trials]
        assert states.count(TrialState.COMPLETE) == 4
        assert states.count(TrialState.FAIL) == 1
    assert max(seen) == 2
