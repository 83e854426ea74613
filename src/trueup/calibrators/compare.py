"""The table of the paper on one's own data: every calibrator on later rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.field_offset import FieldOffsetCalibrator
from trueup.calibrators.guard import Guarded
from trueup.calibrators.histogram import HistogramCalibrator
from trueup.calibrators.ilps import ILPSCalibrator
from trueup.calibrators.isotonic import IsotonicCalibrator
from trueup.calibrators.levels import chosen_fields, fit_levels
from trueup.calibrators.neural import NeuralCalibrator
from trueup.calibrators.paired_change import log_loss_change, row_log_loss
from trueup.calibrators.platt import PlattCalibrator
from trueup.calibrators.probabilities import Columns, FloatArray, check_columns, check_probabilities
from trueup.calibrators.shift import ShiftCalibrator
from trueup.calibrators.temperature import TemperatureCalibrator
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.measure import field_calibration


@dataclass(frozen=True)
class CalibratorScore:
    """One row of the table, measured on the test rows.

    Attributes
    ----------
    name : str
        The calibrator.
    log_loss, brier_score, auc : float
        Of all test rows; log loss in nats.
    field_ece, field_rce : float
        Eq. 5 and Eq. 6 of the paper, as fractions.
    field_ece_floor : float
        What the Field-ECE of these predictions would be on average if they were the truth.
    log_loss_change, log_loss_change_standard_error : float
        Log loss minus that of the base, paired by rows.
    kept : bool or None
        What the guard says from the development rows alone; None for models that are not guarded.
    """

    name: str
    log_loss: float
    brier_score: float
    field_ece: float
    field_ece_floor: float
    field_rce: float
    auc: float
    log_loss_change: float
    log_loss_change_standard_error: float
    kept: bool | None


@dataclass(frozen=True)
class CalibratorTable:
    """Calibrators on one data set.

    Attributes
    ----------
    scores : tuple of CalibratorScore
        The base first.
    field : str
        The field of the field-level errors.
    epsilon : float
        Of the relative error.
    n_dev, n_test : int
        Rows that fitted and rows that were scored.
    """

    scores: tuple[CalibratorScore, ...]
    field: str
    epsilon: float
    n_dev: int
    n_test: int

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        head = (
            "| method | log loss | change ± SE | Brier | Field-ECE (floor) | Field-RCE | AUC "
            "| guard |\n"
            "|---|---|---|---|---|---|---|---|\n"
        )
        return head + "".join(_markdown_row(score) for score in self.scores)


def default_calibrators(field: str, random_state: int = 0) -> dict[str, Calibrator]:
    """Return those of the paper's tables, shift, temperature and field offsets, by name."""
    return {
        "shift": ShiftCalibrator(),
        "temperature": TemperatureCalibrator(),
        "histogram": HistogramCalibrator(),
        "isotonic": IsotonicCalibrator(),
        "platt": PlattCalibrator(),
        "ilps": ILPSCalibrator(),
        "neural_field_only": NeuralCalibrator(fields=field, random_state=random_state),
        "neural": NeuralCalibrator(random_state=random_state),
        "field_offset": FieldOffsetCalibrator(fields=field),
    }


def compare_calibrators(
    y_true: Any,
    y_proba: Any,
    fields: Columns,
    *,
    field: str,
    times: Any = None,
    dev_fraction: float = 0.5,
    y_proba_updated: Any = None,
    calibrators: Mapping[str, Calibrator] | None = None,
    guard: bool = True,
    epsilon: float = 0.01,
    random_state: int = 0,
) -> CalibratorTable:
    """Fit calibrators on earlier rows and score them on later ones.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels in {0, 1} of rows that the model was not trained on.
    y_proba : array-like of shape (n,)
        The model's probabilities.
    fields : mapping from name to column
        The fields that calibrators may read.
    field : str
        The sensitive field, one of ``fields``.
    times : array-like of shape (n,), optional
        Orders the rows; by default they are in order.
    dev_fraction : float, default 0.5
        Share of the rows, the earlier ones, that fit the calibrators.
    y_proba_updated : array-like of shape (n,), optional
        Predictions of the model after training went on over the development rows: the paper's
        Model-2. Only its values on the test rows are used.
    calibrators : mapping from name to Calibrator, optional
        By default those of ``default_calibrators``.
    guard : bool, default True
        Also ask the guard, which sees the development rows only.
    epsilon : float, default 0.01
        Of the relative error.
    random_state : int, default 0
        Seed of the default neural calibrators.

    Returns
    -------
    CalibratorTable
        The uncalibrated base first.

    Raises
    ------
    InvalidInputError
        If an input has the wrong shape or range.
    UndefinedMetricError
        If the development or the test rows lack a class.
    """
    y, p = np.asarray(y_true, dtype=np.float64), check_probabilities(y_proba)
    columns = check_columns(fields, len(y))
    dev, test = _split(y, p, times, dev_fraction)
    sensitive = chosen_fields(columns, field, "compare_calibrators")[field]
    judge = _Judge.of(y[test], p[test], sensitive[test], epsilon)
    scores = [judge.score("base", p[test], None)]
    if y_proba_updated is not None:
        scores.append(judge.score("base_updated", check_probabilities(y_proba_updated)[test], None))
    known = calibrators or default_calibrators(field, random_state)
    for name, calibrator in known.items():
        early, late = _rows(columns, dev), _rows(columns, test)
        fitted, kept = _fit(calibrator, p[dev], y[dev], early, guard)
        scores.append(judge.score(name, fitted.predict_proba(p[test], fields=late)[:, 1], kept))
    return CalibratorTable(tuple(scores), field, epsilon, len(dev), len(test))


