"""What ``init`` was told and found out about the data of a model, and labels as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import finite_vector, is_binary
from trueup.monitoring.learning import SCALE_PRIOR
from trueup.monitoring.metrics import DEFAULT_METRIC
from trueup.monitoring.trust.alarms import ReferenceProfile
from trueup.read.columns import shown

IdKind = Literal["integer", "text"]


@dataclass(frozen=True)
class Schema:
    """Names of columns, what the labels are, and the reference in a few numbers."""

    # columns of the labels and of the ids
    target: str
    row_id: str | None
    features: tuple[str, ...]  # columns that the check sees
    binary: bool  # whether the labels are of two classes, so that the error is the Brier score
    # of numeric features
    means: Mapping[str, float]
    spreads: Mapping[str, float]
    inputs: tuple[str, ...] = ()  # columns that the model takes
    prediction: str | None = None  # column of the model's output that is the prediction
    classes: tuple[str, ...] = ()  # the negative and the positive class, where labels are names
    # {"integer", "text"} or None: what row ids are; None where it was not kept
    id_kind: IdKind | None = None
    reference_error: float | None = None  # error on the reference
    # how much the error may drift; see :mod:`trueup.monitoring.learning`
    scale_prior: tuple[float, ...] = SCALE_PRIOR
    profile: Mapping[str, Any] | None = None  # :class:`ReferenceProfile` as JSON
    metric: str = DEFAULT_METRIC  # what is estimated; see :mod:`trueup.monitoring.metrics`

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Schema:
        """Return the schema that ``to_json`` gave, or that an earlier version kept."""
        lists = ("features", "inputs", "classes", "scale_prior")
        return cls(**{**values, **{k: tuple(values[k]) for k in lists if k in values}})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """Features, inputs of the model and the row id, each once."""
        ids = () if self.row_id is None else (self.row_id,)
        return tuple(dict.fromkeys((*self.features, *self.inputs, *ids)))

    def features_of(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of a batch, of one row at least, that the check sees.

        A column of numbers in the reference must not be text.
        """
        rows = _columns_of(batch, self.features)
        for name in self.means:
            if not holds_numbers(rows[name]):
                raise InvalidInputError(
                    f"column {name!r} must hold numbers as in the reference",
                    str(rows[name].dtype),
                    "Convert it.",
                )
        return rows

    def inputs_of(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of a batch that the model takes; raises as ``features_of``."""
        names = self.inputs or self.features
        missing = [name for name in names if name not in batch]
        if missing:
            raise InvalidInputError(
                "rows must be what the model takes",
                f"none of its columns {missing}",
                "Pass the columns that the model was trained on.",
            )
        return _columns_of(batch, names)

    def moved(self, features: pd.DataFrame, top: int = 5) -> tuple[tuple[str, float], ...]:
        """Return the numbers whose mean moved most, in the reference's standard deviations."""
        shifts = {
            name: float((features[name].mean() - self.means[name]) / self.spreads[name])
            for name in self.means
        }
        finite = [(name, shift) for name, shift in shifts.items() if np.isfinite(shift)]
        return tuple(sorted(finite, key=lambda pair: -abs(pair[1]))[:top])

    def alarms(self, features: pd.DataFrame, y_pred: Any) -> tuple[str, ...]:
        if self.profile is None:
            return ()
        return ReferenceProfile.from_json(dict(self.profile)).alarms(features, y_pred)


def holds_numbers(column: pd.Series) -> bool:
    """Return whether a column holds numbers, by its type or its first values, or nothing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    return all(isinstance(v, int | float | np.number) for v in column.dropna().head(1_000))


def require_columns(reference: pd.DataFrame, names: Sequence[str | None]) -> None:
    """Refuse a reference that lacks a column."""
    for name in names:
        if name is not None and name not in reference:
            raise InvalidInputError(
                f"reference must have the column {name!r}",
                f"{list(reference.columns)}",
                "Check the spelling.",
            )


def numeric_moments(
    reference: pd.DataFrame, features: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return means and standard deviations of the numeric features."""
    numeric = reference[list(features)].select_dtypes("number")
    means = numeric.mean().fillna(0.0)
    spreads = numeric.std().replace(0.0, 1.0).fillna(1.0)
    return (
        {str(name): float(value) for name, value in means.items()},
        {str(name): float(value) for name, value in spreads.items()},
    )


def _columns_of(batch: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    missing = [name for name in names if name not in batch]
    if missing:
        raise InvalidInputError(
            f"batch must have the columns {list(names)}",
            f"none of {missing}",
            "Pass the features that the reference had.",
        )
    if batch.empty:
        raise InvalidInputError("batch must hold rows", "none", "Check where they come from.")
    return batch[list(names)]


def target_classes(labels: pd.Series, known: Sequence[Any]) -> tuple[str, ...]:
    """Return negative and positive class where labels are names or codes; none for numbers.

    There must be two, that the model knows; ``known`` are its classes in its own order, if it has
    any.
    """
    present = labels.dropna()
    numeric = pd.api.types.is_numeric_dtype(present.dtype)
    if numeric and (not known or is_binary(present.to_numpy(dtype=np.float64))):
        return ()
    names = sorted({class_name(value) for value in present.unique()})
    model = [class_name(value) for value in known]
    if len(model) == 2 and set(names) <= set(model):
        return (model[0], model[1])
    if len(names) > 2 or len(model) > 2:
        raise InvalidInputError(
            "target must be numbers, or two classes",
            f"{max(len(names), len(model))} classes",
            "Monitor one of them: a target that is 1 for it and 0 for the others, and the "
            "column of its probability by prediction=.",
        )
    if len(names) == 2 and not model:
        return (names[0], names[1])
    raise InvalidInputError(
        f"target must be numbers, or the two classes of the model, {model}",
        f"{names[:3]}",
        "Name them as the model does.",
    )


def label_numbers(
    name: str, labels: Any, classes: Sequence[str], rows: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Return labels as numbers: 1 for the positive class, 0 for the negative one.

    ``rows`` says which rows of the user's table they are, where these are not all.
    """
    if not classes:
        return finite_vector(name, labels)
    found = [class_name(value) for value in labels]
    unknown = next((i for i, one in enumerate(found) if one not in classes), None)
    if unknown is not None:
        raise InvalidInputError(
            f"{name} must be one of the classes {list(classes)}",
            f"{shown(list(labels)[unknown])} at index {unknown if rows is None else rows[unknown]}",
            "Name them as in the reference.",
        )
    return np.array([one == classes[1] for one in found], dtype=np.float64)


def class_name(value: Any) -> str:
    """Return the name of a class: of 1, 1.0 and "1" the same."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
