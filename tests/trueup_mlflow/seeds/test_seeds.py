from __future__ import annotations

import numpy as np
import pytest

from trueup_mlflow.seeds.log_seeds import log_seed_summary, summary_items


def test_only_metrics_that_every_seed_has_are_summarised():
    items = summary_items([{"log_loss": 0.5, "auc": 0.7}, {"log_loss": 0.7}])
    assert {key.partition("_std")[0] for key in items.metrics} >= {"log_loss", "n_seeds"}
    assert not any(key.startswith("auc") for key in items.metrics)


def test_system_metrics_are_left_out():
    assert summary_items([{"system/cpu": 0.5}]).metrics == {}


@pytest.mark.parametrize("own", ["loss_std", "loss_low", "loss_high", "n_seeds"])
def test_metric_of_a_child_never_takes_the_place_of_a_summary(own):
    plain = [{"loss": 0.5}, {"loss": 0.7}]
    expected = summary_items(plain)
    with_own = [{**metrics, own: 9.0 + i} for i, metrics in enumerate(plain)]
    found = summary_items(with_own)
    assert dict(found.metrics) == dict(expected.metrics)
    assert list(found.skipped) == [own]


def test_summary_of_a_key_with_such_an_end_is_made_where_nothing_clashes():
    items = summary_items([{"price_high": 0.5}, {"price_high": 0.7}])
    assert items.metrics["price_high"] == pytest.approx(0.6)
    assert "price_high_std" in items.metrics


def test_no_seed_gives_nothing():
    assert summary_items([]).metrics == {}


def test_parent_gains_exactly_these_metrics_tags_and_figures(client):
    experiment = client.get_experiment_by_name("tests").experiment_id
    parent = client.create_run(experiment).info.run_id
    for seed in range(6):
        tags = {"mlflow.parentRunId": parent}
        child = client.create_run(experiment, tags=tags).info.run_id
        for key, value in (("val/loss", 0.5), ("calibrated_val/loss", 0.4), ("auc", 0.9)):
            client.log_metric(child, key, value + seed * 1e-3)
        client.set_terminated(child, "FAILED" if seed == 5 else "FINISHED")
    tags_before = client.get_run(parent).data.tags
    assert log_seed_summary(parent, client=client)
    run = client.get_run(parent)
    keys = ("val/loss", "calibrated_val/loss", "auc")
    spread = {f"{key}{end}" for key in keys for end in ("", "_std", "_low", "_high")}
    assert set(run.data.metrics) == spread | {"n_seeds"}
    assert run.data.metrics["n_seeds"] == 5
    assert run.data.metrics["auc"] == pytest.approx(np.mean([0.9 + s * 1e-3 for s in range(5)]))
    assert {tag for tag in run.data.tags if tag not in tags_before} == {"trueup.role"}
    files = [entry.path for entry in client.list_artifacts(parent, "trueup")]
    assert files == ["trueup/seed_distributions_val_loss.png"]
