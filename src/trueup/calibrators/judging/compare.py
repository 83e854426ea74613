"""The table of the paper on one's own data: every calibrator on later rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from trueup.arguments import check_fraction
from trueup.calibrators.affine import PlattCalibrator, ShiftCalibrator, TemperatureCalibrator
from trueup.calibrators.base import Calibrator
from trueup.calibrators.field_offset import FieldOffsetCalibrator
from trueup.calibrators.ilps import ILPSCalibrator
from trueup.calibrators.inputs import (
    Columns,
    FieldArrays,
    FloatArray,
    check_columns,
    check_probabilities,
    check_weight,
    chosen_fields,
    fit_levels,
)
from trueup.calibrators.judging.calibrator_table import CalibratorScore, CalibratorTable
from trueup.calibrators.judging.drift import (
    IndexArray,
    cut_origins,
    log_loss_change,
    random_halves,
    row_log_loss,
)
from trueup.calibrators.judging.guard import Guarded
from trueup.calibrators.judging.guard_decision import GuardDecision, Priority
from trueup.calibrators.networks.neural import NeuralCalibrator
from trueup.calibrators.steps import HistogramCalibrator, IsotonicCalibrator
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.measure import field_calibration
from trueup.read.times import read_times


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
    shuffle: bool = False,
    dev_fraction: float = 0.5,
    y_proba_updated: Any = None,
    calibrators: Mapping[str, Calibrator] | None = None,
    guard: bool = True,
    priority: Priority = "field",
    windows: Sequence[float] = (1.0,),
    sample_weight: Any = None,
    epsilon: float = 0.01,
    random_state: int = 0,
    on_score: Callable[[], object] | None = None,
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
        Time of each row; by default the rows are taken to be in order.
    shuffle : bool, default False
        Where no times are given: draw the earlier and the later rows at random, the guard's halves
        as well.
    dev_fraction : float, default 0.5
        Share of the rows, the earlier ones, that fit the calibrators.
    y_proba_updated : array-like of shape (n,), optional
        Predictions of the model after training went on over the development rows: the paper's
        Model-2. Only its values on the test rows are used.
    calibrators : mapping from name to Calibrator, optional
        By default those of ``default_calibrators``.
    guard : bool, default True
        Also ask the guard, which sees the development rows only.
    priority, windows
        Of the guard, see :class:`Guarded`.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights.
    epsilon : float, default 0.01
        Of the relative error.
    random_state : int, default 0
        Seed of the default neural calibrators, and of random parts.
    on_score : callable, optional
        Called after each calibrator, for a progress bar.

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

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(0.1, 0.6, 2_000), rng.choice(["news", "shop"], 2_000)
    >>> click = rng.random(2_000) < p
    >>> table = compare_calibrators(click, p, {"site": site}, field="site", shuffle=True)
    >>> table.scores[0].name
    'base'
    """
    y, p = np.asarray(y_true, dtype=np.float64), check_probabilities(y_proba)
    _check_labels(y, p)
    columns, weight = check_columns(fields, len(y)), check_weight(sample_weight, len(y))
    order = _order(times, len(y), shuffle)
    dev, test = _split(y, weight, order, dev_fraction, random_state)
    sensitive = chosen_fields(columns, field, "compare_calibrators")[field]
    cell = fit_levels(sensitive[test]).codes(sensitive[test])
    test_rows = _TestRows(y[test], p[test], cell, weight[test], epsilon)
    scores = [test_rows.score("base", p[test])]
    if y_proba_updated is not None:
        scores.append(test_rows.score("base_updated", check_probabilities(y_proba_updated)[test]))
    how = (
        {"priority": priority, "windows": windows, "random_state": random_state} if guard else None
    )
    development = _DevelopmentRows(
        p[dev],
        y[dev],
        {name: column[dev] for name, column in columns.items()},
        weight[dev],
        None if order is None else order[dev],
        how,
    )
    late = {name: column[test] for name, column in columns.items()}
    predicted: dict[str, FloatArray] = {}
    for name, calibrator in (calibrators or default_calibrators(field, random_state)).items():
        fitted, decision = development.fitted(calibrator)
        predicted[name] = fitted.predict_proba(p[test], fields=late)[:, 1]
        score = test_rows.score(name, predicted[name], decision)
        scores.append(replace(score, note=_note(score, fitted, predicted)))
        if on_score is not None:
            on_score()
    by_chance = order is None
    return CalibratorTable(tuple(scores), field, epsilon, len(dev), len(test), by_chance)


