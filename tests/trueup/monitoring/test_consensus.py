import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from trueup.errors import InvalidInputError, NotFittedError
from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.panel.fitting import out_of_fold_predictions


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0], X[:, 0] + 0.5 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return ConsensusEstimator().fit(*draw())


def test_headline_is_the_median_of_the_named_members(fitted):
    estimate = fitted.estimate(*draw(seed=1)[:2])
    assert set(estimate.members) == {
        "importance",
        "neighbours",
        "disagreement",
        "one_step",
        "one_step_offset",
    }
    assert estimate.mse == np.median(list(estimate.members.values()))
    assert estimate.low < 0.25 < estimate.high
    assert estimate.trusted
    assert estimate.reasons == ()
    assert set(estimate.diagnostics) == {
        "domain_auc",
        "outside",
        "effective_sample_size",
        "disagreement_ratio",
    }


def test_the_same_batch_gives_the_same_estimate(fitted):
    X, f, _ = draw(seed=1)
    assert fitted.estimate(X, f) == fitted.estimate(X, f)


def test_units_of_the_target_scale_estimate_and_interval(fitted):
    X, f, y = draw()
    estimate = fitted.estimate(X, f)
    scaled = ConsensusEstimator().fit(X, 10 * f, 10 * y).estimate(X, 10 * f)
    for name in ("mse", "low", "high"):
        assert getattr(scaled, name) == pytest.approx(100 * getattr(estimate, name), rel=1e-2)


def test_a_refittable_model_is_never_judged_by_its_training_errors():
    X, _, y = draw()
    forest = RandomForestRegressor(30, random_state=0).fit(X, y)
    before = forest.predict(X)
    consensus = ConsensusEstimator(forest, reference="train").fit(X, before, y)
    estimate = consensus.estimate(X, before)
    training = ((y - before) ** 2).mean()
    assert estimate.mse > 3 * training
    assert "one_step_train" in estimate.members
    np.testing.assert_array_equal(forest.predict(X), before)


def test_out_of_fold_predictions_equal_cross_val_predict():
    from sklearn.model_selection import KFold, cross_val_predict

    X, _, y = draw()
    folds = KFold(5, shuffle=True, random_state=4)
    expected = cross_val_predict(LinearRegression(), X, y, cv=folds)
    found = out_of_fold_predictions(
        LinearRegression(), pd.DataFrame(X), y, probability=False, random_state=4
    )
    np.testing.assert_allclose(found, expected)


def test_training_errors_alone_are_labelled_biased_low_and_not_trusted():
    X, f, y = draw()
    estimate = ConsensusEstimator(reference="train").fit(X, f, y).estimate(X, f)
    assert list(estimate.members) == ["one_step_l"]
    assert not estimate.trusted
    assert estimate.reasons[0].startswith("biased low")


def test_binary_labels_are_judged_by_the_brier_score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y = (rng.random(2_000) < p).astype(float)
    estimate = ConsensusEstimator().fit(X, p, y).estimate(X, p)
    assert set(estimate.members) == {
        "importance",
        "neighbours",
        "one_step_offset",
        "direct_loss",
    }
    assert estimate.mse == pytest.approx((p * (1 - p)).mean(), rel=0.1)


def test_a_refitted_classifier_is_asked_for_probabilities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    estimate = ConsensusEstimator(model, reference="train").fit(X, p, y).estimate(X, p)
    assert estimate.mse == pytest.approx(((y - p) ** 2).mean(), rel=0.15)


def test_large_references_use_the_offset_head():
    X, f, y = draw(n=5_000)
    estimate = ConsensusEstimator().fit(X, f, y).estimate(X[:500], f[:500])
    assert "one_step" not in estimate.members
    assert estimate.members["one_step_offset"] == pytest.approx(0.25, rel=0.15)


def test_rows_outside_of_the_reference_are_not_to_be_trusted(fitted):
    X, f, _ = draw(seed=1)
    estimate = fitted.estimate(X + 20.0, f + 20.0)
    assert not estimate.trusted
    assert estimate.reasons[0].startswith("outside of the reference")


def test_new_levels_are_named_but_do_not_fail():
    X, f, y = draw()
    table = pd.DataFrame({"x": X[:, 0], "city": np.where(X[:, 1] > 0, "a", "b")})
    consensus = ConsensusEstimator().fit(table, f, y)
    estimate = consensus.estimate(table.assign(city="c"), f)
    assert "levels that the reference never had: ['c']" in estimate.reasons[-1]


@pytest.mark.parametrize("kind", ["held-out", "train", "binary"])
def test_a_saved_estimator_loads_in_a_fresh_process_without_pickle(kind, tmp_path):
    X, f, y = draw(100)
    if kind == "binary":
        f, y = 1 / (1 + np.exp(-f)), (y > 0).astype(float)
    model = LinearRegression().fit(X, y) if kind == "train" else None
    reference = "train" if kind == "train" else "held-out"
    consensus = ConsensusEstimator(model, reference=reference).fit(X, f, y)
    consensus.save(tmp_path / "state.npz")
    np.savez(tmp_path / "batch.npz", X=X, f=f)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)
    code = (
        "import sys, numpy as np; from trueup.monitoring import ConsensusEstimator;"
        "b = np.load(sys.argv[2]); c = ConsensusEstimator.load(sys.argv[1]);"
        "print(repr(c.estimate(b['X'], b['f']).mse))"
    )
    arguments = [
        sys.executable,
        "-c",
        code,
        str(tmp_path / "state.npz"),
        str(tmp_path / "batch.npz"),
    ]
    out = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(consensus.estimate(X, f).mse, rel=1e-6)


def test_a_fit_names_the_missing_package_that_an_estimate_takes(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"ConsensusEstimator needs sklearn. .*trueup\[sklearn\]"):
        ConsensusEstimator().fit(*draw())


def test_a_fit_on_held_out_rows_does_not_wait_for_the_packages_of_an_estimate():
    code = (
        "import sys, numpy as np; from trueup.monitoring import ConsensusEstimator;"
        "X = np.random.default_rng(0).normal(size=(40, 2));"
        "ConsensusEstimator().fit(X, X[:, 0], X[:, 1]);"
        "assert {'sklearn', 'scipy.stats'}.isdisjoint(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_of_zero_give_an_estimate_near_zero():
    X, f, _ = draw()
    estimate = ConsensusEstimator().fit(X, f, f).estimate(X, f)
    assert 0 <= estimate.low <= estimate.mse <= estimate.high
    assert estimate.mse < 0.05


def test_bad_input_is_an_error(fitted, tmp_path):
    X, f, y = draw(20)
    with pytest.raises(InvalidInputError, match="reference must have at least 30 rows; got 20"):
        ConsensusEstimator().fit(X, f, y)
    with pytest.raises(InvalidInputError, match='reference must be "held-out" or "train"'):
        ConsensusEstimator(reference="test")
    with pytest.raises(InvalidInputError, match="X must have the 2 columns of the reference"):
        fitted.estimate(X[:, :1], f)
    with pytest.raises(InvalidInputError, match=r"y_pred must have shape \(20,\); got \(3,\)"):
        fitted.estimate(X, f[:3])
    with pytest.raises(NotFittedError, match="consensus must be fitted"):
        ConsensusEstimator().estimate(X, f)
    with pytest.raises(NotFittedError, match="consensus must be fitted"):
        ConsensusEstimator().save(tmp_path / "state.npz")


def test_reading_a_result_loads_no_heavy_package():
    code = (
        "import sys; from trueup.monitoring import MSEEstimate;"
        "print([m for m in ('torch', 'sklearn', 'lightgbm', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
