"""The one-pass kernel against the general path, row by row and as a whole."""

from __future__ import annotations

from dataclasses import replace
from mmap import mmap

import numpy as np
import pytest
from scipy.special import expit
from tests.engines import require_engine, use_engine

from trueup import CrossFit, HoldOut, InSample
from trueup._kernels import numpy_engine
from trueup._kernels.grid import BINS_PER_UNIT, LIMIT, N_BINS, ORDER
from trueup._kernels.hashing import HashRule
from trueup._kernels.plain import PlainRows
from trueup.errors import InvalidInputError
from trueup.losses import EPS
from trueup.splits import kernel_rule
from trueup.summaries import BrierSummary, LogLossSummary

N = 140_000  # more than two blocks
RULES = [CrossFit(5, salt=3), CrossFit(7), CrossFit(200_003), HoldOut(0.3), InSample()]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    logit = rng.normal(-1.0, 2.0, N)
    label = (rng.random(N) < expit(0.8 * logit)).astype(np.float64)
    return label, logit, rng.random(N) * (rng.random(N) < 0.9), rng.integers(-(2**62), 2**62, N)


def absorbed(columns, **plain):
    """Return what the compiled loops absorb, and the table that they add it to."""
    compiled = require_engine("compiled")
    rows = PlainRows(
        **{"is_logit": False, "weight": None, "row_id": None, "first_row": 0} | plain, **columns
    )
    size = 2 * rows.rule.n_groups * N_BINS
    table, squared = zeros(size), None if rows.weight is None else zeros(size)
    return compiled.absorb(rows, table, squared), table


def zeros(n_rows):
    """Return a table that takes memory where it is written: NumPy's huge pages would fill 5 GB."""
    memory = mmap(-1, n_rows * ORDER * 8)
    return np.frombuffer(memory, dtype=np.float64).reshape(n_rows, ORDER)


def test_logit_is_exact_to_rounding():
    tiny = np.logspace(np.log10(EPS), np.log10(0.5), 2_000)[1:]
    for p in np.r_[tiny, 1.0 - tiny, EPS, 1.0 - EPS, 0.5]:
        columns = {"label": np.zeros(1), "prediction": np.array([p])}
        _, table = absorbed(columns, rule=HashRule(folds=1))
        (place,) = np.flatnonzero(table[:, 0])
        ours = (place + 0.5 * (1.0 + np.longdouble(table[place, 1]))) / BINS_PER_UNIT - LIMIT
        exact = np.log(np.longdouble(p)) - np.log1p(-np.longdouble(p))
        assert abs(ours - exact) <= 3e-16 + 4e-16 * abs(exact)


@pytest.mark.parametrize("split", RULES, ids=repr)
def test_groups_are_those_of_the_split(split):
    row_id = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    columns = {"label": np.ones(len(row_id)), "prediction": np.full(len(row_id), 0.5)}
    # Rows with weights are counted one by one, those without by two passes over the whole table,
    # which for 200,003 folds take seconds.
    weight = np.ones(len(row_id)) if split.n_groups > 1_000 else None
    taken, _ = absorbed(columns, row_id=row_id, weight=weight, rule=kernel_rule(split))
    expected = np.bincount(split.groups(row_id, None), minlength=split.n_groups)
    np.testing.assert_array_equal(taken.row_counts[:, 1], expected)


def summarised(kind, split, engine_name, monkeypatch, columns, **options):
    use_engine(engine_name, monkeypatch)
    summary = kind(split)
    for part in (slice(0, 80_001), slice(80_001, None)):
        given = {name: values[part] for name, values in columns.items()}
        summary.update(**given, **options)
    return summary.compute()


def test_columns_may_be_read_only_or_strided_or_odd_in_memory(rows, kernels):
    label, logit, *_ = rows
    columns = {"y_true": label, "y_logit": logit}
    expected = LogLossSummary()
    expected.update(**columns)
    for name in columns:
        columns[name] = columns[name].copy()
        columns[name].flags.writeable = False
    columns["y_true"] = np.repeat(label, 2)[::2]
    shifted = np.frombuffer(b"?" + logit.tobytes(), offset=1, dtype=np.float64)
    found = LogLossSummary()
    found.update(columns["y_true"], y_logit=shifted)
    assert found.compute() == expected.compute()


