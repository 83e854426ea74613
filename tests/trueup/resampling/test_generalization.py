from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

from trueup import InSample, evaluate
from trueup.errors import InvalidInputError, TrueupWarning, UndefinedMetricError
from trueup.resampling import Bootstrap, generalization_error

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int)


def test_a_constant_predictor_by_hand():
    y = np.array([0.0, 2.0, 4.0, 6.0])
    pairs = [([0, 1], [2, 3]), ([2, 3], [0, 1])]
    estimate = generalization_error(
        DummyRegressor(), np.zeros((4, 1)), y, pairs, loss="mean_squared_error", split=InSample()
    )
    # The mean of one half misses the other half by 3 and 5: (9 + 25) / 2; less its bias, by 1.
    assert [fold.vanilla for fold in estimate.folds] == [17.0, 17.0]
    assert (estimate.vanilla, estimate.calibrated, estimate.value) == (17.0, 1.0, 1.0)
    assert (estimate.n_train, estimate.n_splits, estimate.strategy) == (2.0, 2, "given splits")


@pytest.mark.parametrize("loss", ["log_loss", "brier_score", "roc_auc"])
def test_vanilla_values_are_those_of_scikit_learn(rows, loss):
    scoring = {"log_loss": "neg_log_loss", "brier_score": "neg_brier_score"}.get(loss, loss)
    expected = cross_val_score(LogisticRegression(), *rows, cv=FOLDS, scoring=scoring)
    estimate = generalization_error(LogisticRegression(), *rows, FOLDS, loss=loss)
    sign = 1.0 if loss == "roc_auc" else -1.0
    np.testing.assert_allclose([f.vanilla for f in estimate.folds], sign * expected, rtol=1e-12)
    assert estimate.greater_is_better is (loss == "roc_auc")


def test_calibrated_values_are_those_of_evaluate_on_each_test_set(rows):
    X, y = rows
    estimate = generalization_error(LogisticRegression(), X, y, FOLDS)
    for fold, (train, test) in zip(estimate.folds, FOLDS.split(X, y), strict=True):
        proba = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
        assert fold.calibrated == evaluate(y[test], proba, row_id=test).calibrated
    assert estimate.calibrated == pytest.approx(np.mean([f.calibrated for f in estimate.folds]))


@pytest.mark.parametrize("loss", ["mean_squared_error", "poisson_deviance"])
def test_regressors_and_counts(rows, loss):
    X, y = rows
    inducer = LinearRegression() if loss == "mean_squared_error" else PoissonRegressor()
    estimate = generalization_error(inducer, X, y, KFold(5), loss=loss)
    assert 0.0 < estimate.low < estimate.value < estimate.high


@pytest.mark.parametrize(
    "container", [pd.DataFrame, sparse.coo_array, list], ids=["pandas", "sparse", "list"]
)
def test_containers_don_t_change_the_result(rows, container):
    X, y = rows
    plain = generalization_error(LogisticRegression(), X, y, FOLDS)
    assert generalization_error(LogisticRegression(), container(X), y, FOLDS).value == (
        pytest.approx(plain.value, rel=1e-6)
    )


def test_labels_may_have_any_names(rows):
    X, y = rows
    plain = generalization_error(LogisticRegression(), X, y, FOLDS)
    named = generalization_error(LogisticRegression(), X, np.array(["late", "on time"])[y], FOLDS)
    assert named.value == plain.value


def test_a_class_that_a_training_set_lacks_has_probability_zero():
    y = np.array([0, 1, 0, 1, 0, 1, 0, 2])
    pairs = [(np.arange(6), np.array([6, 7]))]
    with pytest.warns(TrueupWarning, match="predictions are 0 or 1"):
        estimate = generalization_error(
            DummyClassifier(strategy="prior"), np.zeros((8, 1)), y, pairs, calibrated=False
        )
    eps = np.finfo(float).eps
    assert estimate.vanilla == pytest.approx((np.log(2) - np.log(eps)) / 2)


def test_a_training_function_is_an_inducer(rows):
    X, y = rows

    def induce(X_train, y_train):
        rate = y_train.mean()
        return lambda X_new: np.full(len(X_new), rate)

    constant = generalization_error(induce, X, y, FOLDS)
    dummy = generalization_error(DummyClassifier(strategy="prior"), X, y, FOLDS)
    assert constant.value == pytest.approx(dummy.value)


def test_a_torch_training_function_is_an_inducer(rows):
    torch = pytest.importorskip("torch")

    def induce(X_train, y_train):
        weight = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight], max_iter=20)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(X_train @ weight, y_train)
            loss.backward()
            return loss

        optimizer.step(closure)
        return lambda X_new: torch.sigmoid(X_new @ weight)

    X, y = (torch.tensor(column, dtype=torch.float64) for column in rows)
    estimate = generalization_error(induce, X.float(), y.float(), FOLDS)
    peer = generalization_error(LogisticRegression(C=1e6, fit_intercept=False), *rows, FOLDS)
    assert estimate.value == pytest.approx(peer.value, rel=1e-3)


