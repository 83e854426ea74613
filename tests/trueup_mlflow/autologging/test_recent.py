from __future__ import annotations

import threading

import numpy as np
import pytest

from trueup import CrossFit, Evaluation
from trueup_mlflow.autologging import recent
from trueup_mlflow.autologging.recent import Entry, RecentScores
from trueup_mlflow.autologging.scored import Scored, snapshot

SPLIT = CrossFit()


def scored(value, n=50, root=None):
    y = np.arange(n) % 2
    return Scored("mean_squared_error", value, y.astype(float), np.full(n, 0.4), root=root)


def test_number_is_found_by_its_exact_value_only():
    scores = RecentScores()
    scores.record(scored(0.123456789))
    assert scores.find(np.float64(0.123456789)) is not None
    assert scores.find(0.1234567891) is None
    assert scores.find("text") is None
    assert scores.find(None) is None


def test_root_is_found_as_a_root():
    scores = RecentScores()
    scores.record(scored(0.123456789, root=0.351364))
    assert scores.find(0.351364).root
    assert not scores.find(0.123456789).root


@pytest.mark.parametrize("value", [0.0, 1.0, 0.25, 0.1234, 3.0, 1e-3, float("nan"), float("inf")])
def test_number_that_many_metrics_may_have_is_not_kept(value):
    scores = RecentScores()
    scores.record(scored(value))
    assert scores.find(value) is None


def test_old_numbers_are_forgotten(monkeypatch):
    monkeypatch.setattr(recent, "_MAX_NUMBERS", 256)
    scores = RecentScores()
    numbers = [0.123456 + 1e-6 * index + 1e-9 for index in range(300)]
    for number in numbers:
        scores.record(scored(number))
    found = [scores.find(number) is not None for number in numbers]
    assert found == [False] * 44 + [True] * 256


def test_memory_is_bounded_and_the_latest_is_kept(monkeypatch):
    monkeypatch.setattr(recent, "_MAX_BYTES", 5_000)
    scores = RecentScores()
    for number in (0.1234561, 0.1234562, 0.1234563):
        scores.record(scored(number, n=150, root=number / 2))  # 2,400 bytes each
    assert scores.find(0.1234561) is None
    assert scores.find(0.1234562) is not None
    scores.record(scored(0.1234564, n=1000))
    assert scores.find(0.1234562) is None
    assert scores.find(0.1234564) is not None


def test_entry_is_evaluated_once_and_lets_the_arrays_go():
    entry = Entry(scored(0.26))
    outcomes = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(entry.outcome(SPLIT))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(outcome) for outcome in outcomes}) == 1
    assert isinstance(outcomes[0], Evaluation)
    assert entry.nbytes == 0


def test_number_that_is_not_the_mean_of_its_rows_has_a_reason_instead():
    reason = Entry(scored(0.3)).outcome(SPLIT)
    assert isinstance(reason, str)
    assert "must be the mean mean_squared_error of its rows" in reason


def test_snapshot_is_a_copy_and_takes_tensors():
    torch = pytest.importorskip("torch")
    values = np.array([[0.1], [0.2]])
    copy = snapshot(values)
    values[:] = 0
    assert copy.tolist() == [0.1, 0.2]
    tensor = torch.tensor([0.5, 0.25], dtype=torch.bfloat16, requires_grad=True)
    assert snapshot(tensor).tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match="one or two dimensions"):
        snapshot(np.zeros((2, 2, 2)))
