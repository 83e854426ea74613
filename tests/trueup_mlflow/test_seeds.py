from __future__ import annotations

from trueup_mlflow.seeds import summary_items


def test_only_metrics_that_every_seed_has_are_summarised():
    items = summary_items([{"log_loss": 0.5, "auc": 0.7}, {"log_loss": 0.7}])
    assert {key.partition("_std")[0] for key in items.metrics} >= {"log_loss", "n_seeds"}
    assert not any(key.startswith("auc") for key in items.metrics)


def test_system_metrics_are_left_out():
    assert summary_items([{"system/cpu": 0.5}]).metrics == {}


def test_no_seed_gives_nothing():
    assert summary_items([]).metrics == {}
