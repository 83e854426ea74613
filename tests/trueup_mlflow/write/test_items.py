from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import trueup
from trueup.errors import InvalidInputError
from trueup.summaries import LogLossSummary
from trueup_mlflow.log.log_evaluation import cells_table
from trueup_mlflow.write.items import (
    evaluation_items,
    field_key,
    figure_file,
    seed_items,
    skipped_items,
    table_file,
)


def binary_evaluation(**options):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return trueup.evaluate(rng.random(400) < p, p, **options)


def test_evaluation_items_are_exactly_the_contract():
    evaluation = binary_evaluation(fields={"site": np.arange(400) % 3})
    items = evaluation_items(evaluation, prefix="val_")
    assert items.key == "val_log_loss"
    assert dict(items.metrics) == {
        "val_log_loss": evaluation.vanilla,
        "calibrated_val_log_loss": evaluation.calibrated,
        "bias_cost_val_log_loss": evaluation.bias_cost,
        "bias_term_val_log_loss": evaluation.bias_term,
        "val_field_ece_site": evaluation.fields["site"].ece,
        "val_field_floor_site": evaluation.fields["site"].floor,
        "val_field_rce_site": evaluation.fields["site"].rce,
    }
    assert dict(items.tags) == {
        "trueup.split": "CrossFit(folds=5, salt=0)",
        "trueup.fingerprint.val_log_loss": evaluation.fingerprint,
        "trueup.version": trueup.__version__,
    }
    assert not items.skipped


def test_names_of_fields_may_be_numbers():
    evaluation = binary_evaluation(fields={3: np.arange(400) % 3})
    assert "field_ece_3" in evaluation_items(evaluation).metrics
    assert cells_table(evaluation.fields)["field"].to_pylist() == ["3"] * 3


def test_twins_leave_the_vanilla_value_to_the_user():
    evaluation = binary_evaluation()
    items = evaluation_items(evaluation, key="my loss", vanilla=False)
    assert set(items.metrics) == {"calibrated_my loss", "bias_cost_my loss", "bias_term_my loss"}
    assert "trueup.fingerprint.my loss" in items.tags


def test_root_takes_the_root_of_the_losses_and_keeps_the_units_of_the_bias():
    evaluation = trueup.evaluate(
        [1.0, 2.0, 4.0], [0.0, 1.0, 3.5], loss="mean_squared_error", split=trueup.InSample()
    )
    items = evaluation_items(evaluation, key="rmse", root=True)
    vanilla, calibrated = math.sqrt(2.25 / 3.0), math.sqrt(2.25 / 3.0 - (2.5 / 3.0) ** 2)
    assert items.metrics["rmse"] == pytest.approx(vanilla, rel=1e-12)
    assert items.metrics["calibrated_rmse"] == pytest.approx(calibrated, rel=1e-12)
    assert items.metrics["bias_cost_rmse"] == pytest.approx(vanilla - calibrated, rel=1e-12)
    assert items.metrics["bias_term_rmse"] == pytest.approx(2.5 / 3.0, rel=1e-12)


def multiclass_evaluation(n_classes):
    y = np.arange(20 * n_classes) % n_classes
    return trueup.evaluate(y, y_logit=np.zeros((len(y), n_classes)), split=trueup.InSample())


def test_several_classes_have_one_bias_term_each():
    metrics = evaluation_items(multiclass_evaluation(3)).metrics
    assert {key for key in metrics if key.startswith("bias_term")} == {
        "bias_term_log_loss_0",
        "bias_term_log_loss_1",
        "bias_term_log_loss_2",
    }


def test_bias_terms_of_too_many_classes_are_skipped_with_the_reason():
    items = evaluation_items(multiclass_evaluation(101))
    assert not [key for key in items.metrics if key.startswith("bias_term")]
    assert "100 classes" in items.all_tags["trueup.skipped.bias_term_log_loss"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_become_reasons(value):
    items = evaluation_items(replace(binary_evaluation(), calibrated=value))
    assert set(items.metrics) == {"log_loss", "bias_term_log_loss"}
    assert items.all_tags["trueup.skipped.calibrated_log_loss"] == f"value is {value}"
    assert all(math.isfinite(metric) for metric in items.metrics.values())


def test_field_keys_hold_only_what_mlflow_accepts():
    assert field_key("ece", "site=é?", "val_") == "val_field_ece_site___"
    assert len(field_key("rce", "x" * 300)) == 250


def test_fields_of_a_summary_are_logged_like_those_of_rows():
    summary = LogLossSummary()
    summary.update(np.arange(400) % 2, np.full(400, 0.5), fields={"site": np.arange(400) % 3})
    items = evaluation_items(summary.compute())
    assert not items.skipped
    assert {f"field_{kind}_site" for kind in ("ece", "rce", "floor")} <= items.metrics.keys()


def test_files_hold_only_what_a_path_may():
    assert figure_file("fields", "a/b loss") == "fields_a_b_loss.png"
    assert table_file("fields", "a/b loss") == "fields_a_b_loss.parquet"


def test_skipped_items_carry_the_reason_cut_to_the_length_of_a_tag():
    items = skipped_items("log_loss", "x" * 5000)
    assert not items.metrics
    assert items.all_tags["trueup.skipped.log_loss"] == "x" * 1000


def test_seed_items_give_mean_standard_deviation_and_t_interval():
    values = [0.3, 0.5, 0.4, 0.45]
    metrics = seed_items("log_loss", values, confidence_level=0.9).metrics
    low, high = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    assert metrics == pytest.approx(
        {
            "log_loss": np.mean(values),
            "log_loss_std": np.std(values, ddof=1),
            "log_loss_low": low,
            "log_loss_high": high,
            "n_seeds": 4.0,
        },
        rel=1e-12,
    )


def test_one_seed_has_no_spread():
    assert dict(seed_items("log_loss", [0.3]).metrics) == {"log_loss": 0.3, "n_seeds": 1.0}


@pytest.mark.parametrize("bad", [[math.nan], [math.inf, -math.inf], [1.7e308, 1.7e308]])
def test_a_seed_that_is_not_finite_leaves_no_aggregate(bad):
    items = seed_items("log_loss", [0.3, *bad])
    assert dict(items.metrics) == {"n_seeds": 1.0 + len(bad)}
    assert "trueup.skipped.log_loss" in items.all_tags


def test_seed_items_refuse_no_values_and_a_bad_level():
    with pytest.raises(InvalidInputError, match="values must hold the 'log_loss' of at least one"):
        seed_items("log_loss", [])
    with pytest.raises(InvalidInputError, match=r"confidence_level must be in \(0, 1\); got 1.0"):
        seed_items("log_loss", [0.1], confidence_level=1.0)


def test_fields_whose_names_clean_to_one_key_have_keys_of_their_own():
    names = ["国家", "城市", "__"]
    keys = [field_key("ece", name, "val_", names) for name in names]
    assert keys[2] == "val_field_ece___"
    assert len(set(keys)) == 3
    assert all(key.startswith("val_field_ece____") for key in keys[:2])
    assert field_key("ece", "国家", "val_", ["国家"]) == "val_field_ece___"
    longs = ["x" * 300 + end for end in "ab"]
    assert len({field_key("ece", name, among=longs) for name in longs}) == 2
    assert all(len(field_key("ece", name, among=longs)) <= 250 for name in longs)
