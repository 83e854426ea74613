"""scikit-learn's checks of its conventions, run on every calibrator.

They draw features of any range and number. What they ask of an estimator is therefore checked on
features that are squashed into probabilities on their way in; on the features as they are, a
calibrator has to refuse, and no check may fail for another reason.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.utils import check_array
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from trueup.calibrators import (
    FieldOffsetCalibrator,
    Guarded,
    HistogramCalibrator,
    ILPSCalibrator,
    IsotonicCalibrator,
    NeuralCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
)

CALIBRATORS = [
    ShiftCalibrator(),
    PlattCalibrator(),
    TemperatureCalibrator(),
    IsotonicCalibrator(),
    HistogramCalibrator(),
    ILPSCalibrator(),
    ILPSCalibrator(knots="paper", solver="sgd"),
    NeuralCalibrator(epochs=1),
    FieldOffsetCalibrator(),
    Guarded(HistogramCalibrator()),
]


def expected_failures(calibrator):
    of_all = {"check_fit1d": "a vector of probabilities is valid input"}
    if not isinstance(calibrator, Guarded):
        return of_all
    return of_all | {
        "check_sample_weight_equivalence_on_dense_data": "of repeated rows, others are held out"
    }


def squashed(X):
    """Take the first feature's sigmoid for the probability; a guard passes vectors on."""
    table = check_array(X, ensure_2d=False, dtype=np.float64)
    return expit(table if table.ndim == 1 else table[:, 0])


@parametrize_with_checks(CALIBRATORS, expected_failed_checks=expected_failures)
def test_conventions_hold_on_features_squashed_into_probabilities(estimator, check, monkeypatch):
    monkeypatch.setattr("trueup.calibrators.base.check_probabilities", squashed)
    monkeypatch.setattr(type(estimator), "multiclass", False)  # one probability, hence two classes
    check(estimator)


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_features_that_are_no_probabilities_are_the_only_other_failure(calibrator):
    for result in check_estimator(calibrator, on_skip=None, on_fail=None):
        if result["check_name"] not in expected_failures(calibrator):
            assert result["status"] != "failed" or "X must hold" in chain(result["exception"]), (
                result
            )


def chain(error):
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return " ".join(texts)
