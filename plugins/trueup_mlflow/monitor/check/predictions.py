"""Predictions of a registered model: one number a row, never by a silent guess."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.artifacts import download_artifacts
from mlflow.exceptions import MlflowException
from numpy.typing import NDArray
from packaging.requirements import InvalidRequirement, Requirement

from trueup.errors import InvalidInputError
from trueup.extras import installed_version
from trueup.monitoring.panel.fitting import is_refittable
from trueup_mlflow.log.evaluated_model import raw_model
from trueup_mlflow.monitor.batch.schema import Schema, class_name
from trueup_mlflow.monitor.batch.signature import as_served, input_columns, single_output
from trueup_mlflow.write.failures import reason_of

FloatArray = NDArray[np.float64]

_log = logging.getLogger("trueup")

_MOST_COLUMNS = 10
_HARD_ROWS = 30
_ITS_FAULT = "The model, not the batch, is at fault: see what it does there."
_LOG_PROBABILITIES = 'Log the model with its probabilities: pyfunc_predict_fn="predict_proba".'


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts numbers, or the probability of the positive class."""

    pyfunc: Any
    columns = ()  # a batch needs those of the schema alone

    @classmethod
    def load(cls, uri: str) -> LoadedModel:
        """Load the model of a URI; nothing has been registered where MLflow cannot."""
        try:
            loaded = cls(mlflow.pyfunc.load_model(uri, suppress_warnings=True))
        except Exception as failure:  # whatever a flavor raises, the answer to the user is the same
            raise InvalidInputError(
                "model_uri must be a model that can be loaded here",
                f"{uri!r}: {reason_of(failure)}",
                "Install what the model needs.",
            ) from failure
        _say_other_packages(uri)
        return loaded

    @property
    def estimator(self) -> Any:
        """The scikit-learn-like model inside, or None where it cannot be refitted."""
        raw = raw_model(self.pyfunc)
        return raw if is_refittable(raw) else None

    @property
    def classes(self) -> tuple[Any, ...]:
        """Classes of a classifier, in the order of its probabilities; none for another model."""
        found = getattr(self.estimator, "classes_", None)
        return () if found is None else tuple(np.asarray(found).tolist())

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that the signature or the model inside names; none if neither does."""
        named = input_columns(self.pyfunc.metadata)
        if named:
            return named
        seen = getattr(self.estimator, "feature_names_in_", None)
        return () if seen is None else tuple(str(name) for name in seen)

    def predict(self, rows: pd.DataFrame, schema: Schema) -> FloatArray:
        """Return one number per row: the probability of the positive class of two.

        Raises InvalidInputError if the model refuses the rows, gives several columns of which none
        was chosen, hard classes in place of probabilities, or a number that is not finite.
        """
        served = as_served(schema.inputs_of(rows), self.pyfunc)
        soft = schema.binary and schema.prediction is None and self._has_probabilities
        positive = self._positive(schema) if soft else None
        try:
            if positive is not None:
                table = np.asarray(self.estimator.predict_proba(served), dtype=np.float64)
                return _finite(table[:, positive], _ITS_FAULT)
            output = self.pyfunc.predict(served)
        except InvalidInputError:
            raise
        except Exception as failure:  # a schema that differs reads differently in each flavor
            raise InvalidInputError(
                "rows must be what the model takes",
                f"{type(failure).__name__} from the model for {_kinds(served, schema)}",
                "Pass the columns that the model was trained on, of the same types. What the model "
                "says is left out, as it may show cells: its own predict on the rows shows it.",
            ) from None
        return _finite(self._one_column(output, len(served), schema), _ITS_FAULT)

    @property
    def _has_probabilities(self) -> bool:
        return hasattr(self.estimator, "predict_proba")

    def _positive(self, schema: Schema) -> int:
        """Return the column of the positive class."""
        if not schema.classes:
            return 1
        names = [class_name(one) for one in self.classes]
        if schema.classes[1] not in names:
            raise InvalidInputError(
                f"the model must know the class {schema.classes[1]!r} of the reference",
                f"the classes {names}",
                "Name the column that holds its predictions, predicted=, as init was told.",
            )
        return names.index(schema.classes[1])

    def _one_column(self, output: Any, n: int, schema: Schema) -> FloatArray:
        table = _as_frame(output, n)
        names = [str(name) for name in table.columns]
        chosen = schema.prediction or single_output(self.pyfunc, names)
        if (
            chosen is None
            and len(names) == 2
            and schema.classes
            and set(schema.classes) == {*names}
        ):
            chosen = schema.classes[1]
        if chosen is None and len(names) == 1:
            chosen = names[0]
        if chosen is None or chosen not in names:
            got = f"{len(names)} columns, {names}" if chosen is None else f"{chosen!r} of {names}"
            raise InvalidInputError(
                "prediction must name one column of what the model gives",
                str(got),
                f"Run init with prediction={names[-1]!r}, or another of them.",
            )
        return _soft(table.iloc[:, names.index(chosen)], schema, _LOG_PROBABILITIES)


@dataclass(frozen=True)
class GivenPredictions:
    """Predictions that stand in a column of the rows: no model is loaded."""

    column: str  # its name; of two classes it holds the probability of the positive one
    inputs: tuple[str, ...] = ()  # columns that the model's signature names; none if it names none
    estimator = None
    classes = ()

    @classmethod
    def of(cls, uri: str, column: str) -> GivenPredictions:
        """Return those of a model, of which only the signature is read."""
        return cls(column, input_columns(mlflow.models.Model.load(uri)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a batch needs beside those of the schema."""
        return (self.column,)

    def predict(self, rows: pd.DataFrame, schema: Schema) -> FloatArray:
        """Return the column as numbers.

        Raises InvalidInputError if it is missing, the row id or the target, or holds hard classes,
        what is no finite number, or of two classes what is no probability.
        """
        if self.column not in rows or self.column in (schema.target, schema.row_id):
            raise InvalidInputError(
                "predicted must be a column of the rows, not the row id, and not the target",
                repr(self.column),
                "Name the column that holds the model's predictions.",
            )
        way_out = "Give the model's numbers, or of two classes the probability of the positive one."
        values = _finite(_soft(rows[self.column], schema, way_out), way_out)
        outside = np.flatnonzero((values < 0.0) | (values > 1.0))
        if schema.binary and len(outside):
            raise InvalidInputError(
                "predicted must hold probabilities in [0, 1] where labels are 0 and 1",
                f"{values[outside[0]]:g} at index {outside[0]}",
                f"{way_out} Of a logit it is 1 / (1 + exp(-logit)).",
            )
        return values


