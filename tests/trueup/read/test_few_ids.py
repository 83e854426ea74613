"""A column of few levels as row ids divides levels and not rows, which is said once."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate, evaluate_files
from trueup.errors import TrueupError, TrueupWarning
from trueup.summaries import LogLossSummary

N = 600
RNG = np.random.default_rng(0)
P = RNG.uniform(0.05, 0.95, N)
Y = (RNG.random(N) < P).astype(int)
POSITION = np.arange(N)


def told(call, *arguments, **named):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", TrueupWarning)
        try:
            call(*arguments, **named)
        except TrueupError:
            found.append(None)
    return [str(one.message) for one in found if one is not None]


@pytest.mark.parametrize(
    ("row_id", "split", "n_ids"),
    [
        (POSITION % 3, CrossFit(5), "3 ids in 600 rows"),
        (np.array(["a", "b", "c"])[POSITION % 3], HoldOut(0.1), "3 ids in 600 rows"),
        (POSITION // 6, CrossFit(5), "100 ids in 600 rows"),
        (POSITION * 0, CrossFit(5), "1 id in 600 rows"),  # and then the split is refused
        (POSITION // 4, CrossFit(5), None),  # 150 groups, as of users, may well stay together
        (POSITION, CrossFit(5), None),
        (POSITION % 3, InSample(), None),
        (POSITION % 3, Rolling(100), None),  # by time alone
        (None, CrossFit(5), None),
    ],
)
def test_few_ids_are_said_where_they_decide(row_id, split, n_ids):
    times = POSITION if isinstance(split, Rolling) else None
    found = told(evaluate, Y, P, row_id=row_id, split=split, times=times)
    assert [f"row_id holds {n_ids}, and rows of one id" in one for one in found] == (
        [True] if n_ids else []
    )


def test_few_rows_of_which_two_share_an_id_are_no_matter():
    assert told(evaluate, Y[:60], P[:60], row_id=[0, *range(59)]) == []


@pytest.mark.parametrize("labels", [None, [0, 1]])  # the compiled way, and that of checked rows
@pytest.mark.parametrize("threads", [1, 2])
def test_long_columns_and_files_are_looked_through(labels, threads, tmp_path):
    y, p, bins = np.tile(Y, 200), np.tile(P, 200), np.repeat([1, 2, 3, 4], 30_000)
    options = {"labels": labels, "threads": threads}
    assert "4 ids in 120,000 rows" in told(evaluate, y, p, row_id=bins, **options)[0]
    assert told(evaluate, y, p, row_id=np.arange(120_000) % 101, **options) == []
    frame = pd.DataFrame({"y": y, "p": p, "bin": bins})
    for part in range(2):
        frame.iloc[part::2].to_parquet(tmp_path / f"{part}.parquet")
    columns = {"y_true": "y", "y_proba": "p", "row_id": "bin", **options}
    assert "4 ids in 120,000 rows" in told(evaluate_files, tmp_path / "*.parquet", **columns)[0]


def test_an_update_is_a_part_of_the_rows_and_not_judged():
    """Batches by id hold one id each, and all of them together many."""
    summary = LogLossSummary(CrossFit(5))
    for part in np.split(POSITION, 150):
        assert told(summary.update, Y[part], P[part], row_id=part // 4) == []
    assert told(evaluate, Y, P, row_id=POSITION // 4) == []
