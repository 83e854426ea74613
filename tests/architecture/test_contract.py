"""The public names: import paths, arguments and attributes that users of trueup rely on."""

from __future__ import annotations

import dataclasses
import inspect
from importlib import import_module
from importlib.metadata import entry_points

import pytest

NAMES = {
    "trueup": "CrossFit HoldOut Rolling InSample evaluate Evaluation field_calibration_error "
    "expected_calibration_error calibrated_log_loss calibrated_mean_squared_error "
    "calibrated_brier_score calibrated_poisson_deviance evaluate_files bias_test "
    "bias_cost_interval field_calibration require_same_rows combine_fields FieldCells Loss Split",
    "trueup.errors": "TrueupError InvalidInputError UndefinedMetricError NotFittedError "
    "StateMismatchError TrueupWarning UnscorableInputError InexactSummaryError",
    "trueup.calibrators": "ShiftCalibrator PlattCalibrator TemperatureCalibrator "
    "IsotonicCalibrator HistogramCalibrator ILPSCalibrator NeuralCalibrator "
    "FieldOffsetCalibrator Guarded CalibratedModel compare_calibrators load_calibrator",
    "trueup.comparison": "metric_accuracy paired_win_rate compare required_seeds "
    "variance_reduction Comparison Proportion Reduction SeedsNeeded order_note",
    "trueup.resampling": "generalization_error nested_resampling Bootstrap GEEstimate",
    "trueup.monitoring": "OneStepCheckModel ConsensusEstimator MSEEstimate",
    "trueup.summaries": "LogLossSummary BrierSummary SquaredErrorSummary PoissonSummary "
    "FieldSummary from_bytes",
    "trueup.losses": "Loss LOSSES get_loss",
    "trueup.splits": "CrossFit HoldOut InSample Rolling Split Part",
    "trueup.scorers": "calibrated_scorer",
    "trueup.testing": "check_loss check_split",
    "trueup_mlflow": "autolog log_evaluation log_predictions backfill compare_runs log_study "
    "log_resampling log_calibrators log_calibrated_model",
    "trueup_mlflow.monitor": "init estimate realize report",
    "trueup_mlflow.seeds": "log_seed_summary",
    "trueup_mlflow.context": "TrueupRunContext",
    "trueup_optuna": "SeedList SeedObjective SeedRacePruner finals confirm select_best "
    "SelfTuningLearner RaceTable BestConfig Confirmation report_study open_journal",
    "trueup_spark": "evaluate",
}
ARGUMENTS = {
    "trueup.evaluate": "y_true y_pred loss y_logit split labels row_id times sample_weight fields",
    "trueup.calibrated_log_loss": "y_true y_proba",
    "trueup.field_calibration_error": "y_true y_proba field relative epsilon min_count "
    "sample_weight",
    "trueup.expected_calibration_error": "y_true y_proba n_bins strategy sample_weight",
    "trueup.comparison.metric_accuracy": "a b confidence_level",
    "trueup.comparison.compare": "candidate baseline paired min_effect confidence_level "
    "greater_is_better",
    "trueup.comparison.required_seeds": "candidate baseline power min_effect",
    "trueup.comparison.variance_reduction": "vanilla calibrated confidence_level",
    "trueup.resampling.generalization_error": "inducer X y resampling loss aggregate calibrated "
    "n_jobs",
    "trueup.resampling.nested_resampling": "tuner X y outer inner loss",
    "trueup.monitoring.OneStepCheckModel": "objective head hidden learning_rate weight_decay "
    "epochs batch_size random_state",
    "trueup.monitoring.ConsensusEstimator": "model reference random_state",
    "trueup_mlflow.log_evaluation": "y_true y_pred prefix step run_id model_id dataset client",
    "trueup_mlflow.log_predictions": "y_true y_pred name",
    "trueup_mlflow.compare_runs": "candidate baseline metric seed_key experiment_names client",
    "trueup_mlflow.monitor.init": "model_uri reference target reference_is row_id",
    "trueup_mlflow.monitor.estimate": "model_uri batch at",
    "trueup_mlflow.monitor.realize": "model_uri labelled",
    "trueup_mlflow.monitor.report": "model_uri path",
    "trueup_optuna.SeedObjective": "train seeds n_base n_startup_seeds split loss",
    "trueup_optuna.SeedRacePruner": "n_configs alpha epsilon variance reports",
    "trueup_optuna.finals": "study train budget workers",
    "trueup_optuna.confirm": "study train n_seeds against",
    "trueup_spark.evaluate": "df y_true y_proba row_id fields split",
}
ATTRIBUTES = {
    "trueup.Evaluation": "vanilla calibrated vanilla_on_scored_rows bias_term fold_bias_terms "
    "bias_cost standard_errors fields n n_scored fingerprint spec to_dict",
    "trueup.comparison.Comparison": "verdict difference low high p_better p_better_low "
    "p_better_high estimand n_pairs",
    "trueup.comparison.Proportion": "value low high",
    "trueup.comparison.SeedsNeeded": "n low high",
    "trueup.comparison.Reduction": "value low high",
    "trueup.monitoring.MSEEstimate": "mse low high members trusted reasons n",
    "trueup_optuna.BestConfig": "trial mean standard_error n_seeds",
    "trueup_optuna.Confirmation": "mean low high p_better n",
}
ENTRY_POINTS = {
    ("mlflow.model_evaluator", "trueup"),
    ("mlflow.run_context_provider", "trueup"),
    ("mlflow.project_backend", "trueup-seeds"),
    ("console_scripts", "trueup"),
}


def found(path: str):
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("module", NAMES)
def test_every_name_can_be_imported_from_its_path(module):
    if module == "trueup_spark":
        pytest.importorskip("pyspark")
    for name in NAMES[module].split():
        assert hasattr(import_module(module), name), name


@pytest.mark.parametrize("path", ARGUMENTS)
def test_arguments_keep_their_names(path):
    parameters = inspect.signature(found(path)).parameters
    takes_more = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    missing = [name for name in ARGUMENTS[path].split() if name not in parameters]
    assert missing == [] or (takes_more and path == "trueup.calibrated_log_loss")


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_results_keep_their_attributes(path):
    result = found(path)
    known = {field.name for field in dataclasses.fields(result)} | set(dir(result))
    assert set(ATTRIBUTES[path].split()) <= known


def test_entry_points_lead_to_what_they_name():
    declared = [
        point
        for group in {group for group, _ in ENTRY_POINTS}
        for point in entry_points(group=group)
        if point.value.startswith("trueup")
    ]
    assert {(point.group, point.name) for point in declared} >= ENTRY_POINTS
    assert all(point.load() is not None for point in declared)
