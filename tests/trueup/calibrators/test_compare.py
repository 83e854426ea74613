"""The table of calibrators on one's own data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from trueup.calibrators import (
    FieldOffsetCalibrator,
    NeuralCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
    compare_calibrators,
)
from trueup.errors import InvalidInputError, UndefinedMetricError

FEW = {"platt": PlattCalibrator(), "field_offset": FieldOffsetCalibrator()}


def drifted(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    margin, site = rng.normal(-0.5, 1.0, n), rng.integers(0, 15, n)
    y = (rng.random(n) < expit(margin + rng.normal(0.0, 0.7, 15)[site])).astype(int)
    return y, expit(margin), {"site": site, "day": rng.integers(0, 7, n)}


def test_scores_equal_scikit_learn_and_a_loop():
    y, p, fields = drifted()
    table = compare_calibrators(y, p, fields, field="site", calibrators=FEW, guard=False)
    base, (late, q, site) = table.scores[0], (y[3000:], p[3000:], fields["site"][3000:])
    cells = [site == value for value in np.unique(site)]
    error = [abs((late - q)[cell].sum()) for cell in cells]
    relative = [
        cell.sum() * e / (late[cell] + 0.01).sum() for cell, e in zip(cells, error, strict=True)
    ]
    assert base.log_loss == pytest.approx(log_loss(late, q), abs=1e-12)
    assert base.brier_score == pytest.approx(brier_score_loss(late, q), abs=1e-12)
    assert base.auc == roc_auc_score(late, q)
    assert base.field_ece == pytest.approx(sum(error) / 3000, abs=1e-12)
    assert base.field_rce == pytest.approx(sum(relative) / 3000, abs=1e-12)
    assert base.log_loss_change == 0.0
    draws = np.random.default_rng(2).random((2000, 3000)) < q
    floor = [sum(abs((draw - q)[cell].sum()) for cell in cells) / 3000 for draw in draws]
    assert base.field_ece_floor == pytest.approx(np.mean(floor), rel=0.02)


def test_every_row_of_the_papers_tables_is_there():
    y, p, fields = drifted(2000)
    table = compare_calibrators(y, p, fields, field="site", y_proba_updated=p, guard=False)
    assert [score.name for score in table.scores] == [
        "base",
        "base_updated",
        "shift",
        "temperature",
        "histogram",
        "isotonic",
        "platt",
        "ilps",
        "neural_field_only",
        "neural",
        "field_offset",
    ]
    assert (table.n_dev, table.n_test) == (1000, 1000)


def test_field_offsets_win_where_sites_are_biased_and_the_guard_says_so():
    y, p, fields = drifted()
    table = compare_calibrators(y, p, fields, field="site", calibrators=FEW)
    base, platt, offset = table.scores
    assert offset.field_ece < platt.field_ece
    assert offset.log_loss_change < -3.0 * offset.log_loss_change_standard_error
    assert offset.kept is True
    assert base.kept is None


def test_times_order_the_rows():
    y, p, fields = drifted(2000)
    order = np.random.default_rng(1).permutation(2000)
    shuffled = compare_calibrators(
        y[order],
        p[order],
        {name: column[order] for name, column in fields.items()},
        field="site",
        times=order,
        calibrators={"shift": ShiftCalibrator()},
    )
    plain = compare_calibrators(
        y, p, fields, field="site", calibrators={"shift": ShiftCalibrator()}
    )
    assert shuffled == plain


def test_markdown_has_a_line_per_method():
    y, p, fields = drifted(1000)
    text = compare_calibrators(y, p, fields, field="site", calibrators=FEW).to_markdown()
    assert text.count("\n") == 5
    assert "| field_offset |" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": [2] * 1000}, "y_true must hold labels 0 and 1"),
        ({"dev_fraction": 0.0}, r"dev_fraction must be in \(0, 1\)"),
        ({"field": "shop"}, "fields must hold 'shop'"),
    ],
)
def test_wrong_input_is_named(change, message):
    y, p, fields = drifted(1000)
    arguments = {"y_true": y, "y_proba": p, "fields": fields, "field": "site"} | change
    with pytest.raises(InvalidInputError, match=message):
        compare_calibrators(**arguments, calibrators=FEW)


def test_test_rows_of_one_class_are_undefined():
    y, p, fields = drifted(1000)
    y[500:] = 1
    with pytest.raises(UndefinedMetricError, match="both classes in the test rows"):
        compare_calibrators(y, p, fields, field="site", calibrators=FEW)


def test_random_parts_are_another_order_and_said():
    y, p, fields = drifted(2000)
    table = compare_calibrators(y, p, fields, field="site", shuffle=True, calibrators=FEW)
    assert table.by_chance
    assert "| guard, on 1000 random rows |" in table.to_markdown()
    assert not next(iter(table.decisions().values())).by_time
    with pytest.raises(InvalidInputError, match="shuffle must be False where times are given"):
        compare_calibrators(y, p, fields, field="site", shuffle=True, times=np.arange(2000))


def test_what_the_later_rows_contradict_is_said():
    rng = np.random.default_rng(0)
    margin, n = rng.normal(-1.0, 1.0, 16_000), 16_000
    y = (rng.random(n) < expit(margin + np.where(np.arange(n) < 8000, 0.5, -0.5))).astype(float)
    table = compare_calibrators(
        y,
        expit(margin),
        {"site": np.zeros(n)},
        field="site",
        calibrators={"shift": ShiftCalibrator()},
    )
    assert "| kept; worse on the rows of this table |" in table.to_markdown()


def test_networks_that_stopped_at_epoch_0_say_so_and_equal_rows_too():
    y, p, fields = drifted(2000)
    still = {
        "neural_field_only": NeuralCalibrator(fields="site", learning_rate=0.0, epochs=1),
        "neural": NeuralCalibrator(learning_rate=0.0, epochs=1),
    }
    table = compare_calibrators(
        y, p, {"site": fields["site"]}, field="site", calibrators=still, guard=False
    )
    _, first, second = table.scores
    assert first.note == "its network stopped at epoch 0"
    assert second.note == "its network stopped at epoch 0, predicts the same as neural_field_only"


def test_integer_weights_equal_repeated_rows():
    y, p, fields = drifted(1500)
    weight = np.random.default_rng(1).integers(1, 4, 1500)
    how = {"field": "site", "calibrators": {"shift": ShiftCalibrator()}}
    weighted = compare_calibrators(
        y, p, fields, times=np.arange(1500), sample_weight=weight, guard=False, **how
    )
    repeated = compare_calibrators(
        np.repeat(y, weight),
        np.repeat(p, weight),
        {name: np.repeat(column, weight) for name, column in fields.items()},
        times=np.repeat(np.arange(1500), weight),
        dev_fraction=weight[:750].sum() / weight.sum(),
        guard=False,
        **how,
    )
    for first, second in zip(weighted.scores, repeated.scores, strict=True):
        for name in ("log_loss", "brier_score", "field_ece", "auc", "log_loss_change"):
            assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-9)
