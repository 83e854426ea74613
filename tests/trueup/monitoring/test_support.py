import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from trueup.monitoring.trust.support import SupportCheck, domain_auc, roc_area, sample_rows


def test_area_equals_scikit_learn():
    rng = np.random.default_rng(0)
    negative, positive = rng.integers(0, 5, 40).astype(float), rng.integers(1, 6, 30).astype(float)
    truth = roc_auc_score([0] * 40 + [1] * 30, np.r_[negative, positive])
    assert roc_area(negative, positive) == pytest.approx(truth)


def test_rows_of_the_reference_distribution_are_trusted():
    rng = np.random.default_rng(1)
    check = SupportCheck.fitted(rng.normal(size=(500, 4)))
    support = check.judge(rng.normal(size=(500, 4)))
    assert support.trusted
    assert support.reasons == ()
    assert support.diagnostics["domain_auc"] == pytest.approx(0.5, abs=0.08)
    assert support.diagnostics["outside"] < 0.06


def test_rows_outside_of_the_reference_are_not_trusted():
    rng = np.random.default_rng(2)
    support = SupportCheck.fitted(rng.normal(size=(500, 4))).judge(rng.normal(6, 1, size=(300, 4)))
    assert not support.trusted
    assert support.reasons[0].startswith("outside of the reference: 100% of the rows")


def test_few_rows_are_judged_without_a_classifier():
    assert domain_auc(np.zeros((3, 1)), np.ones((100, 1))) == 0.5


def test_samples_are_repeatable_and_small_data_stay_as_they_are():
    x = np.arange(100.0)[:, None]
    np.testing.assert_array_equal(sample_rows(x, 10, 3), sample_rows(x, 10, 3))
    assert sample_rows(x, 100, 0) is x


def test_state_round_trips():
    rng = np.random.default_rng(3)
    check, x = SupportCheck.fitted(rng.normal(size=(60, 2))), rng.normal(size=(50, 2))
    assert SupportCheck.from_arrays(check.to_arrays()).judge(x) == check.judge(x)