@dataclass(frozen=True)
class _TestRows:
    """The test rows, against which every calibrator is scored."""

    y: FloatArray
    base: FloatArray
    cell: NDArray[np.intp]
    weight: FloatArray
    epsilon: float

    def score(
        self, name: str, p: FloatArray, decision: GuardDecision | None = None
    ) -> CalibratorScore:
        change = log_loss_change(self.y, self.base, p, self.weight)
        measured = field_calibration(
            self.y, p, self.cell, epsilon=self.epsilon, sample_weight=self.weight
        )
        return CalibratorScore(
            name=name,
            log_loss=float(np.average(row_log_loss(self.y, p), weights=self.weight)),
            brier_score=float(np.average((self.y - p) ** 2, weights=self.weight)),
            field_ece=measured.ece,
            field_ece_floor=measured.floor,
            field_rce=measured.rce,
            auc=float(roc_auc_score(self.y, p, sample_weight=self.weight)),
            log_loss_change=change.value,
            log_loss_change_standard_error=change.standard_error,
            kept=None if decision is None else decision.kept,
            decision=decision,
        )


@dataclass(frozen=True)
class _DevelopmentRows:
    """The development rows, and the options of the guard that judges on them, None for no guard."""

    p: FloatArray
    y: FloatArray
    fields: FieldArrays
    weight: FloatArray
    times: NDArray[Any] | None
    guard: dict[str, Any] | None

    def fitted(self, calibrator: Calibrator) -> tuple[Calibrator, GuardDecision | None]:
        """Return the calibrator fitted on these rows, and whether the guard would keep it.

        A guard that keeps a calibrator has fitted it again already.
        """
        is_guarded = isinstance(calibrator, Guarded)
        if not is_guarded and self.guard is None:
            return self._fit(clone(calibrator)), None
        guarded = clone(calibrator) if is_guarded else Guarded(calibrator, **(self.guard or {}))
        self._fit(guarded, times=self.times)
        decision: GuardDecision = guarded.decision_
        if is_guarded:
            return guarded, decision
        kept = guarded.calibrator_
        return (self._fit(clone(calibrator)) if kept is None else kept), decision

    def _fit(self, calibrator: Calibrator, **more: Any) -> Calibrator:
        return calibrator.fit(self.p, self.y, fields=self.fields, sample_weight=self.weight, **more)


def _check_labels(y: FloatArray, p: FloatArray) -> None:
    if p.ndim != 1 or y.shape != p.shape or not np.isin(y, (0.0, 1.0)).all():
        raise InvalidInputError(
            "y_true must hold labels 0 and 1, one per probability",
            f"shapes {y.shape} and {p.shape}",
            "Pass the probability of label 1.",
        )


def _order(times: Any, n: int, shuffle: bool) -> NDArray[Any] | None:
    """Return the times that the rows are split by; None where they are split at random."""
    if times is None:
        return None if shuffle else np.arange(n)
    if shuffle:
        raise InvalidInputError(
            "shuffle must be False where times are given", "True", "Leave one of them out."
        )
    return read_times(times, n)


def _split(
    y: FloatArray,
    weight: FloatArray,
    order: NDArray[Any] | None,
    dev_fraction: float,
    random_state: int,
) -> tuple[IndexArray, IndexArray]:
    check_fraction("dev_fraction", dev_fraction, "Use for example 0.5.")
    if order is None:
        halves = random_halves(len(y), 1.0 - dev_fraction, random_state)
    else:
        (halves,) = cut_origins(order, 1.0 - dev_fraction, 1)
    for part, name in ((halves.past, "development"), (halves.following, "test")):
        if len(np.unique(y[part][weight[part] > 0.0])) < 2:
            raise UndefinedMetricError(
                f"y_true must hold both classes in the {name} rows",
                f"{len(part)} rows of one",
                "Use more rows or another dev_fraction.",
            )
    return halves.past, halves.following


def _note(score: CalibratorScore, fitted: Calibrator, predicted: Mapping[str, FloatArray]) -> str:
    """Note where the test rows contradict the guard, and who predicts the same."""
    notes = []
    if score.kept and score.log_loss_change > 2.0 * score.log_loss_change_standard_error:
        notes.append("worse on the rows of this table")
    inner = getattr(fitted, "calibrator_", fitted)
    if getattr(inner, "epoch_", None) == 0:
        notes.append("its network stopped at epoch 0")
    own = predicted[score.name]
    same = [n for n, p in predicted.items() if n != score.name and np.allclose(p, own, 0.0, 1e-9)]
    if same:
        notes.append(f"predicts the same as {same[0]}")
    return ", ".join(notes)