def test_the_result_does_not_depend_on_the_number_of_processes(rows):
    one, two = (
        generalization_error(LogisticRegression(), *rows, FOLDS, n_jobs=n_jobs)
        for n_jobs in (None, 2)
    )
    assert one == two


def test_splits_may_be_masks(rows):
    pairs = list(FOLDS.split(*rows))
    masks = [tuple(np.isin(np.arange(300), part) for part in pair) for pair in pairs]
    by_index, by_mask = (
        generalization_error(LogisticRegression(), *rows, given) for given in (pairs, masks)
    )
    assert by_index == by_mask


def test_the_order_of_the_splits_does_not_matter(rows):
    pairs = list(FOLDS.split(*rows))
    forth, back = (
        generalization_error(LogisticRegression(), *rows, order) for order in (pairs, pairs[::-1])
    )
    assert forth.value == pytest.approx(back.value, rel=1e-12)


def test_the_squared_error_scales_with_the_square_of_the_target(rows):
    one, three = (
        generalization_error(
            LinearRegression(), rows[0], scale * rows[1], KFold(5), loss="mean_squared_error"
        )
        for scale in (1.0, 3.0)
    )
    np.testing.assert_allclose(
        [three.vanilla, three.value, three.low], 9 * np.array([one.vanilla, one.value, one.low])
    )


def test_the_inducer_stays_as_it_is(rows):
    inducer = LogisticRegression()
    generalization_error(inducer, *rows, FOLDS)
    assert not hasattr(inducer, "coef_")


WITH_INTERVAL = [
    5,
    KFold(5),
    StratifiedKFold(5),
    RepeatedKFold(n_splits=5, n_repeats=2, random_state=0),
    RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0),
    ShuffleSplit(5, random_state=0),
    StratifiedShuffleSplit(5, random_state=0),
    GroupKFold(5),
]
WITHOUT_INTERVAL = {
    "repeat rows": Bootstrap(5, random_state=0),
    "grow": TimeSeriesSplit(4),
    "only": PredefinedSplit(np.arange(300) % 3),
    "one test set": ShuffleSplit(1, random_state=0),
}


@pytest.mark.parametrize("strategy", WITH_INTERVAL, ids=lambda s: type(s).__name__)
def test_strategies_with_an_interval(rows, strategy):
    groups = np.arange(300) % 30 if isinstance(strategy, GroupKFold) else None
    estimate = generalization_error(
        LogisticRegression(), *rows, strategy, groups=groups, split=InSample()
    )
    assert estimate.low < estimate.value < estimate.high
    assert estimate.reasons == ()


@pytest.mark.parametrize("reason", WITHOUT_INTERVAL)
def test_other_strategies_say_why_they_have_no_interval(rows, reason):
    strategy = WITHOUT_INTERVAL[reason]
    estimate = generalization_error(LogisticRegression(), *rows, strategy, split=InSample())
    assert (estimate.low, estimate.high) == (None, None)
    assert reason in estimate.reasons[0]
    assert np.isfinite(estimate.value)


def test_groups_are_never_on_both_sides(rows):
    seen = []

    def induce(X_train, y_train):
        seen.append(set(X_train[:, 0].astype(int)))
        return lambda X_new: seen.append(set(X_new[:, 0].astype(int))) or np.full(len(X_new), 0.5)

    groups = np.arange(300) // 10
    generalization_error(induce, groups[:, None], rows[1], GroupKFold(5), groups=groups)
    for train, test in zip(seen[::2], seen[1::2], strict=True):
        assert train.isdisjoint(test)


def test_set_measures_under_leave_one_out_pool_the_scores_with_a_warning(rows):
    X, y = rows[0][:60], rows[1][:60]
    with pytest.warns(TrueupWarning, match="roc_auc has no value on a single row.*pooled"):
        estimate = generalization_error(LogisticRegression(), X, y, LeaveOneOut(), loss="roc_auc")
    scores = [
        LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[0, 1]
        for train, test in LeaveOneOut().split(X)
    ]
    assert estimate.value == pytest.approx(roc_auc_score(y, scores))
    assert (estimate.aggregate, estimate.interval) == ("pool", None)
    assert all(fold.vanilla is None for fold in estimate.folds)


def test_the_calibrated_loss_under_leave_one_out_fits_its_bias_on_all_rows(rows):
    X, y = rows[0][:60], rows[1][:60]
    with pytest.warns(TrueupWarning, match="the calibrated log_loss has no value on a single row"):
        estimate = generalization_error(LogisticRegression(), X, y, LeaveOneOut())
    scores = np.array(
        [
            LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[0, 1]
            for train, test in LeaveOneOut().split(X)
        ]
    )
    assert estimate.vanilla == pytest.approx(log_loss(y, scores))
    assert estimate.calibrated == pytest.approx(evaluate(y, scores).calibrated)


