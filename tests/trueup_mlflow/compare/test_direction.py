from __future__ import annotations

import pytest
from sklearn.metrics import get_scorer_names

from trueup.errors import InvalidInputError
from trueup_mlflow.compare.direction import direction, is_score_by_name

SCORES = """
    val_accuracy acc acc1 val_acc_epoch auc roc_auc rocAUC validation_1-auc PR-AUC train.auc mAP50
    macro-f1 F1Score recall@5 recall_neg ndcg@10 R2 score map mcc kappa log_likelihood top_5
"""
LOSSES = """
    loss val_loss neg_log_likelihood negative_log_likelihood brier_score mape MAPE mapper 1-auc
    one_minus_auc accelerated recallable error_rate accuracy_error map_loss val_minus_train_loss
    calibrated_val_log_loss poisson_deviance davies_bouldin_score m bias_cost_x field_ece_map
"""


@pytest.mark.parametrize("name", [*SCORES.split(), *get_scorer_names()])
def test_the_name_of_a_score_says_that_higher_is_better(name):
    assert is_score_by_name(name)
    with pytest.raises(
        InvalidInputError, match=r"^metric must be a loss.*Pass greater_is_better=T"
    ):
        direction(name, None)
    assert (direction(name, True), direction(name, False)) == (True, False)


@pytest.mark.parametrize("name", LOSSES.split())
def test_lower_is_better_of_any_other_name(name):
    assert not is_score_by_name(name)
    assert (direction(name, None), direction(name, True)) == (False, True)
