"""Labels and probabilities (or targets and predictions) of a model that MLflow evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.read.frames import class_columns


@dataclass(frozen=True)
class Predictions:
    """What is to be evaluated; classes are in the order of the columns, None for a regressor."""

    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    labels: tuple[Any, ...] | None = None


def predict(
    model: Any,
    dataset: Any,
    model_type: str,
    config: Mapping[str, Any],
    *,
    column: str | None = None,
) -> Predictions:
    """Return the predictions of a model, or of the data set where there is no model.

    Of ``config`` the keys ``label_list`` and ``pos_label`` are read; ``column`` is that of the
    predictions, where the model returns several. Labels in place of probabilities are refused.
    """
    if dataset.labels_data is None:
        raise InvalidInputError("targets must be given", "None", "Name the column of labels.")
    y_true = np.asarray(dataset.labels_data)
    if model_type == "regressor":
        predicted = np.asarray(_predicted(model, dataset, column))
        return Predictions(y_true, predicted.astype(np.float64))
    raw = raw_model(model)
    has_probabilities = hasattr(raw, "predict_proba")
    output = (
        raw.predict_proba(_features(dataset))
        if has_probabilities
        else _predicted(model, dataset, column)
    )
    known, labels = _labels(raw, y_true, np.ndim(output), config)
    output = class_columns(output, "predictions", labels if known else None, y_true)
    probability = np.asarray(output)
    if not has_probabilities:
        _require_probabilities(probability)
    return Predictions(y_true, probability, labels)


def _features(dataset: Any) -> Any:
    return dataset.features_data.copy()  # a model may change what it is given


def _predicted(model: Any, dataset: Any, column: str | None) -> Any:
    output = dataset.predictions_data if model is None else model.predict(_features(dataset))
    if column is not None and hasattr(output, "columns"):
        output = output[column]
    return output


def _require_probabilities(output: NDArray[Any]) -> None:
    """Refuse labels: floats in (0, 1), not all at its ends, are taken as probabilities."""
    is_number = output.dtype.kind == "f"
    if not is_number or np.isin(output, (0.0, 1.0)).all():
        raise InvalidInputError(
            "predictions must be probabilities",
            f"labels of dtype {output.dtype}",
            "Log a model with predict_proba, or one whose predict returns probabilities "
            '(pyfunc_predict_fn="predict_proba" for scikit-learn).',
        )


def _labels(
    raw: Any, y_true: NDArray[Any], n_dimensions: int, config: Mapping[str, Any]
) -> tuple[bool, tuple[Any, ...]]:
    """Return whether the model or the user names the classes, and the classes."""
    of_model = getattr(raw, "classes_", None)
    if of_model is not None:
        labels = np.asarray(of_model).tolist()  # its columns, sorted or not
    else:
        listed = config.get("label_list")  # MLflow's own evaluators sort it too
        labels = np.unique(y_true if listed is None else np.asarray(listed)).tolist()
    positive = config.get("pos_label")
    if n_dimensions == 1 and positive is not None and len(labels) == 2:
        labels = [*(label for label in labels if label != positive), positive]
    return of_model is not None or config.get("label_list") is not None, tuple(labels)


def raw_model(model: Any) -> Any:
    """Return the model inside of a pyfunc; None where there is none to be had."""
    from mlflow.exceptions import MlflowException

    get_raw_model = getattr(model, "get_raw_model", None)  # a plain function has none
    if get_raw_model is None:
        return None
    try:
        return get_raw_model()
    # MLflow has no other question: in each of these ways a flavour says that it has none.
    except (NotImplementedError, MlflowException, AttributeError):
        return None
