"""scikit-learn's own checks, with the failures that follow from X being probabilities named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import check_array
from sklearn.utils.estimator_checks import check_estimator

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
    NeuralCalibrator(epochs=1),
    FieldOffsetCalibrator(),
    Guarded(HistogramCalibrator()),
]


class AnyNumbers:
    """Takes features of any range: the first one, squashed, is the probability."""

    multiclass = False

    def _read_proba(self, X):
        return expit(check_array(X, dtype=np.float64)[:, 0])


class SquashedShift(AnyNumbers, ShiftCalibrator):
    pass


class SquashedPlatt(AnyNumbers, PlattCalibrator):
    pass


class SquashedTemperature(AnyNumbers, TemperatureCalibrator):
    pass


class SquashedIsotonic(AnyNumbers, IsotonicCalibrator):
    pass


class SquashedHistogram(AnyNumbers, HistogramCalibrator):
    pass


class SquashedILPS(AnyNumbers, ILPSCalibrator):
    pass


class SquashedNeural(AnyNumbers, NeuralCalibrator):
    pass


class SquashedFieldOffset(AnyNumbers, FieldOffsetCalibrator):
    pass


class SquashedGuarded(AnyNumbers, Guarded):
    pass


SQUASHED = [
    SquashedShift(),
    SquashedPlatt(),
    SquashedTemperature(),
    SquashedIsotonic(),
    SquashedHistogram(),
    SquashedILPS(),
    SquashedNeural(epochs=1),
    SquashedFieldOffset(),
    SquashedGuarded(HistogramCalibrator()),
]

EXPECTED_OF_ALL = {
    "check_classifiers_train": "asks for an accuracy that one feature cannot reach",
    "check_fit2d_predict1d": "a vector of probabilities is valid input",
}
EXPECTED_OF_RANDOM = {
    "check_sample_weight_equivalence_on_dense_data": "the rows held out depend on n",
}
"""The calibrators that draw rows at random: the neural one and the guard."""


def expected_failures(calibrator):
    draws_rows = isinstance(calibrator, NeuralCalibrator | Guarded)
    return EXPECTED_OF_ALL | (EXPECTED_OF_RANDOM if draws_rows else {})


def failures(calibrator):
    with pytest.warns() as caught:
        results = check_estimator(calibrator, on_skip="warn", on_fail=None)
    assert {warning.category for warning in caught} <= {SkipTestWarning, RuntimeWarning}
    return {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] == "failed"
    }


@pytest.mark.parametrize("calibrator", SQUASHED, ids=lambda c: type(c).__name__)
def test_checks_pass_once_features_are_squashed_into_probabilities(calibrator):
    assert set(failures(calibrator)) <= set(expected_failures(calibrator))


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda c: type(c).__name__)
def test_on_raw_features_checks_fail_for_being_no_probabilities_only(calibrator):
    named = {
        **expected_failures(calibrator),
        "check_estimators_nan_inf": "draws features whose rows don't sum to 1",
        "check_all_zero_sample_weights_error": "draws features outside [0, 1]",
        "check_fit2d_1feature": "draws features outside [0, 1]",
        "check_fit2d_1sample": "draws features outside [0, 1]",
        "check_supervised_y_2d": "draws features whose rows don't sum to 1",
    }
    for name, error in failures(calibrator).items():
        of_range = "X must hold" in _chain(error)
        assert of_range or name in named, (name, error)


def _chain(error):
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return " ".join(texts)