@dataclass(frozen=True)
class _Judge:
    """The test rows, against which every calibrator is scored."""

    y: FloatArray
    base: FloatArray
    cell: NDArray[np.intp]
    epsilon: float

    @classmethod
    def of(cls, y: FloatArray, base: FloatArray, column: NDArray[Any], epsilon: float) -> _Judge:
        return cls(y, base, fit_levels(column).codes(column), epsilon)

    def score(self, name: str, p: FloatArray, kept: bool | None) -> CalibratorScore:
        change = log_loss_change(self.y, self.base, p, np.ones(len(p)))
        measured = field_calibration(self.y, p, self.cell, epsilon=self.epsilon)
        return CalibratorScore(
            name=name,
            log_loss=float(row_log_loss(self.y, p).mean()),
            brier_score=float(np.mean((self.y - p) ** 2)),
            field_ece=measured.ece,
            field_ece_floor=measured.floor,
            field_rce=measured.rce,
            auc=float(roc_auc_score(self.y, p)),
            log_loss_change=change.value,
            log_loss_change_standard_error=change.standard_error,
            kept=kept,
        )


def _split(
    y: FloatArray, p: FloatArray, times: Any, dev_fraction: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if p.ndim != 1 or y.shape != p.shape or not np.isin(y, (0.0, 1.0)).all():
        raise InvalidInputError(
            f"y_true must hold labels 0 and 1, one per probability; got shapes {y.shape} and "
            f"{p.shape}. Pass the probability of label 1."
        )
    if not 0.0 < dev_fraction < 1.0:
        raise InvalidInputError(
            f"dev_fraction must be in (0, 1); got {dev_fraction!r}. Use for example 0.5."
        )
    order = np.arange(len(y)) if times is None else np.argsort(np.asarray(times), kind="stable")
    n_dev = round(dev_fraction * len(y))
    dev, test = order[:n_dev], order[n_dev:]
    for part, name in ((dev, "development"), (test, "test")):
        if len(np.unique(y[part])) < 2:
            raise UndefinedMetricError(
                f"y_true must hold both classes in the {name} rows; got {len(part)} rows of one. "
                "Use more rows or another dev_fraction."
            )
    return dev, test


def _rows(columns: FieldArrays, rows: NDArray[np.intp]) -> FieldArrays:
    return {name: column[rows] for name, column in columns.items()}


def _fit(
    calibrator: Calibrator, p: FloatArray, y: FloatArray, fields: FieldArrays, guard: bool
) -> tuple[Calibrator, bool | None]:
    """Return the calibrator fitted on all rows, and whether the guard would keep it.

    The rows are in time order, so their positions serve as times. A guard that keeps a calibrator
    has fitted it on all rows already.
    """
    is_guarded = isinstance(calibrator, Guarded)
    if not (guard or is_guarded):
        return clone(calibrator).fit(p, y, fields=fields), None
    guarded = clone(calibrator if is_guarded else Guarded(calibrator))
    guarded.fit(p, y, fields=fields, times=np.arange(len(y)))
    kept = bool(guarded.decision_.kept)
    if is_guarded:
        return guarded, kept
    return (guarded.calibrator_ if kept else clone(calibrator).fit(p, y, fields=fields)), kept


def _markdown_row(score: CalibratorScore) -> str:
    cells = (
        score.name,
        f"{score.log_loss:.5f}",
        f"{score.log_loss_change:+.5f} ± {score.log_loss_change_standard_error:.5f}",
        f"{score.brier_score:.5f}",
        f"{score.field_ece:.4f} ({score.field_ece_floor:.4f})",
        f"{100 * score.field_rce:.2f}%",
        f"{score.auc:.4f}",
        {None: "", True: "kept", False: "not kept"}[score.kept],
    )
    return f"| {' | '.join(cells)} |\n"
