"""A foreign or misspelt keyword is refused in the name of what was called, with what was meant."""

from __future__ import annotations

import pickle
from inspect import Parameter, signature

import pytest

import trueup
from trueup_mlflow import log_evaluation, log_predictions

ROWS = [0, 1] * 50, [0.3, 0.8] * 50


@pytest.mark.parametrize(
    ("function", "name", "meant"),
    [
        (trueup.evaluate, "y_proba", "y_pred"),
        (trueup.evaluate, "weights", "sample_weight"),
        (trueup.evaluate_files, "y_pred", "y_proba"),
        (trueup.evaluate_files, "logit", "y_logit"),
        (trueup.evaluate_files, "weight", "sample_weight"),
        (trueup.calibrated_log_loss, "y_prob", "y_proba"),
        (trueup.calibrated_log_loss, "y_pred", "y_proba"),
        (trueup.calibrated_log_loss, "logits", "y_logit"),
        (trueup.calibrated_brier_score, "probas", "y_proba"),
        (trueup.calibrated_mean_squared_error, "sample_weights", "sample_weight"),
        (trueup.calibrated_poisson_deviance, "spilt", "split"),
        (log_evaluation, "y_proba", "y_pred"),
        (log_evaluation, "y_score", "y_pred"),
        (log_predictions, "weights", "sample_weight"),
        (log_evaluation, "prefx", "prefix"),
        (log_evaluation, "stp", "step"),
        (log_evaluation, "run_ids", "run_id"),
        (log_evaluation, "yhat", "y_pred"),
        (log_predictions, "runid", "run_id"),
        (log_predictions, "names", "name"),
    ],
)
def test_the_right_keyword_is_named(function, name, meant):
    said = rf"^{function.__name__}\(\) got an unexpected keyword argument '{name}'. Did you mean "
    with pytest.raises(TypeError, match=rf"{said}'{meant}'\?$"):
        function(*ROWS, **{name: 1})


def test_without_a_near_one_all_are_listed_and_those_that_are_given_are_refused():
    with pytest.raises(TypeError, match=r"argument 'zzz'; it takes y_true, y_proba, y_logit, "):
        trueup.calibrated_log_loss(*ROWS, zzz=1)
    with pytest.raises(TypeError, match=r"takes y_true, y_pred, prefix, step, .* figures, loss, "):
        log_evaluation(*ROWS, zzz=1)
    with pytest.raises(TypeError, match=r"calibrated_log_loss\(\) got an .* keyword .*'loss'"):
        trueup.calibrated_log_loss(*ROWS, loss="brier_score")


def test_the_signature_stays_that_of_the_function():
    for function in (trueup.evaluate, trueup.evaluate_files):
        kinds = {one.kind for one in signature(function).parameters.values()}
        assert kinds == {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
        assert pickle.loads(pickle.dumps(function)) is function
