"""The hooks on the training of XGBoost and LightGBM: what their own metrics scored is kept.

MLflow's autologging, and whoever logs ``evals_result``, holds the values of metrics alone. So each
training is given a callback that comes before all others and keeps, under the value of each loss
that trueup knows, the labels and predictions of the evaluation set. What is trained is not changed.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.autologging.hooking import Place, replaced, watched
from trueup_mlflow.autologging.scored import Scored

Record = Callable[[Scored], None]
OnFailure = Callable[[Exception], None]
Prepare = Callable[[dict[str, Any]], None]
_SQUARED_ERRORS = {"l2": False, "mse": False, "rmse": True}
"""Metrics that are a squared error, and whether they are the root of it."""
_LOG_LOSSES = ("logloss", "mlogloss", "binary_logloss", "multi_logloss")


def hook_xgboost(module: ModuleType, record: Record, on_failure: OnFailure) -> Callable[[], None]:
    """Keep what the metrics of XGBoost's trainings scored; return what takes the hooks off.

    ``on_failure`` takes what went wrong; the training goes on.
    """

    class Keeper(module.callback.TrainingCallback):  # type: ignore[name-defined]
        def __init__(self, evals: Any) -> None:
            super().__init__()
            self._evals = evals

        def after_iteration(self, model: Any, _epoch: int, evals_log: Any) -> bool:
            with suppress(Exception):
                try:
                    self._keep(model, evals_log)
                except Exception as failure:
                    on_failure(failure)
            return False

        def _keep(self, model: Any, evals_log: Any) -> None:
            for data, name in self._evals:
                rows = _Rows(data, partial(_predicted_by_xgboost, model, data), are_logits=True)
                for metric, values in evals_log.get(name, {}).items():
                    _keep_metric(record, metric, values[-1], rows)

    def prepare(arguments: dict[str, Any]) -> None:
        callbacks = arguments.get("callbacks") or ()
        arguments["callbacks"] = [Keeper(arguments["evals"]), *callbacks]

    return _hook_train(module, "evals", prepare)


def hook_lightgbm(module: ModuleType, record: Record, on_failure: OnFailure) -> Callable[[], None]:
    """Keep what the metrics of LightGBM's trainings scored; see :func:`hook_xgboost`."""

    def prepare(arguments: dict[str, Any]) -> None:
        keeper = _LightGBMKeeper(_names_of_sets(arguments), record, on_failure)
        own = arguments.get("feval") or ()
        arguments["feval"] = [*(own if isinstance(own, list) else [own] if own else ()), keeper.see]
        arguments["callbacks"] = [keeper.keep, *(arguments.get("callbacks") or ())]

    return _hook_train(module, "valid_sets", prepare)


def hook_cv(module: ModuleType, note: Callable[[str], None]) -> Callable[[], None]:
    """Note that a cross-validation was run, whose values are means over folds."""
    noted = watched(module.cv, before=lambda *_, **__: note(f"{module.__name__}.cv"))
    return replaced([(module, "cv", noted)])


class _LightGBMKeeper:
    """Sees the predictions as a metric of the user's, and the values as a callback."""

    def __init__(self, names: Mapping[int, str], record: Record, on_failure: OnFailure) -> None:
        self._names = names
        self._record = record
        self._on_failure = on_failure
        self._seen: dict[str, _Rows] = {}
        self.keep = partial(self._keep_safely)
        # Before those that log: LightGBM numbers callbacks without an order from below -1 upwards.
        self.keep.order = -math.inf  # type: ignore[attr-defined]
        self.keep.before_iteration = False  # type: ignore[attr-defined]

    def see(self, predictions: Any, data: Any) -> list[Any]:
        """Keep the predictions of an evaluation set; add no metric."""
        with suppress(Exception):
            kept = np.array(predictions)
            self._seen[self._names[id(data)]] = _Rows(data, lambda _: kept, are_logits=False)
        return []

    def _keep_safely(self, env: Any) -> None:
        with suppress(Exception):
            try:
                for name, metric, value, *_ in env.evaluation_result_list or ():
                    if name in self._seen:
                        _keep_metric(self._record, metric, value, self._seen[name])
            except Exception as failure:
                self._on_failure(failure)


@dataclass(frozen=True)
class _Rows:
    """An evaluation set, and what a booster predicts for it: of XGBoost margins too, as logits."""

    data: Any
    predictions: Callable[[bool], NDArray[Any]]
    are_logits: bool

    def labels(self) -> NDArray[Any]:
        return np.asarray(self.data.get_label())

    def weights(self) -> NDArray[Any] | None:
        weights = self.data.get_weight()
        return None if weights is None or not np.size(weights) else np.asarray(weights)


def _predicted_by_xgboost(model: Any, data: Any, is_margin: bool) -> NDArray[Any]:
    return np.asarray(model.predict(data, output_margin=is_margin))


def _keep_metric(record: Record, metric: str, value: float, rows: _Rows) -> None:
    if not math.isfinite(value):
        return
    if metric in _SQUARED_ERRORS:
        is_root = _SQUARED_ERRORS[metric]
        record(
            Scored(
                loss="mean_squared_error",
                value=value * value if is_root else value,
                root=value if is_root else math.sqrt(value),
                y_true=rows.labels(),
                y_pred=rows.predictions(False),
                sample_weight=rows.weights(),
            )
        )
    elif metric in _LOG_LOSSES:
        scores = rows.predictions(True)
        n_classes = scores.shape[1] if scores.ndim == 2 else 2
        if scores.ndim == 2 and n_classes == 2:
            scores = scores[:, 1] - scores[:, 0] if rows.are_logits else scores[:, 1]
        record(
            Scored(
                loss="log_loss",
                value=float(value),
                y_true=rows.labels(),
                y_pred=scores,
                sample_weight=rows.weights(),
                labels=tuple(range(n_classes)),
                are_logits=rows.are_logits,
            )
        )


def _hook_train(module: ModuleType, sets: str, prepare: Prepare) -> Callable[[], None]:
    """Let each training with evaluation sets be prepared."""
    owners = [module, *([module.sklearn] if hasattr(module, "sklearn") else [])]
    places: list[Place] = [
        (owner, "train", _prepared(owner.train, sets, prepare))
        for owner in owners
        if hasattr(owner, "train")
    ]
    return replaced(places)


def _prepared(train: Callable[..., Any], sets: str, prepare: Prepare) -> Callable[..., Any]:
    signature = inspect.signature(train)

    @functools.wraps(train)
    def prepared(*args: Any, **kwargs: Any) -> Any:
        with suppress(Exception):
            bound = signature.bind(*args, **kwargs)
            if bound.arguments.get(sets):
                prepare(bound.arguments)
                args, kwargs = bound.args, bound.kwargs
        return train(*args, **kwargs)

    return prepared


def _names_of_sets(arguments: Mapping[str, Any]) -> dict[int, str]:
    """Return the names that LightGBM gives to its evaluation sets, by the id of the set."""
    sets, names = arguments["valid_sets"], arguments.get("valid_names") or []
    sets = sets if isinstance(sets, (list, tuple)) else [sets]
    names = [names] if isinstance(names, str) else names
    named = {}
    for index, data in enumerate(sets):
        default = "training" if data is arguments["train_set"] else f"valid_{index}"
        named[id(data)] = names[index] if index < len(names) else default
    return named
