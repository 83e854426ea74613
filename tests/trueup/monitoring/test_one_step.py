import numpy as np
import pytest

from trueup.errors import InvalidInputError, NotFittedError
from trueup.monitoring import ConsensusEstimator, MSEEstimate, OneStepCheckModel


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, X[:, 0], X[:, 0] + 0.5 * rng.normal(size=300)


def test_the_estimate_is_the_mean_of_twice_the_squared_distance(data):
    X, f, y = data
    check = OneStepCheckModel(epochs=5).fit(X, f, y)
    x = (X - X.mean(0)) / X.std(0)
    scaled = (f - y.mean()) / y.std()
    h = check._network.network.predict(x)[0]
    expected = (2 * (h - scaled) ** 2).mean() * y.var()
    assert check.estimate(X, f).mse == pytest.approx(expected, rel=1e-5)


def test_offset_head_stays_below_the_prediction(data):
    X, f, y = data
    check = OneStepCheckModel("k", "offset", epochs=5).fit(X, f, y)
    assert (check._network.squared_errors(X[None], f[None]) > 0).all()
    assert check.estimate(X, f).mse == pytest.approx(0.25, abs=0.12)


@pytest.mark.parametrize("head", ["plain", "offset"])
def test_units_of_the_target_scale_the_estimate(data, head):
    X, f, y = data
    plain = OneStepCheckModel("k", head, epochs=20).fit(X, f, y).estimate(X, f)
    scaled = OneStepCheckModel("k", head, epochs=20).fit(X, 10 * f + 3, 10 * y + 3)
    assert scaled.estimate(X, 10 * f + 3).mse == pytest.approx(100 * plain.mse, rel=1e-3)


def test_the_same_seed_gives_the_same_estimate_and_another_does_not(data):
    X, f, y = data
    first, again, other = (
        OneStepCheckModel(epochs=3, random_state=seed).fit(X, f, y).estimate(X, f)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first.mse != other.mse


def test_no_global_generator_is_touched(data):
    import torch

    state, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    OneStepCheckModel(epochs=1).fit(*data)
    assert torch.equal(state, torch.get_rng_state())
    np.testing.assert_array_equal(legacy, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("head", ["plain", "offset"])
def test_a_saved_model_loads_with_pickle_disallowed_and_gives_the_same(data, head, tmp_path):
    X, f, y = data
    check = OneStepCheckModel("k", head, epochs=3).fit(X, f, y)
    check.save(tmp_path / "check.npz")
    with np.load(tmp_path / "check.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)
    assert OneStepCheckModel.load(tmp_path / "check.npz").estimate(X, f) == check.estimate(X, f)


def test_loading_another_kind_is_an_error(data, tmp_path):
    OneStepCheckModel(epochs=1).fit(*data).save(tmp_path / "check.npz")
    with pytest.raises(InvalidInputError, match="path must be a saved ConsensusEstimator; got"):
        ConsensusEstimator.load(tmp_path / "check.npz")


def test_result_is_frozen_and_becomes_a_dictionary(data):
    estimate = OneStepCheckModel(epochs=1).fit(*data).estimate(*data[:2])
    assert isinstance(estimate, MSEEstimate)
    assert estimate.low <= estimate.mse <= estimate.high
    assert estimate.members == {"one_step_l": estimate.mse}
    assert estimate.to_dict()["n"] == 300
    with pytest.raises(AttributeError):
        estimate.mse = 0.0


def test_early_stopping_and_minibatches_run(data):
    X, f, y = data
    check = OneStepCheckModel(batch_size=64, validation_fraction=0.2, epochs=30).fit(X, f, y)
    assert check.estimate(X, f).mse > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "m"}, r"objective must be .* got 'm'"),
        ({"head": "up"}, 'head must be "plain" or "offset"; got \'up\''),
        ({"epochs": 0}, "epochs must be an integer of at least 1; got 0"),
        ({"hidden": 0}, "hidden must be an integer of at least 1; got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be positive; got -1.0"),
        ({"weight_decay": -0.1}, "weight_decay must not be negative; got -0.1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1; got 0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be in \[0, 1\); got 1.0"),
    ],
)
def test_bad_settings_are_errors(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        OneStepCheckModel(**settings)


@pytest.mark.parametrize(
    ("X", "f", "y", "message"),
    [
        (np.zeros(3), [1, 2, 3], [1, 2, 3], r"X must be two-dimensional .* got shape \(3,\)"),
        (np.zeros((3, 1)), [1, 2], [1, 2, 3], r"y_pred must have shape \(3,\); got \(2,\)"),
        (np.zeros((3, 1)), [1, 2, 3], [1, np.nan, 3], "y_true must be finite.* got nan at index 1"),
        (np.zeros((3, 1)), ["a", "b", "c"], [1, 2, 3], "y_pred must be numbers; got dtype"),
        (np.full((3, 1), np.inf), [1, 2, 3], [1, 2, 3], "X must be finite or missing in column"),
    ],
)
def test_bad_input_is_an_error(X, f, y, message):
    with pytest.raises(InvalidInputError, match=message):
        OneStepCheckModel().fit(X, f, y)


def test_unfitted_models_say_so(tmp_path):
    check = OneStepCheckModel()
    for call in (
        lambda: check.estimate([[0.0]], [0.0]),
        lambda: check.save(tmp_path / "a.npz"),
        lambda: check.squared_errors(np.zeros((1, 1)), np.zeros(1)),
    ):
        with pytest.raises(NotFittedError, match=r"must be fitted; got no fit\. Call fit first"):
            call()
