"""Gates on records: thresholds, staleness and verdicts, without a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.judging.gates import judged
from trueup_mlflow.monitor.judging.threshold import duration, threshold_of
from trueup_mlflow.monitor.judging.verdict import state_of
from trueup_mlflow.write.monitor_items import BatchRecord

DAY = 86_400_000


def record(day, realized=None, mse=1.0, trusted=True):
    estimate = {"mse": mse, "low": mse / 2, "high": mse * 2, "trusted": trusted, "reasons": []}
    return BatchRecord(str(day), day, day * DAY, 10, estimate, logged=True, realized=realized)


def test_the_newest_realized_error_counts_as_well_as_the_interval():
    assert judged([record(1, realized=3.0), record(2)], 2.5) == (
        "above",
        "ABOVE 2.5: 3 was realized on 1970-01-02",
    )
    assert judged([record(1, realized=3.0), record(2, realized=1.0)], 2.5)[0] == "fine"
    assert judged([record(1)], 0.4) == ("above", "ABOVE 0.4")
    code, note = judged([record(1)], 0.9)
    assert code == "fine"
    assert "the estimate is above 0.9, its interval is not" in note
    assert judged([record(1, trusted=False)], None)[0] == "not trusted"


def test_a_version_without_a_new_batch_is_stale():
    oldest = datetime.fromtimestamp(3 * 86_400, UTC)
    assert judged([record(1)], None, oldest)[0] == "stale"
    assert judged([record(4)], None, oldest)[0] == "fine"


@pytest.mark.parametrize(
    ("value", "expected"), [(0.4, 0.4), ("0.4", 0.4), ("1.5x", 3.0), (None, None)]
)
def test_thresholds_are_errors_or_multiples_of_the_reference(value, expected):
    assert threshold_of(value, 2.0) == expected


@pytest.mark.parametrize("value", ["x", "-1", "0", "nan", "1.5 times", float("inf")])
def test_other_thresholds_are_refused(value):
    with pytest.raises(InvalidInputError, match="fail_above must be a number above 0"):
        threshold_of(value, 2.0)
    with pytest.raises(InvalidInputError, match="where that of the reference is not known"):
        threshold_of("2x", None)


def test_durations():
    assert duration("36h") == timedelta(hours=36)
    assert duration("1w") == timedelta(days=7)
    assert duration("1.5d") == timedelta(hours=36)
    for value in ("two days", "-1d", "nan", "99999999w", "9" * 400 + "d", timedelta(days=-1)):
        with pytest.raises(InvalidInputError, match="stale_after must be a duration"):
            duration(value)


def test_verdicts():
    fine = [record(k, realized=1.0) for k in range(4)]
    assert state_of([]).verdict == "watch"
    assert state_of(fine).sentence.startswith("fine: 1 estimated on 1970-01-04, 4 of 4 batches")
    assert state_of([*fine, record(5, trusted=False)]).verdict == "watch"
    assert state_of([*fine, record(5, realized=9.0)]).verdict == "watch"
    twice = state_of([*fine, record(5, realized=9.0), record(6, realized=9.0), record(7)])
    assert twice.verdict == "act"
    assert "1970-01-06, 1970-01-07" in twice.why
    assert state_of([*fine, record(5, realized=1.9)], fail_above=1.5).verdict == "act"
    assert state_of([*fine, record(5, mse=9.0)], fail_above=4.0).verdict == "act"


def test_a_reference_of_training_rows_is_noticed():
    memorised = [record(k, realized=0.9, mse=0.7).mark(raw={"reference": 0.1}) for k in range(3)]
    assert "were its rows training rows?" in state_of(memorised).why
    assert state_of([*memorised, record(4, realized=0.6)]).verdict == "fine"
    assert state_of(memorised[:1]).verdict == "watch"  # nine times at once
    assert "training rows?" not in state_of([memorised[0].mark(realized=0.4)]).why
    beyond = [one.mark(realized=9.0) for one in memorised]
    assert state_of(beyond).verdict == "act"
    assert state_of(beyond).why.endswith("were its rows training rows?")


@pytest.mark.parametrize(
    ("uri", "way_out"),
    [
        ("models:/m", "Say which version: models:/m/latest is the newest."),
        ("models:/m/", "Say which version: models:/m/latest is the newest."),
        ("m", "Say which version: models:/m/latest is the newest."),
        ("models:/m/3/", "Write it as models:/m/3."),
        ("models:/m/Production", "A name of a version is an alias, models:/m@Production."),
        (f"models:/m-{'a' * 32}", "It is a logged model: register it"),
        ("runs:/abc/model", "Register the model first."),
    ],
)
def test_other_uris_are_told_the_way_out(uri, way_out):
    with pytest.raises(
        InvalidInputError, match="model_uri must be models:/NAME/VERSION"
    ) as refusal:
        resolve(uri, None)
    assert way_out in str(refusal.value)
