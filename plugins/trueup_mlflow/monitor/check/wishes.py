"""What the user of ``init`` said about the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trueup.errors import InvalidInputError
from trueup.monitoring.metrics import DEFAULT_METRIC

ReferenceKind = Literal["held-out", "train"]


@dataclass(frozen=True)
class Wishes:
    """What the user of ``init`` said about the reference."""

    # columns of labels, ids and times
    target: str
    row_id: str | None = None
    # {"held-out", "train"}: whether the model has seen the rows
    reference_is: ReferenceKind = "held-out"
    time: str | None = None
    time_format: str | None = None  # format of times that are text
    # columns that the check is to see, or not
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    prediction: str | None = None  # column of the model's output
    metric: str = DEFAULT_METRIC  # what is to be estimated
    predicted: str | None = None  # column of the model's predictions

    def __post_init__(self) -> None:
        if self.target in (self.row_id, self.time, *(self.features or ())):
            raise InvalidInputError(
                "target must be another column than row_id, time and features",
                repr(self.target),
                "No batch has labels: name what it has.",
            )
        if self.time_format is not None and self.time is None:
            raise InvalidInputError(
                "time must be a column where time_format is given",
                "None",
                "Name it, or leave both out.",
            )
        if self.predicted is not None and self.predicted in (self.target, self.row_id, self.time):
            raise InvalidInputError(
                "predicted must be another column than target, row_id and time",
                repr(self.predicted),
                "Name the column that holds the model's predictions.",
            )
        if self.predicted is not None and self.prediction is not None:
            raise InvalidInputError(
                "prediction must be left out where predicted is given",
                repr(self.prediction),
                "It chooses one output of a model, and none is loaded.",
            )
        if self.reference_is == "train" and self.predicted is not None:
            raise InvalidInputError(
                "reference_is must be 'held-out' where predicted is given",
                "'train'",
                "The model is refitted on training rows, and so must be loaded.",
            )
        if self.reference_is == "train" and (self.features or self.ignore):
            raise InvalidInputError(
                "reference_is must be 'held-out' where features or ignore are given",
                "'train'",
                "Of training rows the check sees all that the model takes, as it is refitted "
                "on them.",
            )
