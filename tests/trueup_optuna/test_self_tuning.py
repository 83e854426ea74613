from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from trueup.errors import InvalidInputError
from trueup.resampling import generalization_error, nested_resampling
from trueup_optuna import SelfTuningLearner
from trueup_optuna.tuning_samplers import grid_of

SPACE = {"alpha": FloatDistribution(1e-3, 1e3, log=True)}
FOLDS = KFold(4, shuffle=True, random_state=0)
WEIGHTS_ARE_NO_ROWS = {  # as for every estimator with a cross-validation inside
    f"check_sample_weight_equivalence_on_{kind}_data": "repeated rows change the inner splits"
    for kind in ("dense", "sparse")
}
SAMPLERS = ["random", "grid", "tpe", "gp", "cmaes", "nsga2", "hyperband"]


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=60)


class Valley(RegressorMixin, BaseEstimator):
    """Predicts the mean plus a distance of its parameters from (0.3, 0.7): a known optimum."""

    def __init__(self, a=0.0, b=0.0):
        self.a = a
        self.b = b

    def fit(self, X, y):
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_ + np.hypot(self.a - 0.3, self.b - 0.7))


VALLEY = {"a": FloatDistribution(0.0, 1.0), "b": FloatDistribution(0.0, 1.0)}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_comes_near_a_known_optimum(rows, sampler):
    learner = SelfTuningLearner(
        Valley(), VALLEY, sampler, resampling=FOLDS, n_trials=25, random_state=0
    )
    best = learner.fit(*rows).best_params_
    assert np.hypot(best["a"] - 0.3, best["b"] - 0.7) < 0.25  # a random point: 0.5 on average
    assert len(learner.study_.trials) <= 25


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_seed_gives_the_same_search(rows, sampler):
    def trials(random_state):
        learner = SelfTuningLearner(
            Valley(), VALLEY, sampler, resampling=3, n_trials=6, random_state=random_state
        )
        return [(trial.params, trial.state) for trial in learner.fit(*rows).study_.trials]

    assert trials(3) == trials(3)
    assert sampler == "grid" or trials(3) != trials(4)


def test_hyperband_gives_promising_configurations_more_test_sets(rows):
    learner = SelfTuningLearner(
        Valley(), VALLEY, "hyperband", resampling=9, n_trials=40, random_state=0
    )
    trials = learner.fit(*rows).study_.trials
    pruned = [t for t in trials if t.state is optuna.trial.TrialState.PRUNED]
    complete = [t for t in trials if t.state is optuna.trial.TrialState.COMPLETE]
    assert {len(trial.intermediate_values) for trial in complete} == {9}
    assert pruned
    assert max(len(trial.intermediate_values) for trial in pruned) < 9


def test_the_value_of_a_trial_is_the_estimated_error(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, resampling=FOLDS, n_trials=3, random_state=0)
    learner.fit(*rows)
    again = generalization_error(
        Ridge(**learner.best_params_), *rows, FOLDS, loss="mean_squared_error", calibrated=False
    )
    assert learner.best_value_ == pytest.approx(again.value)
    assert learner.best_value_ == min(trial.value for trial in learner.study_.trials)


def test_the_selected_inducer_is_trained_on_all_rows(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, n_trials=3, random_state=0).fit(*rows)
    expected = Ridge(**learner.best_params_).fit(*rows)
    np.testing.assert_array_equal(learner.predict(rows[0]), expected.predict(rows[0]))
    assert learner.score(*rows) == expected.score(*rows)


def test_the_same_splits_judge_every_configuration(rows):
    space = {"fit_intercept": CategoricalDistribution([True])}
    learner = SelfTuningLearner(
        LinearRegression(), space, "random", resampling=KFold(3, shuffle=True), n_trials=4
    )
    values = {trial.value for trial in learner.fit(*rows).study_.trials}
    assert len(values) == 1


def test_classifiers_tune_the_log_loss_and_give_probabilities(rows):
    X, y = rows[0], (rows[1] > 0).astype(int)
    space = {"logisticregression__C": FloatDistribution(1e-2, 1e2, log=True)}
    inducer = make_pipeline(StandardScaler(), LogisticRegression())
    learner = SelfTuningLearner(inducer, space, n_trials=3, random_state=0).fit(X, y)
    assert learner.predict_proba(X).shape == (60, 2)
    assert learner.classes_.tolist() == [0, 1]
    assert learner.decision_function(X).shape == (60,)
    assert not hasattr(SelfTuningLearner(Ridge(), SPACE), "predict_proba")


