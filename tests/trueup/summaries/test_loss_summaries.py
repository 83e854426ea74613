"""A summary equals the evaluation of all rows, however the rows were divided."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate
from trueup.errors import (
    InexactSummaryError,
    InvalidInputError,
    StateMismatchError,
    TrueupWarning,
    UndefinedMetricError,
)
from trueup.summaries import (
    BrierSummary,
    LogLossSummary,
    PoissonSummary,
    SquaredErrorSummary,
    from_bytes,
    summary_of,
)

SPLITS = [CrossFit(), CrossFit(3, salt=7), HoldOut(), HoldOut(0.3), InSample()]
SUMMARIES = [LogLossSummary, BrierSummary, SquaredErrorSummary, PoissonSummary]


def assert_equal_evaluations(got, expected, tolerance=1e-12):
    assert got.fingerprint == expected.fingerprint
    assert (got.n, got.n_scored, got.spec) == (expected.n, expected.n_scored, expected.spec)
    for name in ("vanilla", "calibrated", "vanilla_on_scored_rows", "bias_cost"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=tolerance), name
    assert got.bias_term == pytest.approx(expected.bias_term, abs=10 * tolerance)
    assert got.fold_bias_terms == pytest.approx(expected.fold_bias_terms, abs=10 * tolerance)
    assert got.standard_errors == pytest.approx(expected.standard_errors, abs=tolerance)


def prediction(kind, logit):
    forms = {SquaredErrorSummary: np.asarray, PoissonSummary: np.exp}
    return forms.get(kind, expit)(logit)


@pytest.mark.parametrize("split", SPLITS, ids=repr)
@pytest.mark.parametrize("kind", SUMMARIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_uneven_partitions_in_any_order_equal_the_rows(kind, split, weighted, draw, rng):
    y_true, logit, weight = draw(5_000)
    y_pred, ids = prediction(kind, logit), rng.integers(0, 2**62, 5_000)
    parts = np.split(rng.permutation(5_000), np.sort(rng.integers(0, 5_000, 20)))
    summary = kind(split)
    for i, rows in enumerate(parts):
        part = kind(split)
        part.update(
            y_true[rows],
            y_pred[rows],
            row_id=ids[rows],
            sample_weight=weight[rows] if weighted and len(rows) else None,
        )
        if i % 2:
            summary.merge(part)
        else:
            part.merge(summary)
            summary = part
    expected = evaluate(
        y_true,
        y_pred,
        loss=kind.loss.name,
        split=split,
        row_id=ids,
        sample_weight=weight if weighted else None,
    )
    assert_equal_evaluations(summary.compute(), expected)


@pytest.mark.parametrize("sd", [0.0, 0.01, 6.0, 24.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_beyond_the_grid_lose_nothing(sd, weighted, draw):
    y_true, logit, weight = draw(5_000, sd)
    weight = weight if weighted else None
    summary = LogLossSummary()
    summary.update(y_true, y_logit=logit, sample_weight=weight)
    expected = evaluate(y_true, y_logit=logit, sample_weight=weight)
    assert_equal_evaluations(summary.compute(), expected, 1e-12 * max(1.0, sd))


@pytest.mark.parametrize("kind", [LogLossSummary, BrierSummary])
@pytest.mark.parametrize(("place", "n_far"), [(60.0, 2_000), (-60.0, 2_000), (15.0, 1)])
@pytest.mark.filterwarnings("ignore:All .* fit better as percentages")  # of coins, they do
def test_a_bias_too_large_for_far_rows_is_refused(kind, place, n_far, rng):
    logit = rng.normal(place, 1.0, 2_000)
    logit[:n_far] += 30.0 * np.sign(place)
    y_true, row_id = (rng.random(2_000) < 0.5).astype(float), np.arange(2_000)
    summary = kind()
    for rows in np.array_split(np.arange(2_000), 3):
        part = kind()
        part.update(y_true[rows], y_logit=logit[rows], row_id=row_id[rows])
        summary.merge(from_bytes(part.to_bytes()))
    message = "y_logit must be within 38 of 0 in a summary whose bias is beyond 10; got a bias of"
    with pytest.raises(InexactSummaryError, match=message):
        summary.compute()


def test_far_rows_on_the_side_that_a_large_bias_moves_outwards_are_exact(rng):
    logit = np.r_[rng.normal(-20.0, 1.0, 3_000), np.full(5, 50.0)]
    y_true = np.r_[(rng.random(3_000) < 0.5).astype(float), np.ones(5)]
    summary = LogLossSummary()
    summary.update(y_true, y_logit=logit)
    expected = evaluate(y_true, y_logit=logit)
    assert expected.bias_term < -10.0
    assert_equal_evaluations(summary.compute(), expected, 1e-11)


def test_constant_predictions_at_the_worst_place_of_a_bin_stay_within_the_bound(rng):
    for place in np.linspace(-0.2, 0.2, 41):
        y_true = (rng.random(2_000) < 0.5).astype(float)
        logit = np.full(2_000, place)
        summary = LogLossSummary(InSample())
        summary.update(y_true, y_logit=logit)
        expected, got = evaluate(y_true, y_logit=logit, split=InSample()), summary.compute()
        assert got.vanilla == pytest.approx(expected.vanilla, abs=2e-12)
        assert got.bias_term == pytest.approx(expected.bias_term, abs=1e-11)


def test_squared_error_keeps_a_small_spread_around_a_large_mean(rng):
    y_true, y_pred = rng.normal(1e7, 1.0, 4_000), rng.normal(0.0, 1.0, 4_000)
    summary = SquaredErrorSummary()
    for rows in np.array_split(np.arange(4_000), 7):
        summary.update(y_true[rows], y_pred[rows])
    expected = evaluate(y_true, y_pred, loss="mean_squared_error")
    assert summary.compute().calibrated == pytest.approx(expected.calibrated, rel=1e-8)


@pytest.mark.parametrize("split", SPLITS, ids=repr)
def test_counts_of_any_size_keep_their_deviance(split, rng):
    rate = rng.gamma(2.0, 50.0, 6_000) * rng.choice([1e-3, 1.0, 10.0], 6_000)
    count, weight = rng.poisson(1.3 * rate).astype(float), rng.uniform(0.0, 2.0, 6_000)
    summary = PoissonSummary(split)
    for rows in np.array_split(np.arange(6_000), 9):
        summary.update(count[rows], rate[rows], sample_weight=weight[rows])
    options = {"loss": "poisson_deviance", "split": split, "sample_weight": weight}
    expected, got = evaluate(count, rate, **options), summary.compute()
    for name in ("vanilla", "calibrated", "bias_term", "fold_bias_terms", "standard_errors"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), rel=1e-9), name


def test_counts_in_the_millions_keep_four_digits_of_the_standard_error(rng):
    rate = rng.gamma(2.0, 1e6, 6_000)
    count = rng.poisson(1.1 * rate).astype(float)
    summary = PoissonSummary()
    summary.update(count, rate)
    expected, got = evaluate(count, rate, loss="poisson_deviance"), summary.compute()
    for name in ("vanilla", "calibrated", "bias_term"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    for error, exact in zip(got.standard_errors, expected.standard_errors, strict=True):
        assert error == pytest.approx(exact, rel=1e-4)


def test_no_count_at_all_is_undefined_as_in_evaluate(rng):
    summary = PoissonSummary(InSample())
    summary.update(np.zeros(50), rng.random(50) + 0.1)
    with pytest.raises(UndefinedMetricError, match="y_true must hold a positive count"):
        summary.compute()


def test_weights_in_some_batches_only_count_as_ones_in_the_others(draw):
    y_true, logit, weight = draw(4_000)
    weight[:2_000] = 1.0
    summary = LogLossSummary(InSample())
    summary.update(y_true[:2_000], y_logit=logit[:2_000])
    summary.update(y_true[2_000:], y_logit=logit[2_000:], sample_weight=weight[2_000:])
    expected = evaluate(y_true, y_logit=logit, sample_weight=weight, split=InSample())
    got = summary.compute()
    assert got.standard_errors == pytest.approx(expected.standard_errors, abs=1e-12)
    assert got.calibrated == pytest.approx(expected.calibrated, abs=1e-12)


def test_positions_go_on_from_batch_to_batch(draw):
    y_true, logit, _ = draw(5_000)
    summary = LogLossSummary()
    for rows in np.array_split(np.arange(5_000), 9):
        summary.update(y_true[rows], y_logit=logit[rows])
    assert_equal_evaluations(summary.compute(), evaluate(y_true, y_logit=logit))


@pytest.mark.parametrize("threads", [1, 3])
def test_long_input_is_evaluated_by_points_with_the_result_of_rows(threads, draw, monkeypatch):
    y_true, logit, weight = draw(120_000)
    expected = evaluate(y_true, expit(logit), sample_weight=weight)
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 1_000)
    monkeypatch.delattr("trueup.evaluation.evaluate.read_rows")  # rows are not read as a whole
    got = evaluate(y_true, expit(logit), sample_weight=weight, threads=threads)
    assert_equal_evaluations(got, expected)


@pytest.mark.parametrize("kind", SUMMARIES)
def test_bytes_bring_back_the_summary(kind, draw):
    y_true, logit, weight = draw(3_000, 6.0)
    summary = kind(CrossFit(4, salt=2))
    fields = None if kind.loss.task != "binary" else {"site": np.repeat(["a", "b", None], 1_000)}
    summary.update(y_true, prediction(kind, logit), sample_weight=weight, fields=fields)
    again = from_bytes(summary.to_bytes())
    assert again.compute() == summary.compute()
    assert again.split == summary.split


def test_size_does_not_grow_with_the_rows(draw):
    summary = LogLossSummary(InSample())
    y_true, logit, weight = draw(20_000, 20.0)
    summary.update(y_true, y_logit=logit)
    assert len(summary.to_bytes()) <= 50 * 1024
    summary = LogLossSummary(CrossFit(5))
    summary.update(y_true, y_logit=logit, sample_weight=weight)
    assert len(summary.to_bytes()) <= 5 * 50 * 1024


def test_foreign_bytes_are_refused(draw):
    with pytest.raises(InvalidInputError, match="data must be the bytes of a summary"):
        from_bytes(b"not a summary")
    data = LogLossSummary().to_bytes()
    with pytest.raises(InvalidInputError, match="data must be the bytes of a summary"):
        from_bytes(data[: len(data) // 2])


def test_another_version_is_refused(monkeypatch):
    data = LogLossSummary().to_bytes()
    monkeypatch.setattr("trueup.summaries.storage.VERSION", 3)
    with pytest.raises(InvalidInputError, match="data must be a summary of version 3; got version"):
        from_bytes(data)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInputError, match="data must be the bytes of a summary"):
        from_bytes((tmp_path / "evil.npz").read_bytes())


def test_summaries_that_do_not_belong_together_are_not_merged(draw):
    y_true, logit, _ = draw(1_000)
    summary, other = LogLossSummary(), LogLossSummary()
    summary.update(y_true, y_logit=logit)
    other.update(y_true, y_logit=logit)
    with pytest.raises(StateMismatchError, match="row_id must be given in summaries"):
        summary.merge(other)
    with pytest.raises(StateMismatchError, match="of one kind and split; got LogLossSummary"):
        summary.merge(LogLossSummary(CrossFit(4)))
    with pytest.raises(StateMismatchError, match="of one kind and split; got LogLossSummary"):
        summary.merge(BrierSummary())
    with pytest.raises(StateMismatchError, match="row_id must be given for all rows or for none"):
        summary.update(y_true, y_logit=logit, row_id=np.arange(1_000))
    with pytest.raises(StateMismatchError, match=r"fields must be the same .* got \[\] and"):
        summary.update(y_true, y_logit=logit, fields={"site": y_true})


def test_a_refused_batch_changes_nothing(draw):
    y_true, logit, _ = draw(40_000)
    summary = LogLossSummary()
    summary.update(y_true, expit(logit))
    before = summary.to_bytes()
    bad = expit(logit)
    bad[30_000] = 1.5
    message = r"y_pred must be in \[0, 1\]; got 1.5 at index 30000\. Pass"
    with pytest.raises(InvalidInputError, match=message):
        summary.update(y_true, bad)
    with pytest.raises(InvalidInputError, match=r"y_pred must have as many rows as y_true"):
        summary.update(y_true, bad[1:])
    with pytest.raises(InvalidInputError, match=r"sample_weight must hold a positive weight"):
        summary.update(y_true, expit(logit), sample_weight=np.zeros(40_000))
    assert summary.to_bytes() == before


def test_zero_weights_in_one_block_are_no_error(draw, evaluate_by_points):
    y_true, logit, weight = draw(40_000)
    weight[:20_000] = 0.0
    got = evaluate(y_true, y_logit=logit, sample_weight=weight, split=InSample())
    expected = evaluate(y_true[20_000:], y_logit=logit[20_000:], sample_weight=weight[20_000:])
    assert got.vanilla == pytest.approx(expected.vanilla, abs=1e-12)
    assert got.standard_errors.vanilla == pytest.approx(expected.standard_errors.vanilla, abs=1e-12)


def test_one_warning_counts_the_certain_predictions_of_all_blocks(draw, evaluate_by_points):
    y_true, logit, _ = draw(60_000)
    y_pred = expit(logit).astype(np.float32)
    y_pred[::1_000] = 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(y_true, y_pred)
    assert [w.category for w in caught] == [TrueupWarning, TrueupWarning]
    assert [str(w.message)[:30] for w in caught] == [
        "60 float32 predictions are exa",
        "60 predictions are 0 or 1, or ",
    ]
    assert {w.filename for w in caught} == {__file__}


def test_an_empty_batch_and_an_empty_summary_are_neutral(draw):
    y_true, logit, _ = draw(1_000)
    summary = LogLossSummary()
    summary.update([], y_logit=[])
    summary.merge(LogLossSummary())
    with pytest.raises(UndefinedMetricError, match="summary must hold at least one row; got 0"):
        summary.compute()
    summary.update(y_true, y_logit=logit)
    summary.merge(LogLossSummary())
    assert_equal_evaluations(summary.compute(), evaluate(y_true, y_logit=logit))
    summary.reset()
    assert summary.n == 0


def test_rolling_and_losses_without_a_summary_are_refused():
    with pytest.raises(InvalidInputError, match="split must be CrossFit, HoldOut or InSample"):
        LogLossSummary(Rolling(7))
    with pytest.raises(InvalidInputError, match=r"loss must be one of .* in a summary"):
        summary_of("hinge", CrossFit())


def test_too_few_rows_of_a_class_are_refused_as_evaluate():
    y_true, y_pred = np.r_[np.ones(5), np.zeros(995)], np.full(1_000, 0.1)
    summary = LogLossSummary(HoldOut(0.5))
    summary.update(y_true, y_pred)
    with pytest.raises(UndefinedMetricError, match="at least 10 rows of each class"):
        summary.compute()


def test_several_classes_are_refused():
    with pytest.raises(InvalidInputError, match=r"one column, or two, in a summary; got 3\. Use"):
        LogLossSummary().update([0, 1, 2], np.full((3, 3), 1 / 3))


def test_threads_must_be_positive(draw):
    y_true, logit, _ = draw(100)
    with pytest.raises(InvalidInputError, match="threads must be an integer of at least 1; got 0"):
        LogLossSummary().update(y_true, y_logit=logit, threads=0)
