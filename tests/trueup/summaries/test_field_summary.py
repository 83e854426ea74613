from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from tests.engines import use_engine

from trueup import InSample, evaluate
from trueup.errors import InvalidInputError, StateMismatchError
from trueup.fields.measure import field_calibration
from trueup.summaries import FieldSummary, LogLossSummary

LEVELS = {
    "strings": lambda z: np.array([f"site {i}" for i in z]),
    "codes": lambda z: z,
    "negative": lambda z: z - 5,
    "floats with nan": lambda z: np.where(z == 0, np.nan, z),
    "objects with none": lambda z: np.array([None if i == 0 else f"s{i}" for i in z], object),
    "categories": lambda z: pd.Series([None if i == 0 else f"s{i}" for i in z], dtype="category"),
}


@pytest.mark.parametrize("make", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_merge_to_the_field_calibration_of_all_rows(make, weighted, draw, rng):
    y_true, logit, weight = draw(3_000)
    weight = weight if weighted else None
    field, proba = make(rng.integers(0, 40, 3_000)), expit(logit)
    summary = FieldSummary("site")
    for rows in np.split(np.arange(3_000), [0, 10, 1_700]):
        part = FieldSummary("site")
        batch_weight = None if weight is None else weight[rows]
        part.update(y_true[rows], proba[rows], field[rows], sample_weight=batch_weight)
        summary.merge(part)
    expected = field_calibration(y_true, proba, field, sample_weight=weight)
    got = summary.compute()
    assert (got.n_levels, got.epsilon) == (expected.n_levels, expected.epsilon)
    assert (got.ece, got.rce) == pytest.approx((expected.ece, expected.rce), abs=1e-14)
    assert got.floor == pytest.approx(expected.floor, rel=0.1 if weight is not None else 0.002)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", ["y_pred", "y_logit"])
def test_one_pass_sums_up_fields_as_the_general_path_does(scale, weighted, draw, rng, monkeypatch):
    y_true, logit, weight = draw(5_000)
    logit[4_000] = 60.0  # beyond the grid: the rows around it take the general path
    code = rng.integers(0, 40, 5_000) * 3
    columns = {scale: logit if scale == "y_logit" else expit(np.minimum(logit, 30.0))}
    columns |= {"sample_weight": weight} if weighted else {}
    fields = {"site": code, "name": code.astype(str)}
    found = {}
    for engine in ("compiled", "numpy"):
        use_engine(engine, monkeypatch)
        summary, field = LogLossSummary(), FieldSummary("site")
        summary.update(y_true, **columns, fields=fields)
        field.update(y_true, expit(logit), code)
        found[engine] = [*summary.compute().fields.values(), field.compute()]
    for ours, general in zip(found["compiled"], found["numpy"], strict=True):
        assert ours.n_levels == general.n_levels
        for name in ("ece", "rce", "floor"):
            assert getattr(ours, name) == pytest.approx(getattr(general, name), abs=1e-13)


def test_missing_is_a_level_apart_from_the_empty_string(draw):
    y_true, logit, _ = draw(4)
    summary = FieldSummary("site")
    summary.update(y_true, expit(logit), np.array(["", None, "a", None], dtype=object))
    assert set(summary.levels) == {"", "(missing)", "a"}


def test_fields_of_a_loss_summary_equal_those_in_memory(draw, rng):
    y_true, logit, weight = draw(4_000)
    fields = {"site": rng.integers(0, 30, 4_000).astype(str), "hour": rng.integers(0, 24, 4_000)}
    summary = LogLossSummary(InSample())
    for rows in np.array_split(rng.permutation(4_000), 6):
        part = {name: values[rows] for name, values in fields.items()}
        summary.update(
            y_true[rows], y_logit=logit[rows], sample_weight=weight[rows], fields=part, threads=2
        )
    expected = evaluate(
        y_true, y_logit=logit, sample_weight=weight, fields=fields, split=InSample()
    ).fields
    got = summary.compute().fields
    assert got.keys() == expected.keys()
    for name in fields:
        assert got[name].n_levels == expected[name].n_levels
        assert got[name].ece == pytest.approx(expected[name].ece, abs=1e-13)
        assert got[name].rce == pytest.approx(expected[name].rce, abs=1e-13)


def test_bad_fields_are_refused(draw):
    y_true, logit, _ = draw(100)
    summary = FieldSummary("site")
    with pytest.raises(InvalidInputError, match=r"site must have as many rows as y_true \(100\)"):
        summary.update(y_true, expit(logit), np.arange(99))
    with pytest.raises(
        InvalidInputError, match=r"site must be whole numbers .* got 0\.5 at index 1"
    ):
        summary.update(y_true, expit(logit), np.arange(100) / 2.0)
    with pytest.raises(StateMismatchError, match="of one field; got 'site' and 'hour'"):
        summary.merge(FieldSummary("hour"))
    with pytest.raises(InvalidInputError, match=r"hour must have as many rows as y_true \(100\)"):
        LogLossSummary().update(y_true, y_logit=logit, fields={"hour": np.arange(99)})