def test_auc_is_maximised(rows):
    X, y = rows[0], (rows[1] > 0).astype(int)
    space = {"C": FloatDistribution(1e-2, 1e2, log=True)}
    for loss in ("roc_auc", roc_auc_score):
        learner = SelfTuningLearner(LogisticRegression(), space, loss=loss, n_trials=4).fit(X, y)
        assert learner.best_value_ == max(trial.value for trial in learner.study_.trials) > 0.8


def test_a_positive_class_is_named_and_not_guessed(rows):
    X, y = rows[0], np.where(rows[1] > 0, 2, 1)
    space = {"C": FloatDistribution(1e-2, 1e2, log=True)}

    def best(y, loss, weight=None):
        learner = SelfTuningLearner(LogisticRegression(), space, loss=loss, n_trials=1)
        return learner.set_params(random_state=0).fit(X, y, sample_weight=weight).best_value_

    for loss in ("average_precision", "f1", make_scorer(f1_score)):
        for weight in (None, np.ones(60)):
            with pytest.raises(InvalidInputError, match=r"got 1 and 2.*make_scorer"):
                best(y, loss, weight)
    told = make_scorer(f1_score, pos_label=2)
    assert best(y, told) == best(y == 2, "f1") != best(y == 1, "f1")
    assert best(y, "f1_macro") == best(y == 2, "f1_macro")


def test_the_calibrated_loss_is_tuned_on_request(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, n_trials=1, calibrated=True, random_state=0)
    again = generalization_error(
        Ridge(**learner.fit(*rows).best_params_), *rows, 5, loss="mean_squared_error"
    )
    assert learner.best_value_ == again.calibrated != again.vanilla


def test_a_function_is_a_search_space(rows):
    def space(trial):
        positive = trial.suggest_categorical("intercept", [True, False])
        return {"fit_intercept": positive, "alpha": 2.0}

    learner = SelfTuningLearner(Ridge(), space, n_trials=2, random_state=0).fit(*rows)
    assert learner.best_estimator_.alpha == 2.0
    assert set(learner.best_params_) == {"fit_intercept", "alpha"}


def test_a_sampler_of_the_user_is_copied(rows):
    sampler = optuna.samplers.RandomSampler(seed=0)
    learner = SelfTuningLearner(Ridge(), SPACE, sampler, n_trials=2)
    first = learner.fit(*rows).best_params_
    assert learner.fit(*rows).best_params_ == first


def test_a_grid_takes_choices_and_steps_and_spreads_continuous_points():
    space = {
        "choice": CategoricalDistribution(["a", "b"]),
        "integer": IntDistribution(1, 5, step=2),
        "stepped": FloatDistribution(0.0, 0.2, step=0.1),
        "logarithm": FloatDistribution(0.1, 10.0, log=True),
        "power": IntDistribution(1, 100, log=True),
    }
    grid = grid_of(space, n_trials=2 * 3 * 3 * 9)
    assert grid["choice"] == ["a", "b"]
    assert grid["integer"] == [1, 3, 5]
    np.testing.assert_allclose(grid["stepped"], [0.0, 0.1, 0.2])
    np.testing.assert_allclose(grid["logarithm"], [0.1, 1.0, 10.0])
    assert grid["power"] == [1, 10, 100]


def test_a_grid_ends_when_it_is_exhausted(rows):
    space = {"n_neighbors": IntDistribution(1, 4)}
    learner = SelfTuningLearner(KNeighborsRegressor(), space, "grid", n_trials=30)
    assert sorted(t.params["n_neighbors"] for t in learner.fit(*rows).study_.trials) == [1, 2, 3, 4]


def test_groups_are_kept_together(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, resampling=GroupKFold(3), n_trials=2)
    learner.fit(*rows, groups=np.arange(60) // 5)
    with pytest.raises(ValueError, match="groups"):
        learner.fit(*rows)


def test_the_learner_survives_a_pickle(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, n_trials=2, random_state=0).fit(*rows)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.predict(rows[0]), learner.predict(rows[0]))


