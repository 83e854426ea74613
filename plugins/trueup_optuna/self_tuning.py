"""A learner that tunes itself: a tuner of Optuna and an inducer make one scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import optuna
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    column_or_1d,
)

from trueup.arguments import whole_number
from trueup.errors import InvalidInputError
from trueup.losses import Loss
from trueup.resampling.generalization import generalization_error, read_data
from trueup.resampling.strategies import Pairs, read_splits
from trueup_optuna.inner_score import InnerScore, fit_weight, is_maximized
from trueup_optuna.tuning_samplers import (
    SearchSpace,
    check_space,
    make_pruner,
    make_sampler,
    suggest,
)

_PARAMS = "params"


def _inducer_has(name: str) -> Callable[[SelfTuningLearner], bool]:
    def check(learner: SelfTuningLearner) -> bool:
        getattr(getattr(learner, "best_estimator_", learner.inducer), name)
        return True

    return check


class SelfTuningLearner(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An inducer with its tuning: ``fit`` selects hyperparameters, then trains on all rows given.

    Parameters
    ----------
    inducer : estimator
        A scikit-learn classifier or regressor; it is cloned.
    search_space : mapping of str to distribution, or callable
        ``optuna.distributions`` by parameter name (``step__name`` inside pipelines), or a function
        ``search_space(trial)`` that returns the parameters of a trial.
    sampler : str or optuna.samplers.BaseSampler, default "tpe"
        "random", "grid", "tpe", "gp", "cmaes", "nsga2", "hyperband", or a sampler of your own,
        of which each ``fit`` uses a copy.
    loss : str, Loss or callable, optional
        What is tuned, as in :func:`trueup.resampling.generalization_error`, or a scorer of
        scikit-learn or its name; by default "log_loss" for classifiers and "mean_squared_error" for
        regressors, its mean over the outputs where there are several.
    resampling : splitter or int, default 5
        The inner resampling; the same splits for each configuration.
    n_trials : int, default 30
        Configurations to try; a grid ends earlier when it is exhausted.
    calibrated : bool, default False
        Tune the calibrated loss: right where a bias term is fitted before the model is used, since
        it does not see what the mean calibration of the raw predictions costs.
    n_jobs : int, optional
        Processes over the inner splits.
    random_state : int, RandomState or None
        Seed of the sampler.

    Attributes
    ----------
    best_params_ : dict
        The configuration selected.
    best_value_ : float
        Its inner estimate; too good, since it is the best of many. ``nested_resampling`` gives an
        honest one.
    best_estimator_ : estimator
        The inducer with that configuration, trained on all rows that ``fit`` got.
    study_ : optuna.Study
        All trials, in memory.

    Notes
    -----
    "grid" takes the choices and steps of the space, and as many points of each continuous
    parameter, evenly spaced (in the logarithm where the space says so), as ``n_trials`` allows.
    "hyperband" spends inner test sets: all configurations get the first ones, promising ones get
    all; it draws configurations by TPE. "cmaes" draws categorical parameters, and spaces of one
    dimension, at random. "gp" needs torch. Optuna logs each trial; ``optuna.logging`` quiets it.

    References
    ----------
    "12ML: Evaluation and Tuning", tuning: the self-tuning learner of a tuner.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from sklearn.linear_model import Ridge
    >>> from trueup_optuna import SelfTuningLearner
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> space = {"alpha": optuna.distributions.FloatDistribution(0.01, 100.0, log=True)}
    >>> learner = SelfTuningLearner(Ridge(), space, sampler="grid", n_trials=5).fit(X, X[:, 0])
    >>> learner.best_params_
    {'alpha': 0.01}
    """

    def __init__(
        self,
        inducer: Any,
        search_space: SearchSpace,
        sampler: str | optuna.samplers.BaseSampler = "tpe",
        loss: str | Loss | Callable[..., float] | None = None,
        resampling: Any = 5,
        *,
        n_trials: int = 30,
        calibrated: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.inducer = inducer
        self.search_space = search_space
        self.sampler = sampler
        self.loss = loss
        self.resampling = resampling
        self.n_trials = n_trials
        self.calibrated = calibrated
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Tune on resamplings of these rows, then train the selected inducer on all of them.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,) or (n, outputs)
            Labels or targets.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, in each training and in each score.
        groups : array-like of shape (n,), optional
            Groups of the rows, for grouped resampling.

        Raises
        ------
        InvalidInputError
            If a parameter has the wrong type or range.
        """
        self._check()
        if y is None:
            raise InvalidInputError(
                "y must be given",
                "None",
                "SelfTuningLearner requires y to be passed, but the target y is None.",
            )
        outputs = np.asarray(y)
        several = outputs.ndim > 1 and outputs.shape[1] > 1
        X, _, groups = read_data(X, outputs[:, 0] if several else y, groups)
        labels = outputs if several else column_or_1d(y, warn=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        stratified = is_classifier(self.inducer) and not several
        pairs = read_splits(self.resampling, X, labels, groups, classifier=stratified).pairs
        given = (self._loss(), self.inducer, labels, sample_weight)
        self._inner = InnerScore.where_needed(*given, calibrated=self.calibrated)
        self.study_ = self._tune(X, labels, pairs)
        best = self.study_.best_trial
        self.best_params_ = dict(best.user_attrs[_PARAMS])
        self.best_value_ = float(best.values[0])
        best_inducer = self._configured(self.best_params_)
        weights = fit_weight(best_inducer, sample_weight)
        self.best_estimator_ = best_inducer.fit(X, labels, **weights)
        return self

    def _is_maximized(self, y: Any) -> bool:
        return is_maximized(self._loss(), y) if self._inner is None else self._inner.sign > 0.0

    def _tune(self, X: Any, y: Any, pairs: Pairs) -> optuna.Study:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        study = optuna.create_study(
            study_name="self-tuning",  # Hyperband draws brackets from the name
            direction="maximize" if self._is_maximized(y) else "minimize",
            sampler=make_sampler(self.sampler, self.search_space, self.n_trials, seed),
            pruner=make_pruner(self.sampler, len(pairs)),
        )

        def objective(trial: optuna.Trial) -> float:
            params = suggest(trial, self.search_space)
            trial.set_user_attr(_PARAMS, params)
            return self._estimate(trial, self._configured(params), X, y, pairs)

        study.optimize(objective, n_trials=self.n_trials)
        return study

    def _estimate(self, trial: optuna.Trial, inducer: Any, X: Any, y: Any, pairs: Pairs) -> float:
        if self.sampler != "hyperband":
            return self._value(inducer, X, y, pairs)
        values: list[float] = []
        for step, pair in enumerate(pairs, start=1):
            values.append(self._value(inducer, X, y, [pair]))
            trial.report(float(np.mean(values)), step)
            if step < len(pairs) and trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(values))

    def _value(self, inducer: Any, X: Any, y: Any, pairs: Any) -> float:
        if self._inner is not None:
            return self._inner.value(inducer, X, y, pairs, self.n_jobs)
        return generalization_error(
            inducer,
            X,
            y,
            pairs,
            loss=self._loss(),
            calibrated=self.calibrated,
            n_jobs=self.n_jobs,
        ).value

    def _configured(self, params: dict[str, Any]) -> Any:
        return clone(self.inducer).set_params(**params)

    def _loss(self) -> Any:
        if self.loss is not None:
            return self.loss
        return "log_loss" if is_classifier(self.inducer) else "mean_squared_error"

    def _check(self) -> None:
        check_space(self.search_space)
        if not hasattr(self.inducer, "set_params"):
            raise InvalidInputError(
                "inducer must be an estimator with set_params",
                repr(self.inducer),
                "Wrap a training function into one.",
            )
        whole_number("n_trials", self.n_trials, 1, "30 is usual.")

    def predict(self, X: Any) -> Any:
        """Return the predictions of the selected inducer, trained on all rows that fit got."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_inducer_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, shape (n, k)."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_inducer_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the decision values of the selected inducer."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the inducer's own score: accuracy or R squared; higher is better."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight=sample_weight))

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the columns of ``predict_proba``."""
        return self._fitted("classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return int(self._fitted("n_features_in_"))

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of ``X``, where it had any."""
        return self._fitted("feature_names_in_")

    def _fitted(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name} before fit")
        return getattr(self.best_estimator_, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.inducer)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        several = own.target_tags.multi_output and own.estimator_type == "regressor"
        tags.target_tags = replace(own.target_tags, multi_output=several)
        tags.input_tags = own.input_tags
        return tags