def test_vanilla_losses_under_leave_one_out_need_no_warning(rows):
    estimate = generalization_error(
        LogisticRegression(), rows[0][:40], rows[1][:40], LeaveOneOut(), calibrated=False
    )
    assert estimate.calibrated is None
    assert estimate.value == pytest.approx(np.mean([fold.vanilla for fold in estimate.folds]))


def test_aggregates(rows):
    mean, median, worst, pool = (
        generalization_error(LogisticRegression(), *rows, FOLDS, aggregate=aggregate)
        for aggregate in ("mean", "median", np.max, "pool")
    )
    values = [fold.calibrated for fold in mean.folds]
    assert median.value == pytest.approx(np.median(values))
    assert worst.value == max(values)
    assert pool.vanilla == pytest.approx(mean.vanilla)  # a mean over rows, equal test sets
    assert mean.interval is not None
    assert (worst.aggregate, worst.interval, pool.interval) == ("max", None, None)


@pytest.mark.parametrize(
    ("measure", "direction"), [(roc_auc_score, True), (log_loss, False), (lambda y, p: 1.0, None)]
)
def test_any_function_of_a_set_is_a_measure(rows, measure, direction):
    estimate = generalization_error(LogisticRegression(), *rows, FOLDS, loss=measure)
    assert estimate.greater_is_better is direction
    assert "no bias term" in estimate.reasons[0]


def test_set_measures_take_decision_values_where_there_is_no_probability(rows):
    from sklearn.svm import LinearSVC

    estimate = generalization_error(LinearSVC(random_state=0), *rows, FOLDS, loss="roc_auc")
    assert estimate.value > 0.7


def test_the_sentence_says_what_was_estimated(rows):
    text = str(generalization_error(LogisticRegression(), *rows, FOLDS))
    assert text.startswith("calibrated log_loss 0.")
    assert "for training sets of 240 rows (mean over 5 test sets of StratifiedKFold(" in text


BAD = [
    ({"inducer": 3}, InvalidInputError, "inducer must be an estimator with fit, or a function"),
    ({"inducer": LogisticRegression}, InvalidInputError, "inducer must be an estimator"),
    ({"resampling": "cv"}, InvalidInputError, "resampling must be a splitter"),
    ({"resampling": None}, InvalidInputError, "resampling must be a splitter"),
    ({"resampling": KFold}, InvalidInputError, "resampling must be a splitter"),
    ({"resampling": [([0], [])]}, InvalidInputError, "resampling must give .* with rows"),
    ({"resampling": [([0, 1], [2]), ([4, 5], [5])]}, InvalidInputError, "row 5 in both at index 1"),
    ({"y": np.zeros(299)}, InvalidInputError, "X, y and groups must have one entry"),
    ({"y": np.zeros(300)}, InvalidInputError, "y must hold at least two classes"),
    ({"y": np.arange(300) % 3, "loss": "roc_auc"}, InvalidInputError, "y must hold two classes"),
    ({"loss": "auc"}, InvalidInputError, "loss must be one of .*roc_auc.*got 'auc'"),
    ({"loss": 3}, InvalidInputError, "loss must be one of"),
    ({"aggregate": "max"}, InvalidInputError, "aggregate must be"),
    ({"split": 5}, InvalidInputError, "split must be a Split"),
    ({"confidence_level": 1.0}, InvalidInputError, "confidence_level must be in"),
    ({"inducer": lambda X, y: 1}, InvalidInputError, "a training function must return"),
    ({"inducer": lambda X, y: len}, InvalidInputError, "predictions must be one for each"),
    ({"inducer": LinearRegression()}, InvalidInputError, "inducer must have predict_proba"),
    (
        {"resampling": [([0, 1, 2, 3], [4])], "loss": "log_loss", "aggregate": "mean"},
        UndefinedMetricError,
        "log_loss is undefined on all test sets as one: .*calibrated=False",
    ),
    (
        {"y": np.arange(300) >= 150, "resampling": KFold(2), "loss": "roc_auc"},
        UndefinedMetricError,
        "roc_auc is undefined on test set 0: y must hold both classes .*stratified",
    ),
    ({"loss": lambda y, p: np.nan}, UndefinedMetricError, "must be finite; got nan"),
]


@pytest.mark.filterwarnings("ignore:the calibrated log_loss has no value on a single row")
@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input_is_named(rows, change, error, message):
    arguments = {"inducer": DummyClassifier(strategy="prior"), "X": rows[0], "y": rows[1]}
    with pytest.raises(error, match=message):
        generalization_error(**{**arguments, "resampling": FOLDS, **change})