def _say_other_packages(uri: str) -> None:
    """Name packages of other versions than the model asks for; MLflow's warning takes a second."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = download_artifacts(artifact_uri=f"{uri}/requirements.txt", dst_path=folder)
        except (MlflowException, OSError):  # a model may be without
            return
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    others = [other for line in lines if (other := _other_package(line))]
    if others:
        _log.warning(
            "%s asks for other packages than are installed, and may predict otherwise: %s",
            uri,
            "; ".join(others),
        )


def _other_package(line: str) -> str:
    """Return what a requirement asks for and what is installed, if that is something else."""
    try:
        asked = Requirement(line)
    except InvalidRequirement:  # an option of pip, a comment or a path
        return ""
    if asked.marker is not None and not asked.marker.evaluate():
        return ""
    installed = installed_version(asked.name)
    if installed is None:
        return f"{line} (none is installed)"
    fits = asked.specifier.contains(installed, prereleases=True)
    return "" if fits else f"{line} ({installed} is installed)"


def _as_frame(output: Any, n: int) -> pd.DataFrame:
    """Return what a model gave as a table; arrays have their positions as names."""
    table = output if isinstance(output, pd.DataFrame) else None
    if table is None:
        array = np.asarray(output)
        table = pd.DataFrame(array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1))
    if len(table) != n:
        raise InvalidInputError(
            "the model must give one prediction for each row",
            f"{len(table)} for {n}",
            "See what it does with a table.",
        )
    return table


def _soft(column: pd.Series, schema: Schema, way_out: str) -> FloatArray:
    """Return predictions as numbers; hard classes are refused."""
    rule = "predictions must be numbers, and probabilities where labels are classes"
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(rule, f"values of type {column.dtype}", way_out) from None
    if schema.binary and len(values) >= _HARD_ROWS and np.isin(values, (0.0, 1.0)).all():
        raise InvalidInputError(rule, "0 and 1 in every row", way_out)
    return values


def _finite(values: FloatArray, way_out: str) -> FloatArray:
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidInputError(
            "the model's predictions must be finite", f"{values[index]} at index {index}", way_out
        )
    return values


def _kinds(rows: pd.DataFrame, schema: Schema) -> str:
    """Return columns with their types, changed ones first; what a failure says may hold cells."""

    def changed(name: Any) -> bool:
        return str(name) in schema.means and not pd.api.types.is_numeric_dtype(rows[name].dtype)

    names = sorted(rows.columns, key=lambda name: not changed(name))
    told = [
        f"{name!r} ({rows[name].dtype}{', numbers in the reference' * changed(name)})"
        for name in names[:_MOST_COLUMNS]
    ]
    more = len(names) - len(told)
    return ", ".join(told) + f" and {more} more" * (more > 0)
