"""Every argument of the public functions, replaced by values that nobody meant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import trueup
from trueup import calibrators, comparison, errors, summaries

ODD_VALUES: tuple[Any, ...] = (
    None,
    "x",
    "",
    b"x",
    True,
    0,
    -1,
    2**63,
    10**400,
    0.5,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    1j,
    Decimal("0.1"),
    Decimal("sNaN"),
    Fraction(10**400),
    np.float32("nan"),
    np.datetime64("NaT"),
    [],
    [[]],
    [None],
    [10**400],
    [1, "a"],
    {},
    {"a": []},
    {1: 2},
    {"x": [1, 2, 3]},
    set(),
    range(3),
    object(),
    type,
    lambda *_: 1,
    np.zeros(0),
    np.zeros((2, 0)),
    np.zeros((2, 2, 2)),
    np.array("x"),
    np.array([{}], dtype=object),
    np.ma.masked_array([1.0], mask=[True]),
    "\x1b[2J",
    "\ud800",
)

CHECKED_BY_SKLEARN = ("X", "y")
"""Estimators of scikit-learn must raise its own errors for these, which are built-in ones."""

Call = tuple[Callable[..., Any], Mapping[str, Any]]


def _rows(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "y": np.tile([0, 1, 1], n // 3),
        "p": rng.uniform(0.05, 0.95, n),
        "w": rng.uniform(0.5, 2.0, n),
        "site": rng.integers(0, 3, n),
        "t": np.arange(n),
    }


def public_calls() -> Iterator[tuple[str, Call]]:
    """Yield a name, a function, and arguments that it takes."""
    r = _rows()
    scored = {"y_pred": r["p"], "row_id": r["t"], "sample_weight": r["w"], "times": r["t"]}
    for loss in ("log_loss", "brier_score", "mean_squared_error", "poisson_deviance"):
        fields = {"fields": {"site": r["site"]}} if loss == "log_loss" else {}
        whole = {"y_true": r["y"], "loss": loss, "split": trueup.CrossFit(), "threads": 1}
        yield f"evaluate {loss}", (trueup.evaluate, whole | scored | fields)
    plain = {"y_true": r["y"], "y_proba": r["p"]}
    yield (
        "evaluate logits",
        (trueup.evaluate, {"y_true": r["y"], "y_logit": r["p"], "labels": [0, 1]}),
    )
    yield "calibrated_log_loss", (trueup.calibrated_log_loss, {**plain, "split": trueup.InSample()})
    yield "bias_test", (trueup.bias_test, {"y_true": r["y"], "y_pred": r["p"]})
    yield (
        "bias_cost_interval",
        (
            trueup.bias_cost_interval,
            {"y_true": r["y"], "y_pred": r["p"], "confidence_level": 0.95},
        ),
    )
    field = {"field": r["site"], "sample_weight": r["w"]}
    options = {"relative": False, "epsilon": 0.01, "min_count": 0}
    yield "field_calibration_error", (trueup.field_calibration_error, plain | field | options)
    yield (
        "expected_calibration_error",
        (
            trueup.expected_calibration_error,
            {**plain, "n_bins": 15, "strategy": "uniform", "sample_weight": r["w"]},
        ),
    )
    yield "CrossFit", (trueup.CrossFit, {"folds": 5, "salt": 0})
    yield "HoldOut", (trueup.HoldOut, {"bias_fraction": 0.1, "salt": 0})
    yield "Rolling", (trueup.Rolling, {"period": 7})
    yield from _decisions()
    yield "summary_of", (summaries.summary_of, {"loss": "log_loss", "split": trueup.CrossFit()})
    yield "from_bytes", (summaries.from_bytes, {"data": summaries.LogLossSummary().to_bytes()})
    update = partial(_updated, summaries.LogLossSummary)
    yield "update", (update, {"y_true": r["y"], "y_pred": r["p"], "row_id": r["t"]})
    for kind in (
        calibrators.ShiftCalibrator,
        calibrators.PlattCalibrator,
        calibrators.TemperatureCalibrator,
        calibrators.IsotonicCalibrator,
        calibrators.HistogramCalibrator,
    ):
        fit = {"X": r["p"], "y": r["y"], "fields": {"site": r["site"]}, "sample_weight": r["w"]}
        yield f"{kind.__name__}.fit", (partial(_fitted, kind), fit)
    yield "load_calibrator", (calibrators.load_calibrator, {"path": "missing"})


def _decisions() -> Iterator[tuple[str, Call]]:
    a, b = {s: 0.5 + s / 100 for s in range(6)}, {s: 0.4 + s / 90 for s in range(6)}
    arms = {"candidate": a, "baseline": b, "confidence_level": 0.95, "min_effect": 0.0}
    arrays = {"a": list(a.values()), "b": list(b.values()), "confidence_level": 0.95}
    yield "compare", (comparison.compare, {**arms, "paired": "auto", "greater_is_better": False})
    yield "required_seeds", (comparison.required_seeds, {**arms, "power": 0.8, "paired": "auto"})
    yield "metric_accuracy", (comparison.metric_accuracy, arrays)
    yield "paired_win_rate", (comparison.paired_win_rate, arrays)
    noise = {"vanilla": arrays["a"], "calibrated": arrays["b"], "confidence_level": 0.95}
    yield "variance_reduction", (comparison.variance_reduction, noise)


def _updated(kind: type[summaries.LossSummary], **columns: Any) -> None:
    kind().update(**columns)


def _fitted(kind: type[calibrators.Calibrator], X: Any, y: Any, **more: Any) -> None:
    kind().fit(X, y, **more).predict_proba(X)


def failures(call: Call) -> Iterator[tuple[str, Any, BaseException]]:
    """Yield argument, value and exception where another one than the documented came."""
    function, arguments = call
    for name in arguments:
        for value in ODD_VALUES:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**{**arguments, name: value})
            except (errors.TrueupError, OSError):
                continue
            except (TypeError, ValueError) as refusal:
                if name not in CHECKED_BY_SKLEARN:
                    yield name, value, refusal
            except Exception as failure:
                yield name, value, failure