class Spy(RegressorMixin, BaseEstimator):
    """Writes down the ids, in the first column, of all rows that reach it."""

    seen: ClassVar[list[set[int]]] = []

    def __init__(self, a=0.0):
        self.a = a

    def fit(self, X, y):
        self.seen.append(set(X[:, 0].astype(int)))
        return self

    def predict(self, X):
        self.seen.append(set(X[:, 0].astype(int)))
        return np.full(len(X), self.a)


def test_outer_test_rows_never_reach_the_inner_tuning(rows):
    ids, n_trials, inner = np.arange(60)[:, None], 3, 2
    Spy.seen.clear()
    learner = SelfTuningLearner(Spy(), {"a": FloatDistribution(-1, 1)}, n_trials=n_trials)
    nested_resampling(learner, ids, rows[1], outer=FOLDS, inner=inner, loss="mean_squared_error")
    calls = 2 * n_trials * inner + 2  # all inner fits and predictions, then those of the outer
    assert len(Spy.seen) == calls * FOLDS.n_splits
    for outer, (train, test) in enumerate(FOLDS.split(ids)):
        *tuning, trained, predicted = Spy.seen[outer * calls : (outer + 1) * calls]
        assert set().union(*tuning) == set(train)
        assert (trained, predicted) == (set(train), set(test))


