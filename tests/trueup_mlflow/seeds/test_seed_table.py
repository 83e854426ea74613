from __future__ import annotations

from trueup_mlflow.seeds.findings import seed_table
from trueup_mlflow.seeds.log_seeds import summary_items
from trueup_mlflow.write.items import seed_items


def test_metric_stands_beside_its_calibrated_twin_and_summaries_are_no_metrics():
    seeds = [
        {"loss": 0.5, "calibrated_loss": 0.43, "bias_term_loss": 0.1, "price_high": 1234.0},
        {"loss": 0.7, "calibrated_loss": 0.44, "bias_term_loss": 0.2, "price_high": 1254.0},
    ]
    assert seed_table(summary_items(seeds).metrics).splitlines() == [
        "metric      vanilla      calibrated",
        "loss        0.60 ± 0.14  0.4350 ± 0.0071",
        "price_high  1244 ± 14    -",
    ]


def test_one_seed_has_no_standard_deviation_and_equal_seeds_have_one_of_zero():
    assert seed_table(seed_items("loss", [0.25]).metrics).splitlines()[1].split() == [
        *("loss", "0.25", "-"),
    ]
    assert "0.25 ± 0" in seed_table(seed_items("loss", [0.25, 0.25]).metrics)


def test_no_metric_leaves_the_titles():
    assert seed_table({}) == "metric  vanilla  calibrated"