@pytest.mark.parametrize("kind", [LogLossSummary, BrierSummary])
@pytest.mark.parametrize("split", [CrossFit(), HoldOut(), InSample()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["probabilities", "logits", "float32", "outliers", "ids"])
def test_results_are_those_of_the_general_path(kind, split, weighted, form, rows, monkeypatch):
    require_engine("compiled")
    label, logit, weight, ids = rows
    columns = {"y_true": label, "y_pred": expit(logit)}
    if form == "logits":
        columns = {"y_true": label.astype(bool), "y_logit": logit}
    if form == "float32":
        columns = {"y_true": label.astype(np.int8), "y_pred": expit(logit).astype(np.float32)}
    if form == "outliers":
        far = logit.copy()
        far[::9_000] = LIMIT * np.sign(far[::9_000])
        columns = {"y_true": label, "y_logit": far}
    if form == "ids":
        columns |= {"row_id": ids, "y_true": np.where(label == 0.0, -0.0, 1.0)}
    if weighted:
        columns["sample_weight"] = weight
    ours = [summarised(kind, split, name, monkeypatch, columns) for name in ("compiled", "numpy")]
    monkeypatch.setattr(numpy_engine, "absorb", lambda *_: None)
    general = summarised(kind, split, "numpy", monkeypatch, columns)
    for evaluation in ours:
        require_equal(evaluation, general)


def require_equal(ours, general):
    assert (ours.n, ours.n_scored) == (general.n, general.n_scored)
    assert ours.fingerprint == general.fingerprint
    for name in ("vanilla", "calibrated", "bias_term", "fold_bias_terms", "bias_cost"):
        ours_, theirs = getattr(ours, name), getattr(general, name)
        np.testing.assert_allclose(ours_, theirs, rtol=0.0, atol=1e-12)
    errors = ours.standard_errors, general.standard_errors
    np.testing.assert_allclose(*errors, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("y_true", 2.0, "y_true must be 0 or 1; got 2.0 at index 120000"),
        ("y_true", np.nan, "y_true must be finite; got nan at index 120000"),
        ("y_true", np.inf, "y_true must be finite; got inf at index 120000"),
        ("y_true", 5e-324, "y_true must be 0 or 1; got 5e-324 at index 120000"),
        ("y_true", np.nextafter(1.0, 0.0), "y_true must be 0 or 1; got 0.99"),
        ("y_pred", 1.5, r"y_pred must be in \[0, 1\]; got 1.5 at index 120000"),
        ("y_pred", np.nan, "y_pred must be finite; got nan at index 120000"),
        ("sample_weight", -1.0, "sample_weight must not be negative; got -1.0 at index 120000"),
        ("sample_weight", np.inf, "sample_weight must be finite; got inf at index 120000"),
    ],
)
def test_bad_rows_are_refused_by_their_index(name, value, message, rows, kernels):
    label, logit, weight, _ = rows
    columns = {"y_true": label, "y_pred": expit(logit), "sample_weight": weight}
    columns[name] = columns[name].copy()
    columns[name][120_000] = value
    summary = LogLossSummary()
    with pytest.raises(InvalidInputError, match=message):
        summary.update(**columns)
    assert summary.n == 0


@pytest.fixture
def mixed(rows):
    """Rows of which the one at 5,000 lies beyond the grid."""
    label, logit, _, _ = rows
    logit = logit.copy()
    logit[5_000] = LIMIT
    return PlainRows(label, logit, True, None, None, 0, HashRule(folds=1))


def test_without_a_compiler_a_block_is_taken_whole_or_not_at_all(mixed):
    table = np.zeros((2 * N_BINS, ORDER))
    assert numpy_engine.absorb(mixed, table, None) is None
    assert not table.any()
    absorbed = numpy_engine.absorb(mixed.leading(5_000), table, None)
    assert absorbed.n == table[:, 0].sum() == 5_000
    assert absorbed.row_counts.tolist() == [
        [5_000 - mixed.label[:5_000].sum(), mixed.label[:5_000].sum()]
    ]


@pytest.mark.parametrize(("folds", "is_taken"), [(5, True), (100, True), (1_000, False)])
def test_without_a_compiler_rows_of_many_folds_are_not_counted_by_the_table(mixed, folds, is_taken):
    rows = replace(mixed.leading(5_000), rule=HashRule(folds=folds))
    table = np.zeros((2 * folds * N_BINS, ORDER))
    assert (numpy_engine.absorb(rows, table, None) is not None) == is_taken
    assert table[:, 0].sum() == 5_000 * is_taken


def test_the_compiled_loops_stop_before_a_strip_with_another_row(mixed):
    taken, table = absorbed(
        {"label": mixed.label, "prediction": mixed.prediction}, is_logit=True, rule=mixed.rule
    )
    assert 4_000 < taken.n <= 5_000
    assert table[:, 0].sum() == taken.row_counts.sum() == taken.support.sum() == taken.n
    assert taken.row_counts[0, 1] == mixed.label[: taken.n].sum()
