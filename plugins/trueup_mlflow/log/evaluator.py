"""The evaluator ``trueup`` of ``mlflow.models.evaluate``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
from mlflow.tracking import MlflowClient

import trueup
from trueup import CrossFit, Evaluation
from trueup_mlflow.log.evaluated_model import Predictions, predict
from trueup_mlflow.log.log_evaluation import log_fields
from trueup_mlflow.write.failures import describe
from trueup_mlflow.write.items import evaluation_items, metric_key
from trueup_mlflow.write.writer import Point, RunWriter

DEFAULT_LOSS = {"classifier": "log_loss", "regressor": "mean_squared_error"}
_SAME_VANILLA = 1e-5  # scikit-learn computes in the precision of the predictions


class TrueupEvaluator(ModelEvaluator):
    """Logs calibrated metrics of classifiers and regressors in ``mlflow.models.evaluate``.

    It runs with ``evaluators=None``, and where ``"trueup"`` is named, alone or in a list. The keys
    of ``evaluator_config`` that it reads, all optional:

    - ``loss``: one or more losses of :func:`trueup.evaluate`; "log_loss" for classifiers and
      "mean_squared_error" for regressors by default;
    - ``split``: a split, ``CrossFit(5)`` by default;
    - ``fields`` and ``row_id``: names of feature columns;
    - ``metric_prefix``, ``sample_weights``, ``label_list`` and ``pos_label``, as MLflow's own
      evaluators read them.

    Notes
    -----
    The run (and the LoggedModel, where there is one) gains one point for each metric. The vanilla
    metric is added only where no other evaluator has logged it. Models need probabilities:
    ``predict_proba`` of the model that was logged, or a pyfunc or a static column that gives them.
    Where there are none, the run is tagged with the reason, and the evaluation goes on.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, **_other: Any) -> bool:
        """Return whether the model is a classifier or a regressor."""
        return model_type in DEFAULT_LOSS

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        predictions: str | None = None,
        model_id: str | None = None,
        **_other: Any,
    ) -> EvaluationResult:
        """Evaluate, and log unless MLflow will do so with what is returned."""
        config = dict(evaluator_config or {})
        metrics: dict[str, float] = {}
        predicted = None
        for index, loss in enumerate(_losses(config, model_type)):
            key = metric_key(loss, config.get("metric_prefix") or "")
            try:
                predicted = predicted or predict(
                    model, dataset, model_type, config, column=predictions
                )
                evaluation = _evaluate(
                    predicted,
                    loss,
                    dataset,
                    config,
                    with_fields=index == 0,  # their calibration is the same for each loss
                )
                metrics |= _log(run_id, evaluation, key, dataset, model_id)
            except Exception as failure:  # it would end the user's whole evaluation
                RunWriter(run_id=run_id).skip(key, describe(failure))
        return EvaluationResult(metrics=metrics, artifacts={}, run_id=run_id)


def _log(
    run_id: str, evaluation: Evaluation, key: str, dataset: Any, model_id: str | None
) -> Mapping[str, float]:
    writer = RunWriter(run_id=run_id)
    items = evaluation_items(
        evaluation,
        prefix=key.removesuffix(evaluation.spec.loss),
        key=key,
        vanilla=not _has_vanilla(run_id, key, evaluation.vanilla),
    )
    if model_id is None:
        writer.log(items, Point(dataset=dataset))
    else:  # MLflow logs the returned metrics to the run and the model: once is enough
        writer.log(replace(items, metrics={}))
    log_fields(evaluation, key, writer)
    return items.metrics


def _losses(config: Mapping[str, Any], model_type: str) -> tuple[str, ...]:
    chosen = config.get("loss") or DEFAULT_LOSS[model_type]
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)


def _evaluate(
    predicted: Predictions,
    loss: str,
    dataset: Any,
    config: Mapping[str, Any],
    *,
    with_fields: bool,
) -> Evaluation:
    return trueup.evaluate(
        predicted.y_true,
        predicted.y_pred,
        loss=loss,
        split=config.get("split") or CrossFit(),
        labels=predicted.labels,
        sample_weight=config.get("sample_weights"),
        row_id=_columns(dataset, [config["row_id"]])[0] if config.get("row_id") else None,
        fields=_fields(dataset, config) if with_fields else None,
    )


def _fields(dataset: Any, config: Mapping[str, Any]) -> dict[str, Any] | None:
    names = config.get("fields") or ()
    return dict(zip(names, _columns(dataset, names), strict=True)) or None


def _columns(dataset: Any, names: Sequence[str]) -> list[Any]:
    return [dataset.features_data[name].to_numpy() for name in names]


def _has_vanilla(run_id: str, key: str, value: float) -> bool:
    """Return whether the run has the vanilla metric, which must not get a second point."""
    logged = MlflowClient().get_run(run_id).data.metrics.get(key)
    return logged is not None and math.isclose(logged, value, rel_tol=_SAME_VANILLA)
