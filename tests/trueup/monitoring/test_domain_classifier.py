import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from trueup.monitoring.trust.domain_classifier import cross_fitted_area, roc_area

RNG = np.random.default_rng(0)
SAMPLES = {
    "alike": RNG.normal(size=(900, 8)),
    "shifted": RNG.normal(size=(900, 8)) + 0.4 * (np.arange(900) >= 500)[:, None],
    "far": RNG.normal(size=(900, 2)) + 40.0 * (np.arange(900) >= 500)[:, None],
    "few": RNG.normal(size=(17, 30)),
    "repeated rows": RNG.integers(0, 2, size=(900, 6)).astype(float),
    "constant": np.zeros((60, 2)),
}


def test_area_equals_scikit_learn():
    rng = np.random.default_rng(0)
    negative, positive = rng.integers(0, 5, 40).astype(float), rng.integers(1, 6, 30).astype(float)
    truth = roc_auc_score([0] * 40 + [1] * 30, np.r_[negative, positive])
    assert roc_area(negative, positive) == pytest.approx(truth)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("random_state", [0, 7])
def test_classifier_equals_scikit_learn(name, random_state):
    x = SAMPLES[name]
    is_second = np.arange(len(x)) >= len(x) * 5 // 9
    score = cross_val_predict(
        LogisticRegression(solver="newton-cholesky"),
        x,
        is_second,
        cv=StratifiedKFold(5, shuffle=True, random_state=random_state),
        method="decision_function",
    )
    truth = roc_auc_score(is_second, score.round(9))  # equal rows have equal scores: ties
    assert cross_fitted_area(x, is_second, random_state) == pytest.approx(truth, abs=1e-12)