class Lookup(ClassifierMixin, BaseEstimator):
    """Looks at one of many columns of noise, so that tuning can only overfit."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        x, self.classes_ = X[:, self.column], np.unique(y)
        self.slope_ = x[y == 1].mean() - x[y == 0].mean()
        return self

    def predict_proba(self, X):
        positive = expit(self.slope_ * X[:, self.column])
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def test_nested_resampling_is_honest_where_the_inner_value_is_not():
    inner = StratifiedKFold(2, shuffle=True, random_state=0)
    outer = StratifiedKFold(3, shuffle=True, random_state=1)
    reported, nested = [], []
    for seed in range(8):
        X, y = np.random.default_rng(seed).normal(size=(60, 20)), np.arange(60) % 2
        learner = SelfTuningLearner(
            Lookup(), {"column": IntDistribution(0, 19)}, "grid", "roc_auc", inner, n_trials=20
        )
        reported.append(learner.fit(X, y).best_value_)
        nested.append(
            nested_resampling(learner, X, y, outer=outer, inner=inner, loss="roc_auc").value
        )
    assert np.mean(reported) > 0.6
    assert abs(np.mean(nested) - 0.5) < 3 * np.std(nested, ddof=1) / np.sqrt(len(nested))


def test_the_learner_is_an_inducer_of_scikit_learn(rows):
    learner = SelfTuningLearner(Ridge(), SPACE, n_trials=2, random_state=0)
    assert cross_val_score(clone(learner), *rows, cv=3).mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [
        SelfTuningLearner(Ridge(), SPACE, resampling=2, n_trials=2, random_state=0),
        SelfTuningLearner(
            LogisticRegression(),
            {"C": FloatDistribution(0.1, 10.0, log=True)},
            resampling=2,
            n_trials=1,
            random_state=0,
        ),
    ],
    ids=["regressor", "classifier"],
)
def test_every_check_of_scikit_learn_passes(learner):
    with pytest.warns() as caught:
        check_estimator(learner, on_skip="warn", expected_failed_checks=WEIGHTS_ARE_NO_ROWS)
    skipped = [w for w in caught if issubclass(w.category, SkipTestWarning)]
    assert len(skipped) == 1  # check_array_api_input asks for a variable
    assert len(caught) <= 1 + len(WEIGHTS_ARE_NO_ROWS)


def test_a_weight_counts_as_so_many_rows(rows):
    X, y = rows
    weight = np.tile([1, 3], 30)
    pairs = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    place = np.repeat(np.arange(60), weight)
    repeated = [tuple(np.flatnonzero(np.isin(place, side)) for side in pair) for pair in pairs]
    for loss in (None, "r2"):
        given = {"loss": loss, "n_trials": 4, "random_state": 0}
        one = SelfTuningLearner(Ridge(), SPACE, resampling=pairs, **given)
        other = SelfTuningLearner(Ridge(), SPACE, resampling=repeated, **given)
        one.fit(X, y, sample_weight=weight)
        other.fit(X[place], y[place])
        assert one.best_value_ == pytest.approx(other.best_value_)
        np.testing.assert_allclose(one.predict(X), other.predict(X))


def test_weights_reach_the_last_step_of_a_pipeline(rows):
    X, y = rows[0], (rows[1] > 0).astype(int)
    inducer = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": FloatDistribution(1e-2, 1e2, log=True)}
    weight = np.where(y, 3.0, 1.0)
    for loss, calibrated in (("log_loss", False), ("log_loss", True), ("roc_auc", False)):
        learner = SelfTuningLearner(
            inducer, space, loss=loss, n_trials=2, random_state=0, calibrated=calibrated
        )
        plain = learner.fit(X, y).predict_proba(X)[:, 1].mean()
        assert learner.fit(X, y, weight).predict_proba(X)[:, 1].mean() > plain + 0.05


@pytest.mark.parametrize(
    "scorer", ["balanced_accuracy", make_scorer(accuracy_score), "neg_log_loss"]
)
def test_a_scorer_of_scikit_learn_is_tuned(rows, scorer):
    X, y = rows[0], (rows[1] > 0).astype(int)
    space = {"C": FloatDistribution(1e-3, 1e2, log=True)}
    folds = StratifiedKFold(3)
    learner = SelfTuningLearner(
        LogisticRegression(), space, loss=scorer, resampling=folds, n_trials=4, random_state=0
    ).fit(X, y)
    again = cross_val_score(
        LogisticRegression(**learner.best_params_), X, y, scoring=scorer, cv=folds
    )
    assert learner.best_value_ == pytest.approx(again.mean())
    assert learner.best_value_ == max(trial.value for trial in learner.study_.trials)


@pytest.mark.parametrize("calibrated", [False, True])
def test_several_outputs_are_tuned_on_their_mean(rows, calibrated):
    X, y = rows
    both = np.column_stack([y, 2.0 * y + 1.0])
    learner = SelfTuningLearner(
        Ridge(), SPACE, resampling=FOLDS, n_trials=3, random_state=0, calibrated=calibrated
    )
    learner.fit(X, both)
    assert learner.predict(X).shape == (60, 2)
    ridge = Ridge(**learner.best_params_)
    each = [
        generalization_error(
            ridge, X, column, FOLDS, loss="mean_squared_error", calibrated=calibrated
        ).value
        for column in both.T
    ]
    near = 0.1 if calibrated else 1e-6  # the bias is fitted on folds that rows' names draw
    assert learner.best_value_ == pytest.approx(np.mean(each), rel=near)


def test_what_weights_and_outputs_need_is_named(rows):
    X, y = rows
    with pytest.raises(InvalidInputError, match="inducer must take sample_weight in fit"):
        SelfTuningLearner(KNeighborsRegressor(), {"p": IntDistribution(1, 2)}, n_trials=1).fit(
            X, y, np.ones(60)
        )
    labels = (np.column_stack([y, -y]) > 0).astype(int)
    trees = RandomForestClassifier(5, random_state=0)
    space = {"max_depth": IntDistribution(1, 3)}
    with pytest.raises(InvalidInputError, match="scorer where a classifier has several outputs"):
        SelfTuningLearner(trees, space, n_trials=1).fit(X, labels)
    SelfTuningLearner(trees, space, loss="f1_macro", n_trials=1, resampling=3).fit(X, labels)
    with pytest.raises(InvalidInputError, match="calibrated must be False with a scorer"):
        SelfTuningLearner(Ridge(), SPACE, loss="r2", calibrated=True, n_trials=1).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inducer": len}, "inducer must be an estimator with set_params"),
        ({"search_space": {}}, "search_space must be a mapping of names to distributions"),
        ({"search_space": {"alpha": [1, 2]}}, "search_space must be a mapping"),
        ({"sampler": "bayes"}, "sampler must be one of .*'tpe'"),
        ({"sampler": "grid", "search_space": lambda trial: {}}, "must be a mapping with a grid"),
        ({"n_trials": 0}, "n_trials must be an integer of at least 1"),
        ({"loss": lambda y, p: 0.0}, "loss must say its direction"),
        ({"loss": "rmse"}, "loss must be one of"),
    ],
)
def test_bad_input_is_named(rows, change, message):
    arguments = {"inducer": Ridge(), "search_space": SPACE, "n_trials": 1, **change}
    with pytest.raises(InvalidInputError, match=message):
        SelfTuningLearner(**arguments).fit(*rows)
